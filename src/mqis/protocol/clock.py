"""The moment at which a machine is asked to do something."""

from __future__ import annotations

from typing import NamedTuple


class Instant(NamedTuple):
    """One moment by two clocks: timers go by the first, records and properties by the second."""

    #: Seconds by a clock that never goes back.
    monotonic: float
    #: Seconds since 1970.
    unix: float

    @property
    def unix_us(self) -> int:
        return int(self.unix * 1_000_000)
