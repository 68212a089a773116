"""A queue manager for the replication queue: sessions, destinations and tables.

    manager = QueueingMachine(guid, "PSC1", MessageIdCounter(last))
    identifier = manager.send("PSC2", QueuedMessage(body), now, unix_time)
    for effect in manager.effects(): ...              # Connect, Write, Close
    manager.connected(connection, address, now)       # or connect_failed
    manager.receive(connection, data, now)
    while (event := manager.next_event()) is not None: ...
    manager.next_timer(); manager.handle_timer(now)

``now`` is the time of a monotonic clock. Calls for a connection that the manager has closed do
nothing, so a driver need not keep track of them.

Every direction has a session of its own: messages to a machine go over the connection that was
opened to its address, never over an incoming one, which anyone could open in its name.

With a ``router`` it also sends to queues by their public and private names, ``send_routed``, and
forwards others' messages of this kind. These have sessions of their own to each next hop, apart
from those for direct names, and go to another candidate when one cannot be reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from mqis.protocol.clock import Timers
from mqis.protocol.queueing.destination import DeliveryWay, Depth, Destination
from mqis.protocol.queueing.direct_messages import Receiver
from mqis.protocol.queueing.events import (
    Acknowledged,
    Arrived,
    Close,
    Connect,
    Delivered,
    Dropped,
    Effect,
    Event,
    Nacked,
    Refused,
    Relayed,
    SessionClosed,
    SessionOpened,
    Write,
    Written,
)
from mqis.protocol.queueing.forwarding import Forwarder, NextHop, Router
from mqis.protocol.queueing.guests import GAVE_WAY, NO_ROOM, Guests
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.message_tables import DuplicateTable, MessageIds, SentMessage, SentTable
from mqis.protocol.queueing.outgoing import Outgoing, Transit
from mqis.protocol.queueing.queue_session import (
    Freed,
    QueueSession,
    QueueSessionState,
    SessionReady,
)
from mqis.protocol.queueing.queued_message import QueuedMessage, build_packet
from mqis.protocol.queueing.replication_queue import canonical, queue_path
from mqis.protocol.queueing.routed_messages import QueueingRoutes
from mqis.protocol.queueing.signing import Signer, SigningPolicy
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.ping import Ping
from mqis.wire.mqqb.properties import MessageClass


class Peers(Protocol):
    """The port that admits peers; ``machine`` is None if the peer connected to this side."""

    def admits(self, guid: Guid, machine: str | None, address: str) -> bool: ...


@dataclass(slots=True)
class QueueStatistics:
    """Counts since the start."""

    sent: int = 0
    acknowledged: int = 0
    received: int = 0
    delivered: int = 0
    #: Others' messages accepted for forwarding, and those whose hop count was exhausted.
    relayed: int = 0
    exhausted: int = 0
    duplicates: int = 0
    refused: int = 0
    undelivered: int = 0
    #: Those of them that expired before they were acknowledged.
    expired: int = 0
    sessions: int = 0
    refused_connections: int = 0
    #: Incoming connections that this side ended.
    closed_connections: int = 0
    miscounts: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


@dataclass(slots=True)
class _Link:
    """A session and its peer."""

    session: QueueSession
    machine: str | None
    address: str
    destination: Destination | None = None


class QueueingMachine:
    """The replication queue of one machine, and the transport to those of others."""

    def __init__(
        self,
        guid: Guid,
        machine: str,
        message_ids: MessageIds,
        *,
        limits: QueueingLimits | None = None,
        peers: Peers | None = None,
        signer: Signer | None = None,
        policy: SigningPolicy = SigningPolicy.ACCEPT,
        duplicates: DuplicateTable | None = None,
        router: Router | None = None,
        counts: Callable[[Guid], bool] | None = None,
    ) -> None:
        """``counts`` says whose messages replication accepts, if ``peers`` admits others too."""
        queue_path(machine)  # refuses what is no machine name
        self.guid = guid
        self.machine = machine
        self.limits = limits or QueueingLimits()
        self.duplicates = DuplicateTable(self.limits) if duplicates is None else duplicates
        self.statistics = QueueStatistics()
        self._message_ids = message_ids
        self._peers = peers
        self._signer = None if policy is SigningPolicy.NONE else signer
        self._sent = SentTable(self.limits)
        self._receiver = Receiver(
            guid,
            machine,
            duplicates=self.duplicates,
            sent=self._sent,
            policy=policy,
            signer=signer,
            counts=counts,
        )
        self._routes: QueueingRoutes | None = None
        if router is not None:
            forwarder = Forwarder(
                guid,
                router,
                self.limits,
                duplicates=self.duplicates,
                sent=self._sent,
                policy=policy,
                signer=signer,
            )
            self._routes = QueueingRoutes(forwarder, self.limits, message_ids, self)
        self._links: dict[int, _Link] = {}
        self._guests = Guests(self.limits)
        self._connecting: dict[int, Destination] = {}
        self._destinations: dict[str, Destination] = {}
        self._connections = count(1)
        self._buffered = 0
        self._effects: list[Effect] = []
        #: Sessions that may have something to write, in the order in which they got it.
        self._dirty: dict[int, None] = {}
        self._events: deque[Event] = deque()
        self._event_bytes = 0
        self._timers: Timers[int | str] = Timers()
        self._closed = False

    # --- the application's side -------------------------------------------------------------------

    def send(
        self,
        machine: str,
        message: QueuedMessage,
        now: float,
        unix_time: int,
        identifier: MessageIdentifier | None = None,
    ) -> MessageIdentifier:
        """Queues a message for a machine's replication queue and returns at once.

        If the queue is full the message is dropped; an event reports this, as for a message that
        expires. A caller that numbers messages itself passes the ``identifier``.
        """
        identifier = self._identify(identifier)
        key = canonical(machine)
        if key == canonical(self.machine):
            self.emit(Delivered(identifier, message.body, message.priority, True, 0))
            return identifier
        packet = build_packet(message, identifier, machine, unix_time, self._signer)
        self.enqueue(
            key, NextHop(Guid.NULL, machine), Outgoing.of(identifier, message, packet, now), now
        )
        return identifier

    def send_routed(
        self,
        message: QueuedMessage,
        now: float,
        unix_time: int,
        identifier: MessageIdentifier | None = None,
    ) -> MessageIdentifier:
        """Queues a message for ``message.queue``, wherever that is, by way of next hops (MS-MQBR).

        A message without a route waits for one until it expires.
        """
        queue = message.queue
        if self._routes is None or queue is None:
            raise ValueError("a route takes a router, and the identifier of a queue")
        identifier = self._identify(identifier)
        if queue.queue_manager == self.guid:
            body, priority = message.body, message.priority
            local = MessageClass.NORMAL, True, 0, self.guid, 0
            self.emit(Arrived(identifier, queue.name, body, priority, *local))
            return identifier
        packet = build_packet(message, identifier, "", unix_time, self._signer)
        transit = Transit(queue.queue_manager)
        self._routes.dispatch(Outgoing.of(identifier, message, packet, now, transit), now)
        return identifier

    def _identify(self, identifier: MessageIdentifier | None) -> MessageIdentifier:
        if self._closed:
            raise ValueError("the queue manager is closed")
        return identifier or MessageIdentifier(self.guid, self._message_ids.next())

    def hurry(self, machine: str, now: float) -> None:
        """Retries a machine at once, because it has shown that it is alive."""
        destination = self._destinations.get(canonical(machine))
        if destination is not None and destination.way is DeliveryWay.WAITING:
            destination.hurry(now)
            self._advance(destination, now)

    def queued(self, machine: str) -> int:
        """Messages for a machine that it has not acknowledged."""
        destination = self._destinations.get(canonical(machine))
        return 0 if destination is None else destination.queue.messages

    def depths(self) -> list[Depth]:
        """The queue depth of each machine; twice if it has both routed and direct messages."""
        return [
            Depth(d.machine, d.queue.messages, d.queue.bytes, d.oldest(), bool(d.guid))
            for d in self._destinations.values()
        ]

    def sessions(self) -> list[tuple[Guid, str | None]]:
        """The peers with open sessions, and their names where this side connected."""
        open_ = (
            link for link in self._links.values() if link.session.state is QueueSessionState.OPEN
        )
        return [(link.session.peer or Guid.NULL, link.machine) for link in open_]

    @property
    def unwritten(self) -> int:
        """Messages that an open session could still take."""
        ways = self._destinations.values()
        return sum(
            d.queue.queued for d in ways if d.session and d.session.state is QueueSessionState.OPEN
        )

    def next_event(self) -> Event | None:
        if not self._events:
            return None
        event = self._events.popleft()
        self._event_bytes -= _weight(event)
        return event

    def close(self) -> None:
        """Acknowledges received messages and closes all; queued express messages are lost."""
        self._closed = True
        for connection, link in list(self._links.items()):
            link.session.close_orderly("the queue manager stops")
            self._drop_link(connection, link)
        for connection in self._connecting:
            self._effects.append(Close(connection))
        self._connecting.clear()
        self._destinations.clear()
        if self._routes is not None:
            self._routes.close()

    # --- the driver's side ------------------------------------------------------------------------

    @property
    def wants_data(self) -> bool:
        """False while too many events wait for the application: the driver then reads nothing."""
        limits = self.limits
        return len(self._events) < limits.max_events and self._event_bytes < limits.max_event_bytes

    def effects(self) -> list[Effect]:
        """The effects for the driver, in order."""
        effects, self._effects = self._effects, []
        for connection in self._dirty:
            link = self._links.get(connection)
            if link is not None and (data := link.session.data_to_send()):
                self.statistics.bytes_sent += len(data)
                effects.append(Write(connection, data))
        self._dirty.clear()
        return effects

    def accepted(self, address: str, now: float, source: str = "") -> int | None:
        """The number of a new incoming connection; None if it has to be closed at once.

        ``source`` is the key by which connections are counted, if it is not the address.
        """
        source = source or address
        stays, victim = self._guests.arrive(source)
        if self._closed or not stays or not self.wants_data:
            self.statistics.refused_connections += 1
            return None
        self._evict(victim, now)
        connection = next(self._connections)
        self._guests.add(connection, source)
        self._link(connection, None, address, now)
        return connection

    def connected(self, connection: int, address: str, now: float) -> None:
        destination = self._connecting.pop(connection, None)
        if destination is None:  # given up meanwhile
            self._effects.append(Close(connection))
            return
        link = self._link(connection, destination.machine, address, now, destination.guid)
        link.destination = destination
        destination.attached(link.session)
        self._schedule(destination)

    def connect_failed(self, connection: int, reason: str, now: float) -> None:
        destination = self._connecting.pop(connection, None)
        if destination is not None:
            self.emit(SessionClosed(connection, None, destination.machine, reason))
            self._fail(destination, now)
            self._advance(destination, now)

    def receive(self, connection: int, data: bytes, now: float) -> None:
        link = self._links.get(connection)
        if link is None:
            return
        session = link.session
        self.statistics.bytes_received += len(data)
        before = session.buffered
        for event in session.receive(data, now):
            if isinstance(event, UserMessage):
                self._received(connection, session, event, now)
            elif isinstance(event, Freed):
                self._freed(connection, link, event)
            elif isinstance(event, SessionReady):
                self._opened(connection, link)
        self._buffered += session.buffered - before
        if self._buffered > self.limits.max_buffered:
            held = {number: each.session.buffered for number, each in self._links.items()}
            hoarder = self._guests.hoarder(connection, held)
            self._end(hoarder, "too much is buffered for incomplete packets", now)
        if connection in self._links:
            self._settle(connection, link, now)

    def connection_lost(self, connection: int, now: float, reason: str = "lost") -> None:
        """Handles the loss of a connection, or the failure to connect."""
        self.connect_failed(connection, reason, now)
        link = self._links.get(connection)
        if link is not None:
            self._buffered -= link.session.buffered
            link.session.close(reason)
            self._settle(connection, link, now, lost=True)

    def next_timer(self) -> float | None:
        due = self._timers.next()
        routes = None if self._routes is None else self._routes.next_timer()
        return due if routes is None else routes if due is None else min(due, routes)

    def handle_timer(self, now: float) -> None:
        if self._routes is not None:
            self._routes.handle_timer(now)
        for key in self._timers.pop_expired(now):
            if isinstance(key, str):
                destination = self._destinations.get(key)
                if destination is not None:
                    self._advance(destination, now)
            elif (link := self._links.get(key)) is not None:
                before = link.session.buffered
                link.session.handle_timer(now)
                self._buffered += link.session.buffered - before
                self._settle(key, link, now)

    def ping(self, data: bytes) -> bytes | None:
        """The answer to a ping; None if ``data`` is no ping."""
        try:
            request = Ping.from_bytes(data)
        except WireError:
            return None
        refused = self._closed or self._full()
        return Ping(request.cookie, self.guid, request.client, refused).to_bytes()

    # --- sessions ---------------------------------------------------------------------------------

    def _link(
        self,
        connection: int,
        machine: str | None,
        address: str,
        now: float,
        remote: Guid = Guid.NULL,
    ) -> _Link:
        def admission(peer: Guid) -> str | None:
            if self._peers is not None and not self._peers.admits(peer, machine, address):
                return f"{peer} is not among the peers"
            return self._grant_session(connection, now) if machine is None else None

        initiator = machine is not None
        session = QueueSession(
            self.guid, self.limits, now, initiator=initiator, admission=admission, remote=remote
        )
        link = self._links[connection] = _Link(session, machine, address)
        self._timers.set(connection, session.next_timer())
        self._dirty[connection] = None
        return link

    def _full(self) -> bool:
        return self._guests.sessions >= self.limits.max_sessions

    def _grant_session(self, connection: int, now: float) -> str | None:
        """Gives an incoming connection a session; returns the reason if there is no room."""
        admitted, victim = self._guests.begin(connection)
        self._evict(victim, now)
        return None if admitted else NO_ROOM

    def _evict(self, connection: int | None, now: float) -> None:
        if connection is not None:
            self._end(connection, GAVE_WAY, now)

    def _end(self, connection: int, reason: str, now: float) -> None:
        """Closes a session from this side."""
        link = self._links[connection]
        self._buffered -= link.session.buffered
        link.session.close(reason)
        self._settle(connection, link, now)

    def _opened(self, connection: int, link: _Link) -> None:
        peer = link.session.peer
        assert peer is not None
        self.statistics.sessions += 1
        if link.destination is not None:
            link.destination.opened()
            if self._routes is not None:
                self._routes.works(link.destination.guid)
        self.emit(SessionOpened(connection, peer, link.machine, link.address))

    def _received(
        self, connection: int, session: QueueSession, message: UserMessage, now: float
    ) -> None:
        peer = session.peer
        assert peer is not None
        self.statistics.received += 1
        if self._routes is None or not self._routes.concern(message):
            event = self._receiver.judge(message, peer, connection, now)
            if isinstance(event, Delivered):
                self._guests.prove(connection)
            self.judged(event)
        else:
            self._routes.receive(message, peer, connection, now)

    def judged(self, event: Event) -> None:
        """Counts and reports the result for a received message."""
        if isinstance(event, (Delivered, Arrived)):
            self.statistics.delivered += 1
        elif isinstance(event, Refused):
            self.statistics.refused += 1
            self.statistics.duplicates += event.duplicate
        self.emit(event)

    def _freed(self, connection: int, link: _Link, event: Freed) -> None:
        destination = link.destination
        assert destination is not None
        for outgoing in event.messages:
            destination.queue.forget(outgoing)
        self.statistics.acknowledged += len(event.messages)
        identifiers = tuple(outgoing.identifier for outgoing in event.messages)
        routed = bool(destination.guid)
        self.emit(Acknowledged(identifiers, destination.machine, connection, routed))

    def _settle(self, connection: int, link: _Link, now: float, *, lost: bool = False) -> None:
        """Updates link, timers and destination after an event of a session, such as its end."""
        session = link.session
        if session.closed is not None:
            self._drop_link(connection, link, lost=lost)
            if link.destination is not None:
                link.destination.queue.requeue(session.unacknowledged())
                self._fail(link.destination, now)
        else:
            self._dirty[connection] = None
            self._timers.set(connection, session.next_timer())
        if link.destination is not None:
            self._advance(link.destination, now)

    def _drop_link(self, connection: int, link: _Link, *, lost: bool = False) -> None:
        session = link.session
        del self._links[connection]
        self._guests.forget(connection)
        self._timers.discard(connection)
        self.statistics.miscounts += session.miscounts
        if not lost:
            self.statistics.closed_connections += link.destination is None
            if data := session.data_to_send():
                self.statistics.bytes_sent += len(data)
                self._effects.append(Write(connection, data))
            self._effects.append(Close(connection))
        reason = session.closed or ""
        closed = SessionClosed(
            connection, session.peer, link.machine, reason, link.address, session.refused
        )
        self.emit(closed)

    # --- destinations -----------------------------------------------------------------------------

    def enqueue(self, key: str, hop: NextHop, outgoing: Outgoing, now: float) -> None:
        """Queues a message for a machine, or drops it if there is no room."""
        destination = self._destinations.get(key)
        if destination is None and len(self._destinations) < self.limits.max_destinations:
            destination = Destination(key, hop.machine, self.limits, hop.guid)
            self._destinations[key] = destination
        if destination is None or not destination.queue.fits(len(outgoing.packet)):
            self.undelivered(hop.machine, outgoing, MessageClass.NACK_Q_EXCEED_QUOTA, now)
            return
        destination.queue.push(outgoing)
        self._advance(destination, now)

    def _fail(self, destination: Destination, now: float) -> None:
        """Handles the loss of a session; routed messages go to another next hop."""
        destination.failed(now)
        if self._routes is not None and destination.guid:
            self._routes.detour(destination, now)

    def _advance(self, destination: Destination, now: float) -> None:
        """Does what is due for a destination: time out, expire, connect, send, or remove it."""
        if destination.way is DeliveryWay.CONNECTING and destination.is_due(now):
            self._effects.append(Close(destination.connection))
            self.connect_failed(destination.connection, "connecting took too long", now)
            return
        for outgoing in destination.queue.expire(now):
            timeout = MessageClass.NACK_REACH_QUEUE_TIMEOUT
            self.undelivered(destination.machine, outgoing, timeout, now)
        ready = destination.way is DeliveryWay.IDLE or (
            destination.way is DeliveryWay.WAITING and destination.is_due(now)
        )
        if ready and destination.queue.messages:
            connection = next(self._connections)
            self._connecting[connection] = destination
            destination.connecting(connection, now)
            self._effects.append(Connect(connection, destination.machine))
        self._pump(destination, now)
        if destination.disposable:
            del self._destinations[destination.key]
            self._timers.discard(destination.key)
        else:
            self._schedule(destination)

    def _pump(self, destination: Destination, now: float) -> None:
        session, queue = destination.session, destination.queue
        if session is None or not queue.queued or not session.room:
            return
        peer = session.peer
        assert peer is not None
        connection = destination.connection
        while session.room and (outgoing := queue.pop()) is not None:
            session.send(outgoing, now)
            self.statistics.sent += 1
            if outgoing.message.acknowledge:
                until = outgoing.deadline + self.limits.sent_grace_s
                sent = SentMessage(destination.machine, outgoing.message, peer, until)
                self._sent.add(outgoing.identifier.ordinal, sent, now)
            self.emit(_sent_event(outgoing, destination, peer))
        self._dirty[connection] = None
        self._timers.set(connection, session.next_timer())

    def _schedule(self, destination: Destination) -> None:
        self._timers.set(destination.key, destination.next_timer())

    def undelivered(
        self, machine: str, outgoing: Outgoing, message_class: MessageClass, now: float
    ) -> None:
        self.statistics.undelivered += 1
        self.statistics.expired += message_class == MessageClass.NACK_REACH_QUEUE_TIMEOUT
        identifier, message = outgoing.identifier, outgoing.message
        routed = outgoing.transit is not None
        if message.acknowledge:
            self.emit(Nacked(identifier, machine, message, message_class, True, routed))
        else:
            self.emit(Dropped(identifier, machine, message, message_class, routed))
        if self._routes is not None:
            self._routes.undelivered(outgoing, message_class, now)

    def emit(self, event: Event) -> None:
        self._events.append(event)
        self._event_bytes += _weight(event)


def _weight(event: Event) -> int:
    return len(event.body) if isinstance(event, (Delivered, Arrived)) else 0


def _sent_event(outgoing: Outgoing, destination: Destination, peer: Guid) -> Written | Relayed:
    identifier, transit = outgoing.identifier, outgoing.transit
    machine, connection = destination.machine, destination.connection
    if transit is None or not transit.peer:
        return Written(identifier, machine, connection, transit is not None)
    came_from, hops = transit.peer, transit.hops
    return Relayed(identifier, transit.target, came_from, peer, machine, hops, connection)
