"""The hand-written PROPVARIANT codec against the same IDL put together from generic parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqis.wire import ndr
from mqis.wire.errors import WireError
from mqis.wire.ndr import Choice, NdrError, Syntax
from mqis.wire.propvariant import MAX_VARIANT_DEPTH, PropVariant, VarType
from tests.strategies.ndr import guids, integers, wide_text


@dataclass(frozen=True, slots=True)
class Inner:
    """tag_inner_PROPVARIANT; vt is taken from the union."""

    reserved1: int
    reserved2: int
    reserved3: int
    value: Choice


@dataclass(frozen=True, slots=True)
class Counted:
    items: Any


def counted(element: ndr.Description[Any]) -> ndr.Description[Any]:
    """BLOB and the CA... structures (MS-MQMQ 2.2.15, 2.2.16)."""
    items = ndr.Unique(ndr.Conformant(element, size_is="n"))
    return ndr.Struct(Counted, n=ndr.U32, items=items)


ARMS: dict[int, ndr.Description[Any] | None] = {
    VarType.EMPTY: None,
    VarType.NULL: None,
    VarType.I1: ndr.I8,
    VarType.UI1: ndr.U8,
    VarType.I2: ndr.I16,
    VarType.UI2: ndr.U16,
    VarType.I4: ndr.I32,
    VarType.UI4: ndr.U32,
    VarType.I8: ndr.I64,
    VarType.UI8: ndr.U64,
    VarType.BOOL: ndr.I16,
    VarType.CLSID: ndr.Unique(ndr.GUID),
    VarType.BLOB: counted(ndr.BYTE),
    VarType.LPWSTR: ndr.Unique(ndr.WSTRING),
    VarType.VECTOR_UI1: counted(ndr.BYTE),
    VarType.VECTOR_UI2: counted(ndr.U16),
    VarType.VECTOR_I4: counted(ndr.I32),
    VarType.VECTOR_UI4: counted(ndr.U32),
    VarType.VECTOR_UI8: counted(ndr.U64),
    VarType.VECTOR_CLSID: counted(ndr.GUID),
    VarType.VECTOR_LPWSTR: counted(ndr.Unique(ndr.WSTRING)),
    VarType.VECTOR_VARIANT: counted(ndr.Lazy(lambda: GENERIC)),
}
#: MS-MQMQ 2.2.13.1
GENERIC: ndr.Description[Any] = ndr.Struct(
    Inner,
    vt=ndr.U16,
    reserved1=ndr.U8,
    reserved2=ndr.U8,
    reserved3=ndr.U32,
    value=ndr.Union(ndr.U16, ARMS, switch_is="vt"),
)


def to_generic(variant: PropVariant, reserved: tuple[int, int, int] = (0, 0, 0)) -> Inner:
    value: Any = variant.value
    if variant.vt is VarType.BOOL:
        value = -1 if value else 0
    elif variant.vt is VarType.VECTOR_VARIANT:
        value = Counted(tuple(to_generic(item) for item in value) or None)
    elif isinstance(ARMS[variant.vt], ndr.Struct):
        value = Counted(value or None)
    return Inner(*reserved, Choice(variant.vt, value))


def vectors(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=4).map(tuple)


VALUES: dict[VarType, st.SearchStrategy[Any]] = {
    VarType.EMPTY: st.none(),
    VarType.NULL: st.none(),
    VarType.I1: integers(8, signed=True),
    VarType.UI1: integers(8),
    VarType.I2: integers(16, signed=True),
    VarType.UI2: integers(16),
    VarType.I4: integers(32, signed=True),
    VarType.UI4: integers(32),
    VarType.I8: integers(64, signed=True),
    VarType.UI8: integers(64),
    VarType.BOOL: st.booleans(),
    VarType.CLSID: guids,
    VarType.BLOB: st.binary(max_size=9),
    VarType.LPWSTR: wide_text(),
    VarType.VECTOR_UI1: st.binary(max_size=9),
    VarType.VECTOR_UI2: vectors(integers(16)),
    VarType.VECTOR_I4: vectors(integers(32, signed=True)),
    VarType.VECTOR_UI4: vectors(integers(32)),
    VarType.VECTOR_UI8: vectors(integers(64)),
    VarType.VECTOR_CLSID: vectors(guids),
    VarType.VECTOR_LPWSTR: vectors(wide_text()),
}
flat_variants = st.sampled_from(sorted(VALUES)).flatmap(
    lambda vt: VALUES[vt].map(lambda value: PropVariant(vt, value))
)


def vectors_of_variants(items: st.SearchStrategy[PropVariant]) -> st.SearchStrategy[PropVariant]:
    return vectors(items).map(lambda value: PropVariant(VarType.VECTOR_VARIANT, value))


one_level = vectors_of_variants(flat_variants)
variants = flat_variants | one_level | vectors_of_variants(flat_variants | one_level)


def test_every_type_is_covered() -> None:
    assert {*VALUES, VarType.VECTOR_VARIANT} == set(VarType) == set(ARMS)


@dataclass(frozen=True, slots=True)
class Properties:
    values: Any


OURS = ndr.Parameters(Properties, n=ndr.U32, values=ndr.Conformant(ndr.PROPVARIANT, size_is="n"))
THEIRS = ndr.Parameters(Properties, n=ndr.U32, values=ndr.Conformant(GENERIC, size_is="n"))
TYPES = ndr.Parameters(
    Properties, n=ndr.U32, values=ndr.Conformant(ndr.PROPVARIANT_TYPE, size_is="n")
)
several = st.lists(variants, max_size=5).map(tuple)


@given(several, st.sampled_from(Syntax))
def test_same_bytes_as_the_generic_description(
    values: tuple[PropVariant, ...], syntax: Syntax
) -> None:
    expected = THEIRS.encode(Properties(tuple(map(to_generic, values))), syntax)
    assert OURS.encode(Properties(values), syntax) == expected


@given(several, st.sampled_from(Syntax), st.tuples(integers(8), integers(8), integers(32)))
def test_reads_the_generic_bytes_whatever_is_reserved(
    values: tuple[PropVariant, ...], syntax: Syntax, reserved: tuple[int, int, int]
) -> None:
    data = THEIRS.encode(Properties(tuple(to_generic(v, reserved) for v in values)), syntax)
    assert OURS.decode(data, syntax) == Properties(values)


@given(several, st.sampled_from(Syntax))
def test_types_are_read_past_their_values(values: tuple[PropVariant, ...], syntax: Syntax) -> None:
    data = OURS.encode(Properties(values), syntax)
    assert TYPES.decode(data, syntax) == Properties(tuple(v.vt for v in values))


@given(st.lists(st.sampled_from(VarType), max_size=6).map(tuple), st.sampled_from(Syntax))
@example(tuple(VarType), Syntax.NDR20)
@example(tuple(VarType), Syntax.NDR64)
def test_types_alone(types: tuple[VarType, ...], syntax: Syntax) -> None:
    data = TYPES.encode(Properties(types), syntax)
    assert TYPES.decode(data, syntax) == Properties(types)
    # A null string or GUID has no value; the others have zero or are empty.
    read = OURS.decode(data, syntax).values
    valueless = {VarType.LPWSTR: VarType.NULL, VarType.CLSID: VarType.NULL}
    assert [v.vt for v in read] == [valueless.get(vt, vt) for vt in types]


@given(several, st.sampled_from(Syntax), st.data())
def test_damage_raises_only_wire_errors(
    values: tuple[PropVariant, ...], syntax: Syntax, data: st.DataObject
) -> None:
    stub = bytearray(OURS.encode(Properties(values), syntax))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(stub) - 1))
        stub[at] = data.draw(st.sampled_from((0, 1, 0x10, 0x1F, 0x48, 0x7F, 0x80, 0xFF)))
    try:
        read = OURS.decode(bytes(stub), syntax)
    except WireError:
        return
    for variant in read.values:
        PropVariant(variant.vt, variant.value)  # the check that decoding left out
    assert OURS.decode(OURS.encode(read, syntax), syntax) == read


@given(variants, st.sampled_from(Syntax))
def test_every_proper_prefix_is_refused(variant: PropVariant, syntax: Syntax) -> None:
    data = ndr.PROPVARIANT.encode(variant, syntax)
    for size in range(len(data)):
        with pytest.raises(NdrError):
            ndr.PROPVARIANT.decode(data[:size], syntax)


def refusal(data: str, syntax: Syntax = Syntax.NDR20) -> NdrError:
    with pytest.raises(NdrError) as caught:
        ndr.PROPVARIANT.decode(bytes.fromhex(data), syntax)
    return caught.value


def test_union_arm_has_to_be_the_type() -> None:
    error = refusal("13000000000000001200000044332211")
    assert (error.status, error.offset) == (ndr.BAD_STUB_DATA, 0)
    assert "0x0013" in error.reason
    assert "0x0012" in error.reason


@pytest.mark.parametrize("vt", ["0800", "0c00", "0b10", "0020"])
def test_unknown_type_is_an_invalid_tag(vt: str) -> None:
    assert refusal(f"{vt}000000000000{vt}0000 00000000").status == ndr.INVALID_TAG


def test_variant_bool_is_all_or_nothing() -> None:
    assert "VARIANT_BOOL" in refusal("0b000000000000000b000100").reason


def test_count_has_to_be_the_arrays() -> None:
    # E8d with cbSize 4 and 6 for five bytes.
    for count in ("04", "06"):
        data = f"4100000000000000410000{'00'}{count}00000000000200050000000102030405"
        assert "has 5" in refusal(data).reason


def test_null_with_a_count_is_refused() -> None:
    assert "has no pointer" in refusal("410000000000000041000000 05000000 00000000").reason


def test_null_without_a_count_is_empty() -> None:
    data = bytes.fromhex("410000000000000041000000 00000000 00000000")
    assert ndr.PROPVARIANT.decode(data, Syntax.NDR20) == PropVariant(VarType.BLOB, b"")


def test_empty_behind_a_pointer_is_empty() -> None:
    data = bytes.fromhex("131000000000000013100000 00000000 00000200 00000000")
    assert ndr.PROPVARIANT.decode(data, Syntax.NDR20) == PropVariant(VarType.VECTOR_UI4, ())


@pytest.mark.parametrize(
    ("syntax", "data"),
    [
        (
            Syntax.NDR20,
            (
                "1f100000000000001f100000 03000000 00000200"
                "03000000 00000000 04000200 00000000"
                "02000000 00000000 02000000 41000000"
            ),
        ),
        (
            Syntax.NDR64,
            (
                "1f100000000000001f10000000000000 0300000000000000 0000020000000000"
                "0300000000000000 0000000000000000 0400020000000000 0000000000000000"
                "0200000000000000 0000000000000000 0200000000000000 41000000"
            ),
        ),
    ],
)
def test_null_element_of_a_vector_is_an_empty_string(syntax: Syntax, data: str) -> None:
    read = ndr.PROPVARIANT.decode(bytes.fromhex(data), syntax)
    assert read == PropVariant(VarType.VECTOR_LPWSTR, ("", "A", ""))


def nested(levels: int, innermost: Inner) -> Inner:
    for _ in range(levels):
        innermost = Inner(0, 0, 0, Choice(VarType.VECTOR_VARIANT, Counted((innermost,))))
    return innermost


@pytest.mark.parametrize("syntax", Syntax)
@pytest.mark.parametrize(
    "innermost", [PropVariant(VarType.UI1, 7), PropVariant(VarType.VECTOR_VARIANT, ())]
)
def test_depth_limit(innermost: PropVariant, syntax: Syntax) -> None:
    """As deep as a PropVariant can be made, which counts an empty vector as a level too."""
    levels = MAX_VARIANT_DEPTH - (innermost.vt is VarType.VECTOR_VARIANT)
    deepest = nested(levels, to_generic(innermost))
    read = ndr.PROPVARIANT.decode(GENERIC.encode(deepest, syntax), syntax)
    assert to_generic(read) == deepest
    too_deep = nested(1, deepest)
    with pytest.raises(NdrError, match="deeper"):
        ndr.PROPVARIANT.decode(GENERIC.encode(too_deep, syntax), syntax)


def test_big_endian() -> None:
    blob = bytes.fromhex("0041 00 00 00000000 0041 0000 00000002 00020000 00000002 aabb")
    assert ndr.PROPVARIANT.decode(blob, Syntax.NDR20, big_endian=True) == PropVariant(
        VarType.BLOB, b"\xaa\xbb"
    )
    text = bytes.fromhex(
        "001f 00 00 00000000 001f 0000 00020000 00000003 00000000 00000003 0041 00e9 0000"
    )
    assert ndr.PROPVARIANT.decode(text, Syntax.NDR20, big_endian=True) == PropVariant(
        VarType.LPWSTR, "Aé"
    )
    wide = bytes.fromhex("0015 00 00 00000000 0015 000000000000 0102030405060708")
    assert ndr.PROPVARIANT.decode(wide, Syntax.NDR20, big_endian=True) == PropVariant(
        VarType.UI8, 0x0102030405060708
    )


@pytest.mark.parametrize("syntax", Syntax)
@pytest.mark.parametrize("count", [0, 1, 2, 15])
def test_types_that_are_all_null(syntax: Syntax, count: int) -> None:
    """A read asks so. They are recognised as a whole, also if reserved bytes are set."""
    nulls = Properties((VarType.NULL,) * count)
    data = TYPES.encode(nulls, syntax)
    assert TYPES.decode(data, syntax) == nulls
    generic = tuple(to_generic(PropVariant(VarType.NULL, None), (1, 2, 3)) for _ in range(count))
    assert TYPES.decode(THEIRS.encode(Properties(generic), syntax), syntax) == nulls
    for size in range(len(data)):
        with pytest.raises(NdrError):
            TYPES.decode(data[:size], syntax)


@pytest.mark.parametrize("syntax", Syntax)
@pytest.mark.parametrize("place", range(4))
def test_one_type_that_is_not_null(syntax: Syntax, place: int) -> None:
    types = [VarType.NULL] * 4
    types[place] = VarType.UI4
    data = TYPES.encode(Properties(tuple(types)), syntax)
    assert TYPES.decode(data, syntax) == Properties(tuple(types))
