"""What a connection was asked and has answered, kept for as long as nobody commits.

A directory is read far more often than it changes, and the way through Python's database interface
and the trees of an index is a third of what a read takes. Objects themselves never change, so that
all who read may share them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from mqis.protocol.directory.objects import DirectoryObject
from mqis.storage.records import MAX_BODY_BYTES
from mqis.storage.session import Connection
from mqis.storage.sql import SqlView
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import PropertyBag

#: Objects in the answers of one connection; large ones are not kept.
MAX_OBJECTS = 16_384
#: A longer answer to a lookup is not kept: it would take the place of many short ones.
MAX_ANSWER = 16


class Answers:
    """Objects by what was asked: type and path, type and identifier, or type, property and key."""

    __slots__ = ("_objects", "found")

    def __init__(self) -> None:
        self.found: dict[tuple[Any, ...], Any] = {}
        self._objects = 0

    def keep(self, asked: tuple[Any, ...], answer: Any, objects: Sequence[DirectoryObject]) -> None:
        """``answer``, made of ``objects``, for the next who asks; when full, it starts anew."""
        if not all(map(_is_small, objects)):
            return
        self._objects += len(objects)
        if self._objects > MAX_OBJECTS:
            self.found.clear()
            self._objects = len(objects)
        self.found[asked] = answer


def _is_small(obj: DirectoryObject) -> bool:
    body = obj.properties
    return isinstance(body, PropertyBag) and len(body.data) <= MAX_BODY_BYTES


class CachedView(SqlView):
    """``SqlView`` with the answers that are known already of what it shows."""

    def __init__(self, connection: Connection, answers: Answers) -> None:
        super().__init__(connection)
        self._answers = answers

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        asked = (object_type, id.raw)
        found: DirectoryObject | None = self._answers.found.get(asked)
        if found is None:
            found = super().get(object_type, id)
            if found is not None:
                self._answers.keep(asked, found, (found,))
        return found

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        asked = (object_type, path)
        found: DirectoryObject | None = self._answers.found.get(asked)
        if found is None:
            found = super().find(object_type, path)
            if found is not None:
                self._answers.keep(asked, found, (found,))
        return found

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        asked = (object_type, propid, key)
        found: list[DirectoryObject] | None = self._answers.found.get(asked)
        if found is None:
            rest = super().having(object_type, propid, key)
            found = list(islice(rest, MAX_ANSWER + 1))
            if len(found) > MAX_ANSWER:
                return chain(found, rest)
            if found:
                self._answers.keep(asked, found, found)
        return iter(found)
