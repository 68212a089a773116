"""Replication messages in words: one describer for captures, traces and journals.

The sentence of a message is the same everywhere. A ``Style`` decides how identifiers and numbers
are written, how many changes are listed, and whether the numbers that only replication itself needs
(previous, purged) are told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from mqis.texts import some
from mqis.wire.guid import Guid
from mqis.wire.hresult import name_of
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Message,
    MessageOperation,
    PartitionSeqNumbers,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class Style:
    """The form of a description."""

    guid: Callable[[Guid], str]
    number: Callable[[SequenceNumber], str]
    #: Changes and partitions that are listed; the others are counted.
    listed: int
    #: Whether previous and purged numbers, requesters and heartbeats behind changes are told.
    detailed: bool = False


def short(identifier: Guid) -> str:
    """The first eight digits; the null GUID is the partition of the enterprise."""
    return str(identifier)[:8] if identifier else "enterprise"


#: For a reader who looks the identifiers up elsewhere.
FULL = Style(str, str, listed=3)
#: For a reader who follows the steps of replication.
TRACE = Style(short, lambda seq: str(seq.value), listed=12, detailed=True)


def operation_name(number: int) -> str:
    """``sync_request``; ``operation 9`` for a number that is not assigned."""
    return MessageOperation(number).name.lower() if number in _OPERATIONS else f"operation {number}"


def describe(message: Message, style: Style = FULL) -> str:
    """The message in one line, without its operation."""
    return _DESCRIBERS.get(type(message), _fields)(message, style)


_OPERATIONS = frozenset(map(int, MessageOperation))


def _fields(message: Message, style: Style) -> str:
    """The fields by name, for a message that has no sentence of its own."""
    values = ((field.name, getattr(message, field.name)) for field in fields(message))
    return ", ".join(f"{name} {_value(value, style)}" for name, value in values if name != "site")


def _value(value: object, style: Style) -> str:
    if isinstance(value, Guid):
        return style.guid(value)
    if isinstance(value, SequenceNumber):
        return style.number(value)
    if isinstance(value, tuple) and all(isinstance(item, DirectoryChange) for item in value):
        return _changes(value, style) or "none"
    return str(value)


def _change(change: DirectoryChange, style: Style) -> str:
    name = change.path or ("unnamed" if change.guid is None else style.guid(change.guid))
    number = style.number(change.seq)
    if style.detailed:
        previous = style.number(change.previous_seq)
        number = f"{style.guid(change.partition)} {number} after {previous}"
    return f"{change.command.name.lower()} {name} ({number})"


def _changes(changes: tuple[DirectoryChange, ...], style: Style) -> str:
    return some([_change(change, style) for change in changes], style.listed)


def _purged_up_to(seq: SequenceNumber, style: Style) -> str:
    return f" purged {style.number(seq)}" if style.detailed else ""


def _reached(numbers: PartitionSeqNumbers, style: Style) -> str:
    purged = _purged_up_to(numbers.purged_seq, style)
    return f"{style.guid(numbers.partition)} up to {style.number(numbers.last_seq)}{purged}"


def _propagation(message: ChangePropagation, style: Style) -> str:
    """The changes; a heartbeat if there are none, or if details are wanted."""
    numbers = message.heartbeat.partitions
    heartbeat = f"heartbeat: {some([_reached(each, style) for each in numbers], style.listed)}"
    if not message.changes:
        return heartbeat
    changes = _changes(message.changes, style)
    return f"{changes}; {heartbeat}" if style.detailed and numbers else changes


def _request(message: ChangeRequest, style: Style) -> str:
    return f"{_request_name(message, style)}: {_change(message.change, style)}"


def _reply(message: ChangeReply, style: Style) -> str:
    return f"{_request_name(message, style)}: {name_of(message.result)}"


def _request_name(message: ChangeRequest | ChangeReply, style: Style) -> str:
    number = str(message.request_id)
    return f"{message.requester} {number}" if style.detailed else number


def _sync_request(message: SyncRequest, style: Style) -> str:
    partition, purged = style.guid(message.partition), message.known_purged_seq
    if message.is_sync0:
        return f"{partition}: everything{_purged_up_to(purged, style)}"
    numbers = f"from {style.number(message.from_seq)} to {style.number(message.to_seq)}"
    return f"{partition} {numbers}{_purged_up_to(purged, style)}"


def _sync_reply(message: SyncReply, style: Style) -> str:
    numbers = f"from {style.number(message.from_seq)} to {style.number(message.to_seq)}"
    if style.detailed:
        numbers += _purged_up_to(message.purged_seq, style) + _SYNC0[message.complete_sync0]
    changes = _changes(message.changes, style) or "no change"
    return f"{style.guid(message.partition)} {numbers}: {changes}"


_SYNC0 = {
    Sync0.NONE: "",
    Sync0.MORE: " full synchronisation, more follows",
    Sync0.COMPLETE: " full synchronisation, complete",
}


def _already_purged(message: AlreadyPurged, style: Style) -> str:
    return f"{style.guid(message.partition)}: purged up to {style.number(message.purged_seq)}"


def _psc_ack(message: PscAck, style: Style) -> str:
    numbers = f"{style.guid(message.partition)} up to {style.number(message.seq)}"
    return f"{message.psc} has {numbers}"


def _bsc_ack(message: BscAck, _style: Style) -> str:
    return f"{message.name} is there"


#: Sentences that read better than the list of fields.
_DESCRIBERS: dict[type[Message], Callable[[Any, Style], str]] = {
    ChangePropagation: _propagation,
    ChangeRequest: _request,
    ChangeReply: _reply,
    SyncRequest: _sync_request,
    SyncReply: _sync_reply,
    AlreadyPurged: _already_purged,
    PscAck: _psc_ack,
    BscAck: _bsc_ack,
}
