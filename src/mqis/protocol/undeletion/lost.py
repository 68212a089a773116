"""Deleted objects as a journal shows them: what its fold removes at the deletions in question.

An object of which a change is missing has no content here: permissions that the change took away
would come back with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.journal.folding import FoldPolicy, JournalWriter, UnknownPast
from mqis.protocol.ports import Transaction
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord
from mqis.wire.mqds.objecttype import ObjectType

#: The properties of a routing link that name its two sites.
LINK_ENDS = tuple(
    row.id
    for row in ROWS.values()
    if row.object_type is ObjectType.ROUTINGLINK and row.refers_to is ObjectType.SITE
)


@dataclass(frozen=True, slots=True)
class LostObject:
    """An object that was deleted, with its content just before if the journal has that."""

    type: ObjectType
    id: Guid
    partition: Guid
    #: The record of the deletion, and its time in microseconds since 1970.
    lsn: int
    time_us: int
    #: The user or server that asked for the deletion; empty: the journal does not say.
    by: str = ""
    #: The deleted site that took this object along.
    with_site: Guid | None = None
    obj: DirectoryObject | None = None

    @property
    def path(self) -> str | None:
        return None if self.obj is None else self.obj.path

    @property
    def label(self) -> str:
        return f"{self.type.label} {self.path or self.id}"


class LostObjects(FoldPolicy):
    """Folds the objects of some deletions, and keeps what each was just before."""

    whole = False

    def __init__(self, wanted: Sequence[LostObject], own_site: Guid | None) -> None:
        """``own_site``: the site of the journal's server, which keeps its partition (E35)."""
        self._wanted = {one.lsn: one for one in wanted}
        self._ids = {one.id for one in wanted}
        self._own_site = own_site
        self._sites = {one.id for one in wanted if one.type is ObjectType.SITE} - {own_site}
        #: The deletion that is taken now.
        self._deletion: LostObject | None = None
        #: Objects of which a change is missing, so that nobody knows what they were.
        self._unknown: dict[Guid, tuple[ObjectType, Guid]] = {}
        self._found: dict[Guid, LostObject] = {}

    def found(self) -> list[LostObject]:
        return list(self._found.values())

    def concerns(self, id_: Guid, partition: Guid) -> bool:
        return id_ in self._ids or partition in self._sites

    def keeps(self, _tx: Transaction, _me: JournalWriter, site: Guid) -> bool:
        return site == self._own_site

    def begin(self, lsn: int) -> None:
        self._deletion = site = self._wanted.get(lsn)
        if site is not None and site.id in self._sites:
            for id_, (kind, partition) in list(self._unknown.items()):
                if partition == site.id:
                    self._bury(kind, id_, None)

    def deleted(self, id_: Guid, obj: DirectoryObject | None) -> None:
        self._unknown.pop(id_, None)
        if self._deletion is not None:
            self._bury(self._deletion.type if obj is None else obj.type, id_, obj)

    def _bury(self, kind: ObjectType, id_: Guid, obj: DirectoryObject | None) -> None:
        self._unknown.pop(id_, None)
        deletion = self._deletion
        assert deletion is not None
        if id_ == deletion.id:
            self._found[id_] = replace(deletion, obj=obj)
        else:
            site = deletion.id
            self._found[id_] = replace(
                deletion, type=kind, id=id_, partition=site, with_site=site, obj=obj
            )

    def stored(self, obj: DirectoryObject) -> None:
        self._unknown.pop(obj.id, None)
        self._found.pop(obj.id, None)  # it was created again

    def unknown(self, tx: Transaction, record: JournalRecord, _error: UnknownPast) -> None:
        """Forgets an object, such as one of an update that no snapshot has."""
        try:
            self._forget(tx, ObjectType(record.object_type), record.object_id, record.partition)
        except ValueError:
            return  # the record is about no object

    def unrecorded(self, tx: Transaction, _reason: str) -> None:
        """Forgets all objects."""
        for kind in ObjectType:
            for obj in list(tx.objects(kind)):
                self._forget(tx, kind, obj.id, obj.partition)

    def _forget(self, tx: Transaction, kind: ObjectType, id_: Guid, partition: Guid) -> None:
        obj = tx.get(kind, id_)
        if obj is not None:
            tx.delete(obj)
        self._unknown[id_] = kind, partition
