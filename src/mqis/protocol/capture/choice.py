"""The user's filter on rows."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.capture.registry import PROTOCOLS
from mqis.protocol.capture.row import DecodedRow


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """A filter on rows; empty, it passes all. Errors of the file itself always pass."""

    protocols: frozenset[str] = frozenset()
    since_ns: int | None = None
    until_ns: int | None = None
    errors_only: bool = False

    def __post_init__(self) -> None:
        unknown = sorted(self.protocols.difference(PROTOCOLS))
        if unknown:
            known = ", ".join(PROTOCOLS)
            raise ValueError(f"unknown protocol {unknown[0]!r}; known are {known}")

    def wants(self, row: DecodedRow) -> bool:
        if not row.carrier:
            return True
        if self.protocols and self.protocols.isdisjoint((row.protocol, row.carrier)):
            return False
        if self.errors_only and row.error is None:
            return False
        if row.time_ns is None:
            return True
        is_late = self.since_ns is None or row.time_ns >= self.since_ns
        return is_late and (self.until_ns is None or row.time_ns < self.until_ns)
