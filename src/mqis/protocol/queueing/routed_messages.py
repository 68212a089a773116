"""Routed messages: choice of the next hop, forwarding, detours around outages, waiting.

A message goes to the first next hop of GetNextHops that is not known to be out. When a hop fails,
the messages for it go to the next one of the list at once (MS-MQQB 3.1.6.1 lets them wait for a
timer first). If none is left a message waits here and is retried when a hop may be, until it
expires like any message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from mqis.protocol.clock import pause_after
from mqis.protocol.queueing.destination import Destination
from mqis.protocol.queueing.events import Event, Stranded
from mqis.protocol.queueing.forwarding import Forwarder, NextHop, Rejection, Relay, is_reserved
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.message_tables import MessageIds
from mqis.protocol.queueing.outgoing import Outgoing, OutgoingQueue, Transit
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.protocol.routing.breakage import NoRouteError
from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import INFINITE
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import Acknowledge, MessageClass, MessageProperties
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.mqqb.userheader import UserHeader


class RelayStatistics(Protocol):
    relayed: int
    exhausted: int


class Office(Protocol):
    """The interface that routes need of their queue manager."""

    @property
    def statistics(self) -> RelayStatistics: ...

    def enqueue(self, key: str, hop: NextHop, outgoing: Outgoing, now: float) -> None: ...

    def judged(self, event: Event) -> None: ...

    def emit(self, event: Event) -> None: ...

    def undelivered(
        self, machine: str, outgoing: Outgoing, message_class: MessageClass, now: float
    ) -> None: ...


class QueueingRoutes:
    """The part of a queue manager that sends and forwards routed messages."""

    def __init__(
        self, forwarder: Forwarder, limits: QueueingLimits, message_ids: MessageIds, office: Office
    ) -> None:
        self._forwarder = forwarder
        self._router = forwarder.router
        self._message_ids = message_ids
        self._office = office
        self._outages = Outages(limits)
        self._stranded = OutgoingQueue(limits)
        self._trial_due = 0.0

    def concern(self, message: UserMessage) -> bool:
        return self._forwarder.concerns(message.header)

    def receive(self, message: UserMessage, peer: Guid, session: int, now: float) -> None:
        verdict = self._forwarder.judge(message, peer, session, now)
        if isinstance(verdict, Relay):
            self._relay(verdict, peer, now)
        elif isinstance(verdict, Rejection):
            if verdict.message_class is MessageClass.NACK_HOP_COUNT_EXCEEDED:
                self._office.statistics.exhausted += 1
            self._office.judged(verdict.refused)
            self._reject(message, verdict.message_class, peer, now)
        else:
            self._office.judged(verdict)

    def dispatch(self, outgoing: Outgoing, now: float) -> None:
        """Sends to the first next hop that is not known to be out; else the message waits."""
        transit = outgoing.transit
        assert transit is not None
        try:
            hops = self._router.next_hops(transit.target)
            reason = "out of reach: " + ", ".join(hop.machine for hop in hops)
        except NoRouteError as error:
            hops, reason = (), str(error)
        for hop in hops:
            if not self._outages.is_out(hop.guid, now):
                self._office.enqueue(f"{{{hop.guid}}}", hop, outgoing, now)
                return
        if not outgoing.stranded:
            self._office.emit(Stranded(outgoing.identifier, transit.target, reason))
            outgoing = replace(outgoing, stranded=True)
        self._strand(outgoing, now)

    def detour(self, destination: Destination, now: float) -> None:
        """Redirects the messages for a next hop that failed."""
        left = destination.queue.take_all()
        if left:
            self._outages.failed(destination.guid, now)
        for outgoing in left:
            self.dispatch(outgoing, now)

    def works(self, hop: Guid) -> None:
        self._outages.works(hop)

    def undelivered(self, outgoing: Outgoing, message_class: MessageClass, now: float) -> None:
        """Sends the NACK for another machine's message that ends here, if it asked for one."""
        if outgoing.transit is not None and outgoing.transit.received is not None:
            self._reject(outgoing.transit.received, message_class, outgoing.transit.peer, now)

    def close(self) -> None:
        self._stranded.take_all()

    # --- time -------------------------------------------------------------------------------------

    def next_timer(self) -> float | None:
        if not self._stranded.messages:
            return None
        expiry = self._stranded.next_expiry()
        return self._trial_due if expiry is None else min(expiry, self._trial_due)

    def handle_timer(self, now: float) -> None:
        for outgoing in self._stranded.expire(now):
            timeout = MessageClass.NACK_REACH_QUEUE_TIMEOUT
            self._office.undelivered("", outgoing, timeout, now)
        if self._stranded.messages and now >= self._trial_due:
            for outgoing in self._stranded.take_all():
                self.dispatch(outgoing, now)

    # --- on the way -------------------------------------------------------------------------------

    def _relay(self, relay: Relay, peer: Guid, now: float) -> None:
        self._office.statistics.relayed += 1
        message, header = relay.message, relay.message.header
        identifier = MessageIdentifier(header.source, header.message_id)
        received = message if wants_nack(message) else None
        transit = Transit(relay.target, peer, header.hops, received)
        carried = QueuedMessage(
            message.properties.body, message.priority, message.time_to_reach_queue
        )
        packet = message.to_bytes()
        self.dispatch(Outgoing.of(identifier, carried, packet, now, transit), now)

    def _reject(
        self, message: UserMessage, message_class: MessageClass, peer: Guid, now: float
    ) -> None:
        """Sends an Administration Acknowledgment (MS-MQQB 3.1.7.15), if the sender asked for it.

        A replication queue accepts our NACKs about messages that it sent to us. So it gets one only
        if its own machine brought the message, not if another one claims that it came from there.
        """
        if not wants_nack(message):
            return
        identifier = MessageIdentifier(self._forwarder.guid, self._message_ids.next())
        nack = negative(message, message_class, identifier, self._router.owner_of)
        if nack is None:
            return
        if is_reserved(nack.header.destination) and message.header.source != peer:
            return
        if nack.header.address == self._forwarder.guid:
            self.receive(nack, self._forwarder.guid, 0, now)
            return
        transit = Transit(nack.header.address)
        carried = QueuedMessage(nack.properties.body, nack.priority, INFINITE)
        self.dispatch(Outgoing.of(identifier, carried, nack.to_bytes(), now, transit), now)

    def _strand(self, outgoing: Outgoing, now: float) -> None:
        if not self._stranded.fits(len(outgoing.packet)):
            self._office.undelivered("", outgoing, MessageClass.NACK_Q_EXCEED_QUOTA, now)
            return
        if not self._stranded.messages:
            self._trial_due = self._outages.next_trial(now)
        self._stranded.push(outgoing)


