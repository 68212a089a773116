"""Strict consistency checks (MS-RPCE 3.1.1.5.3, target level 6.0), one by one."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pytest

from mqis.wire import ndr
from mqis.wire.ndr import Choice, Given, NdrError, Syntax, To


@dataclass(frozen=True, slots=True)
class One:
    value: Any


@dataclass(frozen=True, slots=True)
class Two:
    first: Any
    second: Any


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def longs(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def refusal(
    description: ndr.Description[Any] | ndr.Parameters[Any],
    data: bytes,
    syntax: Syntax = Syntax.NDR20,
    **options: Any,
) -> NdrError:
    with pytest.raises(NdrError) as caught:
        description.decode(data, syntax, **options)
    return caught.value


# --- [range] --------------------------------------------------------------------------------------


@pytest.mark.req("MQDS-2.2-52")
@pytest.mark.parametrize("value", [0, 59, 0xFFFFFFFF])
def test_range_refuses_what_is_outside(value: int) -> None:
    error = refusal(ndr.Range(ndr.U32, 1, 58), words(value))
    assert (error.status, error.offset) == (ndr.BAD_STUB_DATA, 0)


def test_range_admits_its_ends_and_bounds_encoding() -> None:
    description = ndr.Range(ndr.U32, 1, 58)
    assert [description.decode(words(n), Syntax.NDR20) for n in (1, 58)] == [1, 58]
    for value in (0, 59):
        with pytest.raises(ValueError, match="range"):
            description.encode(value, Syntax.NDR20)


def test_range_in_a_structure_names_its_offset() -> None:
    description = ndr.Struct(Two, first=ndr.U32, second=ndr.Range(ndr.U32, 1, 2))
    assert refusal(description, words(9, 9)).offset == 4


@pytest.mark.parametrize("count", [1, 4])
def test_range_of_a_conformant_array_is_its_maximum_count(count: int) -> None:
    description = ndr.Conformant(ndr.U32, minimum=2, maximum=3)
    refusal(description, words(count, *[7] * count))
    assert description.decode(words(2, 7, 7), Syntax.NDR20) == (7, 7)
    with pytest.raises(ValueError, match="2 to 3"):
        description.encode((7,) * count, Syntax.NDR20)


@pytest.mark.parametrize("text", ["a", "abcd"])
def test_range_of_a_string_counts_the_terminator(text: str) -> None:
    description = ndr.ConformantString(minimum=3, maximum=4)
    refusal(description, ndr.WSTRING.encode(text, Syntax.NDR20))
    assert description.decode(ndr.WSTRING.encode("ab", Syntax.NDR20), Syntax.NDR20) == "ab"
    with pytest.raises(ValueError, match="3 to 4"):
        description.encode(text, Syntax.NDR20)


# --- correlations ---------------------------------------------------------------------------------

BEFORE = ndr.Parameters(One, n=ndr.U32, value=ndr.Conformant(ndr.U16, size_is="n"))
AFTER = ndr.Parameters(One, value=ndr.Conformant(ndr.U32, size_is="n"), n=ndr.U32)
VISIBLE = ndr.Parameters(Two, first=ndr.U32, second=ndr.Conformant(ndr.U32, size_is="first"))


@pytest.mark.req("MQDS-2.2-52")
@pytest.mark.parametrize("stated", [0, 1, 3])
def test_maximum_count_has_to_be_size_is(stated: int) -> None:
    assert BEFORE.decode(words(2, 2) + b"\1\0\2\0", Syntax.NDR20) == One((1, 2))
    error = refusal(BEFORE, words(stated, 2) + b"\1\0\2\0")
    assert error.status == ndr.BAD_STUB_DATA
    assert f"size_is(n) says {stated}" in error.reason


def test_the_count_may_follow_its_array() -> None:
    assert AFTER.encode(One((5, 6)), Syntax.NDR20) == words(2, 5, 6, 2)
    assert AFTER.decode(words(2, 5, 6, 2), Syntax.NDR20) == One((5, 6))
    refusal(AFTER, words(2, 5, 6, 3))


def test_a_count_that_the_class_has_is_compared() -> None:
    assert VISIBLE.decode(words(1, 1, 8), Syntax.NDR20) == Two(1, (8,))
    with pytest.raises(ValueError, match="has 2, size_is"):
        VISIBLE.encode(Two(1, (8, 9)), Syntax.NDR20)


def test_arrays_that_share_a_count_have_to_agree() -> None:
    shared = ndr.Parameters(
        Two,
        n=ndr.U32,
        first=ndr.Conformant(ndr.U32, size_is="n"),
        second=ndr.Conformant(ndr.U32, size_is="n"),
    )
    assert shared.encode(Two((1,), (2,)), Syntax.NDR20) == words(1, 1, 1, 1, 2)
    with pytest.raises(ValueError, match="size_is"):
        shared.encode(Two((1,), (2, 3)), Syntax.NDR20)
    refusal(shared, words(1, 1, 1, 2, 2, 3))


VARYING = ndr.Parameters(
    Two,
    first=ndr.U32,
    length=ndr.U32,
    second=ndr.ConformantVarying(ndr.U32, size_is="first", length_is="length"),
)


def test_conformant_varying_counts() -> None:
    good = words(3, 2, 3, 0, 2, 7, 8)
    assert VARYING.encode(Two(3, (7, 8)), Syntax.NDR20) == good
    assert VARYING.decode(good, Syntax.NDR20) == Two(3, (7, 8))


@pytest.mark.parametrize(
    ("stub", "reason"),
    [
        (words(4, 2, 3, 0, 2, 7, 8), "size_is(first) says 4"),
        (words(3, 1, 3, 0, 2, 7, 8), "length_is(length) says 1"),
        (words(3, 2, 3, 1, 2, 7, 8), "starts at element 1"),
        (words(1, 2, 1, 0, 2, 7, 8), "2 elements, 0 to 1"),
    ],
)
def test_conformant_varying_refusals(stub: bytes, reason: str) -> None:
    error = refusal(VARYING, stub)
    assert reason in error.reason
    assert error.status == ndr.BAD_STUB_DATA


def test_conformant_varying_misuse() -> None:
    with pytest.raises(ValueError, match="size_is"):
        VARYING.encode(Two(1, (7, 8)), Syntax.NDR20)


def test_varying_array_stays_inside_its_bound() -> None:
    description = ndr.Varying(ndr.U32, 2)
    assert description.decode(words(0, 2, 7, 8), Syntax.NDR20) == (7, 8)
    assert "0 to 2" in refusal(description, words(0, 3, 7, 8, 9)).reason
    assert "starts at" in refusal(description, words(1, 1, 7)).reason
    with pytest.raises(ValueError, match="0 to 2"):
        description.encode((1, 2, 3), Syntax.NDR20)


@dataclass(frozen=True, slots=True)
class Sliced:
    value: Any


def test_length_is_of_a_varying_array() -> None:
    description = ndr.Struct(Sliced, n=ndr.U32, value=ndr.Varying(ndr.U32, 4, length_is="n"))
    assert description.encode(Sliced((7,)), Syntax.NDR20) == words(1, 0, 1, 7)
    refusal(description, words(2, 0, 1, 7))


def test_constant_size() -> None:
    description = ndr.Parameters(One, value=ndr.Conformant(ndr.U32, size_is=2))
    assert description.decode(words(2, 7, 8), Syntax.NDR20) == One((7, 8))
    refusal(description, words(1, 7))
    with pytest.raises(ValueError, match="size_is"):
        description.encode(One((1,)), Syntax.NDR20)


def test_a_count_in_other_units() -> None:
    """[size_is(Length / 2)]: the division is C's, so an odd length counts as the even one below."""
    description = ndr.Parameters(
        Two, first=ndr.U32, second=ndr.Conformant(ndr.U16, size_is=ndr.Count("first", 2))
    )
    for length in (4, 5):
        stub = words(length, 2) + b"\1\0\2\0"
        assert description.decode(stub, Syntax.NDR20) == Two(length, (1, 2))
    refusal(description, words(6, 2) + b"\1\0\2\0")


