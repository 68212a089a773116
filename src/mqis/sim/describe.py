"""Descriptions of replication messages for the trace."""

from __future__ import annotations

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Message,
    Operation,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
    decode_message,
)

_SHOWN = 12
_OPERATION_AT = 17
_SYNC0_AT = 62


def operation_of(body: bytes) -> str:
    """The name of a message's operation."""
    number = body[_OPERATION_AT]
    return Operation(number).name.lower() if number <= Operation.BSC_ACK else f"operation {number}"


def is_partial(body: bytes) -> bool:
    """Returns whether a message is a sync reply that is followed by others."""
    more = body[_SYNC0_AT : _SYNC0_AT + 1]
    return body[_OPERATION_AT] == Operation.SYNC_REPLY and more == bytes([Sync0.MORE])


def describe(body: bytes) -> str:
    try:
        return _describe(decode_message(body))
    except WireError as error:
        return f"damaged: {error}"


def short(identifier: Guid) -> str:
    return str(identifier)[:8] if identifier else "enterprise"


def _describe(message: Message) -> str:
    text = ""
    match message:
        case ChangePropagation(_, changes, heartbeat):
            numbers = [
                f"{short(p.partition)} at {p.last_seq.value} purged {p.purged_seq.value}"
                for p in heartbeat.partitions
            ]
            text = "; ".join([*_changes(changes), *numbers])
        case SyncRequest(_, partition, from_seq, _, known, is_sync0):
            full = ", full" if is_sync0 else ""
            text = f"{short(partition)} from {from_seq.value} purged {known.value}{full}"
        case SyncReply(_, partition, from_seq, to_seq, purged, more, changes):
            head = f"{short(partition)} {from_seq.value} to {to_seq.value} purged {purged.value}"
            text = "; ".join([f"{head} {more.name.lower()}", *_changes(changes)])
        case AlreadyPurged(_, partition, purged):
            text = f"{short(partition)} up to {purged.value}"
        case PscAck(_, _, partition, seq):
            text = f"{short(partition)} at {seq.value}"
        case ChangeRequest(_, _, request, requester, _, change):
            text = f"{requester} {request}: {_change(change)}"
        case ChangeReply(_, request, result, requester):
            text = f"{requester} {request}: 0x{result:08x}"
    return text


def _changes(changes: tuple[DirectoryChange, ...]) -> list[str]:
    listed = [_change(change) for change in changes[:_SHOWN]]
    return listed + ([f"and {len(changes) - _SHOWN} more"] if len(changes) > _SHOWN else [])


def _change(change: DirectoryChange) -> str:
    name = change.path if change.guid is None else short(change.guid)
    numbers = f"{change.seq.value}({change.previous_seq.value})"
    return f"{short(change.partition)} {numbers} {change.command.name.lower()} {name}"
