"""The rows of a lookup as bytes.

A lookup keeps its rows from its beginning to its end, and a client may have many of them open. As
bytes they take a quarter of what the values take as objects, how much that is can be counted, and
the garbage collector has nothing to search. A column that a client names twice is kept once. A
row begins with the identifier of its object, by which its permissions are looked up again, and a
table of the types and sizes of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.read_mapping import packed_reader_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.propid import PropId
from mqis.wire.ndr.packed import Packed, PackedRow
from mqis.wire.propvariant import PropVariant, VarType

Row = tuple[PropVariant, ...]

#: What a row takes beside its bytes: the object that holds them, and its place in a list.
ROW_BYTES = 48
#: The values of one object, with those of columns that are named twice. More is not answered.
MAX_ROW_BYTES = 4 * 1024 * 1024

_ID_SIZE = 16
_NULL: Packed = (int(VarType.NULL), b"")


def object_of(row: bytes) -> Guid:
    """The identifier of a row's object."""
    return Guid(row[:_ID_SIZE])


@lru_cache(maxsize=1024)
def row_format(columns: tuple[PropId, ...]) -> RowFormat:
    """Programs ask for the same few lists of columns; to make a format takes as long as a row."""
    return RowFormat(columns)


class RowFormat:
    """Makes rows of objects, and values of rows, for one set of columns."""

    __slots__ = ("_places", "_repeats", "_row", "columns")

    def __init__(self, columns: Sequence[PropId]) -> None:
        self.columns = tuple(columns)
        kept = tuple(dict.fromkeys(self.columns))
        self._row = PackedRow(len(kept))
        self._places = tuple(kept.index(propid) for propid in self.columns)
        self._repeats = tuple(self.columns.count(propid) for propid in kept)

    def packer(self, view: View) -> Callable[[DirectoryObject], bytes]:
        """From an object to its row; a column without a value is VT_NULL."""
        read = packed_reader_of(tuple(dict.fromkeys(map(int, self.columns))))
        encode = self._row.encode

        def pack(obj: DirectoryObject) -> bytes:
            values = [value or _NULL for value in read(obj, view)]
            row = obj.id.raw + encode(values)
            if len(row) * len(self.columns) > MAX_ROW_BYTES:
                self._check_size(values)
            return row

        return pack

    def _check_size(self, values: Sequence[Packed]) -> None:
        sizes = [len(packed) for _, packed in values]
        size = sum(map(int.__mul__, sizes, self._repeats))
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

    def split(self, row: bytes) -> list[Packed]:
        """The packed values in the order of the columns."""
        values = self._row.decode(row, _ID_SIZE)
        return [values[place] for place in self._places]

    def unpack(self, row: bytes) -> Row:
        """The values in the order of the columns."""
        return tuple([PropVariant.from_packed(vt, packed) for vt, packed in self.split(row)])