def test_a_count_behind_a_pointer() -> None:
    description = ndr.Parameters(
        Two, first=ndr.Unique(ndr.U32), second=ndr.Conformant(ndr.U32, size_is="first")
    )
    assert description.decode(words(1, 1, 1, 7), Syntax.NDR20) == Two(1, (7,))
    assert description.decode(words(0, 0), Syntax.NDR20) == Two(None, ())
    refusal(description, words(0, 1, 7))


# --- null pointers --------------------------------------------------------------------------------

NULLABLE = ndr.Parameters(One, n=ndr.U32, value=ndr.Unique(ndr.Conformant(ndr.BYTE, size_is="n")))


@pytest.mark.req("MQDS-2.2-52")
def test_null_with_a_count_is_refused() -> None:
    assert NULLABLE.decode(words(0, 0), Syntax.NDR20) == One(None)
    assert NULLABLE.encode(One(None), Syntax.NDR20) == words(0, 0)
    assert refusal(NULLABLE, words(1, 0)).status == ndr.BAD_STUB_DATA


def test_null_conformant_varying_with_a_size_is_refused() -> None:
    description = ndr.Parameters(
        Two, first=ndr.U32, second=ndr.Unique(ndr.ConformantVarying(ndr.BYTE, size_is="first"))
    )
    assert description.decode(words(0, 0), Syntax.NDR20) == Two(0, None)
    refusal(description, words(1, 0))
    with pytest.raises(ValueError, match="size_is"):
        description.encode(Two(1, None), Syntax.NDR20)


