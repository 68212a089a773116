"""Records of a server's journal about one change: the change itself, and messages about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mqis.protocol.directory.objects import name_key
from mqis.storage.journal.reader import records
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, Whole
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    MessageOperation,
    SyncReply,
    decode_message,
)
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

_CARRY = (MessageOperation.CHANGE_PROPAGATION, MessageOperation.SYNC_REPLY)
_ASK = (MessageOperation.CHANGE_REQUEST, MessageOperation.CHANGE_REPLY)


@dataclass(frozen=True, slots=True)
class ChangeNames:
    """The identifiers of a change and of its request; either may be unknown."""

    change: tuple[Guid, SequenceNumber] | None = None
    request: tuple[str, int] | None = None


def records_about(directory: Path, names: ChangeNames) -> Iterator[Whole]:
    """Yields the records about a change, in the order of the journal."""
    messages: set[MessageIdentifier] = set()
    for entry in records(directory):
        record = entry.record
        if record.kind is RecordKind.CHANGE:
            if names.change is not None and (record.partition, record.seq) == names.change:
                yield entry
        elif record.body:
            if _concerns(record, names):
                if record.message is not None:
                    messages.add(record.message)
                yield entry
        elif record.message in messages:
            yield entry


def _concerns(record: JournalRecord, names: ChangeNames) -> bool:
    """True if a message carries the change, requests it, or answers the request."""
    change, request = names.change, names.request
    if record.operation in _CARRY:
        # The body holds the number verbatim, so most messages need not be decoded.
        if change is None or change[1].to_bytes() not in record.body:
            return False
    elif record.operation not in _ASK or request is None:
        return False
    try:
        message = decode_message(record.body)
    except WireError:
        return False
    match message:
        case ChangePropagation(changes=carried) | SyncReply(changes=carried):
            return any((one.partition, one.seq) == change for one in carried)
        case ChangeRequest() | ChangeReply():
            return (name_key(message.requester), message.request_id) == request
        case _:
            return False
