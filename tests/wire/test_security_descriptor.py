"""Self-relative security descriptors: bytes by MS-DTYP 2.4.6."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.reader import Reader
from mqis.wire.security.acl import AceFlags, Acl, allow
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sid import (
    ADMINISTRATORS,
    CREATOR_OWNER,
    EVERYONE,
    LOCAL_SYSTEM,
    USERS,
    Sid,
)
from tests.security_values import audit, has_null_sacl
from tests.strategies.security import descriptors

INHERIT = AceFlags.OBJECT_INHERIT | AceFlags.CONTAINER_INHERIT

#: The example of MS-DTYP 2.5.1.4, in value and bytes.
EXAMPLE = SecurityDescriptor(
    owner=ADMINISTRATORS,
    group=ADMINISTRATORS,
    dacl=Acl(
        (
            allow(USERS, 0xA0000000, INHERIT),
            allow(ADMINISTRATORS, 0x10000000, INHERIT),
            allow(LOCAL_SYSTEM, 0x10000000, INHERIT),
            allow(CREATOR_OWNER, 0x10000000, INHERIT),
        )
    ),
    sacl=Acl((audit(EVERYONE, 0x80000000, AceFlags.FAILED_ACCESS),)),
    control=Control.DACL_PROTECTED | Control.SACL_PROTECTED,
)
EXAMPLE_BYTES = bytes.fromhex(
    """
    01 00 14 b0 90 00 00 00 a0 00 00 00 14 00 00 00
    30 00 00 00 02 00 1c 00 01 00 00 00 02 80 14 00
    00 00 00 80 01 01 00 00 00 00 00 01 00 00 00 00
    02 00 60 00 04 00 00 00 00 03 18 00 00 00 00 a0
    01 02 00 00 00 00 00 05 20 00 00 00 21 02 00 00
    00 03 18 00 00 00 00 10 01 02 00 00 00 00 00 05
    20 00 00 00 20 02 00 00 00 03 14 00 00 00 00 10
    01 01 00 00 00 00 00 05 12 00 00 00 00 03 14 00
    00 00 00 10 01 01 00 00 00 00 00 03 00 00 00 00
    01 02 00 00 00 00 00 05 20 00 00 00 20 02 00 00
    01 02 00 00 00 00 00 05 20 00 00 00 20 02 00 00
    """
)

WORLD = "01 01 000000000001 00000000"
SYSTEM = "01 01 000000000005 12000000"
EMPTY_ACL = "02 00 0800 0000 0000"


def parsed(octets: str) -> SecurityDescriptor:
    return SecurityDescriptor.from_bytes(bytes.fromhex(octets))


@pytest.mark.req("MQDS-2.2.4-01")
def test_the_example_of_the_specification() -> None:
    """Self-relative, offsets from its own first byte, and no length inside."""
    assert EXAMPLE.to_bytes() == EXAMPLE_BYTES
    assert SecurityDescriptor.from_bytes(EXAMPLE_BYTES) == EXAMPLE


@pytest.mark.req("MQDS-2.2.4-01")
def test_the_length_comes_from_outside() -> None:
    """Whoever carries a descriptor says where it ends; what no part claims there is padding."""
    assert SecurityDescriptor.from_bytes(EXAMPLE_BYTES + bytes(7)) == EXAMPLE
    inside = Reader(b"abc" + EXAMPLE_BYTES + b"xyz", 3, 3 + len(EXAMPLE_BYTES))
    assert SecurityDescriptor.decode(inside) == EXAMPLE
    assert inside.remaining == 0
    absolute = EXAMPLE_BYTES[:3] + b"\x30" + EXAMPLE_BYTES[4:]
    with pytest.raises(WireError, match="not self-relative at offset 2"):
        SecurityDescriptor.from_bytes(absolute)


def test_parts_stand_in_any_order_with_gaps() -> None:
    expected = SecurityDescriptor(EVERYONE, LOCAL_SYSTEM, Acl.EMPTY, Acl.EMPTY)
    header = "01 00 1480"
    assert expected == parsed(
        header + "14000000 20000000 2c000000 34000000" + WORLD + SYSTEM + EMPTY_ACL + EMPTY_ACL
    )
    assert expected == parsed(
        header + "3c000000 24000000 14000000 1c000000"
        f"{EMPTY_ACL} {EMPTY_ACL} {SYSTEM} 0000000000000000 00000000 {WORLD}"
    )


def test_null_absent_and_empty_lists_differ() -> None:
    absent = parsed("01 00 0080 00000000 00000000 00000000 00000000")
    null = parsed("01 00 0480 00000000 00000000 00000000 00000000")
    empty = parsed("01 00 0480 00000000 00000000 00000000 14000000" + EMPTY_ACL)
    assert len({absent, null, empty}) == 3
    assert absent == SecurityDescriptor.EMPTY
    assert [sd.has_null_dacl for sd in (absent, null, empty)] == [False, True, False]
    assert null.dacl is None
    assert empty.dacl == Acl.EMPTY
    for sd in (absent, null, empty):
        assert SecurityDescriptor.from_bytes(sd.to_bytes()) == sd
    null_sacl = parsed("01 00 1080 00000000 00000000 00000000 00000000")
    assert has_null_sacl(null_sacl)
    assert not null_sacl.has_null_dacl


def test_control_follows_from_the_parts() -> None:
    assert SecurityDescriptor().control == Control.SELF_RELATIVE
    both = SecurityDescriptor(dacl=Acl.EMPTY, sacl=Acl.EMPTY)
    assert both.control == Control.SELF_RELATIVE | Control.DACL_PRESENT | Control.SACL_PRESENT


def test_resource_manager_byte_counts_under_its_flag_only() -> None:
    assert parsed("01 5a 00c0" + "00" * 16).rm_control == 0x5A
    assert parsed("01 5a 00c0" + "00" * 16).to_bytes().hex() == "015a00c0" + "00" * 16
    assert parsed("01 5a 0080" + "00" * 16) == SecurityDescriptor.EMPTY


@pytest.mark.parametrize(
    ("octets", "offset"),
    [
        ("02 00 0080 00000000 00000000 00000000 00000000", 0),
        ("01 00 0080 00000000 00000000 00000000 000000", 16),
        ("01 00 0080 00000000 00000000 14000000 00000000" + EMPTY_ACL, 12),
        ("01 00 0080 00000000 00000000 00000000 14000000" + EMPTY_ACL, 16),
        ("01 00 0080 10000000 00000000 00000000 00000000" + WORLD, 16),  # inside the header
        ("01 00 0080 20000000 00000000 00000000 00000000" + WORLD, 32),  # at the end
        ("01 00 0080 ffffffff 00000000 00000000 00000000" + WORLD, 32),
        ("01 00 0080 18000000 00000000 00000000 00000000" + WORLD, 24),  # in mid SID
        ("01 00 0080 14000000 14000000 00000000 00000000" + WORLD, 20),  # one SID for both
        ("01 00 0480 14000000 00000000 00000000 1c000000" + WORLD + "00000000", 28),
    ],
)
def test_malformed(octets: str, offset: int) -> None:
    with pytest.raises(WireError) as caught:
        parsed(octets)
    assert caught.value.offset == offset


def test_overlap_of_two_valid_parts() -> None:
    """The owner's sub-authorities spell an empty ACL, which is then claimed as the DACL."""
    owner = "01 02 000000000005" + EMPTY_ACL
    assert parsed("01 00 0080 14000000 00000000 00000000 00000000" + owner).owner == Sid(
        5, (0x00080002, 0)
    )
    with pytest.raises(WireError, match="DACL overlaps owner at offset 28"):
        parsed("01 00 0480 14000000 00000000 00000000 1c000000" + owner)


