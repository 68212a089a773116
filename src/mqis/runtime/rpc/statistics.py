"""Counters and timings of calls, by operation."""

from __future__ import annotations

from collections.abc import Mapping

from mqis.runtime.histogram import CALL_SECONDS, Histogram
from mqis.runtime.rpc.incoming import Service

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
