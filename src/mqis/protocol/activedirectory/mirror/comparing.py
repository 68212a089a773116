"""Objects of an Active Directory as a store keeps them, and the difference of two of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from mqis.protocol.activedirectory.importing import NO_SITE, network_of
from mqis.protocol.activedirectory.reading import default_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.write_mapping import event_update, stored_value
from mqis.protocol.errors import DirectoryError
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant


def mirrored(obj: DirectoryObject) -> tuple[DirectoryObject, ...]:
    """Returns what a store keeps of an object: itself, and of a site its connected network too.

    Lists get one order, because a directory's values have none. So reading an object twice gives
    the same.
    """
    kept = {propid: _settled(propid, value, obj.id) for propid, value in obj.properties.items()}
    kept.pop(PropId.Q_NAME_SUFFIX, None)  # the rest of a long name is in the path already
    if obj.type is ObjectType.MACHINE and not kept[PropId.QM_SITE_IDS].value:
        kept[PropId.QM_SITE_IDS] = prop(PropId.QM_SITE_IDS, (NO_SITE,))
    made = replace(obj, properties=kept)
    return (made, network_of(made)) if obj.type is ObjectType.SITE else (made,)


def _settled(propid: int, variant: PropVariant, owner: Guid) -> PropVariant:
    value = variant.value
    if isinstance(value, tuple) and all(isinstance(item, Guid) for item in value):
        return PropVariant(variant.vt, tuple(sorted(value)))  # type: ignore[type-var]
    if propid == PropId.U_SIGN_CERT and isinstance(value, bytes):
        return PropVariant(variant.vt, _listed(value, owner))
    return variant


def _listed(value: bytes, owner: Guid) -> bytes:
    """A list of certificates; a bare certificate gets the user's identifier in it."""
    try:
        listed = UserSignCerts.from_property(value, owner) if value else UserSignCerts(())
        return listed.to_bytes()
    except WireError:
        return value


def changed_properties(old: DirectoryObject, new: DirectoryObject) -> dict[int, PropVariant]:
    """Returns the stored properties that make ``old`` equal to ``new``.

    A property of an entry always has a value, because every attribute has a default. What the store
    itself adds to a new object is left as it is.
    """
    wanted = event_update(old, new.properties)
    return {
        propid: value for propid, value in wanted.items() if old.properties.get(propid) != value
    }


def with_defaults(obj: DirectoryObject) -> tuple[DirectoryObject, tuple[PropId, ...]]:
    """The object with defaults instead of values that the store refuses, and their properties.

    What has no default stays: the object is refused for it.
    """
    instead: dict[int, PropVariant] = {}
    for propid, value in obj.properties.items():
        default = None if _is_taken(PropId(propid), value) else default_of(propid)
        if default is not None:
            instead[propid] = default
    fitting = replace(obj, properties={**obj.properties, **instead})
    return fitting, tuple(map(PropId, instead))


def _is_taken(propid: PropId, value: PropVariant) -> bool:
    try:
        stored_value(propid, value)
    except DirectoryError:
        return False
    return True


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
