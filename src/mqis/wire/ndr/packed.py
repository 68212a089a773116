"""PROPVARIANTs in NDR, copied from their packed bytes instead of decoded and encoded.

A store keeps values packed (``wire.propvariant``), and NDR has the same bytes in another place: a
number behind both tags, text and octets in a referent behind their count. So an answer is put
together of slices. Its bytes are those that ``PROPVARIANT`` would encode, referent identifiers
included. Vectors whose items have pointers or another alignment are left to ``PROPVARIANT``; so are
damaged values, which raise an error there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from struct import Struct

from mqis.wire.ndr.propvariant_codec import blank_variants
from mqis.wire.ndr.stream import FIRST_REFERENT, ZEROS, Dialect, Syntax, dialect_of
from mqis.wire.propvariant import MAX_STRING_UNITS, PACKED_SIZES, VarType

#: A variant type and the value's packed bytes.
Packed = tuple[int, bytes]
#: From packed bytes to the count in the inline part and the referent; None: leave it to others.
_Refer = Callable[[bytes], tuple[bytes, bytes] | None]

#: The sizes of the items of vectors that NDR aligns like their count.
_ITEMS: dict[int, int] = {
    VarType.BLOB: 1,
    VarType.VECTOR_UI1: 1,
    VarType.VECTOR_UI2: 2,
    VarType.VECTOR_I4: 4,
    VarType.VECTOR_UI4: 4,
    VarType.VECTOR_CLSID: 16,
}
#: The sizes of values without a referent.
_PLAIN: dict[int, int] = {
    VarType.EMPTY: 0,
    VarType.NULL: 0,
    VarType.BOOL: 2,
    **{vt: size for vt, size in PACKED_SIZES.items() if vt is not VarType.CLSID},
}
_COUNT_BYTES = 4
_BOOLEANS = (b"\0\0", b"\xff\xff")
#: Lists of types whose layout is kept.
MAX_LAYOUTS = 512


class _PackedCodec:
    """The layouts of single variants in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.pads_last = dialect.is_ndr64
        self.identifier = dialect.form(dialect.count_code).pack
        #: Of types without a referent: what is before the value, its size, and the padding.
        self.plain: dict[int, tuple[bytes, int, bytes]] = {}
        #: Of types with one: its alignment, what is before its count or identifier, the padding.
        self.pointed: dict[int, tuple[int, bytes, bytes]] = {}
        self.refer: dict[int, _Refer] = {}
        for vt, blank in blank_variants(dialect).items():
            self._add(vt, blank, dialect)

    def _add(self, vt: int, blank: bytes, dialect: Dialect) -> None:
        padding = ZEROS[-len(blank) & 7]
        width, mask = dialect.count_size, dialect.count_size - 1
        if vt in _PLAIN:
            size = _PLAIN[vt]
            start = 16 if dialect.is_ndr64 or size == 8 else 12 if size == 4 else 10
            start = min(start, len(blank))
            self.plain[vt] = blank[:start], size, blank[start + size :] + padding
        elif vt == VarType.LPWSTR:
            self.pointed[vt] = mask, blank[:-width], padding
            self.refer[vt] = _text(dialect)
        elif vt == VarType.CLSID:
            self.pointed[vt] = 3, blank[:-width], padding
            self.refer[vt] = _guid
        elif vt in _ITEMS:
            self.pointed[vt] = mask, blank[: -2 * width], padding
            self.refer[vt] = _items(_ITEMS[vt], dialect)


