"""The properties that travel (MC-MQDSRP 3.2.7.8, column DirectoryChangePropID).

The directory stores some of them under other identifiers. What is not listed stays with the
authority: a replica could never get it by synchronisation, so propagation does not carry it either
and replicas are equal whichever way a change came.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.catalogue import DEFAULTS, ROWS, by_type, ids_where
from mqis.protocol.directory.types.property_row import Compute
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.propertylist import PropertyList
from mqis.wire.propertybag import packed_values
from mqis.wire.propvariant import PropVariant, Value, VarType

#: In the order of the table.
REPLICATED: dict[ObjectType, tuple[PropId, ...]] = by_type(lambda row: row.replicated)
#: Listed but without a meaning: zero goes out, and what comes in is not kept (E68).
FILLERS: frozenset[int] = ids_where(lambda row: row.filler)
#: From a stored property to the one that it travels as.
TRAVELS_AS: dict[int, PropId] = {
    **{row.alias_of or row.id: row.id for row in ROWS.values() if row.replicated and row.stored},
    **{row.id: row.travels_as for row in ROWS.values() if row.travels_as is not None},
}
#: Stored properties that never travel: only the authority that made an object has them.
STAYING = frozenset(row.id for row in ROWS.values() if row.stored) - TRAVELS_AS.keys()
#: What is sent of these is computed, because received values are not kept as they are.
_COMPUTED: dict[int, Compute] = {
    row.id: row.computed for row in ROWS.values() if row.replicated and row.store and row.computed
}
#: Under which identifier the directory stores each of the others.
_STORED_AS: dict[int, PropId] = {
    row.id: row.alias_of or row.id
    for row in ROWS.values()
    if row.replicated and not row.filler and row.id not in _COMPUTED
}


#: The properties that two replicas of an object have to agree on, in the order of the table.
CONTENT: dict[ObjectType, tuple[PropId, ...]] = {
    kind: tuple(propid for propid in listed if propid not in FILLERS)
    for kind, listed in REPLICATED.items()
}


class _NoObjects:
    """The lookup for values that are computed from one object alone."""

    def get(self, _object_type: ObjectType, _id: Guid, /) -> None:
        return None


_NO_OBJECTS = _NoObjects()

_EMPTIABLE = frozenset({VarType.BLOB, VarType.LPWSTR, VarType.CLSID, VarType.VECTOR_CLSID})
_ZEROS: dict[VarType, Value] = {
    VarType.UI1: 0,
    VarType.I2: 0,
    VarType.UI2: 0,
    VarType.I4: 0,
    VarType.UI4: 0,
    VarType.LPWSTR: "",
    VarType.BLOB: b"",
    VarType.CLSID: Guid.NULL,
    VarType.VECTOR_CLSID: (),
}


def stored_as(propid: PropId) -> PropId | None:
    """Returns the property that holds the value of a replicated one; None if it is computed."""
    return _STORED_AS.get(propid)


@cache
def may_be_absent(propid: int) -> bool:
    """Returns whether an empty value means that the authority has none: replicas drop it."""
    return propid not in DEFAULTS and ROWS[propid].vt in _EMPTIABLE


@cache
def zero_of(propid: int) -> PropVariant:
    """Returns the value to send for a property without one: its type has to be right (E68)."""
    vt = ROWS[propid].vt
    return DEFAULTS.get(propid) or PropVariant(vt, _ZEROS[vt])


def sent_value(obj: DirectoryObject, propid: PropId) -> PropVariant:
    """Returns the value of a replicated property as it is sent."""
    stored = _STORED_AS.get(propid)
    if stored is None:
        return _computed(obj, propid)
    found = obj.properties.get(stored)
    if found is None:
        return zero_of(propid)
    return found if stored is propid else PropVariant(ROWS[propid].vt, found.value)


def _computed(obj: DirectoryObject, propid: PropId) -> PropVariant:
    compute = _COMPUTED.get(propid)
    value = None if compute is None else compute(obj, _NO_OBJECTS)
    return ROWS[propid].variant(value) or zero_of(propid)


@cache
def _sources(kind: ObjectType) -> tuple[tuple[PropId, PropId | None, VarType, bytes], ...]:
    """What travels of a type: the property, where it is stored, its type, and zero, packed."""
    return tuple(
        (propid, _STORED_AS.get(propid), ROWS[propid].vt, zero_of(propid).packed())
        for propid in REPLICATED[kind]
    )


def whole_object(obj: DirectoryObject) -> PropertyList:
    """Returns everything that travels of an object, as a synchronisation sends it.

    A value that travels as it is stored is copied, not decoded.
    """
    held = packed_values(obj.properties)
    packed: list[bytes] = []
    for propid, stored, vt, zero in _sources(obj.type):
        if stored is None:
            packed.append(_computed(obj, propid).packed())
            continue
        number, value = held.get(stored, (vt, zero))
        packed.append(value if number == vt else sent_value(obj, propid).packed())
    return PropertyList(REPLICATED[obj.type], tuple(packed))


def changed_properties(
    obj: DirectoryObject, changed: Iterable[int]
) -> tuple[tuple[int, PropVariant], ...]:
    """Returns what travels of changed properties. There is always one: it tells the type (E59)."""
    wanted = {TRAVELS_AS[propid] for propid in changed if propid in TRAVELS_AS}
    if not wanted:
        wanted = {REPLICATED[obj.type][0]}
    listed = (propid for propid in REPLICATED[obj.type] if propid in wanted)
    return tuple((propid, sent_value(obj, propid)) for propid in listed)


def content(obj: DirectoryObject) -> dict[int, PropVariant]:
    """Returns the properties that two replicas of an object have to agree on."""
    return {propid: sent_value(obj, propid) for propid in CONTENT[obj.type]}


def is_own(obj: DirectoryObject) -> bool:
    """True if only the authority can hold the object like this: with properties that stay there."""
    return not STAYING.isdisjoint(obj.properties)
