"""SEQUENCE_NUMBER (MC-MQDSRP 2.2.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer

octets = st.binary(min_size=8, max_size=8)
numbers = st.integers(0, (1 << 64) - 1).map(SequenceNumber)


def number(digits: str) -> SequenceNumber:
    return SequenceNumber.decode(Reader(bytes.fromhex(digits)))


def digits(value: SequenceNumber) -> str:
    writer = Writer()
    value.encode(writer)
    return writer.getvalue().hex(" ")


@pytest.mark.req("MQDSRP-2.2.2-01")
@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("00 00 00 00 00 00 00 01", 1),
        ("01 02 03 04 05 06 07 08", 0x0102030405060708),
        ("80 00 00 00 00 00 00 00", 1 << 63),
    ],
)
def test_eight_bytes_most_significant_first(data: str, value: int) -> None:
    assert number(data).value == value
    assert digits(SequenceNumber(value)) == data
    assert SequenceNumber(value).to_bytes() == bytes.fromhex(data)


@pytest.mark.req("MQDSRP-2.2.2-01")
@given(octets, octets)
def test_compares_as_its_bytes_do(left: bytes, right: bytes) -> None:
    a, b = number(left.hex()), number(right.hex())
    assert (a < b, a == b, a > b) == (left < right, left == right, left > right)
    assert digits(a) == left.hex(" ")


@pytest.mark.req("MQDSRP-2.2.2-02")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("00 00 00 00 00 00 00 00", "00 00 00 00 00 00 00 01"),
        ("00 00 00 00 00 00 00 ff", "00 00 00 00 00 00 01 00"),
        ("00 00 00 00 00 ff ff ff", "00 00 00 00 01 00 00 00"),
        ("12 34 56 78 9a bc de ff", "12 34 56 78 9a bc df 00"),
        ("00 ff ff ff ff ff ff ff", "01 00 00 00 00 00 00 00"),
        ("ff ff ff ff ff ff ff fe", "ff ff ff ff ff ff ff ff"),
        ("ff ff ff ff ff ff ff ff", "00 00 00 00 00 00 00 00"),
    ],
)
def test_increment_carries_towards_the_first_byte_and_wraps(before: str, after: str) -> None:
    assert digits(number(before).increment()) == after


@pytest.mark.req("MQDSRP-2.2.2-03")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("00 00 00 00 00 00 00 01", "00 00 00 00 00 00 00 00"),
        ("00 00 00 00 00 00 01 00", "00 00 00 00 00 00 00 ff"),
        ("00 00 00 00 01 00 00 00", "00 00 00 00 00 ff ff ff"),
        ("12 34 56 78 9a bc df 00", "12 34 56 78 9a bc de ff"),
        ("01 00 00 00 00 00 00 00", "00 ff ff ff ff ff ff ff"),
        ("ff ff ff ff ff ff ff ff", "ff ff ff ff ff ff ff fe"),
        ("00 00 00 00 00 00 00 00", "ff ff ff ff ff ff ff ff"),
    ],
)
def test_decrement_borrows_towards_the_first_byte_and_wraps(before: str, after: str) -> None:
    assert digits(number(before).decrement()) == after


@pytest.mark.req("MQDSRP-2.2.2-04")
@given(
    start=st.one_of(numbers, st.integers(-40, 40).map(SequenceNumber(0).__add__)),
    steps=st.integers(0, 80),
)
def test_n_steps_equal_n_single_steps(start: SequenceNumber, steps: int) -> None:
    up = down = start
    for _ in range(steps):
        up, down = up.increment(), down.decrement()
    assert start + steps == up
    assert start - steps == down


@pytest.mark.req("MQDSRP-2.2.2-04")
def test_the_operand_is_not_modified() -> None:
    operand = SequenceNumber(0xFF)
    results = [operand + 1, operand - 1, operand.increment(), operand.decrement()]
    assert [result.value for result in results] == [0x100, 0xFE, 0x100, 0xFE]
    assert operand.value == 0xFF
    with pytest.raises(AttributeError):
        operand.value = 0  # type: ignore[misc]


@given(numbers, st.integers(0, (1 << 64) - 1))
def test_adding_and_subtracting_undo_each_other(start: SequenceNumber, steps: int) -> None:
    assert start + steps - steps == start


@pytest.mark.req("MQDSRP-2.2.2-05")
@pytest.mark.parametrize("place", range(8))
def test_the_first_differing_byte_decides(place: int) -> None:
    # Whatever stands behind that byte pulls the other way.
    same, behind = b"\x55" * place, 7 - place
    smaller = number((same + b"\x01" + b"\xff" * behind).hex())
    greater = number((same + b"\x02" + b"\x00" * behind).hex())
    assert smaller < greater
    assert greater > smaller
    assert smaller != greater
    assert max(smaller, greater) is greater


@pytest.mark.req("MQDSRP-2.2.2-05")
@given(octets, st.integers(0, 7), st.integers(1, 255))
def test_equal_only_if_all_eight_bytes_match(data: bytes, place: int, change: int) -> None:
    other = bytearray(data)
    other[place] ^= change
    assert number(data.hex()) == number(data.hex())
    assert hash(number(data.hex())) == hash(number(data.hex()))
    assert number(data.hex()) != number(other.hex())


@pytest.mark.req("MQDSRP-2.2.2-06")
def test_min_and_max() -> None:
    assert digits(SequenceNumber.MIN) == "00 00 00 00 00 00 00 00"
    assert digits(SequenceNumber.MAX) == "ff ff ff ff ff ff ff ff"


@given(numbers)
def test_everything_lies_between_min_and_max(value: SequenceNumber) -> None:
    assert SequenceNumber.MIN <= value <= SequenceNumber.MAX


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_no_number_outside(value: int) -> None:
    with pytest.raises(ValueError, match=r"0\.\.2"):
        SequenceNumber(value)


@pytest.mark.parametrize(
    ("start", "steps", "left"), [(0, 1, 0), (1023, 1024, 0), (1024, 1024, 0), (1025, 1024, 1)]
)
def test_saturating_subtraction_stops_at_min(start: int, steps: int, left: int) -> None:
    assert SequenceNumber(start).saturating_sub(steps) == SequenceNumber(left)


@pytest.mark.parametrize("size", range(8))
def test_too_few_bytes(size: int) -> None:
    with pytest.raises(WireError, match=f"SEQUENCE_NUMBER needs 8 bytes, {size} left"):
        SequenceNumber.decode(Reader(bytes(size)))


@given(numbers)
def test_text_keeps_number_and_order(value: SequenceNumber) -> None:
    text = str(value)
    assert len(text) == 16
    assert SequenceNumber.parse(text) == value
    assert SequenceNumber.parse(text.upper()) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0" * 15,
        "0" * 17,
        "000000000000000g",
        "0x00000000000001",
        " 00000000000001 ",
        "-000000000000001",
        "0000_0000_000001",
        "000000000000000١",
    ],
)
def test_what_is_not_a_sequence_number(text: str) -> None:
    with pytest.raises(ValueError, match="16 hexadecimal digits"):
        SequenceNumber.parse(text)
