"""Arrow columns from the changes that ``locating`` found; each is worked out if it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mqis.pipeline import arrays
from mqis.pipeline.decoding import tables
from mqis.pipeline.decoding.changes import ChangeColumns
from mqis.pipeline.decoding.octets import GUID_TEXT, Ints, Octets, guid_texts, running
from mqis.wire.mqdsrp import layout
from mqis.wire.propvariant import VarType

_NUMBERS_AT = {
    "previous_seq": layout.CHANGE_PREVIOUS_SEQ_AT,
    "seq": layout.CHANGE_SEQ_AT,
    "purged_seq": layout.CHANGE_PURGED_SEQ_AT,
}


class ValueColumns:
    """The columns of ``schemas.CARRIED`` that the bodies themselves tell."""

    def __init__(self, found: ChangeColumns) -> None:
        self._found = found
        self._changes = found.changes

    def column(self, field: pa.Field) -> pa.Array:
        """The column of this name and type."""
        if field.name in _NUMBERS_AT:
            return self._sequence_number(_NUMBERS_AT[field.name])
        if field.name == "properties":
            return self._properties(field.type)
        made: pa.Array = getattr(self, f"_{field.name}")()
        return made

    def _sequence_number(self, offset: int) -> pa.Array:
        numbers = self._found.octets.numbers(self._changes.fixed + offset, ">u8")
        return pa.array(numbers.astype(np.uint64).view(np.int64))

    def _command(self) -> pa.Array:
        return pa.array(self._found.octets.data[self._changes.start].astype(np.int32))

    def _partition(self) -> pa.Array:
        return arrays.guids(self._found.octets.rows(self._changes.fixed, 16))

    def _object_id(self) -> pa.Array:
        at = self._found.identifier
        return arrays.guids(self._found.octets.rows(np.maximum(at, 0), 16), at < 0)

    def _object_type(self) -> pa.Array:
        kinds = self._found.object_type
        return pa.array(kinds.astype(np.int32), mask=kinds == 0)

    def _path(self) -> pa.Array:
        return arrays.only_where(self._found.by_path, self.paths.array())

    @cached_property
    def paths(self) -> Texts:
        at = self._changes.start + layout.CHANGE_NAME_AT
        return Texts(self._found.octets, at, self._changes.path_length)

    @cached_property
    def _text_slots(self) -> Ints:
        return np.flatnonzero(tables.SHAPE[self._changes.propids] == tables.TEXT)

    @cached_property
    def texts(self) -> Texts:
        """The texts among the properties."""
        slots = self._text_slots
        lengths = self._changes.sizes[slots] - layout.PATH_END_SIZE
        return Texts(self._found.packed, self._found.places[slots], lengths)

    def with_surrogates(self, *, paths: bool, texts: bool) -> Ints:
        """The indexes of changes that have surrogates in their path or in a property."""
        odd = self.paths.with_surrogates() if paths else np.zeros(0, np.int64)
        if not texts:
            return odd
        slots = self._text_slots[self.texts.with_surrogates()]
        owners = np.searchsorted(self._found.ends, slots, side="right") - 1
        return np.concatenate((odd, owners))

    # --- properties -------------------------------------------------------------------------------

    def _properties(self, kind: pa.ListType) -> pa.Array:
        fields = list(kind.value_type)
        parts = [getattr(self, f"_{field.name}")() for field in fields]
        whole = pa.StructArray.from_arrays(parts, fields=fields)
        ends = pa.array(self._found.ends.astype(np.int32))
        return pa.ListArray.from_arrays(ends, whole, type=kind)

    def _propid(self) -> pa.Array:
        return pa.array(self._changes.propids.astype(np.int32))

    def _raw(self) -> pa.Array:
        data = self._found.packed.data
        return arrays.pieces(data, self._changes.sizes, pa.binary())

    def _number(self) -> pa.Array:
        """Reads eight bytes at each number and shifts out those that do not belong to it."""
        propids = self._changes.propids
        known = tables.IS_NUMBER[propids]
        which, kinds = np.flatnonzero(known), propids[known]
        wide = self._found.packed.numbers(self._found.places[which], "<u8")
        wide = wide << tables.UNUSED_BITS[kinds]
        signed = wide.view(np.int64) >> tables.UNUSED_BITS[kinds].view(np.int64)
        plain = (wide >> tables.UNUSED_BITS[kinds]).view(np.int64)
        values = np.zeros(len(propids), np.int64)
        values[which] = np.where(tables.SIGNED[kinds], signed, plain)
        return pa.array(values, mask=~known)

    def _text(self) -> pa.Array:
        """Strings and GUIDs, and lists with commas; null for other types."""
        vts = tables.VT[self._changes.propids]
        guids = np.flatnonzero(vts == int(VarType.CLSID))
        shown = _guids(self._found.packed, self._found.places[guids])
        parts = [(self._text_slots, self.texts.array()), (guids, shown)]
        parts += [
            (slots, self._lists(vt, slots))
            for vt in tables.ITEMS
            if len(slots := np.flatnonzero(vts == int(vt)))
        ]
        index = np.full(len(vts), -1, np.int64)
        for part, slots in enumerate(slots for slots, _ in parts):
            before = sum(len(array) for _, array in parts[:part])
            index[slots] = before + np.arange(len(slots))
        pool = pa.concat_arrays([array for _, array in parts])
        return pool.take(pa.array(index, mask=index < 0))

    def _lists(self, vt: VarType, slots: Ints) -> pa.Array:
        packed, places = self._found.packed, self._found.places[slots]
        count = packed.u32(places)
        ends = running(count)
        size = tables.ITEM_SIZE[self._changes.propids[slots[:1]]]
        inside = np.arange(int(ends[-1])) - np.repeat(ends[:-1], count)
        at = np.repeat(places + tables.COUNT_SIZE, count) + inside * size
        if vt is VarType.VECTOR_CLSID:
            items = _guids(packed, at)
        else:
            items = pa.array(packed.numbers(at, tables.ITEMS[vt])).cast(pa.string())
        listed = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), items)
        return pc.binary_join(listed, ",")


def _guids(octets: Octets, at: Ints) -> pa.Array:
    shown = guid_texts(octets.rows(at, 16)).reshape(-1)
    return arrays.pieces(shown, np.full(len(at), GUID_TEXT), pa.string())


#: The first units that take two and three bytes of UTF-8, and the surrogates, of which a pair is
#: one character.
_TWO_BYTES, _THREE_BYTES = 0x80, 0x800
_SURROGATES, _BEHIND_SURROGATES = 0xD800, 0xE000


@dataclass(frozen=True)
class Texts:
    """Texts that begin at ``at`` and have so many bytes, without their ends."""

    octets: Octets
    at: Ints
    lengths: Ints

    @cached_property
    def _units(self) -> npt.NDArray[np.uint16]:
        return self.octets.joined(self.at, self.lengths).view("<u2")

    @cached_property
    def _highest(self) -> int:
        return int(self._units.max(initial=0))

    def with_surrogates(self) -> Ints:
        """The indexes of texts that have surrogates, which ``array`` cannot take."""
        if self._highest < _SURROGATES:
            return np.zeros(0, np.int64)
        odd = np.flatnonzero((self._units >= _SURROGATES) & (self._units < _BEHIND_SURROGATES))
        return np.unique(np.searchsorted(np.cumsum(self.lengths // 2), odd, side="right"))

    def array(self) -> pa.Array:
        """The texts as an array of strings."""
        if self._highest < _TWO_BYTES:
            ascii_only = self._units.view(np.uint8)[0::2].tobytes()
            return arrays.pieces(ascii_only, self.lengths // 2, pa.string())
        units = self._units
        sizes = 1 + (units >= _TWO_BYTES).astype(np.int64) + (units >= _THREE_BYTES)
        lengths = np.diff(running(sizes)[running(self.lengths // 2)])
        return arrays.pieces(units.tobytes().decode("utf-16-le").encode(), lengths, pa.string())
