"""GUID: packet bytes, text and order."""

from __future__ import annotations

import pickle
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.guid import Guid

TEXT = "a1b2c3d4-0001-0002-0304-05060708090a"
RAW = bytes.fromhex("d4c3b2a1 0100 0200 0304 05060708090a")

raws = st.binary(min_size=16, max_size=16)


def test_text_and_packet_bytes() -> None:
    guid = Guid.parse(TEXT)
    assert guid.raw == RAW
    assert str(guid) == TEXT
    assert guid.big_endian == bytes.fromhex(TEXT.replace("-", ""))
    assert Guid.from_big_endian(guid.big_endian) == guid


@pytest.mark.parametrize(
    "text", [TEXT.upper(), f"{{{TEXT}}}", f"  {TEXT}\n", f" {{{TEXT.upper()}}} "]
)
def test_other_ways_to_write_it(text: str) -> None:
    assert Guid.parse(text).raw == RAW


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        TEXT[:-1],
        TEXT + "0",
        TEXT.replace("-", ""),
        "{" + TEXT,
        TEXT + "}",
        "{{" + TEXT + "}}",
        TEXT.replace("a1b2c3d4", "g1b2c3d4"),
        TEXT.replace("0001", "００01"),  # digits, but not these
        "a1b2c3d4-00010-002-0304-05060708090a",
    ],
)
def test_what_is_not_a_guid(text: str) -> None:
    with pytest.raises(ValueError, match="is not a GUID"):
        Guid.parse(text)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_sixteen_bytes(size: int) -> None:
    with pytest.raises(ValueError, match=f"16 bytes, not {size}"):
        Guid(bytes(size))
    with pytest.raises(ValueError, match="16 bytes"):
        Guid.from_big_endian(bytes(size))


def test_null_alone_is_false() -> None:
    assert not Guid.NULL
    assert str(Guid.NULL) == "00000000-0000-0000-0000-000000000000"
    for place in range(16):
        assert Guid(bytes(place) + b"\x01" + bytes(15 - place))


def test_order_is_that_of_the_text_not_of_the_bytes() -> None:
    small = Guid.parse("00000001-0000-0000-0000-000000000000")
    large = Guid.parse("00000100-0000-0000-0000-000000000000")
    assert small.raw > large.raw
    assert small < large
    assert large >= small
    assert sorted([large, Guid.NULL, small]) == [Guid.NULL, small, large]


def test_order_with_something_else() -> None:
    with pytest.raises(TypeError):
        assert Guid.NULL < TEXT  # type: ignore[operator]


@given(raws, raws)
def test_order_equals_text_order(left: bytes, right: bytes) -> None:
    a, b = Guid(left), Guid(right)
    assert (a < b) == (str(a) < str(b))
    assert (a == b) == (str(a) == str(b))
    assert a != b or hash(a) == hash(b)


@given(raws)
def test_agrees_with_the_standard_library(raw: bytes) -> None:
    guid = Guid(raw)
    assert str(guid) == str(uuid.UUID(bytes_le=raw))
    assert guid.big_endian == uuid.UUID(bytes_le=raw).bytes
    assert Guid.parse(str(guid)) == guid


def test_repr_can_be_evaluated_and_pickle_keeps_it() -> None:
    guid = Guid.parse(TEXT)
    assert repr(guid) == f"Guid.parse('{TEXT}')"
    assert pickle.loads(pickle.dumps(guid)) == guid


@pytest.mark.parametrize("octets", [bytes(16), b"\xff" * 16, bytes(range(16))])
def test_version_4_is_what_uuid_makes_of_the_same_bytes(octets: bytes) -> None:
    expected = uuid.UUID(bytes=Guid(octets).big_endian, version=4)
    assert str(Guid.version_4(octets)) == str(expected)
