"""Decides how much of a journal a visitor sees.

Administrators see all of it. Other visitors see records about an object if they may read the object
as it is now in the server's store, and the content of a change if they may read its permissions
too. The existence of a message about no single object is as public as the numbers of replication.
The content of messages is only for administrators: one message carries objects of many owners. So
are the users who asked for changes: others would know whom to guess passwords of.
Records of a deleted object are hidden: its permissions are no longer known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from mqis.views.console.guarded import GuardedSource
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType


class Sight(Enum):
    """The part of a record that a visitor sees."""

    NOTHING = 0
    #: The time, the kind, the peer and the object, without the content.
    LINE = 1
    EVERYTHING = 2


class Judge(Protocol):
    """Decides about records for one visitor."""

    @property
    def sees_users(self) -> bool:
        """True if the visitor may see who asked for a change."""

    def __call__(self, record: JournalRecord, /) -> Sight: ...


@dataclass(frozen=True, slots=True)
class WholeRecords:
    """Shows whole records: to administrators, or of an object that the visitor may read."""

    sees_users: bool = True

    def __call__(self, record: JournalRecord, /) -> Sight:
        return Sight.EVERYTHING


see_everything = WholeRecords()


def as_seen(record: JournalRecord, judge: Judge) -> JournalRecord:
    """The record, without the user who asked for a change if the visitor may not see that."""
    if judge.sees_users or record.state is not RecordState.LOCAL:
        return record
    return replace(record, peer="")


class ObjectJudge:
    """Decides by the objects that one visitor may read; without a store, none."""

    sees_users = False

    def __init__(self, source: GuardedSource | None) -> None:
        self._source = source
        self._known: dict[tuple[int, Guid], Sight] = {}

    def __call__(self, record: JournalRecord, /) -> Sight:
        is_message = record.kind is RecordKind.MESSAGE
        if record.object_id == Guid.NULL:
            return Sight.LINE if is_message else Sight.NOTHING
        key = record.object_type, record.object_id
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._of_object(*key)
        return Sight.LINE if is_message and found is Sight.EVERYTHING else found

    def _of_object(self, number: int, id: Guid) -> Sight:  # noqa: A002
        try:
            object_type = ObjectType(number)
        except ValueError:
            return Sight.NOTHING
        obj = None if self._source is None else self._source.find(object_type, id)
        if obj is None or self._source is None:
            return Sight.NOTHING
        return Sight.EVERYTHING if self._source.may_read_security(obj) else Sight.LINE