def test_offsets_in_errors_are_those_of_the_whole_buffer() -> None:
    with pytest.raises(WireError) as caught:
        SecurityDescriptor.decode(Reader(bytes(100) + bytes.fromhex("01 00 0000") + bytes(16), 100))
    assert caught.value.offset == 102


def test_size_limit() -> None:
    assert SecurityDescriptor.from_bytes(EXAMPLE_BYTES.ljust(524_288, b"\0")) == EXAMPLE
    with pytest.raises(WireError, match="at most 524288"):
        SecurityDescriptor.from_bytes(EXAMPLE_BYTES.ljust(524_289, b"\0"))


def test_values_that_no_field_holds() -> None:
    with pytest.raises(ValueError, match="16 bits"):
        SecurityDescriptor(control=Control(0x10000))
    with pytest.raises(ValueError, match="8 bits"):
        SecurityDescriptor(control=Control.RM_CONTROL_VALID, rm_control=256)
    with pytest.raises(ValueError, match="RM_CONTROL_VALID"):
        SecurityDescriptor(rm_control=1)


@given(descriptors())
def test_round_trip(sd: SecurityDescriptor) -> None:
    data = sd.to_bytes()
    again = SecurityDescriptor.from_bytes(data)
    assert again == sd
    assert again.to_bytes() == data


@given(descriptors())
def test_every_prefix_is_refused(sd: SecurityDescriptor) -> None:
    data = sd.to_bytes()
    for length in range(len(data)):
        with pytest.raises(WireError):
            SecurityDescriptor.from_bytes(data[:length])


@given(st.binary(max_size=120), st.integers(0, 0x7FFF), st.lists(st.integers(0, 100), max_size=4))
def test_garbage_parses_or_is_a_wire_error(tail: bytes, control: int, offsets: list[int]) -> None:
    head = b"\1\0" + (control | 0x8000).to_bytes(2, "little")
    head += b"".join(offset.to_bytes(4, "little") for offset in offsets)
    for data in (tail, head + tail):
        try:
            sd = SecurityDescriptor.from_bytes(data)
        except WireError:
            continue
        assert SecurityDescriptor.from_bytes(sd.to_bytes()) == sd


@given(st.data())
def test_one_flipped_byte_parses_or_is_a_wire_error(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(EXAMPLE_BYTES) - 1))
    broken = bytearray(EXAMPLE_BYTES)
    broken[at] ^= data.draw(st.integers(1, 255))
    try:
        sd = SecurityDescriptor.from_bytes(bytes(broken))
    except WireError:
        return
    assert SecurityDescriptor.from_bytes(sd.to_bytes()) == sd


def test_replace_keeps_control_consistent() -> None:
    """Taking a list away leaves a NULL one: DACL_PRESENT has to be cleared on purpose."""
    assert replace(EXAMPLE, dacl=None).has_null_dacl
    absent = replace(EXAMPLE, dacl=None, control=EXAMPLE.control & ~Control.DACL_PRESENT)
    assert not absent.has_null_dacl
