"""Descriptions of replication messages and change notifications (MC-MQDSRP, MS-MQCN)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqis.protocol.capture.row import Meaning
from mqis.wire.guid import Guid
from mqis.wire.hresult import name_of
from mqis.wire.mqcn.message import decode_notification
from mqis.wire.mqcn.notification import ChangeNotification
from mqis.wire.mqdsrp.change import DirectoryChange
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

#: Summary, partition, sequence number, machines.
_Said = tuple[str, Guid | None, int | None, tuple[str, ...]]
_LISTED = 3


def replication(body: bytes) -> Meaning:
    message = decode_message(body)
    summary, partition, seq, machines = _SAY[type(message)](message)
    return Meaning(
        "mqdsrp",
        type(message).__name__,
        summary,
        message,
        partition=partition,
        seq=seq,
        machines=machines,
    )


def notification(body: bytes) -> Meaning:
    message = decode_notification(body)
    if isinstance(message, ChangeNotification):
        changes = [f"{u.command.name.lower()} {u.path or u.guid}" for u in message.updates]
        return Meaning("mqcn", "ChangeNotification", _few(changes), message)
    said = f"{message.event.name.lower().replace('_', ' ')} {message.guid}"
    return Meaning("mqcn", "NotificationBody", said, message, machines=(message.server,))


def _few(things: list[str]) -> str:
    more = len(things) - _LISTED
    return ", ".join(things[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _change(change: DirectoryChange) -> str:
    return f"{change.command.name.lower()} {change.path or change.guid} ({change.seq})"


def _changes(changes: tuple[DirectoryChange, ...]) -> str:
    return _few([_change(change) for change in changes])


def _propagation(message: ChangePropagation) -> _Said:
    """Names a partition only if all changes are in it; without changes describes the heartbeat."""
    heartbeat = message.heartbeat
    partitions = {change.partition for change in message.changes}
    numbers = [change.seq.value for change in message.changes]
    told = _changes(message.changes)
    if not message.changes:
        partitions = {each.partition for each in heartbeat.partitions}
        numbers = [each.last_seq.value for each in heartbeat.partitions]
        reached = [f"{each.partition} up to {each.last_seq}" for each in heartbeat.partitions]
        told = f"heartbeat: {_few(reached)}"
    one = len(partitions) == 1
    machines = (heartbeat.machine,) if heartbeat.machine else ()
    return told, partitions.pop() if one else None, max(numbers) if one else None, machines


def _request(message: ChangeRequest) -> _Said:
    machines = (message.requester, *((message.psc,) if message.psc else ()))
    told = f"{message.request_id}: {_change(message.change)}"
    return told, message.partition, None, machines


def _reply(message: ChangeReply) -> _Said:
    told = f"{message.request_id}: {name_of(message.result)}"
    return told, None, None, (message.requester,)


def _sync_request(message: SyncRequest) -> _Said:
    told = f"{message.partition} from {message.from_seq} to {message.to_seq}"
    if message.is_sync0:
        told = f"{message.partition}: everything"
    return told, message.partition, message.from_seq.value, (message.requester,)


def _sync_reply(message: SyncReply) -> _Said:
    told = f"{message.partition} from {message.from_seq} to {message.to_seq}: "
    told += _changes(message.changes) or "no change"
    return told, message.partition, message.to_seq.value, ()


def _purged(message: AlreadyPurged) -> _Said:
    told = f"{message.partition}: purged up to {message.purged_seq}"
    return told, message.partition, message.purged_seq.value, ()


def _psc_ack(message: PscAck) -> _Said:
    told = f"{message.psc} has {message.partition} up to {message.seq}"
    return told, message.partition, message.seq.value, (message.psc,)


def _bsc_ack(message: BscAck) -> _Said:
    return f"{message.name} is there", None, None, (message.name,)


_SAY: dict[type[Message], Callable[[Any], _Said]] = {
    ChangePropagation: _propagation,
    ChangeRequest: _request,
    ChangeReply: _reply,
    SyncRequest: _sync_request,
    SyncReply: _sync_reply,
    AlreadyPurged: _purged,
    PscAck: _psc_ack,
    BscAck: _bsc_ack,
}
