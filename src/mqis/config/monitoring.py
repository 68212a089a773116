"""The section [monitoring] of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.config.checks import about, as_address, as_flag, as_monitors, as_port, between
from mqis.texts import host_port


@dataclass(frozen=True, slots=True)
class MonitoringSection:
    """The monitoring endpoint: GET /status, /metrics and /health over HTTP."""

    enabled: bool = field(
        default=False,
        metadata=about(as_flag, "Serve status and metrics. Anyone who can connect can read them."),
    )
    listen: str = field(
        default="127.0.0.1",
        metadata=about(
            as_address, "The address of this computer to listen at; 0.0.0.0: all addresses."
        ),
    )
    port: int = field(
        default=9364, metadata=about(as_port, "The TCP port of the endpoint. 0: a free one.")
    )
    peers: tuple[str, ...] = field(
        default=(),
        metadata=about(
            as_monitors,
            "The monitoring endpoints of other servers, http://HOST:PORT each. The contents of "
            "this server's copies are compared with theirs, and /health reports a difference.",
            live=True,
        ),
    )
    verify_s: int = field(
        default=3600,
        metadata=about(
            between(0, 2_592_000),
            "Seconds between two verifications of the store against its digests, and between two "
            "checks of the journal's files, the first at the start. 0: never.",
        ),
    )

    @property
    def local_url(self) -> str:
        """Where a program on this computer reaches the endpoint; empty if it has no fixed place."""
        if not self.enabled or not self.port:
            return ""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.listen, self.listen)
        return f"http://{host_port(host, self.port)}"
