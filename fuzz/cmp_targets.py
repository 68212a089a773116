"""The target for a whole multiplexer with a hostile partner, which sends a series of boxcars.

Only a boxcar with a wrong header may be refused. Whatever else arrives, the machine continues,
reports the end of every connection once, and releases all its room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from struct import unpack_from

from mqis.protocol.multiplexer.events import (
    AskForConnections,
    Congested,
    ConnectFailed,
    ConnectionRequested,
    Disconnected,
    MessageReceived,
    NotOpen,
    SendBoxcar,
)
from mqis.protocol.multiplexer.held_bytes import ByteBudget
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.protocol.multiplexer.multiplexed import ConnectionState, MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import Multiplexer
from mqis.wire.cmp.boxcar import HEADER_SIZE, BoxcarReader
from mqis.wire.errors import WireError

_LIMITS = SessionLimits(
    connection_unread_bytes=4096, session_unread_bytes=8192, max_incoming=6, max_unsent_answers=0
)
_DENY, _PAUSE, _CLOSE = 2, 3, 4


class _Upper:
    """An upper layer that acts in all ways, depending on connection type and message type."""

    def __init__(self, multiplexer: Multiplexer) -> None:
        self.multiplexer = multiplexer
        self.mine = [multiplexer.connect(number) for number in range(4)]
        self.ended: Counter[MultiplexedConnection] = Counter()
        self.requested: list[MultiplexedConnection] = []

    def act(self, now: float) -> None:
        multiplexer = self.multiplexer
        while (event := multiplexer.next_event()) is not None:
            connection = event.connection
            if isinstance(event, ConnectFailed | Disconnected):
                self.ended[connection] += 1
            elif isinstance(event, ConnectionRequested):
                self.requested.append(connection)
                if connection.type % 5 == _DENY:
                    multiplexer.deny(connection, 5, now)
                elif connection.type % 5 != _PAUSE:
                    multiplexer.accept(connection, now)
            elif isinstance(event, MessageReceived):
                self._answer(connection, event, now)

    def _answer(
        self, connection: MultiplexedConnection, event: MessageReceived, now: float
    ) -> None:
        with suppress(NotOpen, Congested):
            self.multiplexer.send(connection, event.packet.user_msg_type, event.body)
        if event.packet.user_msg_type % 5 == _PAUSE:
            self.multiplexer.pause(connection)
        if event.packet.user_msg_type % 5 == _CLOSE and connection.outgoing:
            with suppress(NotOpen):
                self.multiplexer.disconnect(connection)

    def late(self, now: float) -> None:
        """Decides and resumes all that is still pending."""
        for connection in [*self.requested, *self.mine]:
            if connection.state is ConnectionState.UNDECIDED:
                self.multiplexer.accept(connection, now)
            self.multiplexer.resume(connection)


def _boxcars(data: bytes) -> Iterator[tuple[bytes, int]]:
    at = 0
    while len(data) - at >= HEADER_SIZE:
        total, count = unpack_from("<2I", data, at + 8)
        size = min(max(total, HEADER_SIZE), len(data) - at)
        yield data[at : at + size], count
        at += size


def _drive(multiplexer: Multiplexer, now: float) -> None:
    for effect in multiplexer.effects():
        if isinstance(effect, SendBoxcar):
            assert len(list(BoxcarReader(effect.data, effect.count))) == effect.count
            if now % 3:
                multiplexer.boxcar_delivered(now)
        elif isinstance(effect, AskForConnections):
            multiplexer.resources_granted(3, now)


def multiplexer(data: bytes) -> None:
    budget = ByteBudget()
    machine = Multiplexer(_LIMITS, budget)
    upper = _Upper(machine)
    machine.session_up(0.0)
    machine.resources_requested(5)
    now = 0.0
    for boxcar, count in _boxcars(data):
        now += 1.0
        with suppress(WireError, NotOpen):
            machine.receive(boxcar, count, now)
        machine.handle_timer(now)
        _drive(machine, now)
        if now % 2:
            upper.act(now)
        if now % 5 == 0:
            upper.late(now)
    machine.session_down(now)
    upper.late(now)
    upper.act(now)
    refused = {connection for connection in upper.requested if connection.type % 5 == _DENY}
    for connection in {*upper.mine, *upper.requested}:
        wanted = {0, 1} if connection in refused else {1}
        assert upper.ended[connection] in wanted, connection
    assert (budget.queued, budget.unread) == (0, 0)


#: Name, function, and the errors that it may raise: none.
CMP_TARGETS: tuple[tuple[str, Callable[[bytes], None], tuple[type[Exception], ...]], ...] = (
    ("multiplexer", multiplexer, ()),
)
