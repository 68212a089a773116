"""What is counted of calls, by operation."""

from __future__ import annotations

from mqis.runtime.histogram import CALL_SECONDS, Histogram
from mqis.runtime.rpc.incoming import Service
from mqis.wire.hresult import HResult, is_failure

_KNOWN = frozenset(int(result) for result in HResult)


#: Of calls that are answered at once, one in so many is timed: to look at the clock twice and to
#: find the bucket takes longer than the rest of what is counted. Calls that wait for something,
#: such as a commit, are all timed.
TIMED_EVERY = 8


class OperationStatistics:
    """The calls of one operation: how many, how long, and which did not succeed."""

    __slots__ = ("calls", "failures", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = Histogram(CALL_SECONDS)
        #: By the result that the response carried, where that is an error's.
        self.failures: dict[int, int] = {}

    def failed(self, result: int) -> None:
        """Results that this software does not know count as 0: a peer may have chosen them."""
        if is_failure(result):
            key = result if result in _KNOWN else 0
            self.failures[key] = self.failures.get(key, 0) + 1


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
