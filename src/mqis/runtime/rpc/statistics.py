"""What is counted of calls, by operation."""

from __future__ import annotations

from collections.abc import Mapping

from mqis.runtime.histogram import CALL_SECONDS, Histogram
from mqis.runtime.rpc.incoming import Service

#: Of calls that are answered at once, one in so many is timed: to look at the clock twice and to
#: find the bucket takes longer than the rest of what is counted. Calls that wait for something,
#: such as a commit, are all timed.
TIMED_EVERY = 8


class OperationStatistics:
    """The calls of one operation: how many, and how long those that were timed took."""

    __slots__ = ("calls", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = Histogram(CALL_SECONDS)


class Served:
    """A service behind a port, with what was counted of it."""

    __slots__ = ("operations", "service")

    def __init__(self, service: Service) -> None:
        self.service = service
        #: By number; calls of others do not get this far.
        self.operations = tuple(OperationStatistics() for _ in range(service.interface.operations))

    def name_of(self, opnum: int) -> str:
        names = getattr(self.service, "operation_names", {})
        return str(names.get(opnum, opnum))

    def failures(self) -> Mapping[int, Mapping[int, int]]:
        """By operation and result, where the service counts them."""
        found: Mapping[int, Mapping[int, int]] = getattr(self.service, "failures", {})
        return found
