"""The rule of convergence: the objects that a copy lacks, has too many, or has different.

Pure, over what each copy holds. A simulation ends with this rule, and whoever audits an enterprise
from its journals applies the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mqis.protocol.directory.objects import DirectoryObject, Scope
from mqis.protocol.replication.changes import scope_of
from mqis.protocol.replication.replicated import content
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant


class DifferenceKind(StrEnum):
    MISSING = "missing"
    EXTRA = "extra"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class HeldObject:
    """The parts of an object that all copies have to agree on."""

    type: ObjectType
    content: Mapping[int, PropVariant]
    #: Known in its site alone: servers of other sites may hold it or not (E58).
    site_only: bool = False

    @classmethod
    def of(cls, obj: DirectoryObject) -> HeldObject:
        return cls(obj.type, content(obj), scope_of(obj) is Scope.SITE)


@dataclass(frozen=True, slots=True)
class Difference:
    """One object of a copy that differs from the authority's."""

    kind: DifferenceKind
    type: ObjectType
    id: Guid
    #: The properties that have other values.
    properties: tuple[int, ...] = ()

    def __str__(self) -> str:
        listed = ", ".join(str(propid) for propid in self.properties)
        return f"{self.type.label} {self.id} is {self.kind}" + (f" in {listed}" if listed else "")


Copy = Mapping[Guid, HeldObject]


def copy_of(objects: Iterable[DirectoryObject]) -> dict[Guid, HeldObject]:
    """The objects that a server holds of a partition."""
    return {obj.id: HeldObject.of(obj) for obj in objects}


def differences(authority: Copy, replica: Copy, *, same_site: bool) -> Iterator[Difference]:
    """The differences between a replica and its authority, by identifier.

    ``same_site``: both servers belong to the site of the partition.
    """
    for id_ in sorted(authority.keys() | replica.keys()):
        true, held = authority.get(id_), replica.get(id_)
        if true is None:
            assert held is not None
            yield Difference(DifferenceKind.EXTRA, held.type, id_)
        elif same_site or not true.site_only:
            if held is None:
                yield Difference(DifferenceKind.MISSING, true.type, id_)
            elif changed := _unequal(true, held):
                yield Difference(DifferenceKind.DIFFERENT, true.type, id_, changed)


def _unequal(true: HeldObject, held: HeldObject) -> tuple[int, ...]:
    both = sorted(true.content.keys() | held.content.keys())
    return tuple(p for p in both if true.content.get(p) != held.content.get(p))
