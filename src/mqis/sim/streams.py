"""A network of real queue managers over simulated TCP connections.

A connection keeps its bytes in order or breaks. Bytes that a cut holds up go on afterwards, unless
the connection times out. A server that stops breaks its connections. Besides, some messages that
were delivered and acknowledged never reach replication, as if a server had stopped in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from mqis.protocol.queueing.events import Close, Connect, Delivered, Event, Write
from mqis.protocol.queueing.forwarding import NextHop
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter, MessageIds
from mqis.protocol.queueing.outgoing import Outgoing
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.protocol.routing.router import DirectoryRouter
from mqis.sim.keys import Keyring
from mqis.sim.network import Clock
from mqis.sim.run_trace import SimTrace, Violation, describe, message_in, operation_of
from mqis.sim.scenario import CALM, Weather
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier

#: A connection times out after so long without progress.
_PATIENCE_S = 120.0


class _Manager(QueueingMachine):
    """A queue manager that loses some delivered messages."""

    def __init__(
        self,
        network: StreamNetwork,
        guid: Guid,
        name: str,
        wake: Callable[[], None],
        *,
        keyring: Keyring | None,
        limits: QueueingLimits,
        router: DirectoryRouter | None = None,
        message_ids: MessageIds | None = None,
    ) -> None:
        super().__init__(
            guid,
            name,
            message_ids or MessageIdCounter(0),
            limits=limits,
            peers=router if keyring is None else keyring,
            signer=keyring,
            policy=SigningPolicy.NONE if keyring is None else SigningPolicy.REQUIRE,
            router=router,
        )
        self.wake = wake
        self.alive = True
        self._network = network
        self._order = network.new_order()

    def next_event(self) -> Event | None:
        while True:
            event = super().next_event()
            if isinstance(event, Delivered):
                self._order.delivered(self.machine, event)
            if not isinstance(event, Delivered) or not self._network.loses(self.machine, event):
                return event

    def send(
        self,
        machine: str,
        message: QueuedMessage,
        now: float,
        unix_time: int,
        identifier: MessageIdentifier | None = None,
    ) -> MessageIdentifier:
        self._network.sends(self.machine, machine, message)
        return super().send(machine, message, now, unix_time, identifier)

    def enqueue(self, key: str, hop: NextHop, outgoing: Outgoing, now: float) -> None:
        self._network.tap(hop.machine, outgoing.packet, outgoing.message.body)
        super().enqueue(key, hop, outgoing, now)

    def overhear(self, packet: bytes, now: float) -> Event | None:
        """Judges a foreign packet as if its sender had a session; None if it holds no message."""
        message = message_in(packet)
        if message is None:
            return None
        event = self._receiver.judge(message, message.header.source, 1, now)
        self.judged(event)
        return event


@dataclass(slots=True)
class _End:
    """One end of a connection: the queue manager, and its number for the connection."""

    manager: _Manager
    connection: int


@dataclass(eq=False, slots=True)
class _Pipe:
    """One direction of a connection."""

    source: _End
    target: _End
    random: Random
    stuck: list[bytes | None] = field(default_factory=list)
    last_arrival: float = 0.0
    broken: bool = False
    back: _Pipe | None = None

    @property
    def way(self) -> tuple[str, str]:
        return canonical(self.source.manager.machine), canonical(self.target.manager.machine)


class StreamNetwork:
    """All connections, and the queue managers at their ends."""

    def __init__(
        self, clock: Clock, trace: SimTrace, seed: int, weather: Weather, limits: QueueingLimits
    ) -> None:
        self._clock = clock
        self._trace = trace
        self._limits = limits
        self._random = Random(f"{seed}/streams")
        self.weather = weather
        self.watch: Callable[[str, str, bytes], None] = lambda sender, machine, body: None
        self.tap: Callable[[str, bytes, bytes], None] = lambda machine, packet, body: None
        #: Whether messages have to arrive in order; those that a stranger injects do not.
        self.keeps_order = True
        self._managers: dict[str, _Manager] = {}
        self._pipes: dict[tuple[str, int], _Pipe] = {}
        self._blocked: dict[tuple[str, str], int] = {}

    # --- servers come and go ----------------------------------------------------------------------

    def attach(
        self,
        name: str,
        guid: Guid,
        wake: Callable[[], None],
        keyring: Keyring | None,
        *,
        router: DirectoryRouter | None = None,
        message_ids: MessageIds | None = None,
    ) -> QueueingMachine:
        """Starts a queue manager; one with a ``router`` also sends and forwards by routes."""
        manager = _Manager(
            self,
            guid,
            name,
            wake,
            keyring=keyring,
            limits=self._limits,
            router=router,
            message_ids=message_ids,
        )
        self._managers[canonical(name)] = manager
        return manager

    def detach(self, name: str) -> None:
        manager = self._managers.pop(canonical(name), None)
        if manager is not None:
            manager.alive = False
            for pipe in [p for p in self._pipes.values() if p.source.manager is manager]:
                self._break(pipe, "the other side is gone")

    # --- faults -----------------------------------------------------------------------------------

    def block(self, source: str, target: str) -> None:
        key = canonical(source), canonical(target)
        self._blocked[key] = self._blocked.get(key, 0) + 1
        for pipe in list(self._pipes.values()):
            if pipe.way == key:
                self._clock.after(_PATIENCE_S, lambda pipe=pipe: self._lose_patience(pipe))  # type: ignore[misc]

    def unblock(self, source: str, target: str, *, shuffled: bool = False) -> None:
        """Releases held bytes; ignores ``shuffled``, as a connection keeps its bytes in order."""
        key = canonical(source), canonical(target)
        self._blocked[key] = max(0, self._blocked.get(key, 0) - 1)
        self._resume()

    def calm(self) -> None:
        self.weather = CALM
        self._blocked.clear()
        self._resume()

    def _is_blocked(self, way: tuple[str, str]) -> bool:
        return self._blocked.get(way, 0) > 0

    def _resume(self) -> None:
        for pipe in list(self._pipes.values()):
            if pipe.stuck and not self._is_blocked(pipe.way):
                waiting, pipe.stuck = pipe.stuck, []
                for data in waiting:
                    self._transmit(pipe, data)

    def _lose_patience(self, pipe: _Pipe) -> None:
        if pipe.stuck and self._is_blocked(pipe.way):
            self._break(pipe, "timed out")

    def new_order(self) -> DeliveryOrder:
        return DeliveryOrder(checked=self.keeps_order)

    def loses(self, machine: str, event: Delivered) -> bool:
        if event.session == 0 or self._random.random() >= self.weather.loss:
            return False
        what = operation_of(event.body)
        self._trace.note(self._clock.now, "fault loss", f"{machine} {what} {event.identifier}")
        return True

    def sends(self, sender: str, machine: str, message: QueuedMessage) -> None:
        what = operation_of(message.body)
        text = f"{sender} -> {machine} {what}"
        shown = f"{text}: {describe(message.body)}" if self._trace.lines is not None else text
        self._trace.note(self._clock.now, "sent", text, message.body, shown=shown)
        self._trace.count(f"sent {what}")
        self.watch(sender, machine, message.body)

    def inject(self, machine: str, packet: bytes) -> Event | None:
        """Delivers a foreign packet to a server; None if it is down or the packet is damaged."""
        target = self._managers.get(canonical(machine))
        if target is None:
            return None
        event = target.overhear(packet, self._clock.now)
        target.wake()
        return event

    # --- connections ------------------------------------------------------------------------------

    def flush(self, name: str) -> None:
        """Carries out a queue manager's effects, as its driver does."""
        manager = self._managers.get(canonical(name))
        if manager is None:
            return
        while effects := manager.effects():
            for effect in effects:
                match effect:
                    case Connect(connection, machine):
                        self._connect(_End(manager, connection), machine)
                    case Write(connection, data):
                        self._write(manager, connection, data)
                    case Close(connection):
                        self._write(manager, connection, None)

    def _delay(self, random: Random) -> float:
        return random.uniform(self.weather.min_delay_s, self.weather.max_delay_s)

    def _connect(self, end: _End, machine: str) -> None:
        def arrive() -> None:
            if not end.manager.alive:
                return
            ways = (canonical(end.manager.machine), canonical(machine))
            target = self._managers.get(ways[1])
            cut = self._is_blocked(ways) or self._is_blocked(ways[::-1])
            accepted = None
            if target is not None and not cut:
                accepted = target.accepted(end.manager.machine, self._clock.now)
            if target is None or accepted is None:
                end.manager.connect_failed(end.connection, "no answer", self._clock.now)
            else:
                self._join(end, _End(target, accepted))
                end.manager.connected(end.connection, machine, self._clock.now)
                target.wake()
            end.manager.wake()

        self._clock.after(self._delay(self._random), arrive)

    def _join(self, first: _End, second: _End) -> None:
        there = _Pipe(first, second, Random(self._random.getrandbits(64)))
        back = _Pipe(second, first, Random(self._random.getrandbits(64)), back=there)
        there.back = back
        self._trace.note(self._clock.now, "connected", " -> ".join(there.way))
        for pipe in (there, back):
            self._pipes[canonical(pipe.source.manager.machine), pipe.source.connection] = pipe

    def _write(self, manager: _Manager, connection: int, data: bytes | None) -> None:
        pipe = self._pipes.get((canonical(manager.machine), connection))
        if pipe is None or pipe.source.manager is not manager:
            return
        if data is not None and pipe.random.random() < self.weather.loss / 5:
            self._trace.note(self._clock.now, "fault break", " -> ".join(pipe.way))
            self._clock.after(0.0, lambda: self._break(pipe, "reset"))
            return
        self._transmit(pipe, data)

    def _transmit(self, pipe: _Pipe, data: bytes | None) -> None:
        if pipe.stuck or self._is_blocked(pipe.way):
            if not pipe.stuck:
                self._clock.after(_PATIENCE_S, lambda: self._lose_patience(pipe))
            pipe.stuck.append(data)
            return
        arrival = max(self._clock.now + self._delay(pipe.random), pipe.last_arrival)
        pipe.last_arrival = arrival
        self._clock.after(arrival - self._clock.now, lambda: self._arrive(pipe, data))

    def _arrive(self, pipe: _Pipe, data: bytes | None) -> None:
        if pipe.broken:
            return
        if data is None:
            self._break(pipe, "closed")
            return
        manager = pipe.target.manager
        if manager.alive:
            manager.receive(pipe.target.connection, data, self._clock.now)
            manager.wake()

    def _break(self, pipe: _Pipe, reason: str) -> None:
        """Breaks both directions of a connection and notifies both sides."""
        for half in (pipe, pipe.back):
            if half is None or half.broken:
                continue
            half.broken = True
            self._pipes.pop((canonical(half.source.manager.machine), half.source.connection), None)
            if half.source.manager.alive:
                half.source.manager.connection_lost(half.source.connection, self._clock.now, reason)
                half.source.manager.wake()


# --------------------------------------------------------------------------------------------------
# Checks that a queue manager delivers the messages of a session in the order they were sent.


class DeliveryOrder:
    """The last message of each session and priority that one queue manager has delivered.

    A sender numbers its messages in the order in which it sends them. A message that is sent again
    comes in a later session.
    """

    def __init__(self, *, checked: bool = True) -> None:
        self._checked = checked
        self._last: dict[tuple[int, Guid, int], int] = {}

    def delivered(self, machine: str, event: Delivered) -> None:
        if not self._checked or event.session == 0:
            return
        source, ordinal = event.identifier.source, event.identifier.ordinal
        key = event.session, source, event.priority
        last = self._last.get(key, 0)
        if ordinal <= last:
            raise Violation(
                "order of delivery", f"{machine} gets message {ordinal} of {source} after {last}"
            )
        self._last[key] = ordinal
