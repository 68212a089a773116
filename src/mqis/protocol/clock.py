"""Instants: the time that is passed to every machine, which has no clock of its own."""

from __future__ import annotations

from typing import NamedTuple


class Instant(NamedTuple):
    """One moment by two clocks: timers use the first, records and properties the second."""

    #: Seconds of a monotonic clock.
    monotonic: float
    #: Seconds since 1970.
    unix: float

    @property
    def unix_us(self) -> int:
        return int(self.unix * 1_000_000)
