"""A message for another machine's replication queue, and the packet that carries it."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.queueing.replication_queue import MQIS_QUEUE_ID, direct_name
from mqis.protocol.queueing.signing import Signer, signed_parts
from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import DEFAULT_PRIORITY, MAX_PRIORITY
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import Acknowledge, MessageProperties
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.mqqb.securityheader import SecurityHeader, SenderIdType
from mqis.wire.mqqb.userheader import UserHeader

#: Lifetimes and priority of replication messages (MC-MQDSRP 3.1.7.2.1; 7 for its 8, E49).
REPLICATION_LIFETIME_S = 1200
REQUEST_LIFETIME_S = 10
REQUEST_PRIORITY = MAX_PRIORITY


@dataclass(frozen=True, slots=True)
class PrivateQueue:
    """A private queue, by its number on its queue manager."""

    queue_manager: Guid
    number: int

    @property
    def name(self) -> QueueName:
        return QueueName.at_destination(self.number)


@dataclass(frozen=True, slots=True)
class PublicQueue:
    """A public queue, by its identifier, and its queue manager by the directory."""

    queue_manager: Guid
    identifier: Guid

    @property
    def name(self) -> QueueName:
        return QueueName(QueueKind.PUBLIC, guid=self.identifier)


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message to send. ``acknowledge`` requests a NACK to the own queue with number ``admin``.

    Without ``queue`` it is for the replication queue.
    """

    body: bytes
    priority: int = DEFAULT_PRIORITY
    lifetime_s: int = REPLICATION_LIFETIME_S
    acknowledge: bool = False
    queue: PrivateQueue | PublicQueue | None = None
    admin: int = MQIS_QUEUE_ID

    def __post_init__(self) -> None:
        if not 0 <= self.priority <= MAX_PRIORITY:
            raise ValueError(f"a priority is 0 to {MAX_PRIORITY}, not {self.priority}")
        if not 0 <= self.lifetime_s <= 0xFFFFFFFF:
            raise ValueError(f"a lifetime has 32 bits, {self.lifetime_s} does not fit")


def build_packet(
    message: QueuedMessage,
    identifier: MessageIdentifier,
    machine: str,
    sent_time: int,
    signer: Signer | None,
) -> bytes:
    """The express packet for the direct name of a machine, or for a queue by identifier."""
    queue = message.queue
    header = UserHeader(
        identifier.source,
        identifier.ordinal,
        QueueName.of_direct(direct_name(machine)) if queue is None else queue.name,
        Guid.NULL if queue is None else queue.queue_manager,
        time_to_be_received=message.lifetime_s,
        sent_time=sent_time,
        admin=QueueName.at_source(message.admin) if message.acknowledge else QueueName.NONE,
        response=QueueName.SAME_AS_ADMIN if message.acknowledge else QueueName.NONE,
    )
    wanted = Acknowledge.NEGATIVE_ARRIVAL if message.acknowledge else 0
    properties = MessageProperties(message.body, acknowledge=wanted)
    signature = b"" if signer is None else signer.sign(signed_parts(header, properties))
    security = SecurityHeader(
        SenderIdType.QUEUE_MANAGER,
        identifier.source.raw,
        signature=signature,
        default_provider=bool(signature),
    )
    return UserMessage(
        header, properties, security, message.priority, message.lifetime_s
    ).to_bytes()
