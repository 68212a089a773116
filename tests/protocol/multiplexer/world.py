"""Partners that open, talk, refuse, dawdle and close at random, over sessions that get lost.

One seed is one run. Every connection has a type of its own, by which both ends of it are known, and
every message says who sent it on which connection and which one it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random

from mqis.protocol.multiplexer.events import (
    Congested,
    ConnectFailed,
    ConnectionOpened,
    ConnectionRequested,
    Denied,
    Disconnected,
    Event,
    MessageReceived,
    NotOpen,
)
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.protocol.multiplexer.multiplexed import ConnectionState, MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import MultiplexerState
from tests.protocol.multiplexer.link import Link, Side

SMALL = SessionLimits(
    ping_interval_s=4.0,
    idle_intervals=3,
    request_slots=3,
    slots_ahead=1,
    max_grant=2,
    max_incoming=12,
    max_unsent_answers=0,
    connection_queued_bytes=6000,
    session_queued_bytes=20_000,
    connection_unread_bytes=6000,
    session_unread_bytes=20_000,
)


class World(Link):
    """One session, from its start to its end."""

    def __init__(self, random: Random, limits: SessionLimits = SMALL) -> None:
        super().__init__(limits, delay=lambda: random.choice((0.0, 0.01, 0.3, 1.5)))
        self.random = random
        self.types = 0
        #: By side and connection type, the numbers that were sent and received.
        self.sent: dict[tuple[Side, int], list[int]] = defaultdict(list)
        self.received: dict[tuple[Side, int], list[int]] = defaultdict(list)
        self.known: dict[Side, list[MultiplexedConnection]] = {side: [] for side in self.sides}
        self.undecided: dict[Side, list[MultiplexedConnection]] = {side: [] for side in self.sides}
        self.refused: set[int] = set()
        self.closed: set[int] = set()
        self.ends: Counter[tuple[Side, int]] = Counter()
        self.lost: set[tuple[Side, int]] = set()

    # --- what a side does when it hears of something ----------------------------------------------

    def _listen(self, side: Side) -> bool:
        told = False
        while side.reading and (event := side.multiplexer.next_event()) is not None:
            told = True
            side.events.append(event)
            self.heard(side, event)
        return told

    def heard(self, side: Side, event: Event) -> None:
        connection = event.connection
        key = side, connection.type
        assert not self.ends[key], f"{event} after the end"
        if isinstance(event, ConnectionRequested):
            self.known[side].append(connection)
            self.undecided[side].append(connection)
            if self.random.random() < 0.6:
                self.settle(side)
        elif isinstance(event, MessageReceived):
            owner, number = bytes(event.body).split(b" ")[:2]
            assert owner == b"%d" % connection.type
            self.received[key].append(int(number))
        elif isinstance(event, Denied):
            assert connection.type in self.refused
        elif isinstance(event, ConnectFailed | Disconnected):
            self.ends[key] += 1
            if isinstance(event, Disconnected) and event.session_down:
                self.lost.add(key)

    def settle(self, side: Side) -> None:
        """Decide on all that were requested."""
        waiting, self.undecided[side] = self.undecided[side], []
        for connection in waiting:
            if self.random.random() < 0.2:
                if connection.state is ConnectionState.UNDECIDED:
                    self.refused.add(connection.type)
                side.multiplexer.deny(connection, 5, self.now)
            else:
                side.multiplexer.accept(connection, self.now)

    # --- what it does by itself -------------------------------------------------------------------

    def connect(self, side: Side) -> None:
        if side.multiplexer.state in (MultiplexerState.STARTING, MultiplexerState.UP):
            self.types += 1
            connection = side.multiplexer.connect(self.types)
            self.known[side].append(connection)
            self.send_on(side, connection)

    def send(self, side: Side) -> None:
        if self.known[side]:
            self.send_on(side, self.random.choice(self.known[side]))

    def send_on(self, side: Side, connection: MultiplexedConnection) -> None:
        sent = self.sent[side, connection.type]
        for _ in range(self.random.randint(1, 6)):
            body = b"%d %d " % (connection.type, len(sent)) + bytes(self.random.randint(0, 900))
            try:
                side.multiplexer.send(connection, 1, body)
            except (NotOpen, Congested):
                return
            sent.append(len(sent))

    def disconnect(self, side: Side) -> None:
        for connection in self.known[side]:
            if (
                connection.state in (ConnectionState.OPEN, ConnectionState.DENIED)
                and connection.outgoing
            ):
                side.multiplexer.disconnect(connection)
                self.closed.add(connection.type)
                return

    def pause(self, side: Side) -> None:
        if self.known[side]:
            side.multiplexer.pause(self.random.choice(self.known[side]))

    def resume(self, side: Side) -> None:
        for connection in self.known[side]:
            side.multiplexer.resume(connection)

    def dawdle(self, side: Side) -> None:
        side.reading = not side.reading

    def act_at_random(self) -> None:
        acts: list[Callable[[Side], None]] = [
            *[self.connect] * 3,
            *[self.send] * 8,
            *[self.disconnect] * 2,
            self.settle,
            self.pause,
            self.resume,
            self.dawdle,
        ]
        for side in self.random.sample(self.sides, self.random.randint(1, 2)):
            self.random.choice(acts)(side)

    # --- from start to end ------------------------------------------------------------------------

    def live(self, steps: int) -> None:
        for _ in range(steps):
            if self.broken:
                return
            self.act_at_random()
            self.run(until=self.now + self.random.choice((0.0, 0.0, 0.05, 0.5, 2.0)))

    def attend(self) -> None:
        """Everybody reads, decides and lets all messages come."""
        for side in self.sides:
            side.reading = True
            self.settle(side)
            self.resume(side)
        self.run()

    def finish(self) -> None:
        """The partners close what they opened and listen, until nothing is left."""
        for _ in range(100):
            self.attend()
            for side in self.sides:
                for _ in self.known[side]:
                    self.disconnect(side)
            if not any(s.multiplexer.outgoing or s.multiplexer.incoming for s in self.sides):
                break
        self.attend()

    def end(self) -> None:
        self.kill()
        self.run()
        self.attend()

    # --- what has to be true ----------------------------------------------------------------------

    def check(self) -> None:
        for side in self.sides:
            other = self.other(side)
            types = {connection.type for connection in self.known[side]}
            for connection_type in types:
                self._check_end(side, connection_type)
                came = self.received[other, connection_type]
                sent = self.sent[side, connection_type]
                assert came == sent[: len(came)], "lost within, repeated or out of order"
                orderly = (side, connection_type) not in self.lost
                if orderly and (other, connection_type) not in self.lost:
                    self._check_orderly(side, connection_type)
            assert side.multiplexer.budget.queued == side.multiplexer.budget.unread == 0
            assert not side.multiplexer.statistics.over_allocated
            assert not side.multiplexer.statistics.discarded

    def _check_end(self, side: Side, connection_type: int) -> None:
        mine = [c for c in self.known[side] if c.type == connection_type]
        (connection,) = mine
        assert connection.state is ConnectionState.GONE
        denied_here = not connection.outgoing and connection_type in self.refused
        assert self.ends[side, connection_type] == (0 if denied_here else 1)

    def _check_orderly(self, side: Side, connection_type: int) -> None:
        opened = any(
            isinstance(e, ConnectionOpened) and e.connection.type == connection_type
            for s in self.sides
            for e in s.events
        )
        if (
            opened
            and connection_type not in self.refused
            and not self.broken_while(connection_type)
        ):
            came = self.received[self.other(side), connection_type]
            assert came == self.sent[side, connection_type], "lost although nothing broke"

    def broken_while(self, connection_type: int) -> bool:
        """Returns whether the session ended before the opener closed the connection."""
        return connection_type not in self.closed

    def talk(self) -> int:
        return sum(len(numbers) for numbers in self.received.values())