def test_empty_is_not_null() -> None:
    assert NULLABLE.encode(One(b""), Syntax.NDR20) == words(0, 0x20000, 0)
    assert NULLABLE.decode(words(0, 0x20000, 0), Syntax.NDR20) == One(b"")


@pytest.mark.parametrize("syntax", Syntax)
def test_null_reference_pointer(syntax: Syntax) -> None:
    description = ndr.Struct(Two, first=ndr.U32, second=ndr.Ref(ndr.U32))
    data = bytearray(description.encode(Two(1, 2), syntax))
    at = 8 if syntax is Syntax.NDR64 else 4
    data[at : at + 4] = bytes(4)
    error = refusal(description, bytes(data), syntax)
    assert (error.status, error.offset) == (ndr.NULL_REF_POINTER, at)
    with pytest.raises(ValueError, match="never null"):
        description.encode(Two(1, None), syntax)


def test_array_of_reference_pointers() -> None:
    """NDR20 leaves the identifiers out, NDR64 does not (MS-RPCE 2.2.5.3.5.1)."""
    description = ndr.Conformant(ndr.Ref(ndr.U32))
    assert description.encode((7, 8), Syntax.NDR20) == words(2, 7, 8)
    ndr64 = longs(2, 0x20000, 0x20004) + words(7, 8)
    assert description.encode((7, 8), Syntax.NDR64) == ndr64
    assert description.decode(words(2, 7, 8), Syntax.NDR20) == (7, 8)
    assert description.decode(ndr64, Syntax.NDR64) == (7, 8)
    null = longs(2, 0x20000, 0) + words(7)
    assert refusal(description, null, Syntax.NDR64).status == ndr.NULL_REF_POINTER
    with pytest.raises(ValueError, match="never null"):
        description.encode((7, None), Syntax.NDR20)


def test_pointer_to_a_pointer() -> None:
    description = ndr.Unique(ndr.Unique(ndr.U32))
    for value, stub in (
        (None, words(0)),
        (To(None), words(0x20000, 0)),
        (To(7), words(0x20000, 0x20004, 7)),
    ):
        assert description.encode(value, Syntax.NDR20) == stub
        assert description.decode(stub, Syntax.NDR20) == value