class _Layout:
    """Variants of certain types one after the other, joined but for their values.

    Objects of one kind show the same types again and again: their values are put into gaps.
    """

    __slots__ = ("_booleans", "_identifier", "_parts", "_plain", "_pointed", "_sizes")

    def __init__(self, types: Sequence[int], codec: _PackedCodec) -> None:
        self._identifier = codec.identifier
        #: Gaps for values at odd places, and what is between them.
        self._parts: list[bytes] = [b""]
        #: The places of values without a referent, their sizes, and which are booleans.
        self._plain: list[int] = []
        self._sizes: list[int] = []
        self._booleans: list[int] = []
        self._pointed: list[tuple[int, int, _Refer]] = []
        for place, vt in enumerate(types):
            if vt in codec.plain:
                head, size, end = codec.plain[vt]
                self._plain.append(place)
                self._sizes.append(size)
                if vt == VarType.BOOL:
                    self._booleans.append(place)
            else:
                mask, head, end = codec.pointed[vt]
                self._pointed.append((place, mask, codec.refer[vt]))
            self._parts[-1] += head
            self._parts += (b"", end)

    def add(
        self, values: Sequence[bytes], inline: list[bytes], referents: list[tuple[int, bytes]]
    ) -> bool:
        """Adds the values' inline parts and referents; False if one is damaged."""
        if [len(values[place]) for place in self._plain] != self._sizes:
            return False
        for place in self._booleans:
            if values[place] not in _BOOLEANS:
                return False
        parts = self._parts.copy()
        parts[1::2] = values
        for place, mask, refer in self._pointed:
            found = refer(values[place])
            if found is None:
                return False
            count, data = found
            number = 0
            if data:
                number = FIRST_REFERENT + 4 * len(referents)
                referents.append((mask, data))
            parts[2 * place + 1] = count + self._identifier(number)
        inline += parts
        return True


def _text(dialect: Dialect) -> _Refer:
    counts = dialect.form(3 * dialect.count_code).pack

    def refer(packed: bytes) -> tuple[bytes, bytes] | None:
        try:
            text = packed.decode("utf-16-le", "surrogatepass")
        except UnicodeDecodeError:
            return None
        count = len(packed) // 2
        if text.find("\0") != len(text) - 1 or not 0 < count <= MAX_STRING_UNITS + 1:
            return None
        return b"", counts(count, 0, count) + packed

    return refer


def _guid(packed: bytes) -> tuple[bytes, bytes] | None:
    return (b"", packed) if len(packed) == PACKED_SIZES[VarType.CLSID] else None


def _items(size: int, dialect: Dialect) -> _Refer:
    wide = bytes(dialect.count_size - _COUNT_BYTES)

    def refer(packed: bytes) -> tuple[bytes, bytes] | None:
        count = packed[:_COUNT_BYTES]
        if len(packed) != _COUNT_BYTES + int.from_bytes(count, "little") * size:
            return None
        items = packed[_COUNT_BYTES:]
        # The inline count has 32 bits in both dialects; NDR64 pads it. No items have no referent.
        return count + wide, count + wide + items if items else b""

    return refer


@cache
def _codec(syntax: Syntax) -> _PackedCodec:
    return _PackedCodec(dialect_of(syntax))


@lru_cache(maxsize=MAX_LAYOUTS)
def _layout(types: tuple[int, ...], syntax: Syntax) -> _Layout | None:
    """None if one of the types is left to ``PROPVARIANT``."""
    codec = _codec(syntax)
    known = all(vt in codec.plain or vt in codec.pointed for vt in types)
    return _Layout(types, codec) if known else None


def encode_packed_rows(rows: Iterable[Sequence[Packed]], syntax: Syntax) -> bytes | None:
    """Encodes the elements of an array that begins at a multiple of 8, then what they point to.

    None if one of them is left to ``PROPVARIANT``.
    """
    inline: list[bytes] = []
    referents: list[tuple[int, bytes]] = []
    for row in rows:
        types, values = zip(*row, strict=True) if row else ((), ())
        layout = _layout(types, syntax)
        if layout is None or not layout.add(values, inline, referents):
            return None
    if inline and not _codec(syntax).pads_last:
        inline.pop()
    buffer = bytearray().join(inline)
    for mask, data in referents:
        gap = -len(buffer) & mask
        if gap:
            buffer += ZEROS[gap]
        buffer += data
    return bytes(buffer)


# --- rows that are kept ---------------------------------------------------------------------------


class PackedRow:
    """So many packed values as bytes, behind a table of their types and sizes."""

    __slots__ = ("_table",)

    def __init__(self, count: int) -> None:
        self._table = Struct("<" + "HI" * count)

    def encode(self, values: Sequence[Packed]) -> bytes:
        table = [number for vt, packed in values for number in (vt, len(packed))]
        return b"".join((self._table.pack(*table), *[packed for _, packed in values]))

    def decode(self, row: bytes, at: int = 0) -> list[Packed]:
        table = self._table.unpack_from(row, at)
        at, values = at + self._table.size, []
        for vt, size in zip(table[::2], table[1::2], strict=True):
            values.append((vt, row[at : at + size]))
            at += size
        return values
