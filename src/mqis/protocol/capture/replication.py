"""Replication messages and change notifications in words (MC-MQDSRP, MS-MQCN)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqis.protocol.capture.row import Meaning
from mqis.wire.guid import Guid
from mqis.wire.mqcn.message import decode_notification
from mqis.wire.mqcn.notification import ChangeNotification
from mqis.wire.mqdsrp.describing import describe, few
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Message,
    PscAck,
    SyncReply,
    SyncRequest,
    decode_message,
)

#: Partition, sequence number, machines.
_About = tuple[Guid | None, int | None, tuple[str, ...]]
_LISTED = 3


def replication(body: bytes) -> Meaning:
    message = decode_message(body)
    partition, seq, machines = _ABOUT[type(message)](message)
    return Meaning(
        "mqdsrp",
        type(message).__name__,
        describe(message),
        message,
        partition=partition,
        seq=seq,
        machines=machines,
    )


def notification(body: bytes) -> Meaning:
    message = decode_notification(body)
    if isinstance(message, ChangeNotification):
        changes = [f"{u.command.name.lower()} {u.path or u.guid}" for u in message.updates]
        return Meaning("mqcn", "ChangeNotification", few(changes, _LISTED), message)
    said = f"{message.event.name.lower().replace('_', ' ')} {message.guid}"
    return Meaning("mqcn", "NotificationBody", said, message, machines=(message.server,))


def _propagation(message: ChangePropagation) -> _About:
    """Of one partition if all changes are; a heartbeat without changes tells numbers instead."""
    heartbeat = message.heartbeat
    partitions = {change.partition for change in message.changes}
    numbers = [change.seq.value for change in message.changes]
    if not message.changes:
        partitions = {each.partition for each in heartbeat.partitions}
        numbers = [each.last_seq.value for each in heartbeat.partitions]
    one = len(partitions) == 1
    machines = (heartbeat.machine,) if heartbeat.machine else ()
    return partitions.pop() if one else None, max(numbers) if one else None, machines


def _request(message: ChangeRequest) -> _About:
    machines = (message.requester, *((message.psc,) if message.psc else ()))
    return message.partition, None, machines


def _reply(message: ChangeReply) -> _About:
    return None, None, (message.requester,)


def _sync_request(message: SyncRequest) -> _About:
    return message.partition, message.from_seq.value, (message.requester,)


def _sync_reply(message: SyncReply) -> _About:
    return message.partition, message.to_seq.value, ()


def _purged(message: AlreadyPurged) -> _About:
    return message.partition, message.purged_seq.value, ()


def _psc_ack(message: PscAck) -> _About:
    return message.partition, message.seq.value, (message.psc,)


def _bsc_ack(message: BscAck) -> _About:
    return None, None, (message.name,)


_ABOUT: dict[type[Message], Callable[[Any], _About]] = {
    ChangePropagation: _propagation,
    ChangeRequest: _request,
    ChangeReply: _reply,
    SyncRequest: _sync_request,
    SyncReply: _sync_reply,
    AlreadyPurged: _purged,
    PscAck: _psc_ack,
    BscAck: _bsc_ack,
}