# --- Negative administration acknowledgements about others' messages (MS-MQQB 3.1.7.15) -----------

OwnerOf = Callable[[Guid], Guid | None]


def wants_nack(message: UserMessage) -> bool:
    requested = message.properties.acknowledge & Acknowledge.NEGATIVE_ARRIVAL
    return bool(requested) and message.header.admin.kind is not QueueKind.NONE


def negative(
    message: UserMessage, message_class: int, identifier: MessageIdentifier, owner_of: OwnerOf
) -> UserMessage | None:
    """The acknowledgement, to be sent to ``header.address``; None if it has no destination.

    It never expires, so its sent time has no effect; it is that of the original.
    """
    address, destination = _admin_queue(message.header, owner_of)
    if not address:
        return None
    header = UserHeader(
        identifier.source,
        identifier.ordinal,
        destination,
        address,
        sent_time=message.header.sent_time,
        response=_as_response(message.header),
        recoverable=message.header.recoverable,
    )
    encrypted = message.security is not None and message.security.encrypted
    subject = MessageIdentifier(message.header.source, message.header.message_id)
    properties = MessageProperties(
        b"" if encrypted else message.properties.body,
        message_class,
        correlation_id=subject.to_bytes(),
    )
    return UserMessage(header, properties, priority=message.priority)


def _admin_queue(header: UserHeader, owner_of: OwnerOf) -> tuple[Guid, QueueName]:
    """The administration queue and its queue manager; NULL for a direct name: it has no route."""
    admin = header.admin
    private = QueueName.at_destination(admin.private_id)
    if admin.kind is QueueKind.PRIVATE_AT_SOURCE:
        return header.source, private
    if admin.kind is QueueKind.PRIVATE_AT_DESTINATION:
        return header.address, private
    if admin.kind is QueueKind.PRIVATE:
        return admin.guid, private
    if admin.kind is QueueKind.PUBLIC:
        return owner_of(admin.guid) or Guid.NULL, admin
    return Guid.NULL, QueueName.NONE


def _as_response(header: UserHeader) -> QueueName:
    name = header.destination
    if name.kind is QueueKind.PRIVATE_AT_DESTINATION:
        return QueueName(QueueKind.PRIVATE, private_id=name.private_id, guid=header.address)
    return name


# --- Next hops that could not be reached, and the times of the next attempts ----------------------


class Outages:
    """The back-off of unreachable next hops: longer after each failure, reset by a success."""

    def __init__(self, limits: QueueingLimits) -> None:
        self._limits = limits
        self._until: dict[Guid, float] = {}
        self._failures: dict[Guid, int] = {}

    def failed(self, hop: Guid, now: float) -> None:
        self._failures[hop] = self._failures.get(hop, 0) + 1
        limits = self._limits
        self._until[hop] = now + pause_after(
            self._failures[hop], limits.retry_s, limits.retry_max_s
        )

    def works(self, hop: Guid) -> None:
        self._until.pop(hop, None)
        self._failures.pop(hop, None)

    def is_out(self, hop: Guid, now: float) -> bool:
        return self._until.get(hop, now) > now

    def next_trial(self, now: float) -> float:
        """The time at which a hop may be retried; ``retry_s`` from now at the latest."""
        times = [until for until in self._until.values() if until > now]
        return min([*times, now + self._limits.retry_s])
