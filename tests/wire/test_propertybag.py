"""Property bags: the bytes that a store keeps of an object."""

from __future__ import annotations

import pickle
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.propertybag import (
    PropertyBag,
    decode_properties,
    encode_properties,
    packed_value,
    packed_values,
)
from mqis.wire.propvariant import PropVariant, VarType
from tests.strategies.propvariant import property_sets

LABEL = PropVariant(VarType.LPWSTR, "L2")
QUOTA = PropVariant(VarType.UI4, 2048)
EMPTY = PropVariant(VarType.EMPTY, None)

DATA = bytes.fromhex(
    "0300"
    "69000000 1300 00000000"  # 105, VT_UI4, at 0
    "6c000000 1f00 04000000"  # 108, VT_LPWSTR, at 4
    "ffffffff 0000 0a000000"  # the greatest identifier, VT_EMPTY, at 10
    "00080000"
    "4c00 3200 0000"
)
PROPERTIES = {105: QUOTA, 108: LABEL, 0xFFFFFFFF: EMPTY}


def table(*entries: tuple[int, int, int], values: bytes = b"") -> bytes:
    """Bytes of a bag whose table says ``entries`` (PROPID, type, offset)."""
    head = len(entries).to_bytes(2, "little")
    for propid, number, offset in entries:
        head += propid.to_bytes(4, "little") + number.to_bytes(2, "little")
        head += offset.to_bytes(4, "little")
    return head + values


class TestLayout:
    def test_bytes(self) -> None:
        assert encode_properties(PROPERTIES) == DATA
        assert decode_properties(DATA) == PROPERTIES
        assert PropertyBag(DATA) == PROPERTIES

    def test_no_properties(self) -> None:
        assert encode_properties({}) == b"\0\0"
        assert decode_properties(b"\0\0") == {}
        assert len(PropertyBag(b"\0\0")) == 0

    def test_equal_sets_have_equal_bytes(self) -> None:
        assert encode_properties(dict(reversed(PROPERTIES.items()))) == DATA

    @pytest.mark.parametrize("propid", [-1, 1 << 32])
    def test_an_identifier_that_does_not_fit_is_the_callers_fault(self, propid: int) -> None:
        with pytest.raises(ValueError, match="do not fit"):
            encode_properties({propid: QUOTA})

    def test_more_properties_than_the_table_can_count(self) -> None:
        with pytest.raises(ValueError, match="do not fit"):
            encode_properties(dict.fromkeys(range(65_536), EMPTY))


class TestProperties:
    @given(property_sets())
    def test_round_trip(self, properties: dict[int, PropVariant]) -> None:
        data = encode_properties(properties)
        assert decode_properties(data) == properties
        assert encode_properties(PropertyBag(data)) == data

    @given(property_sets())
    def test_lazy_equals_eager(self, properties: dict[int, PropVariant]) -> None:
        data = encode_properties(properties)
        bag = PropertyBag(data)
        assert dict(bag) == decode_properties(data)
        assert list(bag) == sorted(properties)
        assert len(bag) == len(properties)
        for propid, variant in properties.items():
            assert propid in bag
            assert bag[propid] == variant

    @given(property_sets())
    def test_every_proper_prefix_is_refused(self, properties: dict[int, PropVariant]) -> None:
        """The table tells where the last value begins, its type where it ends: none is valid."""
        data = encode_properties(properties)
        for size in range(len(data)):
            with pytest.raises(WireError):
                decode_properties(data[:size])

    @given(property_sets(), st.binary(min_size=1, max_size=4))
    def test_bytes_after_the_end_are_refused(
        self, properties: dict[int, PropVariant], rest: bytes
    ) -> None:
        with pytest.raises(WireError):
            decode_properties(encode_properties(properties) + rest)

    @given(st.binary(max_size=100))
    def test_garbage_decodes_to_what_encodes_to_it(self, data: bytes) -> None:
        try:
            properties = decode_properties(data)
        except WireError:
            return
        assert encode_properties(properties) == data

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 5), st.sampled_from([*VarType, 5, 0x1002]), st.integers(0, 12)
            ),
            max_size=4,
        ),
        st.binary(max_size=20),
        st.integers(0, 6),
    )
    def test_whatever_is_looked_at_raises_only_wire_error(
        self, entries: list[tuple[int, int, int]], values: bytes, cut: int
    ) -> None:
        data = table(*entries, values=values)
        data = data[: len(data) - cut]
        try:
            bag = PropertyBag(data)
        except WireError:
            return
        assert len(bag) == len(list(bag))
        for look in (lambda: dict(bag), lambda: bag == {}, lambda: repr(bag)):
            with suppress(WireError):
                look()
        for propid in bag:
            try:
                variant = bag[propid]
            except WireError:
                continue
            assert bag[propid] is variant

    @given(st.binary(max_size=60))
    def test_garbage_bags_raise_only_wire_error(self, data: bytes) -> None:
        with suppress(WireError):
            dict(PropertyBag(data))


