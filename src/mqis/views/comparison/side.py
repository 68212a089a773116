"""One side of a comparison: the objects of a directory in the order of exports, from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mqis.protocol.directory.objects import DirectoryObject
from mqis.views.presentation.rendering import REFERENCES
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

_NAMED = frozenset(REFERENCES.values())


@dataclass(frozen=True, slots=True)
class DirectorySide:
    """The directory of one side; ``objects`` can be read once."""

    label: str
    objects: Iterator[DirectoryObject]
    #: The stored properties that this source does not tell.
    hidden: frozenset[int] = frozenset()
    #: Remarks for the reader of the comparison.
    notes: tuple[str, ...] = ()


class SideNames:
    """The names of a side's objects that others refer to, collected while they pass.

    They are complete when all objects have passed: links come before the machines that they name.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[ObjectType, bytes], str] = {}

    def collected(self, objects: Iterator[DirectoryObject]) -> Iterator[DirectoryObject]:
        for obj in objects:
            if obj.type in _NAMED and obj.path is not None:
                self._names[obj.type, obj.id.raw] = obj.path
            yield obj

    def name_of(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
        return self._names.get((object_type, id.raw))

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None:
        """Finds an object by its exact name; comparisons do not need it."""
        for (kind, raw), known in self._names.items():
            if kind is object_type and known == name:
                return Guid(raw)
        return None
