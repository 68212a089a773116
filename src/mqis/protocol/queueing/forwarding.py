"""Messages to public and private format names: for this machine, or to be forwarded.

    QueueManagerAddress is ours, or the public queue is     a queue of this machine
        another machine's, and this is a routing server         to the next hop, RC + 1 (3.1.5.8.2)
        RC would exceed 0x1D                                    refused, acknowledged if asked for
        another machine's, and this is no routing server        refused

The replication queue and the notification queue are not among these: their messages come directly
from their senders, which ``direct_messages`` checks. Messages that others send there in the name of
this machine are not forwarded: on a session of ours they would be accepted. Direct names are never
forwarded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from mqis.protocol.queueing.events import Arrived, Nacked, Refused
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.message_tables import DuplicateTable, SentTable, TransitTable
from mqis.protocol.queueing.replication_queue import MQIS_QUEUE_ID
from mqis.protocol.queueing.signing import Signer, SigningPolicy, examine
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import MessageClass, is_nack
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.mqqb.userheader import MAX_HOPS, UserHeader

_OTHERS_RULES = (MQIS_QUEUE_ID, NOTIFY_QUEUE_ID)


@dataclass(frozen=True, slots=True)
class NextHop:
    """A queue manager to send to, and the name by which its address is found."""

    guid: Guid
    machine: str


class Router(Protocol):
    """The port for what the directory knows of routes and queues."""

    @property
    def forwards(self) -> bool:
        """True if this machine is a routing server."""

    def knows(self, machine: Guid) -> bool:
        """Returns whether a queue manager is in the directory."""

    def next_hops(self, target: Guid) -> tuple[NextHop, ...]:
        """The next hops by GetNextHops (MS-MQBR 3.1.5.1), best first; else ``NoRouteError``."""

    def owner_of(self, queue: Guid) -> Guid | None:
        """The queue manager of a public queue."""

    def has_queue(self, name: QueueName) -> bool:
        """Returns whether this machine has the queue."""


@dataclass(frozen=True, slots=True)
class Relay:
    """A message to be forwarded, with its new header."""

    message: UserMessage
    target: Guid


@dataclass(frozen=True, slots=True)
class Rejection:
    """A refusal that is acknowledged to the sender, if the message asks for that."""

    refused: Refused
    message_class: MessageClass


Verdict = Arrived | Nacked | Refused | Relay | Rejection


def is_reserved(name: QueueName) -> bool:
    """True for the queues that ``direct_messages`` has the rules of, on any machine."""
    return name.kind is QueueKind.PRIVATE_AT_DESTINATION and name.private_id in _OTHERS_RULES


class Forwarder:
    """Decides whether a message is delivered here, forwarded or refused."""

    def __init__(
        self,
        guid: Guid,
        router: Router,
        limits: QueueingLimits,
        *,
        duplicates: DuplicateTable,
        sent: SentTable,
        policy: SigningPolicy,
        signer: Signer | None,
    ) -> None:
        self.guid = guid
        self.router = router
        self._duplicates = duplicates
        self._passed = TransitTable(limits)
        self._sent = sent
        self._policy = policy
        self._signer = signer

    def concerns(self, header: UserHeader) -> bool:
        name = header.destination
        if name.kind is QueueKind.PUBLIC:
            return True
        if name.kind is not QueueKind.PRIVATE_AT_DESTINATION or not header.address:
            return False
        return header.address != self.guid or not is_reserved(name)

    def judge(self, message: UserMessage, peer: Guid, session: int, now: float) -> Verdict:
        header = message.header
        identifier = MessageIdentifier(header.source, header.message_id)
        target = self._target(header)
        if target is None:
            reason = f"the directory has no queue {header.destination.guid}"
            return Refused(identifier, session, reason)
        if not self.router.knows(header.source):
            return Refused(identifier, session, f"{header.source} is not in the directory")
        if target == self.guid:
            return self._take(message, identifier, peer, session, now)
        return self._pass_on(message, identifier, target, session, now)

    def _target(self, header: UserHeader) -> Guid | None:
        """The queue manager of the destination: the address, unless a public queue is ours now."""
        if header.destination.kind is not QueueKind.PUBLIC or header.address == self.guid:
            return header.address
        owner = self.router.owner_of(header.destination.guid)
        return owner if owner == self.guid or not header.address else header.address

    # --- for others -------------------------------------------------------------------------------

    def _pass_on(
        self,
        message: UserMessage,
        identifier: MessageIdentifier,
        target: Guid,
        session: int,
        now: float,
    ) -> Relay | Refused | Rejection:
        """Forwards a message; only hop count and address change. Signatures are not checked."""
        header = message.header
        if header.source == self.guid and is_reserved(header.destination):
            return Refused(identifier, session, f"for {target}, in the name of this machine")
        if not self.router.forwards:
            return Refused(identifier, session, f"for {target}; this is no routing server")
        if self._passed.seen((identifier, header.hops), now):
            return Refused.as_duplicate(identifier, session)
        self._passed.add((identifier, header.hops), now)
        if header.hops >= MAX_HOPS:
            refused = Refused(identifier, session, f"for {target}; the hop count is exhausted")
            return Rejection(refused, MessageClass.NACK_HOP_COUNT_EXCEEDED)
        further = replace(header, hops=header.hops + 1, address=target)
        return Relay(replace(message, header=further, session=None), target)

    # --- for this machine -------------------------------------------------------------------------

    def _take(
        self,
        message: UserMessage,
        identifier: MessageIdentifier,
        peer: Guid,
        session: int,
        now: float,
    ) -> Arrived | Nacked | Refused | Rejection:
        if is_nack(message.properties.message_class):
            return self._nack(message, identifier, session, now)
        if message.transaction is not None:
            refused = Refused(identifier, session, "transactional")
            return Rejection(refused, MessageClass.NACK_NOT_TRANSACTIONAL_Q)
        if self._duplicates.seen(identifier, now):
            return Refused.as_duplicate(identifier, session)
        authenticated, reason = self._examine(message)
        if reason is not None:
            return Refused(identifier, session, reason)
        self._duplicates.add(identifier, now)
        return Arrived(
            identifier,
            message.header.destination,
            message.properties.body,
            message.priority,
            message.properties.message_class,
            authenticated,
            message.header.hops,
            peer,
            session,
        )

    def _examine(self, message: UserMessage) -> tuple[bool, str | None]:
        """Returns whether a message is authenticated, and the reason to refuse it, if any."""
        if not self.router.has_queue(message.header.destination):
            return False, "there is no such queue on this machine"
        if message.security is not None and message.security.encrypted:
            return False, "encrypted"
        return examine(message, self._policy, self._signer)

    def _nack(
        self, message: UserMessage, identifier: MessageIdentifier, session: int, now: float
    ) -> Nacked | Refused:
        """Accepts a NACK of any machine on the route, but only about an own routed message."""
        subject = MessageIdentifier.from_bytes(message.properties.correlation_id)
        sent = self._sent.get(subject.ordinal, now) if subject.source == self.guid else None
        if sent is None or sent.message.queue is None:
            return Refused(identifier, session, "acknowledges nothing that was sent by a route")
        self._sent.take(subject.ordinal, now)
        message_class = message.properties.message_class
        original = subject, sent.machine, sent.message
        return Nacked(*original, message_class, local=False, routed=True)