def test_full_pointers_share_their_referent() -> None:
    description = ndr.Struct(Two, first=ndr.Full(ndr.WSTRING), second=ndr.Full(ndr.WSTRING))
    shared = words(5, 5, 2, 0, 2) + b"x\0\0\0"
    read = description.decode(shared, Syntax.NDR20)
    assert read == Two("x", "x")
    assert read.first is read.second
    # Equal values have equal bytes, whether or not they are one object.
    apart = description.encode(read, Syntax.NDR20)
    assert apart == description.encode(Two("x", "xy"[:1]), Syntax.NDR20)
    assert len(apart) == len(shared) + 16


def test_full_pointer_to_another_type_is_refused() -> None:
    description = ndr.Struct(Two, first=ndr.Full(ndr.WSTRING), second=ndr.Full(ndr.U32))
    assert "two types" in refusal(description, words(5, 5, 2, 0, 2) + b"x\0\0\0").reason


def test_full_pointer_to_what_holds_it_is_refused() -> None:
    assert "points to its own container" in refusal(FULL_NODE, words(5, 1, 5)).reason


FULL_NODE: ndr.Description[Any] = ndr.Full(ndr.Lazy(lambda: FULL_TARGET))
FULL_TARGET: ndr.Description[Any] = ndr.Struct(Two, first=ndr.U32, second=FULL_NODE)


# --- unions and enumerations ----------------------------------------------------------------------

UNION = ndr.Struct(
    Two,
    first=ndr.U32,
    tag=ndr.U32,
    second=ndr.Union(ndr.U32, {1: ndr.U32, 2: None}, switch_is="tag"),
)


def test_discriminant_has_to_be_switch_is() -> None:
    assert UNION.encode(Two(9, Choice(1, 7)), Syntax.NDR20) == words(9, 1, 1, 7)
    assert UNION.decode(words(9, 2, 2), Syntax.NDR20) == Two(9, Choice(2))
    error = refusal(UNION, words(9, 2, 1, 7))
    assert error.status == ndr.BAD_STUB_DATA
    assert "switch_is(tag) says 2" in error.reason


def test_unknown_discriminant() -> None:
    assert refusal(UNION, words(9, 3, 3)).status == ndr.INVALID_TAG
    with pytest.raises(ValueError, match="no arm"):
        UNION.encode(Two(9, Choice(3)), Syntax.NDR20)
    with pytest.raises(ValueError, match="empty"):
        UNION.encode(Two(9, Choice(2, 5)), Syntax.NDR20)


def test_default_arm() -> None:
    description = ndr.Union(ndr.U16, {1: ndr.U32}, default=ndr.U8)
    assert description.decode(b"\x05\0\x07", Syntax.NDR20) == Choice(5, 7)
    empty = ndr.Union(ndr.U16, {1: ndr.U32}, default=None)
    assert empty.decode(b"\x05\0", Syntax.NDR20) == Choice(5)


def test_ms_union_aligns_every_arm_as_the_widest() -> None:
    arms = {1: ndr.U8, 2: ndr.U64}
    plain, aligned = ndr.Union(ndr.U16, arms), ndr.Union(ndr.U16, arms, ms_union=True)
    assert plain.encode(Choice(1, 7), Syntax.NDR20).hex() == "010007"
    assert aligned.encode(Choice(1, 7), Syntax.NDR20).hex() == "010000000000000007"
    assert aligned.decode(bytes.fromhex("0100ffffffffffff07"), Syntax.NDR20) == Choice(1, 7)
    assert aligned.encode(Choice(1, 7), Syntax.NDR64) == plain.encode(Choice(1, 7), Syntax.NDR64)


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("syntax", "stub"), [(Syntax.NDR20, b"\0\x80"), (Syntax.NDR64, words(0xFFFFFFFF))]
)
def test_enumeration_out_of_range(syntax: Syntax, stub: bytes) -> None:
    assert refusal(ndr.ENUM16, stub, syntax).status == ndr.ENUM_OUT_OF_RANGE
    with pytest.raises(ValueError, match="enumeration"):
        ndr.ENUM16.encode(0x8000, syntax)


