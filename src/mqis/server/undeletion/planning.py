"""The plan of an undelete: the objects in order, the server that decides about each, conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mqis.protocol.directory.object_sources import as_guid
from mqis.protocol.directory.objects import name_key
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.replication.admission import authority_of, owns
from mqis.protocol.replication.server_identity import Server
from mqis.protocol.undeletion.choosing import chosen, may_matter, power_of
from mqis.protocol.undeletion.conflicts import conflicts
from mqis.protocol.undeletion.lost import LostObject
from mqis.protocol.undeletion.messages import (
    MOST_PLANNED,
    EntryState,
    UndeleteEntry,
    UndeleteRequest,
)
from mqis.server.undeletion.deleted_history import JournalHistory
from mqis.texts import counted
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


@dataclass(frozen=True, slots=True)
class PlannedObject:
    lost: LostObject
    entry: UndeleteEntry


def plan_undelete(
    history: JournalHistory, me: Server, request: UndeleteRequest
) -> list[PlannedObject]:
    """Searches the journal; runs for seconds, so call it in a thread."""
    all_lost = history.lost(lambda lost: may_matter(lost, request))
    with history.store.read() as view:
        all_lost += _buried(all_lost, request, view)
        wanted = chosen(all_lost, request, view)
        if len(wanted) > MOST_PLANNED:
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{counted(len(wanted), 'deleted object')} are more than one plan may have "
                f"({MOST_PLANNED}); choose fewer with --at, --deleted-by or --under",
            )
        return _Planning(wanted, me, view).planned()


def _buried(
    known: Sequence[LostObject], request: UndeleteRequest, view: View
) -> Iterator[LostObject]:
    """The object that a request names, if only its tombstone is left: the journal was pruned."""
    wanted = as_guid(request.name)
    if wanted is None or any(lost.id == wanted for lost in known):
        return
    for tombstone in view.tombstones(wanted):
        if view.get(tombstone.object_type, wanted) is not None:
            continue  # another authority said to have deleted it
        yield LostObject(tombstone.object_type, wanted, tombstone.partition, 0, 0)


class _Planning:
    def __init__(self, wanted: Sequence[LostObject], me: Server, view: View) -> None:
        self._wanted = wanted
        self._me = me
        self._view = view
        self._primaries = _primaries(wanted, view)

    def planned(self) -> list[PlannedObject]:
        """The machine of a PSC stands behind its site; what the PSC sends itself comes last."""
        reasons = conflicts(self._wanted, self._view)
        sites = {lost.id for lost in self._wanted if lost.type is ObjectType.SITE}
        behind = {
            lost.partition: lost
            for lost in self._wanted
            if lost.with_site in sites and self._is_primary(lost)
        }
        found: list[PlannedObject] = []
        for lost in self._wanted:
            if behind.get(lost.partition) is lost:
                continue
            found.append(self._planned(lost, reasons))
            if lost.id in behind:
                found.append(self._planned(behind[lost.id], reasons))
        return sorted(found, key=lambda planned: planned.entry.follows)

    def _planned(self, lost: LostObject, reasons: dict[Guid, str]) -> PlannedObject:
        return PlannedObject(lost, self._entry(lost, reasons.get(lost.id, "")))

    def _entry(self, lost: LostObject, reason: str) -> UndeleteEntry:
        authority, here = self._authority(lost)
        return UndeleteEntry(
            lost.type.label,
            str(lost.id),
            lost.path,
            lost.time_us,
            lost.by,
            authority,
            here,
            lost.with_site is not None and not self._is_primary(lost),
            EntryState.CONFLICT if reason else EntryState.READY,
            reason,
            power_of(lost, is_primary=self._is_primary(lost)),
        )

    def _authority(self, lost: LostObject) -> tuple[str, bool]:
        state = self._view.partition(lost.partition)
        if state is not None:
            return authority_of(self._view, state), owns(self._view, self._me, state.id)
        if self._is_primary(lost):  # the PEC stands in for a PSC without a machine
            return self._me.pec or self._me.name, self._me.is_pec
        return self._primaries.get(lost.partition, ""), False

    def _is_primary(self, lost: LostObject) -> bool:
        if lost.type is not ObjectType.MACHINE or lost.path is None:
            return False
        return name_key(lost.path) == name_key(self._primaries.get(lost.partition, ""))


def _primaries(wanted: Sequence[LostObject], view: View) -> dict[Guid, str]:
    """The names of the PSCs by the sites of the objects, deleted sites included."""
    sites = {site.id: site for site in view.objects(ObjectType.SITE)}
    for lost in wanted:
        if lost.type is ObjectType.SITE and lost.obj is not None:
            sites.setdefault(lost.id, lost.obj)
    names = {id_: site.value(PropId.S_PSC) for id_, site in sites.items()}
    return {id_: name for id_, name in names.items() if isinstance(name, str)}
