"""The section [monitoring] of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.config.checks import about, as_address, as_flag, as_port


@dataclass(frozen=True, slots=True)
class MonitoringSection:
    """Where a server tells how it is: GET /status, /metrics and /health over HTTP."""

    enabled: bool = field(
        default=False,
        metadata=about(as_flag, "Whether to tell. Whoever can connect there can read it all."),
    )
    listen: str = field(
        default="127.0.0.1",
        metadata=about(
            as_address, "The address of this computer to listen at; 0.0.0.0 is all of them."
        ),
    )
    port: int = field(
        default=9364, metadata=about(as_port, "The TCP port for that. 0: one that is free.")
    )
