"""The differences of an Active Directory and its mirror."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.write_mapping import event_update
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant


def changed_properties(old: DirectoryObject, new: DirectoryObject) -> dict[int, PropVariant]:
    """Returns the stored properties that make ``old`` equal to ``new``.

    A property of an entry always has a value, because every attribute has a default. What the store
    itself adds to a new object is left as it is.
    """
    wanted = event_update(old, new.properties)
    return {
        propid: value for propid, value in wanted.items() if old.properties.get(propid) != value
    }


# --- differences ----------------------------------------------------------------------------------


class MirrorDifferenceKind(StrEnum):
    MISSING = "missing"
    CHANGED = "changed"
    LEFT_OVER = "left_over"


@dataclass(frozen=True, slots=True)
class MirrorDifference:
    """An object that the store has otherwise than the directory, although it was up to date."""

    what: MirrorDifferenceKind
    kind: ObjectType
    id: Guid
    name: str
    propids: tuple[int, ...] = ()

    @property
    def properties(self) -> list[str]:
        return [PropId(propid).name for propid in self.propids]

    def __str__(self) -> str:
        said = {
            MirrorDifferenceKind.MISSING: "was missing",
            MirrorDifferenceKind.CHANGED: f"differed in {', '.join(self.properties)}",
            MirrorDifferenceKind.LEFT_OVER: "is not in the directory any more",
        }
        return f"{self.kind.label} {self.name or self.id} {said[self.what]}"

    def as_json(self) -> dict[str, object]:
        return {
            "type": self.kind.label,
            "id": str(self.id),
            "name": self.name or None,
            "difference": self.what.value,
            "properties": self.properties,
        }


@dataclass(slots=True)
class MirrorComparison:
    """The differences that a comparison of everything finds; they are mended at once.

    What changes while it is compared is no difference.
    """

    told: list[MirrorDifference] = field(default_factory=list)
    changed: set[tuple[ObjectType, Guid]] = field(default_factory=set)
    removed: set[Guid] = field(default_factory=set)

    def tell(
        self, what: MirrorDifferenceKind, obj: DirectoryObject, propids: Iterable[int] = ()
    ) -> None:
        self.told.append(MirrorDifference(what, obj.type, obj.id, obj.path or "", tuple(propids)))

    @property
    def found(self) -> list[MirrorDifference]:
        return [
            each
            for each in self.told
            if (each.kind, each.id) not in self.changed and each.id not in self.removed
        ]
