"""What of a journal a visitor sees.

Administrators see all of it. Others see records about an object if they may read the object, as the
server's store has it now; what a change set, its permissions included, if they may read these too.
That there was a message about no single object is as public as the numbers of replication. What is
in messages is for administrators: one message carries objects of many owners. Of a deleted object
nobody can say any more who might read it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from mqis.views.console.guarded import GuardedSource
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind
from mqis.wire.mqds.objecttype import ObjectType


class Sight(Enum):
    """How much of a record a visitor sees."""

    NOTHING = 0
    #: That it happened, when, with whom, and to which object.
    LINE = 1
    EVERYTHING = 2


Judge = Callable[[JournalRecord], Sight]


def see_everything(_record: JournalRecord) -> Sight:
    return Sight.EVERYTHING


class ObjectJudge:
    """By what one visitor may read of the server's store; without a store, of nothing."""

    def __init__(self, source: GuardedSource | None) -> None:
        self._source = source
        self._known: dict[tuple[int, Guid], Sight] = {}

    def __call__(self, record: JournalRecord) -> Sight:
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
