"""A network of single messages, which it delays, loses, duplicates, reorders or holds up.

``Post`` takes the place of a server's queue manager. Like the real one it keeps a message for its
lifetime while the destination cannot be reached, and reports the outcome. Unlike the real one it
loses some silently, which replication has to tolerate.

Real queue managers (``streams``) keep the order and lose nothing silently, so they hide bugs that
this network shows: that is why there are two (docs/simulation.md).

If signatures are required, a message travels as the packet that a queue manager would write, and
the real ``Receiver`` judges it: signature, sender, duplicate. If they are not, a duplicated message
is delivered twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from mqis.protocol.queueing.direct_messages import Receiver
from mqis.protocol.queueing.events import (
    Acknowledged,
    Delivered,
    Dropped,
    Event,
    Nacked,
    Refused,
)
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.message_tables import DuplicateTable, SentTable
from mqis.protocol.queueing.queued_message import QueuedMessage, build_packet
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.sim.keys import Keyring
from mqis.sim.run_trace import SimTrace, describe, message_in, operation_of
from mqis.sim.scenario import CALM, Weather
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.properties import MessageClass

#: The time after which a queue manager retries to open a session.
_RETRY_S = 15.0
_TIMEOUT = MessageClass.NACK_REACH_QUEUE_TIMEOUT


class Clock(Protocol):
    """The simulated time, and a timer."""

    now: float

    def after(self, delay_s: float, action: Callable[[], None]) -> None: ...


class Post:
    """The part of a queue manager that a node uses; a restarted server gets a new one."""

    def __init__(
        self,
        network: MessageNetwork,
        guid: Guid,
        name: str,
        wake: Callable[[], None],
        *,
        keyring: Keyring | None,
        limits: QueueingLimits,
    ) -> None:
        self.guid = guid
        self.name = name
        self.wake = wake
        self.alive = True
        self._network = network
        self._keyring = keyring
        self._receiver = Receiver(
            guid,
            name,
            duplicates=DuplicateTable(limits),
            sent=SentTable(limits),
            policy=SigningPolicy.REQUIRE,
            signer=keyring,
        )
        self._events: deque[Event] = deque()

    def next_event(self) -> Event | None:
        return self._events.popleft() if self._events else None

    def send(
        self,
        machine: str,
        message: QueuedMessage,
        now: float,
        unix_time: int,
        identifier: MessageIdentifier,
    ) -> None:
        if canonical(machine) == canonical(self.name):
            self.emit(Delivered(identifier, message.body, message.priority, True, 0))
        else:
            packet = b""
            if self._keyring is not None:
                packet = build_packet(message, identifier, machine, unix_time, self._keyring)
            expires = now + message.lifetime_s
            self._network.send(Parcel(self, machine, identifier, message, packet, expires))

    def admits(self, source: Guid) -> bool:
        """Returns whether the queue manager ``source`` may open a session here."""
        return self._keyring is None or self._keyring.admits(source, None, "")

    def receive(self, packet: bytes, now: float) -> Event | None:
        """Judges a packet as a queue manager does; returns None if it holds no message."""
        message = message_in(packet)
        if message is None:
            return None
        # The peer that opens a session states its own identity.
        event = self._receiver.judge(message, message.header.source, 1, now)
        self.emit(event)
        return event

    def emit(self, event: Event) -> None:
        self._events.append(event)

    def next_timer(self) -> float | None:
        return None

    def handle_timer(self, now: float) -> None:
        """Does nothing: only the network has timers."""


@dataclass(eq=False, slots=True)
class Parcel:
    """A message in transit."""

    sender: Post
    machine: str
    identifier: MessageIdentifier
    message: QueuedMessage
    #: The packet that a queue manager would write; empty if messages are not signed.
    packet: bytes
    expires: float
    #: The sender has not been told the outcome.
    open: bool = True
    #: The sender has been turned away and will try again.
    retrying: bool = False

    def __str__(self) -> str:
        what = operation_of(self.message.body)
        return f"{self.sender.name} -> {self.machine} {what} {self.identifier.ordinal & 0xFFFFF}"


@dataclass(slots=True)
class _Line:
    """One direction between two servers."""

    random: Random
    blocked: int = 0
    held: list[Parcel] = field(default_factory=list)
    #: If messages keep their order, the next one arrives after this time.
    last_arrival: float = 0.0


class MessageNetwork:
    """All lines between servers, and the servers' posts."""

    def __init__(
        self, clock: Clock, trace: SimTrace, seed: int, weather: Weather, limits: QueueingLimits
    ) -> None:
        self._clock = clock
        self._trace = trace
        self._seed = seed
        self.weather = weather
        self._limits = limits
        self._posts: dict[str, Post] = {}
        self._lines: dict[tuple[str, str], _Line] = {}
        #: Called with every message that a server sends.
        self.watch: Callable[[str, str, bytes], None] = lambda sender, machine, body: None
        #: Called with every signed packet and its destination.
        self.tap: Callable[[str, bytes, bytes], None] = lambda machine, packet, body: None
        #: Read by nobody: this network reorders messages itself.
        self.keeps_order = True

    def _line(self, source: str, target: str) -> _Line:
        key = canonical(source), canonical(target)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(Random(f"{self._seed}/{key[0]}/{key[1]}"))
        return line

    def _sorted(self) -> list[tuple[tuple[str, str], _Line]]:
        return sorted(self._lines.items(), key=lambda item: item[0])

    # --- servers come and go ----------------------------------------------------------------------

    def attach(
        self, name: str, guid: Guid, wake: Callable[[], None], keyring: Keyring | None
    ) -> Post:
        """Connects a starting server; messages held for it are sent on."""
        post = Post(self, guid, name, wake, keyring=keyring, limits=self._limits)
        self._posts[canonical(name)] = post
        for (_, target), line in self._sorted():
            if target == canonical(name) and not line.blocked:
                self._release(line)
        return post

    def detach(self, name: str) -> None:
        """Disconnects a stopping server; messages that it has not sent are lost."""
        post = self._posts.pop(canonical(name), None)
        if post is None:
            return
        post.alive = False
        for (source, _), line in self._lines.items():
            if source == canonical(name):
                line.held.clear()

    # --- faults -----------------------------------------------------------------------------------

    def block(self, source: str, target: str) -> None:
        self._line(source, target).blocked += 1

    def unblock(self, source: str, target: str, *, shuffled: bool = False) -> None:
        line = self._line(source, target)
        line.blocked = max(0, line.blocked - 1)
        if not line.blocked:
            if shuffled:
                line.random.shuffle(line.held)
            self._release(line)
            back = self._line(target, source)
            if not back.blocked:  # unacknowledged messages are sent again
                self._release(back)

    def calm(self) -> None:
        """Ends all faults."""
        self.weather = CALM
        for _, line in self._sorted():
            line.blocked = 0
        for _, line in self._sorted():
            self._release(line)

    # --- messages ---------------------------------------------------------------------------------

    def send(self, parcel: Parcel) -> None:
        text = str(parcel)
        if self._trace.lines is not None:
            text += f": {describe(parcel.message.body)}"
        data = parcel.identifier.to_bytes() + parcel.message.body
        self._trace.note(self._clock.now, "sent", str(parcel), data, shown=text)
        self._trace.count(f"sent {operation_of(parcel.message.body)}")
        self.watch(parcel.sender.name, parcel.machine, parcel.message.body)
        if parcel.packet:
            self.tap(parcel.machine, parcel.packet, parcel.message.body)
        self._forward(parcel)

    def inject(self, machine: str, packet: bytes) -> Event | None:
        """Delivers a foreign packet to a server; None if it is down or the packet is damaged."""
        target = self._posts.get(canonical(machine))
        if target is None:
            return None
        event = target.receive(packet, self._clock.now)
        target.wake()
        return event

    def flush(self, name: str) -> None:
        """Does nothing: messages are sent at once."""

    def _forward(self, parcel: Parcel) -> None:
        line = self._line(parcel.sender.name, parcel.machine)
        if line.blocked or canonical(parcel.machine) not in self._posts:
            self._hold(line, parcel)
        else:
            self._fly(line, parcel)

    def _hold(self, line: _Line, parcel: Parcel) -> None:
        if parcel.sender.alive:
            line.held.append(parcel)
            self._clock.after(
                max(0.0, parcel.expires - self._clock.now), lambda: self._expire(line, parcel)
            )

    def _expire(self, line: _Line, parcel: Parcel) -> None:
        if parcel in line.held:
            line.held.remove(parcel)
            self._trace.note(self._clock.now, "expired", str(parcel))
            self._undelivered(parcel)

    def _undelivered(self, parcel: Parcel) -> None:
        if not parcel.open or not parcel.sender.alive:
            return
        parcel.open = False
        about = parcel.identifier, parcel.machine, parcel.message, _TIMEOUT
        wants_ack = parcel.message.acknowledge
        parcel.sender.emit(Nacked(*about, local=True) if wants_ack else Dropped(*about))
        parcel.sender.wake()

    def _release(self, line: _Line) -> None:
        held, line.held = line.held, []
        for parcel in held:
            self._forward(parcel)

    def _fly(self, line: _Line, parcel: Parcel) -> None:
        weather, random = self.weather, line.random
        if random.random() < weather.loss:
            self._lose(random, parcel)
            return
        copies = 2 if random.random() < weather.duplicate else 1
        if copies == 2:
            self._trace.note(self._clock.now, "fault duplicate", str(parcel))
        for _ in range(copies):
            arrival = self._clock.now + random.uniform(weather.min_delay_s, weather.max_delay_s)
            if weather.reorder:
                if arrival < line.last_arrival:
                    self._trace.count("fault reorder")
            else:
                arrival = max(arrival, line.last_arrival)
            if arrival - self._clock.now > 1.0:
                self._trace.count("fault delay")
            line.last_arrival = max(arrival, line.last_arrival)
            self._clock.after(arrival - self._clock.now, lambda: self._arrive(parcel))

    def _lose(self, random: Random, parcel: Parcel) -> None:
        """Loses a message; the sender gets a false acknowledgement, or a timeout."""
        self._trace.note(self._clock.now, "fault loss", str(parcel))
        if random.random() < 0.5:
            self._acknowledge(parcel)
        else:
            delay = max(0.0, parcel.expires - self._clock.now)
            self._clock.after(delay, lambda: self._undelivered(parcel))

    def _arrive(self, parcel: Parcel) -> None:
        target = self._posts.get(canonical(parcel.machine))
        back = self._line(parcel.machine, parcel.sender.name)
        line = self._line(parcel.sender.name, parcel.machine)
        if target is None or line.blocked:
            self._hold(line, parcel)
            return
        if not target.admits(parcel.sender.guid):
            self._turned_away(parcel)
            return
        self._trace.note(self._clock.now, "arrived", str(parcel))
        if parcel.packet:
            self._judged(parcel, target.receive(parcel.packet, self._clock.now))
        else:
            about = parcel.identifier, parcel.message.body, parcel.message.priority
            target.emit(Delivered(*about, False, 1))
        if back.blocked:  # not acknowledged, so it is sent again
            self._hold(line, parcel)
        else:
            self._acknowledge(parcel)
        target.wake()

    def _turned_away(self, parcel: Parcel) -> None:
        """Retries later: the receiver does not know the sender and refuses a session."""
        self._trace.count("turned away")
        if self._clock.now + _RETRY_S >= parcel.expires:
            self._undelivered(parcel)
        elif not parcel.retrying:  # only the network makes copies, so that they cannot multiply
            parcel.retrying = True
            self._clock.after(_RETRY_S, lambda: self._retry(parcel))

    def _retry(self, parcel: Parcel) -> None:
        parcel.retrying = False
        self._forward(parcel)

    def _judged(self, parcel: Parcel, event: Event | None) -> None:
        if isinstance(event, Refused):
            self._trace.note(self._clock.now, "not delivered", f"{parcel}: {event.reason}")

    def _acknowledge(self, parcel: Parcel) -> None:
        def tell() -> None:
            if parcel.open and parcel.sender.alive:
                parcel.open = False
                parcel.sender.emit(Acknowledged((parcel.identifier,), parcel.machine, 1))
                parcel.sender.wake()

        self._clock.after(self.weather.min_delay_s, tell)
