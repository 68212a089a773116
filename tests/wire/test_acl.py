"""Access control entries and lists: bytes by MS-DTYP 2.4.4 and 2.4.5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.security.acl import (
    Ace,
    AceFlags,
    AceType,
    Acl,
    ObjectAce,
    OpaqueAce,
    PlainAce,
    allow,
    decode_ace,
)
from mqis.wire.security.sid import ADMINISTRATORS, EVERYONE
from mqis.wire.writer import Writer
from tests.security_values import audit, deny
from tests.strategies.security import acls, object_aces, opaque_aces, plain_aces

PROPERTY = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
CHILD = Guid.parse("11111111-2222-3333-4444-555555555555")
WORLD = "01 01 000000000001 00000000"
PROPERTY_BYTES = "d4c3b2a1 0100 0200 0304 05060708090a"
CHILD_BYTES = "11111111 2222 3333 4444 555555555555"

ACES: list[tuple[Ace, str]] = [
    (allow(EVERYONE, 0x20020), "00 00 1400 20000200" + WORLD),
    (
        deny(ADMINISTRATORS, 0x10, AceFlags.INHERITED | AceFlags.CONTAINER_INHERIT),
        "01 12 1800 10000000 01 02 000000000005 20000000 20020000",
    ),
    (audit(EVERYONE, 0x10000, AceFlags.FAILED_ACCESS), "02 80 1400 00000100" + WORLD),
    (
        ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, 0x20, EVERYONE),
        "05 00 1800 20000000 00000000" + WORLD,
    ),
    (
        ObjectAce(AceType.ACCESS_DENIED_OBJECT, 0x20, EVERYONE, PROPERTY),
        "06 00 2800 20000000 01000000" + PROPERTY_BYTES + WORLD,
    ),
    (
        ObjectAce(AceType.SYSTEM_AUDIT_OBJECT, 0x20, EVERYONE, None, CHILD),
        "07 00 2800 20000000 02000000" + CHILD_BYTES + WORLD,
    ),
    (
        ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, 0x20, EVERYONE, PROPERTY, CHILD),
        "05 00 3800 20000000 03000000" + PROPERTY_BYTES + CHILD_BYTES + WORLD,
    ),
    (
        OpaqueAce(AceType.ACCESS_DENIED_CALLBACK, bytes.fromhex("10000000" + WORLD) + b"artx"),
        "0a 00 1800 10000000" + WORLD + "61727478",
    ),
    (OpaqueAce(0xC8, b"", AceFlags(0x20)), "c8 20 0400"),
]


def encoded(value: Ace | Acl) -> bytes:
    writer = Writer()
    value.encode(writer)
    return writer.getvalue()


@pytest.mark.parametrize(("ace", "octets"), ACES)
def test_ace_bytes(ace: Ace, octets: str) -> None:
    data = bytes.fromhex(octets)
    assert encoded(ace) == data
    assert decode_ace(Reader(data)) == ace
    assert ace.size == len(data)


def test_bytes_after_the_sid_are_ignored() -> None:
    """2.4.4.1: AceSize can be more than the fields need; the rest is not interpreted."""
    reader = Reader(bytes.fromhex("00 00 1c00 20000200" + WORLD + "ffffffffffffffff"))
    assert decode_ace(reader) == allow(EVERYONE, 0x20020)
    assert reader.remaining == 0


@pytest.mark.parametrize(
    ("octets", "offset"),
    [
        ("00 00 0000", 2),  # smaller than its header
        ("00 00 1600 20000200" + WORLD + "0000", 2),  # not a multiple of 4
        ("00 00 1800 20000200" + WORLD, 4),  # longer than the buffer
        ("00 00 1000 20000200" + WORLD, 16),  # the SID reaches past AceSize
        ("05 00 1800 20000000 04000000" + WORLD, 8),  # undefined object flags
        ("05 00 1800 20000000 01000000" + WORLD, 12),  # no room for the GUID
        ("00 00 1400 20000200 02 01 000000000001 00000000", 8),  # revision of the SID
    ],
)
def test_malformed_ace(octets: str, offset: int) -> None:
    with pytest.raises(WireError) as caught:
        decode_ace(Reader(bytes.fromhex(octets)))
    assert caught.value.offset == offset


def test_acl_bytes() -> None:
    acl = Acl((deny(EVERYONE, 1), allow(EVERYONE, 2)))
    data = bytes.fromhex(
        "02 00 3000 0200 0000 01 00 1400 01000000" + WORLD + "00 00 1400 02000000" + WORLD
    )
    assert encoded(acl) == data
    assert Acl.decode(Reader(data)) == acl
    assert encoded(Acl.EMPTY) == bytes.fromhex("02 00 0800 0000 0000")


@pytest.mark.parametrize(
    ("ace", "revision"),
    [
        (allow(EVERYONE, 1), 2),
        (OpaqueAce(AceType.SYSTEM_MANDATORY_LABEL, b""), 2),
        (OpaqueAce(AceType.ACCESS_ALLOWED_CALLBACK, b""), 2),
        (ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, 1, EVERYONE), 4),
        (OpaqueAce(AceType.ACCESS_DENIED_CALLBACK_OBJECT, b""), 4),
        (OpaqueAce(0x77, b""), 4),
    ],
)
def test_revision_follows_from_the_types(ace: Ace, revision: int) -> None:
    assert encoded(Acl((allow(EVERYONE, 1), ace)))[0] == revision


def test_revision_reserved_fields_and_slack_are_no_part_of_the_value() -> None:
    data = bytes.fromhex("04 ff 2000 0100 ffff 00 00 1400 02000000" + WORLD + "deadbeef")
    reader = Reader(data + b"next")
    assert Acl.decode(reader) == Acl((allow(EVERYONE, 2),))
    assert reader.offset == 32


@pytest.mark.parametrize(
    ("octets", "offset"),
    [
        ("03 00 0800 0000 0000", 0),
        ("02 00 0400 0000 0000", 2),
        ("02 00 0900 0000 0000 00", 2),
        ("02 00 0c00 0000 0000", 8),
        ("02 00 0800 0100 0000", 4),
        ("02 00 0c00 0200 0000 77 00 0400", 4),
        ("02 00 1000 0200 0000 77 00 0800 00000000", 16),
    ],
)
def test_malformed_acl(octets: str, offset: int) -> None:
    with pytest.raises(WireError) as caught:
        Acl.decode(Reader(bytes.fromhex(octets)))
    assert caught.value.offset == offset


def test_limits() -> None:
    """AclSize has 16 bits, so 3276 of the smallest allow ACEs fit, and no more."""
    largest = Acl((allow(EVERYONE, 1),) * 3276)
    assert Acl.decode(Reader(encoded(largest))) == largest
    with pytest.raises(ValueError, match="at most 65532 bytes"):
        Acl((allow(EVERYONE, 1),) * 3277)
    with pytest.raises(ValueError, match="at most 65532 bytes"):
        OpaqueAce(0x77, bytes(65532))


def test_values_that_no_field_holds() -> None:
    for mask, flags in ((-1, 0), (1 << 32, 0), (0, 256)):
        with pytest.raises(ValueError, match="does not fit"):
            PlainAce(AceType.ACCESS_ALLOWED, mask, EVERYONE, AceFlags(flags))
        with pytest.raises(ValueError, match="does not fit"):
            ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, mask, EVERYONE, flags=AceFlags(flags))
    with pytest.raises(ValueError, match="plain"):
        PlainAce(AceType.ACCESS_ALLOWED_OBJECT, 0, EVERYONE)
    with pytest.raises(ValueError, match="object"):
        ObjectAce(AceType.ACCESS_ALLOWED, 0, EVERYONE)
    with pytest.raises(ValueError, match="typed"):
        OpaqueAce(AceType.ACCESS_ALLOWED, b"")
    with pytest.raises(ValueError, match="8 bits"):
        OpaqueAce(0x100, b"")
    with pytest.raises(ValueError, match="multiple of 4"):
        OpaqueAce(0x77, b"abc")


def test_what_a_callback_ace_is_without_its_condition() -> None:
    plain = bytes.fromhex("10000000" + WORLD)
    flags = AceFlags.INHERITED
    assert OpaqueAce(0x09, plain + b"artx", flags).unconditional() == allow(EVERYONE, 0x10, flags)
    assert OpaqueAce(0x0A, plain + b"artx", flags).unconditional() == deny(EVERYONE, 0x10, flags)
    object_body = bytes.fromhex("10000000 01000000" + PROPERTY_BYTES + WORLD)
    for callback, counterpart in ((0x0B, 0x05), (0x0C, 0x06)):
        assert OpaqueAce(callback, object_body).unconditional() == ObjectAce(
            AceType(counterpart), 0x10, EVERYONE, PROPERTY
        )
    assert OpaqueAce(0x0A, b"artx").unconditional() is None
    assert OpaqueAce(AceType.SYSTEM_MANDATORY_LABEL, plain).unconditional() is None


@given(plain_aces | object_aces | opaque_aces)
def test_ace_round_trip(ace: Ace) -> None:
    data = encoded(ace)
    reader = Reader(data + b"next")
    assert decode_ace(reader) == ace
    assert reader.offset == len(data) == ace.size
    assert len(data) % 4 == 0


@given(acls())
def test_acl_round_trip_and_prefixes(acl: Acl) -> None:
    data = encoded(acl)
    assert Acl.decode(Reader(data)) == acl
    for length in range(len(data)):
        with pytest.raises(WireError):
            Acl.decode(Reader(data[:length]))


@given(
    st.one_of(
        st.binary(max_size=64),
        st.builds(
            lambda size, count, tail: b"\2\0" + bytes((size, 0, count, 0, 0, 0)) + tail,
            st.integers(0, 80),
            st.integers(0, 3),
            st.binary(max_size=72),
        ),
    )
)
def test_garbage_parses_or_is_a_wire_error(data: bytes) -> None:
    try:
        acl = Acl.decode(Reader(data))
    except WireError:
        return
    assert Acl.decode(Reader(encoded(acl))) == acl
