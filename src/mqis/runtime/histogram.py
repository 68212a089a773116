"""Histograms of durations and sizes.

An observation takes a third of a microsecond and no lock: each histogram has one thread that adds
to it, and a reader in another may see one observation more in a bucket than in the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from mqis.runtime.rpc.incoming import Service

#: Seconds, from an answer out of memory to a timeout.
CALL_SECONDS = (
    *(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01),
    *(0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
#: Flushes of a disk.
FLUSH_SECONDS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
#: Sizes of batches.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Histogram:
    """A histogram with ascending ``bounds``, each the inclusive upper bound of its bucket."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def buckets(self) -> list[tuple[float, int]]:
        """Each bound with the number of observations up to it; the last bound is infinity."""
        through, found = 0, []
        for bound, count in zip((*self._bounds, float("inf")), list(self._counts), strict=True):
            through += count
            found.append((bound, through))
        return found


#: One in this many of the calls that are answered at once is timed: reading the clock twice and
#: finding the bucket costs more than the other counters. Calls that wait for something, such as
#: a commit, are all timed.
TIMED_EVERY = 8


class OperationStatistics:
    """The number of calls of one operation, and the durations of the timed ones."""

    __slots__ = ("calls", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = Histogram(CALL_SECONDS)


class Served:
    """A service with its counters."""

    __slots__ = ("operations", "service")

    def __init__(self, service: Service) -> None:
        self.service = service
        #: By operation number; calls of unknown operations are refused before.
        self.operations = tuple(OperationStatistics() for _ in range(service.interface.operations))

    def name_of(self, opnum: int) -> str:
        names = getattr(self.service, "operation_names", {})
        return str(names.get(opnum, opnum))

    def failures(self) -> Mapping[int, Mapping[int, int]]:
        """The failures by operation and result, if the service counts them."""
        found: Mapping[int, Mapping[int, int]] = getattr(self.service, "failures", {})
        return found