class TestDamage:
    @pytest.mark.parametrize(
        ("data", "reason", "offset"),
        [
            (b"", "u16", 0),
            (b"\0", "u16", 0),
            (b"\1\0" + bytes(9), "does not fit", 0),
            (table((7, 17, 0), (7, 17, 1), values=b"ab"), "twice", 2),
        ],
    )
    def test_a_damaged_table(self, data: bytes, reason: str, offset: int) -> None:
        for read in (PropertyBag, decode_properties):
            with pytest.raises(WireError, match=reason) as caught:
                read(data)
            assert caught.value.offset == offset

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (table((7, 17, 2), values=b"a"), "is behind the end"),
            (table((7, 17, 1), values=b"a"), "u8"),
            (table((7, 5, 0), values=b"a"), "0x0005"),
        ],
    )
    def test_a_damaged_value_is_found_when_it_is_looked_at(self, data: bytes, reason: str) -> None:
        bag = PropertyBag(data)
        assert 7 in bag
        with pytest.raises(WireError, match=reason):
            bag[7]
        with pytest.raises(WireError):
            decode_properties(data)

    def test_damage_leaves_the_other_values_readable(self) -> None:
        bag = PropertyBag(table((7, 17, 0), (8, 19, 1), values=b"a\1\2"))
        assert bag[7] == PropVariant(VarType.UI1, 0x61)
        with pytest.raises(WireError):
            bag[8]

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (table((8, 17, 0), (7, 17, 1), values=b"ab"), "property 7 follows 8: they are not asc"),
            (table((7, 17, 1), (8, 17, 0), values=b"ab"), "does not start at"),
            (table((7, 17, 0), (8, 17, 0), values=b"a"), "property 8 does not start at 23"),
            (table((7, 17, 0), values=b"ab"), "1 bytes after the end"),
        ],
    )
    def test_only_the_canonical_form_is_decoded(self, data: bytes, reason: str) -> None:
        with pytest.raises(WireError, match=reason):
            decode_properties(data)


class TestMapping:
    def test_a_missing_property_is_a_key_error(self) -> None:
        bag = PropertyBag(DATA)
        assert 106 not in bag
        assert bag.get(106) is None
        with pytest.raises(KeyError):
            bag[106]

    def test_equality_is_that_of_the_properties(self) -> None:
        assert PropertyBag(DATA) == PropertyBag(DATA)
        assert hash(PropertyBag(DATA)) == hash(PropertyBag(DATA))
        assert PropertyBag(DATA) != {**PROPERTIES, 105: PropVariant(VarType.UI4, 1)}

    def test_survives_pickling(self) -> None:
        assert pickle.loads(pickle.dumps(PropertyBag(DATA))) == PROPERTIES

    def test_text(self) -> None:
        assert repr(PropertyBag(b"\0\0")) == "PropertyBag({})"
        assert "'L2'" in repr(PropertyBag(DATA))


class TestPackedValue:
    def test_every_value_as_its_own_bytes_wherever_it_is_kept(self) -> None:
        bag = PropertyBag(DATA)
        for propid, variant in PROPERTIES.items():
            assert packed_value(PROPERTIES, propid) == variant.packed()
            assert packed_value(bag, propid) == variant.packed()
            assert bag.typed(propid) == (variant.vt, variant.packed())

    def test_none_where_there_is_no_value(self) -> None:
        assert packed_value(PROPERTIES, 9) is None
        assert packed_value(PropertyBag(DATA), 9) is None

    def test_damage_is_not_looked_at(self) -> None:
        assert packed_value(PropertyBag(table((7, 19, 5), values=b"a")), 7) == b""


@given(property_sets())
def test_packed_values_of_a_store_are_those_of_the_variants(
    properties: dict[int, PropVariant],
) -> None:
    bag = PropertyBag(encode_properties(properties))
    assert packed_values(bag) == packed_values(properties)


@pytest.mark.parametrize(
    ("number", "value", "reason"),
    [
        (VarType.UI4, b"\1\2\3", "VT_UI4 has 4 bytes, not 3"),
        (VarType.CLSID, bytes(17), "VT_CLSID has 16 bytes, not 17"),
        (VarType.LPWSTR, b"a\0\0\0b\0", "2 bytes after the end of VT_LPWSTR"),
        (VarType.LPWSTR, b"a\0", "no terminating zero"),
        (VarType.BLOB, b"\5\0\0\0abc", "BLOB needs 5 bytes, 3 left"),
        (0x0FFF, b"", "variant type 0x0fff is not one of"),
    ],
)
def test_a_damaged_value_is_not_passed_on(number: int, value: bytes, reason: str) -> None:
    bag = PropertyBag(table((105, number, 0), values=value))
    with pytest.raises(WireError, match=reason):
        packed_values(bag)
