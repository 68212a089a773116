"""The recent past of an enterprise, from the numbers that the servers' monitoring reports.

The console keeps a limited number of samples in memory. A sample has four numbers for each server;
NaN stands for a number that was not known then.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from math import isnan, nan
from threading import Lock

from mqis.enterprise.status import EnterpriseStatus, MemberStatus

#: No server counts further; a greater number is an error of the server.
_MOST = 1e15
#: Two threads may poll at once, and the one that began earlier may end later.
_OVERLAP_S = 60.0


class Measure(IntEnum):
    """One of the numbers of a sample, by its place."""

    #: Changes that the server's replicas lack.
    LAG = 0
    #: Changes in a second that the server made as an authority.
    CHANGES = 1
    #: Messages that wait for delivery to other servers.
    WAITING = 2
    #: Open sessions with other servers.
    SESSIONS = 3


@dataclass(frozen=True, slots=True)
class StatusSample:
    """The numbers of all servers at one moment."""

    #: Seconds since the epoch.
    time: float
    servers: tuple[str, ...]
    #: Servers that were not up.
    silent: int
    #: By server, then by measure: eight bytes each.
    numbers: array[float] = field(repr=False)

    def of(self, server: str, measure: Measure) -> float:
        """The number of a server; NaN if it was not known."""
        if server not in self.servers:
            return nan
        return self.numbers[self.servers.index(server) * len(Measure) + measure]

    def worst(self, measure: Measure) -> tuple[float, str]:
        """The highest number and its server; NaN if none was known."""
        column = self.numbers[measure :: len(Measure)]
        pairs = [pair for pair in zip(column, self.servers, strict=True) if not isnan(pair[0])]
        return max(pairs, key=lambda pair: pair[0], default=(nan, ""))

    def total(self, measure: Measure) -> float:
        """The sum of the known numbers; NaN if none was known."""
        known = [n for n in self.numbers[measure :: len(Measure)] if not isnan(n)]
        return sum(known) if known else nan


class SampleHistory:
    """The samples of the last ``every_s * most`` seconds, for all threads."""

    def __init__(self, every_s: float, most: int) -> None:
        self.every_s = every_s
        self._kept: deque[StatusSample] = deque(maxlen=most)
        #: The changes that each server has counted, and when.
        self._made: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def samples(self) -> tuple[StatusSample, ...]:
        with self._lock:
            return tuple(self._kept)

    def is_due(self, now: float) -> bool:
        """Returns whether the last sample is old enough for another; also after a clock change."""
        with self._lock:
            return self._is_due(now)

    def add(self, status: EnterpriseStatus) -> bool:
        """Keeps the numbers of a status; returns False if the last sample is too recent."""
        with self._lock:
            if not self._is_due(status.taken):
                return False
            if self._kept and status.taken < self._kept[-1].time:
                self._kept.clear()  # the clock was set back
                self._made.clear()
            self._kept.append(self._sample(status))
            return True

    def _is_due(self, now: float) -> bool:
        if not self._kept:
            return True
        return not -_OVERLAP_S <= now - self._kept[-1].time < self.every_s

    def _sample(self, status: EnterpriseStatus) -> StatusSample:
        names = tuple(server.name for server in status.servers)
        if self._kept and self._kept[-1].servers == names:
            names = self._kept[-1].servers  # one tuple for all samples
        numbers = array("d")
        for server in status.servers:
            numbers.extend((_lag(server), self._rate(server, status.taken), *_traffic(server)))
        self._made = {name: made for name, made in self._made.items() if name in names}
        silent = sum(not server.state.is_expected for server in status.servers)
        return StatusSample(status.taken, names, silent, numbers)

    def _rate(self, server: MemberStatus, now: float) -> float:
        """Changes in a second since the sample before; a counter that fell has restarted."""
        made = _sound(server.counters.get("changes_made"))
        before = self._made.pop(server.name, None)
        if isnan(made):
            return nan
        self._made[server.name] = now, made
        if before is None or now <= before[0]:
            return nan
        grown = made - before[1]
        return (grown if grown >= 0 else made) / (now - before[0])


def _lag(server: MemberStatus) -> float:
    return nan if server.partitions is None else float(server.distance.changes)


def _traffic(server: MemberStatus) -> tuple[float, float]:
    """The messages that wait and the sessions; not known if the server does not answer."""
    waiting = sum(_sound(peer.queued) for peer in server.peers) if server.counters else nan
    return waiting, _sound(server.counters.get("sessions"))


def _sound(value: object) -> float:
    """A number that a server reports; NaN for anything that cannot be such a number."""
    sound = isinstance(value, int | float) and 0 <= value <= _MOST
    return float(value) if sound else nan  # type: ignore[arg-type]
