"""The messages of a journal segment, found again from the records about them.

A server writes the content of a message once, when it queues it. Later records (written,
acknowledged, expired) have only the message's identifier. This finds the content for them, so that
they are named after their message and heartbeats are recognised in every state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mqis.storage.journal.journal_reader import Segment
from mqis.views.presentation.records import what
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, Whole
from mqis.wire.journal.headers import (
    carries_heartbeat,
    is_heartbeat,
    message_at,
    message_state_at,
)
from mqis.wire.journal.segment import walk

_WITH_CONTENT = (RecordState.QUEUED, RecordState.RECEIVED)
_LATER = (RecordState.WRITTEN, RecordState.ACKNOWLEDGED, RecordState.EXPIRED)


def title(record: JournalRecord) -> str:
    """The name of a record's message or change; a heartbeat is named as such."""
    is_message = record.kind is RecordKind.MESSAGE
    return "heartbeat" if is_message and is_heartbeat(record.body) else what(record)


class SegmentMessages:
    """Walks back through the headers of a segment, each once, as far as somebody asks."""

    def __init__(self, segment: Segment, starts: Sequence[int]) -> None:
        self._data = segment.data
        self._rest: Iterator[int] = reversed(starts)
        #: The offsets of the records with content, by the identifier of the message.
        self._queued: dict[bytes, int] = {}

    def is_heartbeat(self, at: int) -> bool:
        """Returns whether the record at an offset is about a heartbeat that has not failed."""
        if message_state_at(self._data, at) == RecordState.EXPIRED:
            return False
        content = self._content(at)
        return content is not None and carries_heartbeat(self._data, content)

    def completed(self, entry: Whole) -> JournalRecord:
        """The record with its message's operation and body, if this segment has them."""
        content = self._content(entry.offset)
        if content is None or content == entry.offset:
            return entry.record
        found = next(walk(self._data, content))
        if not isinstance(found, Whole):
            return entry.record
        return replace(entry.record, operation=found.record.operation, body=found.record.body)

    def _content(self, at: int) -> int | None:
        """The offset of the record with the content of the message that a record is about."""
        state = message_state_at(self._data, at)
        if state in _WITH_CONTENT:
            return at
        return self._find(message_at(self._data, at)) if state in _LATER else None

    def _find(self, identifier: bytes) -> int | None:
        while identifier not in self._queued:
            at = next(self._rest, None)
            if at is None:
                return None
            if message_state_at(self._data, at) == RecordState.QUEUED:
                self._queued[message_at(self._data, at)] = at
        return self._queued[identifier]
