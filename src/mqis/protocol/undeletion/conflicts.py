"""The reasons why a deleted object cannot come back, and bringing it back where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mqis.protocol.directory.indexing import key_of
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownership import enterprise, site_of
from mqis.protocol.directory.paths import QueuePath
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.undeletion.lost import LINK_ENDS, LostObject
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


class Companions:
    """The objects that come back together, by identifier and by name."""

    def __init__(self, plan: Iterable[LostObject]) -> None:
        self._ids: set[tuple[ObjectType, Guid]] = set()
        self._names: dict[tuple[ObjectType, str], LostObject] = {}
        for lost in plan:
            self._ids.add((lost.type, lost.id))
            if lost.path is not None:
                self._keep_newest(lost, (lost.type, name_key(lost.path)))

    def _keep_newest(self, lost: LostObject, key: tuple[ObjectType, str]) -> None:
        other = self._names.get(key)
        if other is None or other.lsn < lost.lsn:
            self._names[key] = lost

    def has(self, kind: ObjectType, id_: Guid) -> bool:
        return (kind, id_) in self._ids

    def named(self, kind: ObjectType, path: str) -> LostObject | None:
        return self._names.get((kind, name_key(path)))


def conflicts(plan: Sequence[LostObject], view: View) -> dict[Guid, str]:
    """Returns the reason for each object of a plan that cannot come back."""
    together = Companions(plan)
    found = {}
    for lost in plan:
        reason = _conflict(lost, together, view)
        if reason is not None:
            found[lost.id] = reason
    return found


def taken(lost: LostObject, view: View) -> str | None:
    """Returns the reason if another object has the place of a deleted one by now."""
    found = _name_taken(lost, Companions([lost]), view)
    if found is None and lost.type is ObjectType.ROUTINGLINK:
        return _link_exists(lost, view)
    return found


def bring_back(events: DirectoryEvents, lost: LostObject) -> DirectoryObject:
    """Creates the object unless another one has its place since the plan was made."""
    reason = taken(lost, events.transaction)
    if reason is not None:
        raise DirectoryError(HResult.MQ_ERROR_DS_ERROR, reason)
    assert lost.obj is not None
    return events.restore_directory_object(lost.obj)


def _conflict(lost: LostObject, together: Companions, view: View) -> str | None:
    if lost.obj is None:
        return (
            "the journal of this server has no copy of its properties; its authority's journal, or "
            "a backup, may have one"
        )
    return _name_taken(lost, together, view) or _lacks(lost, together, view)


def _name_taken(lost: LostObject, together: Companions, view: View) -> str | None:
    if lost.type is ObjectType.ENTERPRISE and enterprise(view) is not None:
        return "there is another enterprise object"
    if lost.type is ObjectType.USER:
        return _user_exists(lost, view)
    if lost.path is None:
        return None
    holder = view.find(lost.type, lost.path)
    if holder is not None and holder.id != lost.id:
        return f"the name is taken by {lost.type.label} {holder.id}; delete or rename that first"
    newest = together.named(lost.type, lost.path)
    if newest is not None and newest.id != lost.id:
        return f"{lost.type.label} {newest.id} had the name later; name one of them by its id"
    return None


def _user_exists(lost: LostObject, view: View) -> str | None:
    sid = None if lost.obj is None else key_of(lost.obj.value(PropId.U_SID))
    if sid is None:
        return None
    holder = next(iter(view.having(ObjectType.USER, PropId.U_SID, sid)), None)
    if holder is None or holder.id == lost.id:
        return None
    return f"user {holder.id} has the same SID"


def _lacks(lost: LostObject, together: Companions, view: View) -> str | None:
    assert lost.obj is not None
    if lost.type is ObjectType.QUEUE:
        return _lacks_machine(lost, together, view)
    if lost.type is ObjectType.MACHINE:
        try:
            site = site_of(lost.obj.properties)
        except DirectoryError:
            return "it names no site"
        return _lacks_site(site, together, view)
    if lost.type is ObjectType.ROUTINGLINK:
        ends = [lost.obj.value(end) for end in LINK_ENDS]
        reasons = (_lacks_site(end, together, view) for end in ends if isinstance(end, Guid))
        return next((reason for reason in reasons if reason), None) or _link_exists(lost, view)
    return None


def _lacks_machine(lost: LostObject, together: Companions, view: View) -> str | None:
    computer = QueuePath.parse(lost.path or "").computer
    if view.find(ObjectType.MACHINE, computer) or together.named(ObjectType.MACHINE, computer):
        return None
    return f"machine {computer} is not there; undelete it too (--under {computer})"


def _lacks_site(site: Guid, together: Companions, view: View) -> str | None:
    if view.get(ObjectType.SITE, site) is not None or together.has(ObjectType.SITE, site):
        return None
    return f"site {site} is not there; undelete it too"


def _link_exists(lost: LostObject, view: View) -> str | None:
    assert lost.obj is not None
    ends = {lost.obj.value(end) for end in LINK_ENDS}
    for link in view.objects(ObjectType.ROUTINGLINK):
        if link.id != lost.id and {link.value(end) for end in LINK_ENDS} == ends:
            return f"link {link.id} joins the same sites"
    return None
