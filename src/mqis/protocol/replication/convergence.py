"""The rule of convergence: the objects that a copy lacks, has too many, or has different.

Pure, over what each copy holds. A simulation ends with this rule, and whoever audits an enterprise
from its journals applies the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mqis.protocol.directory.objects import (
    DirectoryObject,
    Partition,
    PartitionDigest,
    PurgeState,
    Scope,
)
from mqis.protocol.ports import View
from mqis.protocol.replication import number_recovery, quarantine, rounds
from mqis.protocol.replication.outgoing_changes import scope_of
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


# --- The comparison of two copies of a partition by their digests ---------------------------------


class Contents(StrEnum):
    """The contents of a copy beside those of another one that has the same last number."""

    EQUAL = "equal"
    DIFFERENT = "different"
    #: The digests differ, but queues of scope site could be the only reason (E58).
    UNPROVED = "unproved"
    #: There is no digest of another copy at the same number.
    UNKNOWN = "unknown"


def comparable_digest(view: View, state: Partition) -> PartitionDigest | None:
    """The digest of a copy that has everything up to its last number; None if it has not.

    A copy is not complete during a full synchronisation or a recovery, between the parts of a
    reply (E73), and while an object is in quarantine (E56).
    """
    if (
        state.purge_state is not PurgeState.NORMAL
        or number_recovery.is_restoring(view, state.id)
        or rounds.is_open(view, state.id)
        or quarantine.count(view, state.id)
    ):
        return None
    return view.digest(state.id)


def compare_digests(
    one: PartitionDigest,
    other: PartitionDigest,
    *,
    within_site: bool,
    authority: PartitionDigest | None,
) -> Contents:
    """Compares two complete copies with the same last number.

    ``within_site``: both servers belong to the site of the partition, or it is the enterprise's.
    ``authority``: the digest of the authority, if it is one of them. A server of another site may
    hold a queue that only its site knows, and even an old copy from before it became such a queue
    (E58). So there a difference is proved only if the authority has no such queue.
    """
    if one.shared == other.shared:
        equal = not within_site or one == other
        return Contents.EQUAL if equal else Contents.DIFFERENT
    proved = within_site or (authority is not None and not authority.site_only)
    return Contents.DIFFERENT if proved else Contents.UNPROVED
