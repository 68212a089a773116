"""Routed messages: choice of the next hop, forwarding, detours around outages, waiting.

A message goes to the first next hop of GetNextHops that is not known to be out. When a hop fails,
the messages for it go to the next one of the list at once (MS-MQQB 3.1.6.1 lets them wait for a
timer first). If none is left a message waits here and is retried when a hop may be, until it
expires like any message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from mqis.protocol.queueing.acknowledging import negative, wants_nack
from mqis.protocol.queueing.destination import Destination
from mqis.protocol.queueing.events import Event, Stranded
from mqis.protocol.queueing.forwarding import Forwarder, NextHop, Rejection, Relay, is_reserved
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.message import QueuedMessage
from mqis.protocol.queueing.outages import Outages
from mqis.protocol.queueing.outgoing import Outgoing, OutgoingQueue, Transit
from mqis.protocol.queueing.tables import MessageIds
from mqis.protocol.routing.breakage import NoRouteError
from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import INFINITE
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import MessageClass


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
