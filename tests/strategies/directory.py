"""Random directory values: variants of every type, objects that are valid by the catalogue."""

from __future__ import annotations

from hypothesis import strategies as st

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
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
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests.builders import NOT_STORED

OBJECT_TYPES = [t for t in ObjectType if t is not ObjectType.DELETEDOBJECT]

guids = st.binary(min_size=16, max_size=16).map(Guid)
sequence_numbers = st.integers(0, (1 << 64) - 1).map(SequenceNumber)


def _as_units(text: str) -> str:
    """Surrogates that happen to stand in pairs become the character that they encode."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def wide_text(min_size: int = 0, max_size: int = 20) -> st.SearchStrategy[str]:
    """Whatever sixteen-bit units can say, lone surrogates included."""
    characters = st.characters(exclude_characters="\0", categories=None)
    return st.text(characters, min_size=min_size, max_size=max_size).map(_as_units)


object_types = st.sampled_from(OBJECT_TYPES)
names = wide_text(1)


def _integers(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    half = 1 << (bits - 1)
    return st.integers(-half, half - 1) if signed else st.integers(0, 2 * half - 1)


_SCALARS: dict[VarType, st.SearchStrategy[object]] = {
    VarType.EMPTY: st.none(),
    VarType.NULL: st.none(),
    VarType.BOOL: st.booleans(),
    VarType.I1: _integers(8, signed=True),
    VarType.UI1: _integers(8, signed=False),
    VarType.I2: _integers(16, signed=True),
    VarType.UI2: _integers(16, signed=False),
    VarType.I4: _integers(32, signed=True),
    VarType.UI4: _integers(32, signed=False),
    VarType.I8: _integers(64, signed=True),
    VarType.UI8: _integers(64, signed=False),
    VarType.LPWSTR: wide_text(),
    VarType.BLOB: st.binary(max_size=40),
    VarType.CLSID: guids,
}


def _values(vt: VarType) -> st.SearchStrategy[object]:
    if vt is VarType.VECTOR_UI1:
        return st.binary(max_size=40)
    if vt is VarType.VECTOR_VARIANT:
        inner = st.sampled_from(list(_SCALARS)).flatmap(variants)
        return st.lists(inner, max_size=3).map(tuple)
    if vt in _SCALARS:
        return _SCALARS[vt]
    return st.lists(_SCALARS[VarType(vt & 0xFFF)], max_size=4).map(tuple)


def variants(vt: VarType) -> st.SearchStrategy[PropVariant]:
    return _values(vt).map(lambda value: PropVariant(vt, value))  # type: ignore[arg-type]


def any_variants() -> st.SearchStrategy[PropVariant]:
    return st.sampled_from(VarType).flatmap(variants)


def stored_ids(object_type: ObjectType) -> list[PropId]:
    """The properties that an object of this type may hold besides its name."""
    return [
        entry.id
        for entry in PROPERTIES.values()
        if entry.object_type is object_type
        and entry.id not in NOT_STORED
        and entry.id != NAME_PROPERTY.get(object_type)
    ]


@st.composite
def directory_objects(
    draw: st.DrawFn,
    *,
    object_types: st.SearchStrategy[ObjectType] = object_types,
    ids: st.SearchStrategy[Guid] = guids,
    names: st.SearchStrategy[str] = names,
    partitions: st.SearchStrategy[Guid] = guids,
    seqs: st.SearchStrategy[SequenceNumber] = sequence_numbers,
) -> DirectoryObject:
    object_type = draw(object_types)
    chosen = draw(st.lists(st.sampled_from(stored_ids(object_type)), unique=True, max_size=6))
    properties: dict[int, PropVariant] = {p: draw(variants(PROPERTIES[p].vt)) for p in chosen}
    name = NAME_PROPERTY.get(object_type)
    if name is not None:
        properties[name] = PropVariant(VarType.LPWSTR, draw(names))
    where = ENTERPRISE_PARTITION
    if object_type in (ObjectType.QUEUE, ObjectType.MACHINE):
        where = draw(partitions)
    return DirectoryObject(object_type, draw(ids), where, draw(seqs), properties)


def tombstones(
    ids: st.SearchStrategy[Guid] = guids,
    partitions: st.SearchStrategy[Guid] = guids,
    seqs: st.SearchStrategy[SequenceNumber] = sequence_numbers,
) -> st.SearchStrategy[DeletedObject]:
    return st.builds(DeletedObject, ids, partitions, seqs, object_types, st.sampled_from(Scope))


def partition_states(
    ids: st.SearchStrategy[Guid] = guids,
) -> st.SearchStrategy[Partition]:
    return st.builds(
        Partition,
        ids,
        wide_text(),
        sequence_numbers,
        sequence_numbers,
        sequence_numbers,
        st.sampled_from(PurgeState),
    )
