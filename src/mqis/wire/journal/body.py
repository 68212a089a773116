"""The decoder for the body of a journal record."""

from __future__ import annotations

from mqis.wire.journal.record import JournalRecord, RecordKind
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import Message, decode_message
from mqis.wire.reader import Reader


def decode_body(record: JournalRecord) -> Message | DirectoryChange | None:
    """Decodes the message or change in the body; returns None if the record has no body."""
    if not record.body:
        return None
    if record.kind is RecordKind.MESSAGE:
        return decode_message(record.body)
    reader = Reader(record.body)
    change = DirectoryChange.decode(reader)
    reader.expect_end("the change")
    return change
