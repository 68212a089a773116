"""Queue managers joined without sockets, on a clock that only the test moves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mqis.protocol.queueing.events import Close, Connect, Event, Write
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.protocol.queueing.replication_queue import canonical
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier

E = TypeVar("E")

PSC1 = Guid.parse("f0f1f2f3-0001-0002-0003-040506070809")
PSC2 = Guid.parse("e0e1e2e3-0001-0002-0003-040506070809")
UNIX_TIME = 1_700_000_000


def manager(
    guid: Guid, machine: str, limits: QueueingLimits | None = None, **options: Any
) -> QueueingMachine:
    return QueueingMachine(
        guid, machine, MessageIdCounter(0), limits=limits or QueueingLimits(), **options
    )


@dataclass(eq=False)
class End:
    """One end of a connection and what is on its way to it."""

    machine: str
    connection: int
    inbound: deque[int] = field(default_factory=deque)
    other: End | None = None


class Wires:
    """A network: connections carry bytes in order, until somebody cuts them."""

    def __init__(self, *managers: QueueingMachine) -> None:
        self.now = 5000.0
        self.managers = {canonical(one.machine): one for one in managers}
        self.events: dict[str, list[Event]] = {name: [] for name in self.managers}
        self.down: set[str] = set()
        self.ends: dict[tuple[str, int], End] = {}
        #: Every packet stream that was written, by writer and connection.
        self.written: dict[tuple[str, int], bytearray] = {}
        self.attempts: list[tuple[float, str, str]] = []
        #: Machines whose clocks are off by so many seconds.
        self.skew: dict[str, int] = {}

    # --- what tests do ----------------------------------------------------------------------------

    def send(self, source: str, target: str, message: QueuedMessage) -> MessageIdentifier:
        unix_time = UNIX_TIME + self.skew.get(source, 0) + int(self.now)
        return self.managers[source].send(target, message, self.now, unix_time)

    def run(self) -> None:
        """Everything that happens without time passing."""
        while self.act() or self.carry():
            pass
        self.drain()

    def until(self, happened: Callable[[], bool]) -> None:
        """Step by step, until something has happened."""
        while not happened():
            assert self.act() or self.carry(), "nothing more will happen by itself"

    def advance(self, seconds: float) -> None:
        """Let time pass, stopping at every timer."""
        until = self.now + seconds
        self.run()
        while True:
            timers = [one.next_timer() for one in self.managers.values()]
            due = min((t for t in timers if t is not None), default=until)
            if due >= until:
                break
            self.now = max(self.now, due)
            self.ring()
            self.run()
        self.now = until
        self.ring()
        self.run()

    def cut(self) -> None:
        """Break all connections; what is on its way is lost."""
        for end in list(self.ends.values()):
            self.ends.pop((end.machine, end.connection), None)
            self.managers[end.machine].connection_lost(end.connection, self.now, "cut")

    def of(self, machine: str, kind: type[E]) -> list[E]:
        self.drain()
        return [event for event in self.events[machine] if isinstance(event, kind)]

    # --- how it works -----------------------------------------------------------------------------

    def ring(self) -> None:
        for one in self.managers.values():
            one.handle_timer(self.now)

    def drain(self) -> None:
        for name, one in self.managers.items():
            while (event := one.next_event()) is not None:
                self.events[name].append(event)

    def act(self) -> bool:
        acted = False
        for name, one in self.managers.items():
            for effect in one.effects():
                acted = True
                if isinstance(effect, Connect):
                    self._connect(name, effect)
                elif isinstance(effect, Write):
                    self._write(name, effect)
                elif isinstance(effect, Close):
                    self._close(name, effect.connection)
        return acted

    def carry(self, limit: int = 1 << 30) -> bool:
        """Bring at most ``limit`` bytes to every end."""
        carried = False
        for end in list(self.ends.values()):
            count = min(limit, len(end.inbound))
            if count and (end.machine, end.connection) in self.ends:
                data = bytes(end.inbound.popleft() for _ in range(count))
                self.managers[end.machine].receive(end.connection, data, self.now)
                carried = True
        return carried

    def _connect(self, source: str, effect: Connect) -> None:
        target = canonical(effect.machine)
        self.attempts.append((self.now, source, target))
        origin = self.managers[source]
        if target in self.down or target not in self.managers:
            origin.connect_failed(effect.connection, "refused", self.now)
            return
        number = self.managers[target].accepted(f"address of {source}", self.now)
        if number is None:
            origin.connect_failed(effect.connection, "reset", self.now)
            return
        near, far = End(source, effect.connection), End(target, number)
        near.other, far.other = far, near
        self.ends[source, effect.connection] = near
        self.ends[target, number] = far
        origin.connected(effect.connection, f"address of {target}", self.now)

    def _write(self, source: str, effect: Write) -> None:
        self.written.setdefault((source, effect.connection), bytearray()).extend(effect.data)
        end = self.ends.get((source, effect.connection))
        if end is not None and end.other is not None:
            end.other.inbound.extend(effect.data)

    def _close(self, source: str, connection: int) -> None:
        """The other end still gets what was written before."""
        end = self.ends.pop((source, connection), None)
        if end is None or end.other is None:
            return
        other = end.other
        far = self.managers[other.machine]
        if self.ends.pop((other.machine, other.connection), None) is not None:
            far.receive(other.connection, bytes(other.inbound), self.now)
            far.connection_lost(other.connection, self.now, "closed")


def pair(
    first: QueueingLimits | None = None, second: QueueingLimits | None = None, **options: Any
) -> tuple[Wires, QueueingMachine, QueueingMachine]:
    one, two = manager(PSC1, "PSC1", first, **options), manager(PSC2, "PSC2", second, **options)
    return Wires(one, two), one, two


class Hook:
    """A peers port from a function."""

    def __init__(self, admits: Callable[[Guid, str | None, str], bool]) -> None:
        self._admits = admits

    def admits(self, guid: Guid, machine: str | None, address: str) -> bool:
        return self._admits(guid, machine, address)
