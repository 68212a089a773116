"""The deleted objects that a request means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.object_sources import as_guid
from mqis.protocol.directory.objects import name_key
from mqis.protocol.directory.powers import service_kind
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.undeletion.lost import LINK_ENDS, LostObject
from mqis.protocol.undeletion.messages import UndeleteRequest
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: Objects that the same user deleted this long before their site or machine come back with it.
TOGETHER_US = 10 * 60 * 1_000_000


def was_deleted_as(lost: LostObject, request: UndeleteRequest) -> bool:
    """Returns whether time and author of a deletion are those that the request names."""
    if request.since_us is not None and lost.time_us < request.since_us:
        return False
    if request.until_us is not None and lost.time_us >= request.until_us:
        return False
    return not request.by or _is_called(lost.by, request.by)


def may_matter(lost: LostObject, request: UndeleteRequest) -> bool:
    """Returns whether a request can mean a deleted object, whose name is not known yet.

    What went with a named object was deleted before it; ``under`` names an owner that may have been
    deleted at any time, by anybody.
    """
    if request.under and lost.type in (ObjectType.SITE, ObjectType.MACHINE):
        return True
    since_us = request.since_us
    if request.name and since_us is not None:
        since_us -= TOGETHER_US
    return was_deleted_as(lost, replace(request, since_us=since_us))


def _is_called(by: str, wanted: str) -> bool:
    """Compares users; a name without a domain is that name in any domain."""
    name = name_key(by)
    return name_key(wanted) in (name, name.rpartition("\\")[2])


def chosen(
    all_lost: Sequence[LostObject], request: UndeleteRequest, view: View
) -> list[LostObject]:
    """Returns the objects that a request means, in the order in which they can be created."""
    found = [lost for lost in all_lost if was_deleted_as(lost, request)]
    if request.under:
        owner = _owner_named(request.under, all_lost, view)
        found = [lost for lost in found if owner.holds(lost)]
    if request.type or request.name:
        found = _named(found, all_lost, request)
    return in_order(found)


def in_order(found: Iterable[LostObject]) -> list[LostObject]:
    """Sorts objects so that each comes after those that it needs: sites, machines, queues."""
    rank = {kind: number for number, kind in enumerate(ORDER)}
    return sorted(found, key=lambda lost: (rank[lost.type], name_key(lost.path or ""), lost.lsn))


# --- one object, with what went with it -----------------------------------------------------------


def _named(
    found: Sequence[LostObject], all_lost: Sequence[LostObject], request: UndeleteRequest
) -> list[LostObject]:
    kind = _kind_named(request.type)
    of_kind = [lost for lost in found if kind is None or lost.type is kind]
    if not request.name:
        return of_kind
    wanted = as_guid(request.name)
    named = [lost for lost in of_kind if _has_name(lost, wanted, request.name)]
    if not named:
        label = "object" if kind is None else kind.label
        raise DirectoryError(
            HResult.MQDS_OBJECT_NOT_FOUND,
            f"no deleted {label} {request.name!r} is in the journal of this server",
        )
    newest = max(named, key=lambda lost: lost.lsn)
    return [newest, *(lost for lost in all_lost if _went_with(lost, newest))]


def _kind_named(text: str) -> ObjectType | None:
    try:
        return ObjectType.parse(text) if text else None
    except ValueError:
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"there is no type {text[:40]!r}"
        ) from None


def _has_name(lost: LostObject, wanted: Guid | None, name: str) -> bool:
    if wanted is not None:
        return lost.id == wanted
    return lost.path is not None and name_key(lost.path) == name_key(name)


def _went_with(lost: LostObject, target: LostObject) -> bool:
    if lost.id == target.id or not OwnerRef.of(target).holds(lost):
        return False
    if lost.with_site is not None:
        return lost.with_site == target.id
    return lost.by == target.by and 0 <= target.time_us - lost.time_us <= TOGETHER_US


# --- owners ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """A site or machine, alive or deleted."""

    type: ObjectType
    id: Guid
    path: str

    @classmethod
    def of(cls, lost: LostObject) -> OwnerRef:
        return cls(lost.type, lost.id, lost.path or "")

    def holds(self, lost: LostObject) -> bool:
        """Returns whether a deleted object is this one, or lies under it."""
        if lost.id == self.id:
            return True
        if self.type is ObjectType.MACHINE:
            return lost.type is ObjectType.QUEUE and self._has_queue(lost)
        if self.type is not ObjectType.SITE:
            return False
        return lost.partition == self.id or self._has_end(lost)

    def _has_queue(self, lost: LostObject) -> bool:
        if lost.obj is not None and lost.obj.value(PropId.Q_QMID) == self.id:
            return True
        return name_key(lost.path or "").startswith(name_key(self.path) + "\\")

    def _has_end(self, lost: LostObject) -> bool:
        if lost.type is not ObjectType.ROUTINGLINK or lost.obj is None:
            return False
        return self.id in [lost.obj.value(end) for end in LINK_ENDS]


def _owner_named(name: str, all_lost: Sequence[LostObject], view: View) -> OwnerRef:
    wanted = as_guid(name)
    for kind in (ObjectType.SITE, ObjectType.MACHINE):
        obj = view.find(kind, name) if wanted is None else view.get(kind, wanted)
        if obj is not None:
            return OwnerRef(kind, obj.id, obj.path or "")
        gone = [lost for lost in all_lost if lost.type is kind and _has_name(lost, wanted, name)]
        if gone:
            return OwnerRef.of(max(gone, key=lambda lost: lost.lsn))
    raise DirectoryError(
        HResult.MQDS_OBJECT_NOT_FOUND,
        f"there is no site or machine {name!r}, and no deleted one in the journal of this server",
    )


# --- The power over others that a deleted object gets back ----------------------------------------


def power_of(lost: LostObject, *, is_primary: bool) -> str:
    """Returns what an administrator should know before an object comes back; mostly nothing."""
    if lost.obj is None:
        return ""
    if is_primary or (lost.type is ObjectType.MACHINE and service_kind(lost.obj)):
        return "a server: its role and its key count again"
    if lost.type is ObjectType.USER and lost.obj.value(PropId.U_SIGN_CERT):
        return "a user: the certificates count again"
    return ""
