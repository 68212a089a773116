"""The read mapping (MS-MQDS 3.1.4.21.8.1): from what is stored to what a property shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.catalogue import COMPUTED, DEFAULTS, ROWS, ids_where
from mqis.protocol.directory.types.row_columns import PropertyRole
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.ndr.packed import Packed
from mqis.wire.propertybag import PropertyBag
from mqis.wire.propvariant import PropVariant

#: What an object has beside its properties.
_OUTSIDE = {PropertyRole.IDENTIFIER, PropertyRole.SEQUENCE, PropertyRole.PARTITION}
_READABLE = ids_where(lambda row: row.readable)


def is_readable(propid: int) -> bool:
    """Returns whether a client may read the property."""
    return propid in _READABLE


def check_readable(object_type: ObjectType, propid: int) -> PropId:
    """Returns the identifier, if a client may read it from an object of this type."""
    entry = PROPERTIES.get(propid)
    if propid >= 1000 or entry is None or entry.object_type is not object_type:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_PROPID,
            f"property {propid} is not one that a client reads of a {object_type.label}",
        )
    if not is_readable(propid):
        raise DirectoryError(
            HResult.E_ADS_PROPERTY_NOT_FOUND, f"{entry.name} is not readable through this protocol"
        )
    return entry.id


def read_property(obj: DirectoryObject, propid: int, view: View) -> PropVariant | None:
    """Returns the value that ``propid`` shows of ``obj``; None if there is none.

    Computed values look up other objects in ``view``: the sites of a link, the machines of a list.
    """
    entry = PROPERTIES.get(propid)
    if entry is None or entry.object_type is not obj.type:
        return None
    return reader_of(propid)(obj, view)


@cache
def default_of(propid: int) -> PropVariant | None:
    """Returns the value that an object shows which has none stored; None if it shows none."""
    row = ROWS.get(propid)
    return None if row is None else DEFAULTS.get(propid) or row.variant(row.unset)


#: ``read_property`` of one property, for an object that is of its type.
Read = Callable[[DirectoryObject, View], PropVariant | None]


@cache
def reader_of(propid: int) -> Read:
    """Returns the function that reads a property of the catalogue."""
    row, compute = ROWS[propid], COMPUTED.get(propid)
    otherwise = default_of(propid)

    def read_stored(obj: DirectoryObject, _view: View) -> PropVariant | None:
        return obj.properties.get(propid) or otherwise

    if compute is None:
        return read_stored
    vt, of = row.vt, compute

    def read_computed(obj: DirectoryObject, view: View) -> PropVariant | None:
        value = of(obj, view)
        return None if value is None else PropVariant(vt, value)

    return read_computed


#: From an object to values of it as they are stored, None for each that it does not show.
ReadPacked = Callable[[DirectoryObject, View], list[Packed | None]]
_NOBODY = 0


@lru_cache(maxsize=1024)
def packed_reader_of(ids: tuple[int, ...]) -> ReadPacked:
    """Returns the function that reads properties packed: stored bytes are copied, not decoded."""
    stored = tuple(_NOBODY if propid in COMPUTED else propid for propid in ids)
    defaults = [None if propid in COMPUTED else _packed(default_of(propid)) for propid in ids]
    computed = [(at, _packer_of(propid)) for at, propid in enumerate(ids) if propid in COMPUTED]
    readers = [reader_of(propid) for propid in ids]

    def read(obj: DirectoryObject, view: View) -> list[Packed | None]:
        bag = obj.properties
        if not isinstance(bag, PropertyBag):
            return [_packed(reader(obj, view)) for reader in readers]
        found = bag.select(stored)
        for at, pack in computed:
            found[at] = pack(obj, view)
        if None in found:
            found = [value or default for value, default in zip(found, defaults, strict=True)]
        return found

    return read


def _packer_of(propid: int) -> Callable[[DirectoryObject, View], Packed | None]:
    row, read = ROWS[propid], reader_of(propid)
    if row.role is PropertyRole.IDENTIFIER:
        number = int(row.vt)
        return lambda obj, _view: (number, obj.id.raw)
    return lambda obj, view: _packed(read(obj, view))


def _packed(value: PropVariant | None) -> Packed | None:
    return None if value is None else (int(value.vt), value.packed())


def is_own(propid: int) -> bool:
    """Returns whether a property shows what is in the object alone, under whatever number."""
    row = ROWS[propid]
    return propid not in COMPUTED or row.role in _OUTSIDE or row.computed is None
