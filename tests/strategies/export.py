"""Directory values, for whatever writes and reads them whole."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from mqis.protocol.directory.export_format import ORDER, ExportedServer, ExportHeader
from mqis.protocol.directory.objects import (
    NAME_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Partition,
    PurgeState,
    Scope,
)
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import MAX_VARIANT_DEPTH, PropVariant, Value, VarType
from mqis.wire.seqnum import SequenceNumber

guids = st.binary(min_size=16, max_size=16).map(Guid)
sequence_numbers = st.integers(0, (1 << 64) - 1).map(SequenceNumber)
#: Lone surrogates included: Windows names are unit sequences.
texts = st.text(st.characters(exclude_characters="\0"), max_size=20)

_BITS = {"I1": 8, "UI1": 8, "I2": 16, "UI2": 16, "I4": 32, "UI4": 32, "I8": 64, "UI8": 64}


def _scalars(name: str) -> st.SearchStrategy[Value]:
    if name in _BITS:
        bits = _BITS[name]
        low, high = (
            (0, (1 << bits) - 1) if name[0] == "U" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        )
        return st.integers(low, high)
    return {
        "EMPTY": st.none(),
        "NULL": st.none(),
        "BOOL": st.booleans(),
        "LPWSTR": texts,
        "BLOB": st.binary(max_size=20),
        "CLSID": guids,
    }[name]


def variants_of(vt: VarType, depth: int = 0) -> st.SearchStrategy[PropVariant]:
    """Values of one variant type."""
    if vt is VarType.VECTOR_UI1:
        return st.binary(max_size=20).map(lambda value: PropVariant(vt, value))
    if vt is VarType.VECTOR_VARIANT:
        items = st.lists(variants(depth + 1), max_size=3)
        return items.map(lambda value: PropVariant(vt, tuple(value)))
    if vt.name.startswith("VECTOR_"):
        scalars: st.SearchStrategy[Any] = _scalars(vt.name.removeprefix("VECTOR_"))
        elements = st.lists(scalars, max_size=4)
        return elements.map(lambda value: PropVariant(vt, tuple(value)))
    return _scalars(vt.name).map(lambda value: PropVariant(vt, value))


def variants(depth: int = 0) -> st.SearchStrategy[PropVariant]:
    """Values of any variant type."""
    kinds = [vt for vt in VarType if vt is not VarType.VECTOR_VARIANT or depth < MAX_VARIANT_DEPTH]
    return st.sampled_from(kinds).flatmap(lambda vt: variants_of(vt, depth))


@st.composite
def directory_objects(draw: st.DrawFn) -> DirectoryObject:
    """Of any type, with properties of the catalogue and with any others."""
    object_type = draw(st.sampled_from(ORDER))
    properties: dict[int, PropVariant] = {}
    own = [p for p, entry in PROPERTIES.items() if entry.object_type is object_type]
    for propid in draw(st.lists(st.sampled_from(own), unique=True, max_size=6)):
        properties[propid] = draw(variants_of(PROPERTIES[propid].vt))
    others = draw(st.dictionaries(st.integers(0, (1 << 32) - 1), variants(), max_size=2))
    names = NAME_PROPERTY.values()
    properties |= {propid: others[propid] for propid in others if propid not in names}
    return DirectoryObject(
        object_type, draw(guids), draw(guids), draw(sequence_numbers), properties
    )


def _in_order(objects: list[DirectoryObject]) -> list[DirectoryObject]:
    return sorted(objects, key=lambda obj: (ORDER.index(obj.type), obj.id.raw))


#: A few objects in the order of exports; no identifier is there twice, whatever the type.
directories = st.lists(directory_objects(), max_size=6, unique_by=lambda obj: obj.id.raw).map(
    _in_order
)

tombstones = st.builds(
    DeletedObject,
    guids,
    guids,
    sequence_numbers,
    st.sampled_from([kind for kind in ObjectType if kind is not ObjectType.DELETEDOBJECT]),
    st.sampled_from(Scope),
)
partitions = st.builds(
    Partition,
    guids,
    texts,
    sequence_numbers,
    sequence_numbers,
    sequence_numbers,
    st.sampled_from(PurgeState),
)
headers = st.builds(
    ExportHeader,
    st.none() | texts,
    st.lists(partitions, max_size=3, unique_by=lambda partition: partition.id).map(tuple),
    st.none() | st.integers(0, 1 << 40),
    st.none() | st.builds(ExportedServer, guids, texts),
)