def test_enumeration_members() -> None:
    description = ndr.Enum(Colour)
    assert description.decode(b"\1\0", Syntax.NDR20) is Colour.RED
    assert description.decode(b"\2\0", Syntax.NDR20) == 2
    assert description.encode(Colour.RED, Syntax.NDR64) == words(1)
    assert ndr.ENUM32.decode(words(0xFFFFFFFF), Syntax.NDR20) == -1


# --- strings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stub", "reason"),
    [
        (words(2, 0, 2) + b"a\0b\0", "zero character"),
        (words(3, 0, 3) + b"a\0\0\0\0\0", "zero character"),
        (words(2, 1, 2) + b"a\0\0\0", "starts at character 1"),
        (words(1, 0, 2) + b"a\0\0\0", "in an array of 1"),
        (words(0, 0, 0), "0 elements"),
        (words(2, 0, 0), "0 elements"),
        (words(0x80000000, 0, 2) + b"a\0\0\0", "2147483648 elements"),
        (words(30, 0, 30) + b"a\0b\0\0", "string: 30 elements do not fit in 5 bytes"),
    ],
)
def test_string_refusals(stub: bytes, reason: str) -> None:
    error = refusal(ndr.WSTRING, stub)
    assert reason in error.reason
    assert error.status == ndr.BAD_STUB_DATA
    if reason == "zero character":
        assert error.offset == 12  # the first character


def test_string_may_stand_in_a_larger_array() -> None:
    assert ndr.WSTRING.decode(words(9, 0, 2) + b"a\0\0\0", Syntax.NDR20) == "a"


@pytest.mark.parametrize(
    ("stub", "reason"),
    [
        (words(0, 4) + b"abcd", "zero character"),
        (words(0, 5) + b"abcd\0", "in an array of 4"),
        (words(1, 2) + b"a\0", "starts at"),
        (words(0, 0), "0 elements"),
    ],
)
def test_varying_string_refusals(stub: bytes, reason: str) -> None:
    assert reason in refusal(ndr.VaryingString(4, wide=False), stub).reason


def test_strings_that_cannot_be_sent() -> None:
    with pytest.raises(ValueError, match="zero character"):
        ndr.WSTRING.encode("a\0b", Syntax.NDR20)
    with pytest.raises(ValueError, match="latin-1"):
        ndr.ASTRING.encode("€", Syntax.NDR20)
    with pytest.raises(ValueError, match="1 to 4"):
        ndr.VaryingString(4).encode("abcd", Syntax.NDR20)


