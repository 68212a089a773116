"""Negative administration acknowledgements about others' messages (MS-MQQB 3.1.7.15)."""

from __future__ import annotations

from collections.abc import Callable

from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import Acknowledge, MessageProperties
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.mqqb.userheader import UserHeader

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
