"""PROPVARIANT values: what each type may hold, and its packed and its tagged bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.propvariant import (
    MAX_STRING_UNITS,
    MAX_VARIANT_DEPTH,
    MAX_VECTOR_ITEMS,
    PropVariant,
    Value,
    VarType,
)
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer
from tests.strategies.propvariant import prop_variants

GUID = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
GUID_BYTES = "d4c3b2a1 0100 0200 0304 05060708090a"
NULL_BYTES = "00000000 0000 0000 0000 000000000000"

# MS-MQMQ 2.2.12: the numbers. One value of each type and its packed bytes (MS-MQCN 2.2.3).
VECTORS: list[tuple[int, str, Value, str]] = [
    (0x0000, "VT_EMPTY", None, ""),
    (0x0001, "VT_NULL", None, ""),
    (0x0002, "VT_I2", -2, "feff"),
    (0x0003, "VT_I4", -2, "feffffff"),
    (0x000B, "VT_BOOL", True, "ffff"),
    (0x000B, "VT_BOOL", False, "0000"),
    (0x0010, "VT_I1", -2, "fe"),
    (0x0011, "VT_UI1", 0xAB, "ab"),
    (0x0012, "VT_UI2", 0xABCD, "cdab"),
    (0x0013, "VT_UI4", 0x01020304, "04030201"),
    (0x0014, "VT_I8", -2, "feffffffffffffff"),
    (0x0015, "VT_UI8", 0x0102030405060708, "0807060504030201"),
    (0x001F, "VT_LPWSTR", "", "0000"),
    (0x001F, "VT_LPWSTR", "L2", "4c00 3200 0000"),
    (0x001F, "VT_LPWSTR", "\u0100\U0001f600", "0001 3dd8 00de 0000"),
    (0x0041, "VT_BLOB", b"", "00000000"),
    (0x0041, "VT_BLOB", b"\1\2\3", "03000000 010203"),
    (0x0048, "VT_CLSID", GUID, GUID_BYTES),
    (0x1003, "VT_I4|VT_VECTOR", (1, -1), "02000000 01000000 ffffffff"),
    (0x100C, "VT_VARIANT|VT_VECTOR", (), "00000000"),
    (
        0x100C,
        "VT_VARIANT|VT_VECTOR",
        (PropVariant(VarType.UI1, 5), PropVariant(VarType.NULL, None)),
        "02000000 1100 05 0100",
    ),
    (0x1011, "VT_UI1|VT_VECTOR", b"\1\2", "02000000 0102"),
    (0x1012, "VT_UI2|VT_VECTOR", (1, 0xFFFE), "02000000 0100 feff"),
    (0x1013, "VT_UI4|VT_VECTOR", (1, 2), "02000000 01000000 02000000"),
    (0x1015, "VT_UI8|VT_VECTOR", (1,), "01000000 0100000000000000"),
    (0x101F, "VT_LPWSTR|VT_VECTOR", ("a", ""), "02000000 6100 0000 0000"),
    (0x1048, "VT_CLSID|VT_VECTOR", (GUID, Guid.NULL), f"02000000 {GUID_BYTES} {NULL_BYTES}"),
]


def packed(variant: PropVariant) -> bytes:
    writer = Writer()
    variant.encode(writer)
    return writer.getvalue()


def tagged(variant: PropVariant) -> bytes:
    writer = Writer()
    writer.u16(variant.vt)
    variant.encode(writer)
    return writer.getvalue()


def nested(levels: int) -> PropVariant:
    variant = PropVariant(VarType.UI1, 7)
    for _ in range(levels):
        variant = PropVariant(VarType.VECTOR_VARIANT, (variant,))
    return variant


class TestVarType:
    def test_the_types_are_those_of_the_union_and_no_other(self) -> None:
        assert {int(vt) for vt in VarType} == {number for number, *_ in VECTORS}
        assert len(VarType) == 22

    @pytest.mark.parametrize(("number", "text"), sorted({row[:2] for row in VECTORS}))
    def test_text(self, number: int, text: str) -> None:
        assert str(VarType(number)) == text

    def test_every_other_number_is_undecodable(self) -> None:
        """Every base type, alone and with each flag: VECTOR, ARRAY, BYREF, RESERVED."""
        known = {number for number, *_ in VECTORS}
        for number in (
            b | flag for b in range(256) for flag in (0, 1 << 12, 1 << 13, 1 << 14, 1 << 15)
        ):
            if number not in known:
                with pytest.raises(WireError, match=f"0x{number:04x}") as caught:
                    PropVariant.decode_tagged(Reader(number.to_bytes(2, "little") + bytes(64)))
                assert caught.value.offset == 0


class TestPacked:
    @pytest.mark.req("MQDSRP-2.2.4-07")
    @pytest.mark.parametrize(("number", "text", "value", "data"), VECTORS)
    def test_vector(self, number: int, text: str, value: Value, data: str) -> None:
        variant = PropVariant(VarType(number), value)
        assert packed(variant) == bytes.fromhex(data), text
        reader = Reader(bytes.fromhex(data))
        assert PropVariant.decode(reader, VarType(number)) == variant
        assert reader.remaining == 0

    @pytest.mark.req("MQDSRP-2.2.4-07")
    def test_values_follow_each_other_without_padding(self) -> None:
        # The property values of the propagation example: label "L2", then quota 2048.
        data = bytes.fromhex("4c00 3200 0000 00080000")
        reader = Reader(data)
        assert PropVariant.decode(reader, VarType.LPWSTR).value == "L2"
        assert PropVariant.decode(reader, VarType.UI4).value == 2048
        assert reader.remaining == 0

    @pytest.mark.req("MQDSRP-2.2.1-02")
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("PSC1", "5000 5300 4300 3100 0000"),
            ("C14\\testq", "4300 3100 3400 5c00 7400 6500 7300 7400 7100 0000"),
        ],
    )
    def test_names_are_utf16_up_to_their_zero(self, name: str, data: str) -> None:
        assert packed(PropVariant(VarType.LPWSTR, name)) == bytes.fromhex(data)
        reader = Reader(bytes.fromhex(data) + b"\x58\x00")
        assert PropVariant.decode(reader, VarType.LPWSTR).value == name
        assert reader.remaining == 2

    def test_a_zero_that_lies_across_two_units_does_not_end_a_string(self) -> None:
        reader = Reader(bytes.fromhex("4100 0001 0000"))
        assert PropVariant.decode(reader, VarType.LPWSTR).value == "A\u0100"

    @given(prop_variants())
    def test_round_trip(self, variant: PropVariant) -> None:
        reader = Reader(packed(variant))
        assert PropVariant.decode(reader, variant.vt) == variant
        assert reader.remaining == 0

    @given(prop_variants())
    def test_every_proper_prefix_is_refused(self, variant: PropVariant) -> None:
        """Each byte is needed: no value is the beginning of another one of its type."""
        data = packed(variant)
        for size in range(len(data)):
            with pytest.raises(WireError):
                PropVariant.decode(Reader(data[:size]), variant.vt)

    @given(st.sampled_from(VarType), st.binary(max_size=80))
    def test_garbage_decodes_or_raises_wire_error(self, vt: VarType, data: bytes) -> None:
        reader = Reader(data)
        try:
            variant = PropVariant.decode(reader, vt)
        except WireError:
            return
        assert packed(variant) == data[: reader.offset]


class TestTagged:
    @pytest.mark.parametrize(("number", "text", "value", "data"), VECTORS)
    def test_vector(self, number: int, text: str, value: Value, data: str) -> None:
        whole = number.to_bytes(2, "little") + bytes.fromhex(data)
        assert tagged(PropVariant(VarType(number), value)) == whole, text
        assert PropVariant.decode_tagged(Reader(whole)) == PropVariant(VarType(number), value)

    @given(prop_variants())
    def test_round_trip(self, variant: PropVariant) -> None:
        reader = Reader(tagged(variant))
        assert PropVariant.decode_tagged(reader) == variant
        assert reader.remaining == 0

    @given(prop_variants())
    def test_every_proper_prefix_is_refused(self, variant: PropVariant) -> None:
        data = tagged(variant)
        for size in range(len(data)):
            with pytest.raises(WireError):
                PropVariant.decode_tagged(Reader(data[:size]))

    @given(st.binary(max_size=80))
    def test_garbage_decodes_or_raises_wire_error(self, data: bytes) -> None:
        reader = Reader(data)
        try:
            variant = PropVariant.decode_tagged(reader)
        except WireError:
            return
        assert tagged(variant) == data[: reader.offset]


class TestDecodeErrors:
    @pytest.mark.parametrize("number", [0x0001, 0x00FF, 0xFF00, 0xFFFE])
    def test_a_boolean_is_all_zeros_or_all_ones(self, number: int) -> None:
        with pytest.raises(WireError, match="VARIANT_BOOL") as caught:
            PropVariant.decode(Reader(number.to_bytes(2, "little")), VarType.BOOL)
        assert caught.value.offset == 0

    @pytest.mark.parametrize(
        ("vt", "item_size"),
        [
            (VarType.VECTOR_UI2, 2),
            (VarType.VECTOR_I4, 4),
            (VarType.VECTOR_UI4, 4),
            (VarType.VECTOR_UI8, 8),
            (VarType.VECTOR_LPWSTR, 2),
            (VarType.VECTOR_CLSID, 16),
            (VarType.VECTOR_VARIANT, 2),
        ],
    )
    def test_a_count_that_the_bytes_cannot_hold(self, vt: VarType, item_size: int) -> None:
        """Refused at the count, before anything is made for the items."""
        data = (3).to_bytes(4, "little") + bytes(3 * item_size - 1)
        with pytest.raises(WireError, match="3 items do not fit") as caught:
            PropVariant.decode(Reader(data), vt)
        assert caught.value.offset == 0

    @pytest.mark.parametrize("vt", [VarType.BLOB, VarType.VECTOR_UI1])
    def test_a_size_beyond_the_end(self, vt: VarType) -> None:
        with pytest.raises(WireError, match="needs 4294967295 bytes"):
            PropVariant.decode(Reader(b"\xff\xff\xff\xff" + bytes(8)), vt)


class TestLimits:
    """Every valid value can be encoded and decoded; a value beyond a limit cannot even be made."""

    def test_longest_text(self) -> None:
        longest = PropVariant(VarType.LPWSTR, "x" * MAX_STRING_UNITS)
        assert PropVariant.decode(Reader(packed(longest)), VarType.LPWSTR) == longest
        with pytest.raises(ValueError, match="at most 65535 UTF-16 units, not 65536"):
            PropVariant(VarType.LPWSTR, "x" * (MAX_STRING_UNITS + 1))
        with pytest.raises(WireError, match="longer than 65535"):
            PropVariant.decode(Reader(b"x\0" * (MAX_STRING_UNITS + 1) + b"\0\0"), VarType.LPWSTR)

    def test_text_is_measured_in_units(self) -> None:
        PropVariant(VarType.LPWSTR, "\U0001f600" * 32_767)
        with pytest.raises(ValueError, match="not 65536"):
            PropVariant(VarType.LPWSTR, "\U0001f600" * 32_768)
        with pytest.raises(ValueError, match="not 65536"):
            PropVariant(VarType.VECTOR_LPWSTR, ("\U0001f600" * 32_768,))

    def test_longest_vector(self) -> None:
        longest = PropVariant(VarType.VECTOR_UI2, (7,) * MAX_VECTOR_ITEMS)
        assert PropVariant.decode(Reader(packed(longest)), VarType.VECTOR_UI2) == longest
        with pytest.raises(ValueError, match="at most 65536 items, not 65537"):
            PropVariant(VarType.VECTOR_UI2, (7,) * (MAX_VECTOR_ITEMS + 1))
        data = (MAX_VECTOR_ITEMS + 1).to_bytes(4, "little") + bytes(2 * MAX_VECTOR_ITEMS + 2)
        with pytest.raises(WireError, match="65537 items, at most 65536"):
            PropVariant.decode(Reader(data), VarType.VECTOR_UI2)

    def test_deepest_variants(self) -> None:
        deepest = nested(MAX_VARIANT_DEPTH)
        assert PropVariant.decode(Reader(packed(deepest)), deepest.vt) == deepest
        assert PropVariant.decode_tagged(Reader(tagged(deepest))) == deepest
        with pytest.raises(ValueError, match="nest deeper than 4"):
            nested(MAX_VARIANT_DEPTH + 1)
        deeper = (1).to_bytes(4, "little") + tagged(deepest)
        with pytest.raises(WireError, match="nest deeper than 4"):
            PropVariant.decode(Reader(deeper), VarType.VECTOR_VARIANT)


class TestValues:
    @pytest.mark.parametrize(
        ("vt", "low", "high"),
        [
            (VarType.I1, -0x80, 0x7F),
            (VarType.UI1, 0, 0xFF),
            (VarType.I2, -0x8000, 0x7FFF),
            (VarType.UI2, 0, 0xFFFF),
            (VarType.I4, -0x80000000, 0x7FFFFFFF),
            (VarType.UI4, 0, 0xFFFFFFFF),
            (VarType.I8, -0x8000000000000000, 0x7FFFFFFFFFFFFFFF),
            (VarType.UI8, 0, 0xFFFFFFFFFFFFFFFF),
        ],
    )
    def test_integers_stay_in_their_range(self, vt: VarType, low: int, high: int) -> None:
        for value in (low, high):
            assert PropVariant.decode(Reader(packed(PropVariant(vt, value))), vt).value == value
        for value in (low - 1, high + 1):
            with pytest.raises(ValueError, match="is outside"):
                PropVariant(vt, value)

    @pytest.mark.parametrize(
        ("vt", "value"),
        [
            (VarType.EMPTY, 0),
            (VarType.NULL, ""),
            (VarType.UI1, True),
            (VarType.UI4, "1"),
            (VarType.UI4, None),
            (VarType.BOOL, 1),
            (VarType.LPWSTR, b"x"),
            (VarType.LPWSTR, "a\0b"),
            (VarType.BLOB, "x"),
            (VarType.BLOB, None),
            (VarType.CLSID, bytes(16)),
            (VarType.VECTOR_UI1, (1, 2)),
            (VarType.VECTOR_UI4, 1),
            (VarType.VECTOR_UI4, (1, -1)),
            (VarType.VECTOR_I4, (1 << 31,)),
            (VarType.VECTOR_UI2, (True,)),
            (VarType.VECTOR_LPWSTR, "ab"),
            (VarType.VECTOR_LPWSTR, ("a\0",)),
            (VarType.VECTOR_CLSID, (bytes(16),)),
            (VarType.VECTOR_VARIANT, (1,)),
        ],
    )
    def test_a_value_of_another_kind_is_refused(self, vt: VarType, value: Value) -> None:
        with pytest.raises(ValueError, match=f"^{str(vt).replace('|', '[|]')}: "):
            PropVariant(vt, value)
