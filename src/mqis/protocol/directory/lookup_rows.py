"""The rows of a lookup as bytes.

A lookup keeps its rows from its beginning to its end, and a client may have many of them open. As
bytes they take a quarter of what the values take as objects, how much that is can be counted, and
the garbage collector has nothing to search. A column that a client names twice is kept once. A
row begins with the identifier of its object, by which its permissions are looked up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.read_mapping import reader_of
from mqis.protocol.directory.types.catalogue import COMPUTED
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import PropertyBag
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.reader import Reader

Row = tuple[PropVariant, ...]

#: What a row takes beside its bytes: the object that holds them, and its place in a list.
ROW_BYTES = 48
#: The values of one object, with those of columns that are named twice. More is not answered.
MAX_ROW_BYTES = 4 * 1024 * 1024

_ID_SIZE = 16
_TAGS = {vt: int(vt).to_bytes(2, "little") for vt in VarType}
_NULL = _TAGS[VarType.NULL]


def object_of(row: bytes) -> Guid:
    """The identifier of a row's object."""
    return Guid(row[:_ID_SIZE])


class RowFormat:
    """Makes rows of objects, and values of rows, for one set of columns."""

    __slots__ = ("_kept", "_places", "_repeats", "columns")

    def __init__(self, columns: Sequence[PropId]) -> None:
        self.columns = tuple(columns)
        kept = tuple(dict.fromkeys(self.columns))
        self._kept = len(kept)
        self._places = tuple(kept.index(propid) for propid in self.columns)
        self._repeats = tuple(self.columns.count(propid) for propid in kept)

    def packer(self, view: View) -> Callable[[DirectoryObject], bytes]:
        """From an object to its row; a column without a value is VT_NULL."""
        packs = [_pack_of(propid) for propid in dict.fromkeys(self.columns)]

        def pack(obj: DirectoryObject) -> bytes:
            packed = [pack_one(obj, view) for pack_one in packs]
            row = obj.id.raw + b"".join(packed)
            if len(row) * len(self.columns) > MAX_ROW_BYTES:
                self._check_size(packed)
            return row

        return pack

    def _check_size(self, packed: Sequence[bytes]) -> None:
        size = sum(map(int.__mul__, map(len, packed), self._repeats))
        if size > MAX_ROW_BYTES:
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"the columns of one object take {size} bytes, at most {MAX_ROW_BYTES} are given",
            )

    def bounded(self, rows: Sequence[bytes]) -> Iterator[bytes]:
        """The first of ``rows``, and those behind it that one answer has room for as well."""
        room = MAX_ROW_BYTES // max(self._repeats)
        for number, row in enumerate(rows):
            room -= len(row)
            if number and room < 0:
                return
            yield row

    def unpack(self, row: bytes) -> Row:
        """The values in the order of the columns."""
        reader = Reader(row, _ID_SIZE)
        values = [PropVariant.decode_tagged(reader) for _ in range(self._kept)]
        reader.expect_end("the row")
        return tuple([values[place] for place in self._places])


_Pack = Callable[[DirectoryObject, View], bytes]


@cache
def _pack_of(propid: PropId) -> _Pack:
    """Returns the function that packs one column: stored bytes are copied."""
    read = reader_of(propid)

    def pack_value(obj: DirectoryObject, view: View) -> bytes:
        value = read(obj, view)
        return _NULL if value is None else _TAGS[value.vt] + value.packed()

    def pack_stored(obj: DirectoryObject, view: View) -> bytes:
        stored = obj.properties
        found = stored.tagged(propid) if isinstance(stored, PropertyBag) else None
        return pack_value(obj, view) if found is None else found

    return pack_value if propid in COMPUTED else pack_stored
