"""Writes the objects of a mirror into a store: objects, journal records and position together.

An object that is in the store and equal is not written, so whatever is read twice is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import time, time_ns

from mqis.protocol.activedirectory.importing import check_host, with_defaults
from mqis.protocol.activedirectory.mirror.comparing import (
    MirrorComparison,
    MirrorDifferenceKind,
    changed_properties,
)
from mqis.protocol.activedirectory.mirror.cursor import (
    MIRROR_CURSOR,
    MIRROR_FAMILY,
    MIRROR_IDENTITY,
    MirrorCursor,
)
from mqis.protocol.activedirectory.mirror.leftout import LeftOut, LeftOutReason, keep_left_out
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, DirectoryObject
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.directory.write_mapping import named
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import Transaction, View
from mqis.protocol.replication.outgoing_changes import unsent_record
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: Machines before queues, everything before the links that refer to it; removed the other way.
WRITE_ORDER = (
    ObjectType.ENTERPRISE,
    ObjectType.SITE,
    ObjectType.CN,
    ObjectType.MACHINE,
    ObjectType.QUEUE,
    ObjectType.ROUTINGLINK,
    ObjectType.USER,
)


@dataclass(slots=True)
class MirrorCounts:
    """The changes that were written, and the objects that could not be."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    #: Objects that were left out, or that lack a value, by their identifier.
    left_out: dict[Guid, LeftOut] = field(default_factory=dict)

    @property
    def written(self) -> int:
        return self.created + self.updated + self.deleted

    def add(self, other: MirrorCounts) -> None:
        self.created += other.created
        self.updated += other.updated
        self.deleted += other.deleted
        self.left_out |= other.left_out


#: The codes with which a store says that another object has a name.
_TAKEN = (HResult.MQ_ERROR_QUEUE_EXISTS, HResult.MQ_ERROR_MACHINE_EXISTS)


def mirror_identity(tx: Transaction, domains: Sequence[Guid]) -> Guid:
    """The identifier of the mirror in its store, made at the first time for the first domain.

    ``StorageError`` for a store that holds another directory: it would be deleted.
    """
    found = tx.state(MIRROR_FAMILY, MIRROR_IDENTITY)
    if found is None:
        if tx.partitions() or any(tx.count(kind) for kind in ORDER):
            raise StorageError(
                "the store holds a directory that is no mirror; name a new one with --store"
            )
        found = SystemEntropy().guid().raw + domains[0].raw
        tx.put_state(MIRROR_FAMILY, MIRROR_IDENTITY, found)
    if Guid(found[16:]) not in domains:
        raise StorageError(
            f"the store mirrors another domain ({Guid(found[16:])}, not {domains[0]}); name a new "
            "one with --store"
        )
    return Guid(found[:16])


