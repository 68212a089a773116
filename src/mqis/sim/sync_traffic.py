"""Checks that servers do not repeat sync requests too often."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from mqis.sim.run_trace import Violation
from mqis.texts import counted, duration
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.layout import asked_from, operation_in
from mqis.wire.mqdsrp.messages import MessageOperation
from mqis.wire.seqnum import SequenceNumber

#: A server may send so many requests for one partition in a minute without progress.
_MAX_REQUESTS = 20
_WINDOW_S = 60.0
#: A restored authority first requests from a number above all that exist.
_NOBODYS = SequenceNumber(1 << 63)


@dataclass(slots=True)
class _Asked:
    """One server's requests to another for one partition."""

    times: deque[float] = field(default_factory=deque)
    #: The highest number requested from; a higher one shows that an answer has arrived.
    reached: SequenceNumber = SequenceNumber.MIN


class SyncTraffic:
    """The recent sync requests of every server for every partition."""

    def __init__(self, count: Callable[[str], None] = lambda kind: None) -> None:
        self._count = count
        self._asked: dict[tuple[str, str, Guid], _Asked] = {}
        self.messages = 0

    def sent(self, sender: str, machine: str, body: bytes, now: float) -> None:
        self.messages += 1
        if operation_in(body) != MessageOperation.SYNC_REQUEST:
            return
        partition, from_seq = asked_from(body)
        asked = self._asked.setdefault((sender, machine, partition), _Asked())
        if asked.reached < from_seq < _NOBODYS:
            asked.reached = from_seq
            asked.times.clear()
        times = asked.times
        times.append(now)
        while times[0] < now - _WINDOW_S:
            times.popleft()
        if len(times) > 1:
            self._count("asked again")
        if len(times) > _MAX_REQUESTS:
            raise Violation(
                "bounded traffic",
                f"{sender} asks {machine} {counted(len(times), 'time')} in {duration(_WINDOW_S)}, "
                "to no effect",
            )

    def progressed(self, server: str) -> None:
        """Forgets a server's requests, because it has made progress."""
        for key in [key for key in self._asked if key[0] == server]:
            del self._asked[key]
