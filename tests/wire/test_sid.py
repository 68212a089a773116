"""SIDs: bytes and text by MS-DTYP 2.4.2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.reader import Reader
from mqis.wire.security import sid as well_known
from mqis.wire.security.sid import Sid
from tests.strategies.security import sids

VECTORS = [
    ("S-1-1-0", "01 01 000000000001 00000000"),
    ("S-1-5-32-544", "01 02 000000000005 20000000 20020000"),
    ("S-1-5-21-1-2-3-1001", "01 05 000000000005 15000000 01000000 02000000 03000000 e9030000"),
    ("S-1-5", "01 00 000000000005"),
    ("S-1-4294967295-4294967295", "01 01 0000ffffffff ffffffff"),
    ("S-1-0x000100000000-7", "01 01 000100000000 07000000"),
    ("S-1-0xa1b2c3d4e5f6-7", "01 01 a1b2c3d4e5f6 07000000"),
    ("S-1-5" + "-9" * 15, "01 0f 000000000005" + "09000000" * 15),
]


@pytest.mark.parametrize(("text", "octets"), VECTORS)
def test_text_and_bytes(text: str, octets: str) -> None:
    sid = Sid.parse(text)
    assert str(sid) == text
    assert sid.to_bytes() == bytes.fromhex(octets)
    assert sid.size == len(bytes.fromhex(octets))
    assert Sid.from_bytes(bytes.fromhex(octets)) == sid


def test_hexadecimal_is_read_in_any_length_and_case() -> None:
    assert Sid.parse("s-1-0X5-18") == well_known.LOCAL_SYSTEM
    assert str(Sid.parse("S-1-0xABCDEF012345-1")) == "S-1-0xabcdef012345-1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "S-1",
        "S-1-",
        "S-2-5-18",
        "S-1-5-",
        "S-1-05-18",
        "S-1-5-018",
        "S-1-5-18 ",
        "S-1-5--18",
        "S-1-5-4294967296",
        "S-1-4294967296-1",
        "S-1-0x1000000000000-1",
        "S-1-0x-1",
        "S-1-5-0x12",
        "S-1-5" + "-9" * 16,
        "S-1-5-١",
    ],
)
def test_text_that_is_no_sid(text: str) -> None:
    with pytest.raises(ValueError, match="S") as caught:
        Sid.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("octets", "offset"),
    [
        ("02 01 000000000001 00000000", 0),
        ("01 10 000000000001" + "00000000" * 16, 1),
        ("01 01 000000000001 000000", 8),
        ("01 01 000000000001 00000000 00", 12),
    ],
)
def test_bytes_that_are_no_sid(octets: str, offset: int) -> None:
    with pytest.raises(WireError) as caught:
        Sid.from_bytes(bytes.fromhex(octets))
    assert caught.value.offset == offset


def test_well_known() -> None:
    assert str(well_known.EVERYONE) == "S-1-1-0"
    assert str(well_known.CREATOR_OWNER) == "S-1-3-0"
    assert str(well_known.OWNER_RIGHTS) == "S-1-3-4"
    assert str(well_known.NETWORK) == "S-1-5-2"
    assert str(well_known.ANONYMOUS) == "S-1-5-7"
    assert str(well_known.PRINCIPAL_SELF) == "S-1-5-10"
    assert str(well_known.AUTHENTICATED_USERS) == "S-1-5-11"
    assert str(well_known.LOCAL_SYSTEM) == "S-1-5-18"
    assert str(well_known.LOCAL_SERVICE) == "S-1-5-19"
    assert str(well_known.NETWORK_SERVICE) == "S-1-5-20"
    assert str(well_known.ADMINISTRATORS) == "S-1-5-32-544"
    assert str(well_known.USERS) == "S-1-5-32-545"
    assert str(well_known.GUESTS) == "S-1-5-32-546"


@pytest.mark.parametrize(
    ("authority", "subs"), [(-1, ()), (1 << 48, ()), (5, (-1,)), (5, (1 << 32,)), (5, (0,) * 16)]
)
def test_values_that_do_not_fit(authority: int, subs: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="SID"):
        Sid(authority, subs)


@given(sids)
def test_round_trip(sid: Sid) -> None:
    assert Sid.parse(str(sid)) == sid
    assert eval(repr(sid)) == sid
    data = sid.to_bytes()
    reader = Reader(data + b"rest")
    assert Sid.decode(reader) == sid
    assert reader.offset == len(data) <= Sid.MAX_SIZE


@given(sids)
def test_every_prefix_is_refused(sid: Sid) -> None:
    data = sid.to_bytes()
    for length in range(len(data)):
        with pytest.raises(WireError):
            Sid.from_bytes(data[:length])


@given(st.one_of(st.binary(max_size=80), st.binary(max_size=80).map(lambda tail: b"\1\2" + tail)))
def test_garbage_parses_or_is_a_wire_error(data: bytes) -> None:
    try:
        sid = Sid.from_bytes(data)
    except WireError:
        return
    assert sid.to_bytes() == data
