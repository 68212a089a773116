"""Whether servers ask more often than there is reason to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from mqis.sim.violation import Violation
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.layout import asked_from, operation_in
from mqis.wire.mqdsrp.messages import Operation
from mqis.wire.seqnum import SequenceNumber

#: Without having got any further, one partition may be asked for so often in a minute.
_MAX_REQUESTS = 20
_WINDOW_S = 60.0
#: A restored authority first asks from a number that nobody has.
_NOBODYS = SequenceNumber(1 << 63)


@dataclass(slots=True)
class _Asked:
    """One server's requests to another for one partition."""

    times: deque[float] = field(default_factory=deque)
    #: Who asks from a higher number than ever has got a part of the answer.
    reached: SequenceNumber = SequenceNumber.MIN


class Traffic:
    """Sync requests of every server for every partition, lately."""

    def __init__(self, count: Callable[[str], None] = lambda kind: None) -> None:
        self._count = count
        self._asked: dict[tuple[str, str, Guid], _Asked] = {}
        self.messages = 0

    def sent(self, sender: str, machine: str, body: bytes, now: float) -> None:
        self.messages += 1
        if operation_in(body) != Operation.SYNC_REQUEST:
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
                f"{sender} asks {machine} {len(times)} times in {_WINDOW_S:.0f} s, to no effect",
            )

    def progressed(self, server: str) -> None:
        """A server has something new: what it asks now is another question."""
        for key in [key for key in self._asked if key[0] == server]:
            del self._asked[key]
