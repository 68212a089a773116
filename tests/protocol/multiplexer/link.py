"""Two multiplexers joined by a session that is made of nothing but a clock."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from mqis.protocol.multiplexer.events import (
    AskForConnections,
    ConnectionRequested,
    Effect,
    Event,
    ReleaseCall,
    SendBoxcar,
    TearDown,
)
from mqis.protocol.multiplexer.held_bytes import ByteBudget
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.protocol.multiplexer.multiplexed import MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import Multiplexer
from mqis.wire.cmp.boxcar import Boxcar
from mqis.wire.cmp.builder import BoxcarBuilder
from mqis.wire.cmp.packet import Packet

E = TypeVar("E")

#: Asks for what it needs and not for more, so that tests see every request.
EXACT = SessionLimits(request_slots=1, slots_ahead=0)


def boxcar(*packets: Packet) -> tuple[bytes, int]:
    builder = BoxcarBuilder(packets)
    return builder.to_bytes(), builder.count


def feed(multiplexer: Multiplexer, *packets: Packet, now: float = 0.0) -> bool:
    """Let the partner send these in one boxcar."""
    return multiplexer.receive(*boxcar(*packets), now)


def events_of(multiplexer: Multiplexer) -> list[Event]:
    events = []
    while (event := multiplexer.next_event()) is not None:
        events.append(event)
    return events


def departing(multiplexer: Multiplexer) -> SendBoxcar:
    """The boxcar that leaves now, which is all that is to be done."""
    (effect,) = multiplexer.effects()
    assert isinstance(effect, SendBoxcar)
    return effect


def sent_by(multiplexer: Multiplexer, now: float = 0.0) -> list[Packet]:
    """Every packet that it wants to send, all calls returning at once."""
    packets: list[Packet] = []
    while boxcars := [e for e in multiplexer.effects() if isinstance(e, SendBoxcar)]:
        (sent,) = boxcars
        packets += Boxcar.from_bytes(sent.data).packets
        multiplexer.boxcar_delivered(now)
    return packets


def started(
    limits: SessionLimits | None = EXACT, *, granted: int = 100, grants: int = 100
) -> Multiplexer:
    """A multiplexer that is up, with slots both ways and nothing to say."""
    multiplexer = Multiplexer(limits)
    multiplexer.session_up(0.0)
    if grants:
        multiplexer.resources_requested(grants)
    if granted:
        multiplexer._outgoing.granted = granted
    return multiplexer


class Side:
    """One partner: its multiplexer, what it told, and a layer above that accepts by type."""

    def __init__(self, limits: SessionLimits | None, budget: ByteBudget | None) -> None:
        self.multiplexer = Multiplexer(limits, budget)
        self.events: list[Event] = []
        self.boxcars: list[SendBoxcar] = []
        self.teardowns: list[TearDown] = []
        self.requests: list[int] = []
        #: Types that are denied, with the reason.
        self.denies: dict[int, int] = {}
        #: Whether the layer above takes events and decides at once.
        self.reading = True
        self.held: list[Callable[[], None]] = []

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def packets(self) -> list[Packet]:
        return [packet for car in self.boxcars for packet in Boxcar.from_bytes(car.data).packets]


class Link:
    """A session between ``a`` and ``b``: calls go out, arrive, and return, each after ``delay``."""

    def __init__(
        self,
        limits: SessionLimits | None = EXACT,
        other: SessionLimits | None = None,
        *,
        delay: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.now = 1000.0
        self.a = Side(limits, None)
        self.b = Side(other or limits, None)
        self._delay = delay
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self.broken = False

    def up(self) -> Link:
        for side in self.sides:
            side.multiplexer.session_up(self.now)
        self.run()
        return self

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.a, self.b

    def other(self, side: Side) -> Side:
        return self.b if side is self.a else self.a

    # --- time -------------------------------------------------------------------------------------

    def later(self, action: Callable[[], None]) -> None:
        heappush(self._heap, (self.now + self._delay(), next(self._order), action))

    def run(self, until: float | None = None) -> None:
        """Everything that happens without anybody's doing, timers only up to ``until``."""
        while True:
            for side in self.sides:
                self.act(side)
            due = self._heap[0][0] if self._heap else None
            timers = [t for s in self.sides if (t := s.multiplexer.next_timer()) is not None]
            rings = min((t for t in timers if until is not None and t <= until), default=None)
            if due is not None and (rings is None or due <= rings) and self._in(due, until):
                self.now, _, action = heappop(self._heap)
                action()
            elif rings is not None:
                self.now = max(self.now, rings)
                for side in self.sides:
                    side.multiplexer.handle_timer(self.now)
            else:
                break
        if until is not None:
            self.now = max(self.now, until)

    @staticmethod
    def _in(due: float, until: float | None) -> bool:
        return until is None or due <= until

    # --- what a driver does -----------------------------------------------------------------------

    def act(self, side: Side) -> None:
        while True:
            effects = side.multiplexer.effects()
            for effect in effects:
                self._do(side, effect)
            told = self._listen(side) if side.reading else False
            if not effects and not told:
                return

    def _listen(self, side: Side) -> bool:
        told = False
        while (event := side.multiplexer.next_event()) is not None:
            told = True
            side.events.append(event)
            if isinstance(event, ConnectionRequested):
                self.decide(side, event.connection)
        return told

    def decide(self, side: Side, connection: MultiplexedConnection) -> None:
        if (reason := side.denies.get(connection.type)) is None:
            side.multiplexer.accept(connection, self.now)
        else:
            side.multiplexer.deny(connection, reason, self.now)

    def _do(self, side: Side, effect: Effect) -> None:
        if isinstance(effect, SendBoxcar):
            assert len(side.boxcars) == side.multiplexer.statistics.boxcars_sent - 1
            side.boxcars.append(effect)
            self.later(lambda: self._arrive(side, effect))
        elif isinstance(effect, AskForConnections):
            side.requests.append(effect.count)
            self.later(lambda: self._asked(side, effect.count))
        elif isinstance(effect, ReleaseCall):
            self.later(side.held.pop(0))
        else:
            side.teardowns.append(effect)
            self.kill()

    def _arrive(self, side: Side, effect: SendBoxcar) -> None:
        if self.broken:
            return
        other = self.other(side)
        returned = other.multiplexer.receive(effect.data, effect.count, self.now)

        def back() -> None:
            if not self.broken:
                side.multiplexer.boxcar_delivered(self.now)

        if returned:
            self.later(back)
        else:
            other.held.append(back)

    def _asked(self, side: Side, requested: int) -> None:
        if self.broken:
            return
        granted = self.other(side).multiplexer.resources_requested(requested)

        def back() -> None:
            if self.broken:
                return
            if granted:
                side.multiplexer.resources_granted(granted, self.now)
            else:
                side.multiplexer.resources_refused(self.now)

        self.later(back)

    def kill(self) -> None:
        """The session is lost: what is on its way is too, and both sides hear of it."""
        if self.broken:
            return
        self.broken = True
        for side in self.sides:
            self.later(lambda side=side: side.multiplexer.session_down(self.now))  # type: ignore[misc]
