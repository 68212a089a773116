"""Arrow columns from the changes that ``manychanges`` decoded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from mqis.pipeline import schemas
from mqis.pipeline.sources import arrays
from mqis.pipeline.transforms.manychanges import SHAPE, TEXT, VT, ChangeColumns
from mqis.pipeline.transforms.octets import GUID_TEXT, Ints, Mask, Octets, guid_texts
from mqis.wire.mqdsrp.layout import (
    CHANGE_NAME_AT,
    CHANGE_PREVIOUS_SEQ_AT,
    CHANGE_PURGED_SEQ_AT,
    CHANGE_SEQ_AT,
    CHANGE_USE_GUID_AT,
)
from mqis.wire.propvariant import VarType

_PROPERTIES: pa.ListType = to_arrow_schema(schemas.CARRIED, timezone="UTC").field("properties").type
_PROPERTY: pa.StructType = _PROPERTIES.value_type
_NUMBERS = {
    VarType.I1: "<i1",
    VarType.UI1: "<u1",
    VarType.I2: "<i2",
    VarType.UI2: "<u2",
    VarType.I4: "<i4",
    VarType.UI4: "<u4",
    VarType.I8: "<i8",
    VarType.UI8: "<u8",
}
_ASCII = 0x80


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """The changes as columns; ``row`` has the index of each change's body."""

    row: Ints
    columns: dict[str, pa.Array]


def not_ascii(found: ChangeColumns, *, properties: bool) -> Ints:
    """The indexes of changes that have a text with characters beyond ASCII."""
    named = np.flatnonzero(found.path_length)
    odd = named[_odd(found.octets, found.start[named] + CHANGE_NAME_AT, found.path_length[named])]
    if not properties:
        return odd
    texts = np.flatnonzero(SHAPE[found.propids] == TEXT)
    wide = texts[_odd(found.octets, found.places[texts], found.sizes[texts] - 2)]
    return np.concatenate((odd, np.searchsorted(found.ends, wide, side="right") - 1))


def _odd(octets: Octets, at: Ints, lengths: Ints) -> Ints:
    """The indexes of these UTF-16 texts that are not ASCII."""
    units = octets.joined(at, lengths)
    wide = np.flatnonzero((units[0::2] >= _ASCII) | (units[1::2] != 0))
    return np.unique(np.searchsorted(np.cumsum(lengths // 2), wide, side="right"))


def columns_of(found: ChangeColumns, rest: Mask, *, properties: bool) -> ValueColumns:
    """The changes of all bodies except ``rest``, as columns."""
    kept = np.flatnonzero(~rest[found.row])
    octets, fixed = found.octets, found.fixed[kept]
    kinds, identifier = found.object_type[kept], found.identifier[kept]
    nameless = identifier < 0
    columns = {
        "command": pa.array(octets.data[found.start[kept]].astype(np.int32)),
        "partition": arrays.guids(octets.rows(fixed, 16)),
        "previous_seq": pa.array(found.number(CHANGE_PREVIOUS_SEQ_AT)[kept]),
        "seq": pa.array(found.number(CHANGE_SEQ_AT)[kept]),
        "purged_seq": pa.array(found.number(CHANGE_PURGED_SEQ_AT)[kept]),
        "object_id": arrays.guids(octets.rows(np.where(nameless, 0, identifier), 16), nameless),
        "object_type": pa.array(kinds.astype(np.int32), mask=kinds == 0),
        "path": _paths(found, kept),
        "properties": _properties(found, kept) if properties else _none(len(kept)),
    }
    return ValueColumns(found.row[kept], columns)


def _none(count: int) -> pa.Array:
    empty = pa.array([], _PROPERTY)
    return pa.ListArray.from_arrays(
        pa.array(np.zeros(count + 1, np.int32)), empty, type=_PROPERTIES
    )


def _paths(found: ChangeColumns, kept: Ints) -> pa.Array:
    by_path = found.octets.data[found.start[kept] + CHANGE_USE_GUID_AT] == 0
    lengths = np.where(by_path, found.path_length[kept], 0)
    units = found.octets.joined(found.start[kept] + CHANGE_NAME_AT, lengths)
    made = arrays.pieces(units[0::2].tobytes(), lengths // 2, pa.string())
    return made if by_path.all() else _where(by_path, made)


def _where(known: Mask, values: pa.Array) -> pa.Array:
    buffers = values.buffers()
    validity = pa.py_buffer(np.packbits(known, bitorder="little").tobytes())
    return pa.Array.from_buffers(values.type, len(values), [validity, *buffers[1:]])


def _properties(found: ChangeColumns, kept: Ints) -> pa.Array:
    counts = np.diff(found.ends)[kept]
    ends = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    slots = np.arange(int(ends[-1])) + np.repeat(found.ends[kept] - ends[:-1], counts)
    propids, at, sizes = found.propids[slots], found.places[slots], found.sizes[slots]
    vts = VT[propids]
    number, no_number = _number(found.octets, vts, at)
    parts = [
        pa.array(propids.astype(np.int32)),
        _text(found.octets, vts, at, sizes),
        pa.array(number, mask=no_number),
        arrays.pieces(found.octets.joined(at, sizes).tobytes(), sizes, pa.binary()),
    ]
    whole = pa.StructArray.from_arrays(parts, fields=list(_PROPERTY))
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), whole, type=_PROPERTIES)


def _number(octets: Octets, vts: Ints, at: Ints) -> tuple[npt.NDArray[np.int64], Mask]:
    values = np.zeros(len(vts), dtype=np.int64)
    missing = np.ones(len(vts), dtype=np.bool_)
    for vt, form in _NUMBERS.items():
        which = np.flatnonzero(vts == int(vt))
        if len(which):
            values[which] = octets.numbers(at[which], form).astype(np.int64)
            missing[which] = False
    return values, missing


def _text(octets: Octets, vts: Ints, at: Ints, sizes: Ints) -> pa.Array:
    """The column ``text`` of properties: strings and GUIDs as text, null for other types."""
    is_text, is_guid = vts == int(VarType.LPWSTR), vts == int(VarType.CLSID)
    lengths = np.where(is_text, (sizes - 2) // 2, np.where(is_guid, GUID_TEXT, 0))
    units = octets.joined(at[is_text], 2 * lengths[is_text])[0::2]
    shown = guid_texts(octets.rows(at[is_guid], 16)).reshape(-1)
    pool = Octets(np.concatenate((units, shown)))
    begin = np.zeros(len(vts), dtype=np.int64)
    begin[is_text] = np.cumsum(lengths[is_text]) - lengths[is_text]
    begin[is_guid] = len(units) + GUID_TEXT * np.arange(int(is_guid.sum()))
    made = arrays.pieces(pool.joined(begin, lengths).tobytes(), lengths, pa.string())
    return _where(is_text | is_guid, made)
