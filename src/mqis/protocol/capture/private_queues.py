"""The private queues of queue managers whose messages are decoded. To add one, add a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mqis.protocol.capture.plain import field_names
from mqis.protocol.capture.row import Meaning
from mqis.protocol.queueing.replication_queue import MQIS_QUEUE, MQIS_QUEUE_ID, NOTIFY_QUEUE
from mqis.texts import some
from mqis.wire.guid import Guid
from mqis.wire.mqcn.notification import NOTIFY_QUEUE_ID, ChangeNotification
from mqis.wire.mqcn.notification_message import decode_notification
from mqis.wire.mqdsrp.describing import describe
from mqis.wire.mqdsrp.messages import ChangePropagation, Message, SyncReply, decode_message
from mqis.wire.seqnum import SequenceNumber

# --- Descriptions of replication messages and change notifications (MC-MQDSRP, MS-MQCN) -----------

#: Partition, sequence number, machines.
_About = tuple[Guid | None, int | None, tuple[str, ...]]
_LISTED = 3


def replication(body: bytes) -> Meaning:
    message = decode_message(body)
    partition, seq, machines = _ABOUT.get(type(message), _from_fields)(message)
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
        return Meaning("mqcn", "ChangeNotification", some(changes, _LISTED), message)
    summary = f"{message.event.name.lower().replace('_', ' ')} {message.guid}"
    return Meaning("mqcn", "NotificationBody", summary, message, machines=(message.server,))


def _propagation(message: ChangePropagation) -> _About:
    """Names a partition only if all changes are in it; without changes describes the heartbeat."""
    heartbeat = message.heartbeat
    partitions = {change.partition for change in message.changes}
    numbers = [change.seq.value for change in message.changes]
    if not message.changes:
        partitions = {each.partition for each in heartbeat.partitions}
        numbers = [each.last_seq.value for each in heartbeat.partitions]
    one = len(partitions) == 1
    machines = (heartbeat.machine,) if heartbeat.machine else ()
    return partitions.pop() if one else None, max(numbers) if one else None, machines


def _sync_reply(message: SyncReply) -> _About:
    """Names the last number that the requester then has, not the first."""
    return message.partition, message.to_seq.value, ()


def _from_fields(message: Message) -> _About:
    """The field ``partition``, the first sequence number, and all names of machines."""
    values = [getattr(message, name) for name in field_names(type(message))]
    numbers = (value.value for value in values if isinstance(value, SequenceNumber))
    machines = tuple(value for value in values if isinstance(value, str) and value)
    return getattr(message, "partition", None), next(numbers, None), machines


#: Messages whose fields alone do not say what they are about.
_ABOUT: dict[type[Message], Callable[[Any], _About]] = {
    ChangePropagation: _propagation,
    SyncReply: _sync_reply,
}


# --- The private queues of queue managers whose messages are decoded ------------------------------


class QueueProtocol(NamedTuple):
    """A private queue: its path after the machine's name, and its number on every machine."""

    name: str
    queue: str
    private_id: int
    decode: Callable[[bytes], Meaning]


QUEUES: tuple[QueueProtocol, ...] = (
    QueueProtocol("mqdsrp", MQIS_QUEUE, MQIS_QUEUE_ID, replication),
    QueueProtocol("mqcn", NOTIFY_QUEUE, NOTIFY_QUEUE_ID, notification),
)