@pytest.mark.parametrize(
    ("units", "text"), [("", ""), ("6100", "a"), ("61000000", "a"), ("6100000062000000", "a")]
)
def test_a_lenient_string_ends_at_a_zero_or_with_its_array(units: str, text: str) -> None:
    octets = bytes.fromhex(units)
    stub = words(9, 0, len(octets) // 2) + octets
    assert ndr.LENIENT_WSTRING.decode(stub, Syntax.NDR20) == text
    assert ndr.LENIENT_WSTRING.encode(text, Syntax.NDR20) == ndr.WSTRING.encode(text, Syntax.NDR20)


@pytest.mark.parametrize("counts", [(1, 0, 2), (9, 1, 1), (9, 0, 3), (1 << 31, 0, 1)])
def test_the_counts_of_a_lenient_string_still_have_to_fit(counts: tuple[int, int, int]) -> None:
    refusal(ndr.LENIENT_WSTRING, words(*counts) + b"a\0b\0")


SIZED = ndr.Parameters(Two, first=ndr.U32, second=ndr.ConformantString("first", wide=False))


def test_string_of_a_correlated_size() -> None:
    assert SIZED.encode(Two(8, "ab"), Syntax.NDR20) == words(8, 8, 0, 3) + b"ab\0"
    assert SIZED.decode(words(8, 8, 0, 3) + b"ab\0", Syntax.NDR20) == Two(8, "ab")
    refusal(SIZED, words(7, 8, 0, 3) + b"ab\0")
    refusal(SIZED, words(2, 2, 0, 3) + b"ab\0")
    refusal(SIZED, words(8, 8, 1, 3) + b"ab\0")
    refusal(SIZED, words(0x80000000, 0x80000000, 0, 3) + b"ab\0")
    with pytest.raises(ValueError, match="size_is"):
        SIZED.encode(Two(2, "ab"), Syntax.NDR20)


# --- what only the caller knows -------------------------------------------------------------------

RESPONSE = ndr.Parameters(
    Two,
    n=ndr.U32,
    first=ndr.ConformantVarying(ndr.U32, size_is=Given("size"), length_is="n"),
    second=ndr.Conformant(ndr.BYTE, size_is="m", maximum=Given("signature_size")),
    m=ndr.U32,
)
GIVEN = {"size": 3, "signature_size": 2}


def test_sizes_from_the_request() -> None:
    stub = words(1, 3, 0, 1, 7, 2) + b"\xaa\xbb\0\0" + words(2)
    assert RESPONSE.encode(Two((7,), b"\xaa\xbb"), Syntax.NDR20, given=GIVEN) == stub
    assert RESPONSE.decode(stub, Syntax.NDR20, given=GIVEN) == Two((7,), b"\xaa\xbb")
    assert "size_is(size) says 2" in refusal(RESPONSE, stub, given={**GIVEN, "size": 2}).reason
    too_much = refusal(RESPONSE, stub, given={**GIVEN, "signature_size": 1})
    assert "at_most(signature_size) says 1" in too_much.reason


def test_sizes_from_the_request_bound_encoding() -> None:
    with pytest.raises(ValueError, match="size_is"):
        RESPONSE.encode(Two((1, 2, 3, 4), b""), Syntax.NDR20, given=GIVEN)
    with pytest.raises(ValueError, match="at_most"):
        RESPONSE.encode(Two((), b"abc"), Syntax.NDR20, given=GIVEN)
    with pytest.raises(TypeError, match="needs the request's"):
        RESPONSE.encode(Two((), b""), Syntax.NDR20)


# --- the rest -------------------------------------------------------------------------------------


@pytest.mark.parametrize("syntax", Syntax)
def test_gap_bytes_are_ignored(syntax: Syntax) -> None:
    description = ndr.Struct(Two, first=ndr.U8, second=ndr.U64)
    data = bytearray(description.encode(Two(1, 2), syntax))
    data[1:8] = b"\xff" * 7
    assert description.decode(bytes(data), syntax) == Two(1, 2)


def test_a_missing_end_gap_is_a_short_stub() -> None:
    """NDR64 pads the structure, also where surplus bytes would be ignored."""
    description = ndr.Struct(Two, first=ndr.U32, second=ndr.Conformant(ndr.U16))
    data = description.encode(Two(3, (1, 2, 3)), Syntax.NDR64)
    assert data.hex() == "0300000000000000030000000100020003000000"
    for missing in (1, 2):
        assert (
            "ends after"
            in refusal(description, data[:-missing], Syntax.NDR64, allow_surplus=True).reason
        )


def test_ndr64_is_little_endian_only() -> None:
    with pytest.raises(ValueError, match="little-endian"):
        ndr.U32.decode(bytes(4), Syntax.NDR64, big_endian=True)


def test_a_class_that_refuses_its_values_is_a_wire_error() -> None:
    assert "odd" in refusal(ndr.Struct(Even, value=ndr.U32), words(3)).reason


@dataclass(frozen=True, slots=True)
class Even:
    value: int

    def __post_init__(self) -> None:
        if self.value % 2:
            raise ValueError("odd")


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(NdrError("reason", 7, ndr.INVALID_TAG)))
    assert (error.reason, error.offset, error.status) == ("reason", 7, ndr.INVALID_TAG)
