"""What the directory stores of the properties that a change carries.

Values stay packed on the way: stores pack them as messages do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY
from mqis.protocol.directory.types.catalogue import ROWS, STORED_AS
from mqis.protocol.directory.types.property_row import Store
from mqis.protocol.replication.replicated import FILLERS, may_be_absent, zero_of
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqdsrp.propertylist import Listed, PropertyList
from mqis.wire.propertybag import PackedValues, PropertyBag, encode_packed
from mqis.wire.propvariant import VarType

#: The replicated properties that are not kept under their own number.
_STORES: dict[int, Store] = {
    row.id: row.store for row in ROWS.values() if row.replicated and row.store is not None
}
_UNKEPT = FILLERS | frozenset(IDENTIFIER_PROPERTY.values())


@dataclass(frozen=True, slots=True)
class _Kept:
    """How one property of a change is stored."""

    index: int
    target: int
    vt: VarType
    #: The packed value that means that the authority has none; None: every value is one.
    empty: bytes | None
    #: Makes the stored values of the decoded one; None: it is stored as it came.
    store: Store | None


@lru_cache(maxsize=1024)
def _plan(ids: tuple[int, ...]) -> tuple[_Kept, ...]:
    return tuple(_kept(index, propid) for index, propid in enumerate(ids) if propid not in _UNKEPT)


def _kept(index: int, propid: int) -> _Kept:
    target = STORED_AS.get(propid, propid)
    vt, store = ROWS[target].vt, _STORES.get(propid)
    empty = zero_of(propid).packed() if may_be_absent(propid) else None
    assert store is not None or vt is PROPERTIES[propid].vt
    return _Kept(index, target, vt, empty, store)


def kept_values(properties: PropertyList) -> PackedValues:
    """Received values under the identifiers that the directory stores them by."""
    found: PackedValues = {}
    for kept in _plan(properties.ids):
        value = properties.packed[kept.index]
        if kept.store is not None:
            plain = properties[kept.index][1].value
            for propid, variant in kept.store(plain, {}, {}).items():
                found[propid] = variant.vt, variant.packed()
        elif value != kept.empty:
            found[kept.target] = kept.vt, value
    return found


def emptied(properties: PropertyList) -> list[int]:
    """The stored properties that the authority no longer has a value for."""
    plan = _plan(properties.ids)
    return [kept.target for kept in plan if properties.packed[kept.index] == kept.empty]


def stored(properties: Listed) -> PropertyBag:
    """Received properties as the directory stores them."""
    return PropertyBag(encode_packed(kept_values(PropertyList.of(properties))))
