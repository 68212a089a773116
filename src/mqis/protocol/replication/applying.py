"""Applies a change that another authority made to this replica (3.1.7.2.3 to 3.1.7.2.8).

The rules for clients do not hold here (E69): the authority has decided. What cannot be done is a
``DirectoryError``, raised before anything is written, and then the replica asks for the whole
object (E56).
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.directory.objects import (
    IDENTIFIER_PROPERTY,
    NAME_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Scope,
    deleted_type_of,
    object_type_of,
)
from mqis.protocol.directory.ownership import SITE_TYPES, enterprise
from mqis.protocol.directory.paths import check_path
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Transaction, View
from mqis.protocol.replication.keeping import emptied, kept_values
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.propertylist import PropertyList
from mqis.wire.propertybag import PropertyBag, encode_packed, packed_values


@dataclass(frozen=True, slots=True)
class Applied:
    """The effect of a change on the replica; both None if the object did not and does not exist."""

    before: DirectoryObject | None
    after: DirectoryObject | None
    #: Another object, which had the name until now.
    displaced: DirectoryObject | None = None


def type_of(change: DirectoryChange) -> ObjectType:
    """The object type of a change (3.1.1.4), told by its first property, or second (E59)."""
    found = None
    if change.command is Command.DELETE:
        found = deleted_type_of(dict(change.properties))
    elif change.properties:
        found = object_type_of(PropertyList.of(change.properties).ids[0])
    if found is None:
        raise DirectoryError(HResult.MQ_ERROR, "the change does not tell what it is about")
    return found


def apply(tx: Transaction, change: DirectoryChange, *, keep_tombstones: bool) -> Applied:
    """Make the replica hold what the change says, under the change's number."""
    object_type = type_of(change)
    if (object_type in SITE_TYPES) == (change.partition == Guid.NULL):
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"a {object_type.label} does not lie in partition {change.partition}",
        )
    if change.command is Command.DELETE:
        return _delete(tx, object_type, change, keep_tombstones)
    if change.command is Command.UPDATE:
        return _update(tx, object_type, change)
    return _put(tx, object_type, change)


def find(view: View, object_type: ObjectType, change: DirectoryChange) -> DirectoryObject | None:
    """The object that a change names; there is one enterprise (E19)."""
    if object_type is ObjectType.ENTERPRISE:
        return enterprise(view)
    if change.guid is not None:
        return view.get(object_type, change.guid)
    return view.find(object_type, change.path) if change.path else None


def _delete(
    tx: Transaction, object_type: ObjectType, change: DirectoryChange, keep_tombstones: bool
) -> Applied:
    """Deletes the object if it exists (E11); keeps a tombstone for those who ask us (E12).

    An object of another partition stays: its own authority decides about it. The tombstone is kept
    even then, because who asks us for this partition may still have the object in it.
    """
    obj = find(tx, object_type, change)
    if obj is not None and obj.partition != change.partition:
        obj = None
    identifier = obj.id if obj is not None else change.guid
    if obj is not None:
        tx.delete(obj)
    if keep_tombstones and identifier is not None:
        scope = dict(change.properties).get(PropId.D_SCOPE)
        known_in_site = scope is not None and scope.value == Scope.SITE
        reach = Scope.SITE if known_in_site else Scope.ENTERPRISE
        tx.bury(DeletedObject(identifier, change.partition, change.seq, object_type, reach))
    return Applied(obj, None)


def _update(tx: Transaction, object_type: ObjectType, change: DirectoryChange) -> Applied:
    old = find(tx, object_type, change)
    if old is None or old.partition != change.partition:
        raise DirectoryError(
            HResult.MQDS_OBJECT_NOT_FOUND, f"the {object_type.label} to update is not here"
        )
    given = PropertyList.of(change.properties)
    kept = packed_values(old.properties) | kept_values(given)
    for propid in emptied(given):
        kept.pop(propid, None)
    body = PropertyBag(encode_packed(kept))
    new = DirectoryObject(object_type, old.id, change.partition, change.seq, body)
    displaced = _make_way(tx, new)
    tx.update(old, new)
    return Applied(old, new, displaced)


def _put(tx: Transaction, object_type: ObjectType, change: DirectoryChange) -> Applied:
    """Create, or overwrite whole: a create may come again, or behind a sync (E11, E19, E61)."""
    kept = kept_values(PropertyList.of(change.properties))
    if change.path and object_type in NAME_PROPERTY:
        name = prop(NAME_PROPERTY[object_type], change.path)
        kept.setdefault(NAME_PROPERTY[object_type], (name.vt, name.packed()))
    body = PropertyBag(encode_packed(kept))
    identity = _identity(object_type, change)
    new = DirectoryObject(object_type, identity, change.partition, change.seq, body)
    if object_type in NAME_PROPERTY:
        check_path(object_type, new.path or "")
    if object_type is not ObjectType.ENTERPRISE and tx.insert_if_free(new):  # as most are
        tx.unbury(new.partition, new.id)
        return Applied(None, new)
    old = tx.get(object_type, new.id)
    if old is not None and old.partition != new.partition:
        raise DirectoryError(
            HResult.MQ_ERROR_QUEUE_EXISTS,
            f"the {object_type.label} {new.id} is one of partition {old.partition} still",
        )
    if object_type is ObjectType.ENTERPRISE and old is None:
        other = enterprise(tx)
        if other is not None:
            tx.delete(other)
    displaced = _make_way(tx, new)
    if old is None:
        tx.insert(new)
    else:
        tx.update(old, new)
    tx.unbury(new.partition, new.id)
    return Applied(old, new, displaced)


def _identity(object_type: ObjectType, change: DirectoryChange) -> Guid:
    """A sync names the object by GUID (E18), a create has the identifier among its properties."""
    found = change.guid
    if found is None:
        given = PropertyList.of(change.properties).value(IDENTIFIER_PROPERTY[object_type])
        found = given if isinstance(given, Guid) else None
    if not found:  # the null GUID is the enterprise's partition, and nobody's object
        raise DirectoryError(
            HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, f"the new {object_type.label} has no GUID"
        )
    return found


def _make_way(tx: Transaction, new: DirectoryObject) -> DirectoryObject | None:
    """An object of the same partition that holds the name is one the authority has no more."""
    holder = None if new.path is None else tx.find(new.type, new.path)
    if holder is None or holder.id == new.id:
        return None
    if holder.partition != new.partition:
        raise DirectoryError(
            HResult.MQ_ERROR_QUEUE_EXISTS,
            f"the name {new.path!r} is taken in partition {holder.partition}",
        )
    tx.delete(holder)
    return holder
