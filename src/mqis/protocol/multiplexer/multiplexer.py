"""The multiplexer of one session: MS-CMP without any input or output of its own.

Two partners have one session. Either may open connections on it; a connection is a two-way, ordered
stream of messages with a type, and only the side that opened it may close it. What both send shares
boxcars, and a boxcar is one SendReceive call of the session below. A session of MS-CMPO therefore
has one ``Multiplexer``, from the moment the session is requested until it is down; the next
session gets a new one, with counts at zero.

**The session below** (the driver of RPC) tells the multiplexer what happens::

    multiplexer = Multiplexer(limits, budget)       # may already be used: connections wait
    multiplexer.session_up(now)                     # the session is Active, requested here or there
    multiplexer.receive(boxcar, count, now)         # the partner's SendReceive: see below
    multiplexer.boxcar_delivered(now)               # own SendReceive returned 0
    multiplexer.resources_granted(count, now)       # own NegotiateResources returned this many
    multiplexer.resources_refused(now, reason)      # it failed
    multiplexer.resources_requested(count)          # the partner's: what to return, 0 fails it
    multiplexer.session_down(now, reason)           # it is gone, or a call on it failed
    multiplexer.next_timer(); multiplexer.handle_timer(now)
    multiplexer.ping()                              # besides those that the timer sends

and after every call, of either layer, asks what is to be done::

    for effect in multiplexer.effects():            # SendBoxcar, NegotiateResources,
        ...                                         # ReleaseCall, TearDown
    for other in budget.woken():                    # sessions that got room through this call
        ...

``receive`` raises ``WireError`` for a boxcar that is refused as a whole (answer 0x80070057; nothing
was touched) and ``NotOpen`` when the session is not up (0x80000119). It returns True if the call
may return 0 at once and False if it has to wait for the effect ``ReleaseCall``. That is all the
flow control there is: one boxcar at a time per session, so a call that does not return stops the
partner. Its own RPC timer limits our patience: a layer above that reads nothing for 12 seconds
loses the session.

**The layer above** opens, accepts, sends and closes::

    connection = multiplexer.connect(0x101)         # Opened, or ConnectFailed, will follow
    multiplexer.send(connection, 0x2001, body)      # at once: shares the boxcar of the request
    multiplexer.accept(connection, now)             # or deny(connection, reason, now)
    multiplexer.disconnect(connection)              # only what was opened here
    multiplexer.pause(connection); multiplexer.resume(connection)
    while (event := multiplexer.next_event()) is not None: ...
    connection.sink = take                          # take(type, body) instead of MessageReceived

A sink gets its messages inside ``receive``, in their order: those that have to wait, for the
decision on their connection or because it is paused, are events all the same.

Every connection of ``connect`` ends in exactly one ``ConnectFailed`` or ``Disconnected``; every
connection that came with ``ConnectionRequested`` ends in one ``Disconnected``, unless it was denied
here, which is the last that its owner hears of it.

**Messages.** The tag alone says which table a message is about; for user messages fIsMaster
does: 1 comes from the opener, so the connection is among the *incoming* ones here. 3.1.5.6 has
this the wrong way round (E-CMP-01).

    tag                    table     condition                    what happens
    CONNECTION_REQ         incoming  no slot, or the id is known  nothing, not even an answer
                                     else                         ConnectionRequested
    USER_MESSAGE, 1        incoming  accepted                     MessageReceived
    USER_MESSAGE, 0        outgoing  known                        MessageReceived
    DISCONNECT             incoming  known                        Disconnected; answer DISCONNECTED
    CONNECTION_REQ_DENIED  outgoing  known                        Denied
    DISCONNECTED           outgoing  DISCONNECT was queued        Disconnected; id and slot are free
    PING                   none                                   nothing
    anything else          none                                   the rest of the boxcar is dropped

Everything that finds no connection is dropped in silence; ``statistics`` count it. While a
connection is not decided on, all messages with its id wait, in order (3.1.5, E-CMP-16).

**Slots.** A partner opens as many connections as the other side has granted it. ``connect`` takes a
free slot, or waits while more are negotiated; a few are asked for in advance, and when the partner
grants fewer than wanted, again until it refuses.

**Boxcars.** A message joins the last boxcar that waits. When ``effects`` is called and no call is
under way, the first one is sent, and the next one fills meanwhile. So a lone message is sent at
once (E-CMP-22), and a busy session sends full boxcars.

**Room** is counted for each connection, session and process, in both directions. What may not be
queued raises ``Congested``, and ``Writable`` follows; what is not read withholds ``ReleaseCall``.
A paused connection's events wait aside while the others' flow, up to its own limit. Requests and
answers are never held up. Their number is bounded by the slots: an opener keeps an id until it has
the answer, so more than two unsent answers for each slot mean that the partner breaks the rules.
A note in 3.1.5.3 can be read as permission to do so (E-CMP-14); thousands of them end a session.

**Time.** With both tables empty the idle timer runs; when it expires, the session is torn down
without any event. A PING is sent when nothing was sent for a while: its call fails if the
partner is gone. Receiving one changes nothing.

**The end.** When the session is down, or a call on it failed (E-CMP-23), every connection gets its
``Disconnected``, waiting ones their ``ConnectFailed``, and the multiplexer stays ``DOWN``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType

from mqis.protocol.multiplexer.boxcar_queue import BoxcarQueue
from mqis.protocol.multiplexer.connection_tables import IncomingTable, OutgoingTable
from mqis.protocol.multiplexer.events import (
    AskForConnections,
    ConnectFailed,
    ConnectionOpened,
    ConnectionRequested,
    Denied,
    Disconnected,
    Effect,
    Event,
    MessageReceived,
    MultiplexerStatistics,
    NotOpen,
    ReleaseCall,
    TearDown,
    Writable,
)
from mqis.protocol.multiplexer.held_bytes import ByteBudget
from mqis.protocol.multiplexer.inbox import Inbox, with_own_data
from mqis.protocol.multiplexer.limits import UNREAD_OVERHEAD, SessionLimits
from mqis.protocol.multiplexer.multiplexed import (
    ConnectionState,
    MultiplexedConnection,
    Notification,
)
from mqis.protocol.multiplexer.outbox import Outbox
from mqis.wire.cmp.boxcar import BoxcarReader
from mqis.wire.cmp.packet import MAX_DATA, MsgTag, Packet
from mqis.wire.errors import WireError

NOTHING_GRANTED = "the partner grants no connections"

_U32 = 0xFFFFFFFF
_SENDABLE = (ConnectionState.OPEN, ConnectionState.WAITING)
_DISCONNECTABLE = (ConnectionState.OPEN, ConnectionState.DENIED)


class MultiplexerState(Enum):
    STARTING = "not up yet"
    UP = "up"
    CLOSING = "being torn down because it was idle"
    DOWN = "down"


class Multiplexer:
    """The connections of one session; see above."""

    def __init__(
        self, limits: SessionLimits | None = None, budget: ByteBudget | None = None
    ) -> None:
        self.limits = limits or SessionLimits()
        self.budget = budget or ByteBudget()
        self.state = MultiplexerState.STARTING
        self.statistics = MultiplexerStatistics()
        self._outgoing = OutgoingTable()
        self._incoming = IncomingTable()
        self._queue = BoxcarQueue()
        self._outbox = Outbox(self.limits, self.budget, self._queue, self)
        self._inbox = Inbox(self.limits, self.budget)
        self._effects: list[Effect] = []
        self._calls_held = 0
        self._idle_due: float | None = None
        self._ping_due: float | None = None

    @property
    def outgoing(self) -> Mapping[int, MultiplexedConnection]:
        """The Outgoing Connection Table."""
        return MappingProxyType(self._outgoing.connections)

    @property
    def incoming(self) -> Mapping[int, MultiplexedConnection]:
        """The Incoming Connection Table."""
        return MappingProxyType(self._incoming.connections)

    @property
    def boxcars_waiting(self) -> int:
        """The number of boxcars that wait, without the one in flight."""
        return len(self._queue)

    # --- the session below ------------------------------------------------------------------------

    def effects(self) -> list[Effect]:
        """The effects to carry out now; this closes the boxcar at the head of the queue."""
        if self.state is MultiplexerState.UP and (boxcar := self._queue.depart()) is not None:
            self.statistics.boxcars_sent += 1
            self.statistics.messages_sent += boxcar.count
            self._effects.append(boxcar)
        effects, self._effects = self._effects, []
        return effects

    def session_up(self, now: float) -> None:
        """Handles that the session is Active, whichever side asked for it (E-CMP-17)."""
        if self.state is not MultiplexerState.STARTING:
            raise ValueError(f"the session is {self.state.value}")
        self.state = MultiplexerState.UP
        self._idle_due = now + self.limits.idle_s
        self._delay_ping(now)
        self._open_waiting()

    def session_down(self, now: float, reason: str = "the session is down") -> None:
        """Ends all connections (3.1.7.2). Later calls do nothing."""
        if self.state is not MultiplexerState.DOWN:
            self.state = MultiplexerState.DOWN
            self._effects = [effect for effect in self._effects if isinstance(effect, TearDown)]
            self._calls_held = 0
            self._idle_due = self._ping_due = None
            self._outbox.clear()
            self._fail_waiting(reason)
            self._disconnect_all()

    def receive(self, data: bytes, count: int, now: float) -> bool:
        """Handles a boxcar and the number of messages that the call named (3.1.5)."""
        self._check_up()
        try:
            reader = BoxcarReader(data, count)
        except WireError:
            self.statistics.refused += 1
            raise
        self.statistics.boxcars_received += 1
        self._inbox.begin(len(data))
        self._read(reader, data, now)
        self._inbox.end()
        if reader.remainder is not None:
            self.statistics.discarded += reader.remainder.messages
        return self._may_return()

    def _read(self, reader: BoxcarReader, data: bytes, now: float) -> None:
        """Passes messages to the sinks of their connections; the others become packets."""
        incoming, outgoing = self._incoming.connections, self._outgoing.connections
        user_message, is_open, taken = int(MsgTag.USER_MESSAGE), ConnectionState.OPEN, 0
        for head in reader.heads():
            (tag, is_master, connection_id, message_type, size, _), start = head
            if tag == user_message:
                connection = (incoming if is_master else outgoing).get(connection_id)
                if (
                    connection is not None
                    and connection.sink is not None
                    and connection.state is is_open
                    and not connection.paused
                    and not connection.unread  # what came before comes first
                    and connection_id not in self._incoming.held
                ):
                    connection.sink(message_type, data[start : start + size])
                    taken += 1
                    continue
            self._handle(reader.packet(head), now)
            if self.state is not MultiplexerState.UP:
                break
        self.statistics.messages_received += taken

    def boxcar_delivered(self, now: float) -> None:
        if self.state is MultiplexerState.DOWN:
            return
        self._outbox.arrived()
        self._delay_ping(now)
        self._unblock()

    def resources_granted(self, count: int, now: float) -> None:
        """Handles granted slots (3.1.4.2); a success that grants none is a refusal (E-CMP-24)."""
        if self.state is not MultiplexerState.UP:
            return
        if self._outgoing.answered(count):
            self._open_waiting()
        else:
            self._not_granted(NOTHING_GRANTED, now)

    def resources_refused(self, now: float, reason: str = NOTHING_GRANTED) -> None:
        if self.state is MultiplexerState.UP:
            self._outgoing.answered(0)
            self._not_granted(reason, now)

    def resources_requested(self, count: int) -> int:
        """The slots that the partner gets (3.1.7.3), counted before the answer (E-CMP-12)."""
        if count < 1:
            raise ValueError(f"a request for {count} connections")
        if self.state is not MultiplexerState.UP:
            return 0
        left = self.limits.max_incoming - self._incoming.granted
        granted = max(0, min(count, self.limits.max_grant, left))
        self._incoming.granted += granted
        return granted

    # --- time -------------------------------------------------------------------------------------

    def next_timer(self) -> float | None:
        idle, ping = self._idle_due, self._ping_due
        if idle is None or ping is None:
            return ping if idle is None else idle
        return min(idle, ping)

    def handle_timer(self, now: float) -> None:
        if self._idle_due is not None and now >= self._idle_due:
            self._idle_due = self._ping_due = None
            self.state = MultiplexerState.CLOSING
            self._effects.append(TearDown(problem=False, reason="idle"))
            self._fail_waiting("the session was idle")
        elif self._ping_due is not None and now >= self._ping_due:
            if not self._queue.in_flight and not len(self._queue):
                self.ping()
            self._delay_ping(now)

    def ping(self) -> None:
        """Queues a PING now; a call that fails shows that the partner is gone."""
        self._check_up()
        self._queue.add(Packet.ping())

    def _delay_ping(self, now: float) -> None:
        if self.state is MultiplexerState.UP and self.limits.pings:
            self._ping_due = now + self.limits.ping_interval_s

    def _start_idle(self, now: float) -> None:
        """Starts the idle timer if both tables are empty (3.1.2.1)."""
        if not self._outgoing.connections and not self._incoming.connections:
            self._idle_due = now + self.limits.idle_s

    # --- the layer above --------------------------------------------------------------------------

    def next_event(self) -> Event | None:
        event = self._inbox.take()
        self._release_call()
        return event

    def pause(self, connection: MultiplexedConnection) -> None:
        """Holds back new events of a connection until ``resume``."""
        connection.paused = True

    def resume(self, connection: MultiplexedConnection) -> None:
        connection.paused = False
        self._inbox.resume(connection)

    def connect(
        self, connection_type: int, interface: Notification | None = None
    ) -> MultiplexedConnection:
        """Opens a connection (3.1.4.2). Messages may be sent on it at once."""
        if not 0 <= connection_type <= _U32:
            raise _not_u32("a connection type", connection_type)
        if self.state in (MultiplexerState.CLOSING, MultiplexerState.DOWN):
            raise NotOpen(f"the session is {self.state.value}")
        connection = MultiplexedConnection(
            connection_type, ConnectionState.WAITING, outgoing=True, interface=interface
        )
        self._outgoing.waiting[connection] = None
        self._open_waiting()
        return connection

    def abandon(self, connection: MultiplexedConnection) -> None:
        """Gives up a connection that still waits for a slot; ``ConnectFailed`` follows."""
        if connection not in self._outgoing.waiting:
            raise NotOpen(f"{connection!r} does not wait for a slot")
        del self._outgoing.waiting[connection]
        self._connect_failed(connection, "given up")

    def disconnect(self, connection: MultiplexedConnection) -> None:
        """Closes a connection opened on this side (3.1.4.3); allowed once."""
        if not connection.outgoing:
            raise ValueError("only the side that opened a connection may close it")
        self._check_state(connection, _DISCONNECTABLE)
        assert connection.id is not None
        connection.state = ConnectionState.DISCONNECTING
        self._outbox.closed(connection)
        self._queue.add(Packet.disconnect(connection.id, connection.type))

    def accept(
        self, connection: MultiplexedConnection, now: float, interface: Notification | None = None
    ) -> None:
        """Accepts a connection (3.1.5.5), unless it is gone already; sends nothing."""
        if self._undecided(connection):
            connection.interface = interface
            self._decided(connection, ConnectionState.OPEN, now)

    def deny(self, connection: MultiplexedConnection, reason: int, now: float) -> None:
        """Denies a connection (3.1.5.5). Its opener has to disconnect it; no event follows here."""
        if self._undecided(connection):
            assert connection.id is not None
            answer = Packet.denied(connection.id, reason)
            connection.state = ConnectionState.REFUSED
            self._queue_answer(answer, now)
            self._decided(connection, ConnectionState.REFUSED, now)

    def send(
        self,
        connection: MultiplexedConnection,
        message_type: int,
        body: bytes | bytearray | memoryview,
    ) -> None:
        """Queues a message (3.1.4.1); ``Congested`` without room, ``NotOpen`` if not open."""
        if not 0 <= message_type <= _U32:
            raise _not_u32("a message type", message_type)
        if len(body) > MAX_DATA:
            raise ValueError(f"a message of {len(body)} bytes, at most {MAX_DATA} are allowed")
        table = self._outgoing if connection.outgoing else self._incoming
        known = table.connections.get(connection.id or 0)
        if known is not connection or connection.state is not ConnectionState.OPEN:
            self._check_state(connection, _SENDABLE)  # says what is wrong, unless it only waits
        data = body if isinstance(body, bytes) else bytes(body)
        self._outbox.send(connection, message_type, data)

    def _check_state(
        self, connection: MultiplexedConnection, states: tuple[ConnectionState, ...]
    ) -> None:
        if connection.state not in states:
            raise NotOpen(repr(connection))
        table = self._outgoing if connection.outgoing else self._incoming
        if not table.holds(connection):
            raise ValueError(f"{connection!r} belongs to another session")

    # --- opening ----------------------------------------------------------------------------------

    def _open_waiting(self) -> None:
        """Opens waiting connections in the free slots, then requests the missing ones."""
        if self.state is not MultiplexerState.UP:
            return
        while self._outgoing.waiting and self._outgoing.free > 0:
            connection = self._outgoing.open_next()
            assert connection.id is not None
            self._idle_due = None
            self._inbox.put(ConnectionOpened(connection))
            self._queue.add(Packet.connection_req(connection.id, connection.type))
            self._outbox.opened(connection, connection.id)
        if (wanted := self._outgoing.request(self.limits)) is not None:
            self._effects.append(AskForConnections(wanted))

    def _not_granted(self, reason: str, now: float) -> None:
        """Fails the waiting connections; restarts the idle period if there are no others."""
        self._fail_waiting(reason)
        self._start_idle(now)

    def _fail_waiting(self, reason: str) -> None:
        waiting, self._outgoing.waiting = self._outgoing.waiting, {}
        for connection in waiting:
            self._connect_failed(connection, reason)

    def _connect_failed(self, connection: MultiplexedConnection, reason: str) -> None:
        self._outbox.never_opened(connection)
        connection.state = ConnectionState.GONE
        self._inbox.put(ConnectFailed(connection, reason))

    # --- answering --------------------------------------------------------------------------------

    def _queue_answer(self, packet: Packet, now: float) -> None:
        self._queue.add(packet)
        if self._queue.answers > max(2 * self._incoming.granted, self.limits.max_unsent_answers):
            self._fail("the partner opens connections without waiting for answers", now)

    # --- receiving --------------------------------------------------------------------------------

    def _check_up(self) -> None:
        if self.state is not MultiplexerState.UP:
            raise NotOpen(f"the session is {self.state.value}")

    def _handle(self, packet: Packet, now: float) -> None:
        held = self._incoming.held.get(packet.connection_id)
        if held is not None and packet.tag != MsgTag.PING:
            packet = with_own_data(packet)
            held.append(packet)
            self._inbox.charge(self._incoming.connections[packet.connection_id], _cost(packet))
            return
        self.statistics.messages_received += 1
        if not _HANDLERS[packet.tag](self, packet, now):
            self.statistics.ignored += 1

    def _on_request(self, packet: Packet, _now: float) -> bool:
        table = self._incoming
        if table.full:
            self.statistics.over_allocated += 1
            return False
        if packet.connection_id in table.connections:
            return False
        self._idle_due = None
        connection = table.add(packet.connection_id, packet.user_msg_type)
        self._inbox.put(ConnectionRequested(connection))
        return True

    def _on_message(self, packet: Packet, _now: float) -> bool:
        table = self._incoming if packet.is_master else self._outgoing
        connection = table.connections.get(packet.connection_id)
        if connection is None or not connection.accepted:
            return False
        self._inbox.put(MessageReceived(connection, packet))
        return True

    def _on_disconnect(self, packet: Packet, now: float) -> bool:
        """Handles DISCONNECT; without an event if the connection was denied here (E-CMP-15)."""
        connection = self._incoming.connections.get(packet.connection_id)
        if connection is None:
            return False
        notify = connection.state is not ConnectionState.REFUSED
        self._incoming.remove(connection)
        self._outbox.closed(connection)
        if notify:
            self._inbox.put(Disconnected(connection, session_down=False))
        self._start_idle(now)
        self._queue_answer(Packet.disconnected(packet.connection_id), now)
        return True

    def _on_denied(self, packet: Packet, _now: float) -> bool:
        connection = self._outgoing.connections.get(packet.connection_id)
        reason = packet.reason
        if connection is None or reason is None:
            return False
        if connection.state is ConnectionState.OPEN:
            connection.state = ConnectionState.DENIED
            self._outbox.closed(connection)
        self._inbox.put(Denied(connection, reason))
        return True

    def _on_disconnected(self, packet: Packet, now: float) -> bool:
        connection = self._outgoing.connections.get(packet.connection_id)
        if connection is None or connection.state is not ConnectionState.DISCONNECTING:
            return False
        self._outgoing.remove(connection)
        self._inbox.put(Disconnected(connection, session_down=False))
        self._start_idle(now)
        self._open_waiting()
        return True

    def _on_ping(self, _packet: Packet, _now: float) -> bool:
        return True

    # --- deciding ---------------------------------------------------------------------------------

    def _undecided(self, connection: MultiplexedConnection) -> bool:
        if connection.state is ConnectionState.GONE:
            return False
        if connection.state is not ConnectionState.UNDECIDED:
            raise ValueError(f"{connection!r} is not to be decided on")
        if not self._incoming.holds(connection):
            raise ValueError(f"{connection!r} belongs to another session")
        return True

    def _decided(
        self, connection: MultiplexedConnection, state: ConnectionState, now: float
    ) -> None:
        """Handles messages held for a decision; a new connection with that id may hold the rest."""
        if self.state is not MultiplexerState.UP:
            return
        for packet in self._incoming.decide(connection, state):
            self._inbox.discharge(connection, _cost(packet))
            if self.state is MultiplexerState.UP:
                self._handle(packet, now)
        self._release_call()

    # --- room -------------------------------------------------------------------------------------

    def _may_return(self) -> bool:
        if self.state is MultiplexerState.DOWN or not self._inbox_full():
            return True
        self._calls_held += 1
        return False

    def _release_call(self) -> None:
        if self._calls_held and not self._inbox_full():
            self._effects += [ReleaseCall()] * self._calls_held
            self._calls_held = 0

    def _inbox_full(self) -> bool:
        if self._inbox.process_full:
            self.budget.wait_for_readers(self)
            return True
        return self._inbox.session_full

    def _unblock(self) -> None:
        for connection in self._outbox.unblock():
            self._inbox.put(Writable(connection))

    def wake(self) -> None:
        """Goes on after the budget has room again."""
        self._unblock()
        self._release_call()

    # --- the end ----------------------------------------------------------------------------------

    def _fail(self, reason: str, now: float) -> None:
        """Tears the session down because of a problem, unless it is being torn down already."""
        if self.state is MultiplexerState.UP:
            self._effects.append(TearDown(problem=True, reason=reason))
            self.session_down(now, reason)

    def _disconnect_all(self) -> None:
        """Ends all connections; one event for each that was not denied here."""
        outgoing, incoming = self._outgoing, self._incoming
        self._outgoing, self._incoming = OutgoingTable(), IncomingTable()
        for connection_id, held in incoming.held.items():
            connection = incoming.connections[connection_id]
            self._inbox.discharge(connection, sum(_cost(packet) for packet in held))
        for table in (outgoing, incoming):
            for connection in table.connections.values():
                notify = connection.state is not ConnectionState.REFUSED
                connection.state = ConnectionState.GONE
                if notify:
                    self._inbox.put(Disconnected(connection, session_down=True))


def _cost(packet: Packet) -> int:
    return UNREAD_OVERHEAD + len(packet.data)


def _not_u32(what: str, value: int) -> ValueError:
    return ValueError(f"{what} has 32 bits, {value!r} does not fit")


#: Handlers by tag; each returns whether the message had a connection in the right state.
_HANDLERS: dict[int, Callable[[Multiplexer, Packet, float], bool]] = {
    MsgTag.DISCONNECT: Multiplexer._on_disconnect,
    MsgTag.DISCONNECTED: Multiplexer._on_disconnected,
    MsgTag.CONNECTION_REQ_DENIED: Multiplexer._on_denied,
    MsgTag.PING: Multiplexer._on_ping,
    MsgTag.CONNECTION_REQ: Multiplexer._on_request,
    MsgTag.USER_MESSAGE: Multiplexer._on_message,
}