class MirrorWriter:
    """Changes of one transaction. ``by`` is the domain controller, ``owner`` the mirror's name.

    ``comparison`` is told of every change: a store that is up to date needs none.
    """

    def __init__(
        self, tx: Transaction, owner: str, by: str, comparison: MirrorComparison | None = None
    ) -> None:
        self.counts = MirrorCounts()
        self._comparison = comparison
        self._tx = tx
        self._owner = owner
        self._events = DirectoryEvents(
            tx, int(time()), SystemEntropy(), observe=self._record, by=by
        )

    def put_all(self, objects: Iterable[DirectoryObject]) -> None:
        """Makes objects as they are in the directory.

        One whose name is taken is tried again as long as others give up names.
        """
        rank = {kind: place for place, kind in enumerate(WRITE_ORDER)}
        waiting = sorted(objects, key=lambda obj: rank[obj.type])
        while waiting:
            refused = [obj for obj in waiting if not self.put(obj)]
            if len(refused) == len(waiting) and not self._free_name(refused):
                return
            waiting = refused

    def _free_name(self, refused: list[DirectoryObject]) -> bool:
        """Takes a name from an object that has another one now: names may have been exchanged.

        The object has its identifier for a name until it gets its own.
        """
        others = {(obj.type, obj.id) for obj in refused}
        for obj in refused:
            holder = None if obj.path is None else self._tx.find(obj.type, obj.path)
            if holder is not None and holder.id != obj.id and (obj.type, holder.id) in others:
                computer, separator, _ = (holder.path or "").rpartition("\\")
                aside = f"{computer}{separator}{holder.id}"
                self._events.update_directory_object(holder, named(holder.type, aside))
                self.counts.updated += 1
                return True
        return False

    def put(self, obj: DirectoryObject) -> bool:
        """Creates or updates an object; returns False if the store refuses it.

        A value that the store refuses is left out, and the object kept.
        """
        self.counts.left_out.pop(obj.id, None)
        try:
            self._put(obj)
        except DirectoryError as error:
            fitting, unfit = with_defaults(obj)
            try:
                if not unfit:
                    raise
                self._put(fitting)
            except DirectoryError as refused:
                self.counts.left_out[obj.id] = _left_out(obj, refused)
                return False
            names = ", ".join(f"PROPID_{propid.name}" for propid in unfit)
            detail = f"{obj.type.label} {obj.path or obj.id}: {names}: {error}"
            self.counts.left_out[obj.id] = LeftOut(
                LeftOutReason.DEFAULT, detail, obj.type, obj.path or ""
            )
        return True

    def _put(self, obj: DirectoryObject) -> None:
        old = self._tx.get(obj.type, obj.id)
        with self._tx.savepoint():
            if old is None:
                self._create(obj)
            else:
                self._update(old, obj)

    def _create(self, obj: DirectoryObject) -> None:
        if obj.type is ObjectType.QUEUE:
            check_host(obj, self._tx)
        given = props({**obj.properties, IDENTIFIER_PROPERTY[obj.type]: obj.id})
        made = self._events.create_directory_object(obj.type, given)
        state = self._tx.partition(made.partition)
        if state is not None and not state.owner:
            self._tx.put_partition(replace(state, owner=self._owner))
        self.counts.created += 1
        self._tell(MirrorDifferenceKind.MISSING, made)

    def _update(self, old: DirectoryObject, new: DirectoryObject) -> None:
        changes = changed_properties(old, new)
        if changes:
            self._events.update_directory_object(old, changes)
            self.counts.updated += 1
            self._tell(MirrorDifferenceKind.CHANGED, new, changes)

    def _tell(
        self, what: MirrorDifferenceKind, obj: DirectoryObject, propids: Iterable[int] = ()
    ) -> None:
        if self._comparison is not None:
            self._comparison.tell(what, obj, propids)

    def remove_all(self, guids: Iterable[Guid]) -> None:
        """Deletes objects, whatever type they have; queues go before their machines."""
        held = list(guids)
        for kind in reversed(WRITE_ORDER):
            for guid in held:
                self._remove(kind, guid)

    def _remove(self, kind: ObjectType, guid: Guid) -> None:
        found = self._tx.get(kind, guid)
        if found is None:
            return
        if kind is ObjectType.MACHINE:
            for queue in list(self._tx.owned_by(ObjectType.QUEUE, guid)):
                self._delete(queue)
        self._delete(found)

    def _delete(self, obj: DirectoryObject) -> None:
        self._events.delete_directory_object(obj)
        self.counts.deleted += 1
        self._tell(MirrorDifferenceKind.LEFT_OVER, obj)

    def finish(self, cursor: MirrorCursor, left_out: Mapping[Guid, LeftOut]) -> None:
        """Keeps the position behind the changes of this transaction, and what the store lacks."""
        self._tx.put_state(MIRROR_FAMILY, MIRROR_CURSOR, cursor.to_bytes())
        keep_left_out(self._tx, left_out)

    def _record(self, change: OwnChange) -> None:
        self._tx.append(unsent_record(change, time_ns() // 1000))


def _left_out(obj: DirectoryObject, error: DirectoryError) -> LeftOut:
    reason = LeftOutReason.VALUE
    if error.hresult in _TAKEN:
        reason = LeftOutReason.NAME
    elif error.hresult == HResult.MQ_ERROR_MACHINE_NOT_FOUND:
        reason = LeftOutReason.HOST
    host = obj.value(PropId.Q_QMID) if obj.type is ObjectType.QUEUE else None
    detail = f"{obj.type.label} {obj.path or obj.id}: {error}"
    above = host if isinstance(host, Guid) else None
    return LeftOut(reason, detail, obj.type, obj.path or "", above)


def unseen(view: View, seen: set[tuple[ObjectType, Guid]]) -> set[Guid]:
    """The objects of the store that a whole reading did not bring."""
    return {
        obj.id
        for kind in ORDER
        if kind is not ObjectType.CN
        for obj in view.objects(kind)
        if (kind, obj.id) not in seen
    }


def machines_that_name(view: View, gone: set[Guid]) -> set[Guid]:
    """The machines with a routing server among these: their entries change without a number."""
    return {
        machine.id
        for machine in view.objects(ObjectType.MACHINE)
        if gone.intersection(_routing_servers(machine))
    }


def known_objects(view: View) -> set[Guid]:
    """The objects of the store, and the routing servers that they name: some are left out of it."""
    named = {
        server
        for machine in view.objects(ObjectType.MACHINE)
        for server in _routing_servers(machine)
    }
    return unseen(view, set()) | named


def _routing_servers(machine: DirectoryObject) -> list[Guid]:
    return [
        server
        for propid in (PropId.QM_OUTFRS, PropId.QM_INFRS)
        if isinstance(named := machine.value(propid), tuple)
        for server in named
        if isinstance(server, Guid)
    ]
