"""BER as LDAP uses it: vectors, bounds, and garbage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.ldap import ber
from mqis.wire.ldap.ber import BerReader


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "020100"),
        (127, "02017f"),
        (128, "02020080"),
        (256, "02020100"),
        (-1, "0201ff"),
        (-128, "020180"),
        (-129, "0202ff7f"),
        (-0x80000000, "020480000000"),
        ((1 << 63) - 1, "02087fffffffffffffff"),
    ],
)
def test_integers_are_written_in_the_fewest_octets(value: int, written: str) -> None:
    assert ber.integer(value).hex() == written
    assert BerReader(bytes.fromhex(written)).integer("a number") == value


def test_an_integer_of_more_than_eight_octets_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit in 8 octets"):
        ber.integer(1 << 63)
    with pytest.raises(WireError, match="a number is an integer of 9 octets at offset 0"):
        BerReader(bytes.fromhex("0209010000000000000000")).integer("a number")
    with pytest.raises(WireError, match="integer of 0 octets"):
        BerReader(bytes.fromhex("0200")).integer("a number")


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 65535, 65536])
def test_lengths_of_all_sizes(size: int) -> None:
    written = ber.octet_string(bytes(size))
    assert BerReader(written).octets("octets") == bytes(size)
    assert len(written) - size == (
        2 if size < 128 else 3 if size < 256 else 4 if size < 65536 else 5
    )


def test_the_long_lengths_of_active_directory() -> None:
    inside = BerReader(bytes.fromhex("308400000003020107")).enter("a sequence")
    assert inside.integer("a number") == 7
    inside.expect_end("a sequence")


def test_booleans() -> None:
    assert ber.boolean(True).hex() == "0101ff"
    assert BerReader(bytes.fromhex("010101")).boolean("a flag") is True
    assert BerReader(ber.boolean(False)).boolean("a flag") is False
    with pytest.raises(WireError, match="a flag is a boolean of 2 octets"):
        BerReader(bytes.fromhex("01020000")).boolean("a flag")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "a value is missing at offset 0"),
        ("04", "a value is missing at offset 0"),
        ("0500", "a value has tag 05, not 04 at offset 0"),
        ("0480", "a value has an indefinite length, which is not allowed at offset 1"),
        ("0485000000000100", "a value has a length of 5 octets at offset 1"),
        ("0482ff", "a value has a length of 2 octets at offset 1"),
        ("0405aa", "a value needs 5 bytes, 1 left at offset 0"),
        ("0484ffffffff00", "a value needs 4294967295 bytes, 1 left at offset 0"),
    ],
)
def test_lengths_that_lie(data: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        BerReader(bytes.fromhex(data)).octets("a value")


def test_an_element_cannot_reach_out_of_the_one_around_it() -> None:
    inside = BerReader(bytes.fromhex("3003040500aaaaaaaaaa")).enter("a sequence")
    with pytest.raises(WireError, match="needs 5 bytes, 1 left at offset 2"):
        inside.octets("a value")


def test_text_is_utf_8() -> None:
    assert BerReader(ber.text("grün")).text("a name") == "grün"
    with pytest.raises(WireError, match="a name is not UTF-8 at offset 0"):
        BerReader(bytes.fromhex("0401ff")).text("a name")
    with pytest.raises(WireError, match="a name is not UTF-8"):
        BerReader(b"\xff").rest_text("a name")


def test_the_end_is_checked() -> None:
    reader = BerReader(ber.integer(1) + b"\0")
    reader.integer("a number")
    with pytest.raises(WireError, match="1 bytes after the end of a message at offset 3"):
        reader.expect_end("a message")


@given(st.binary(max_size=40))
def test_garbage_raises_wire_errors_only(data: bytes) -> None:
    for read in (BerReader.octets, BerReader.integer, BerReader.text, BerReader.enter):
        try:
            read(BerReader(data), "a value", data[0] if data else 0)
        except WireError:
            continue
