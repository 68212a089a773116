"""Selecting and replacing parts of a descriptor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.security.information import SecurityInformation, extract, merge
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sddl import parse_sddl, to_sddl
from tests.strategies.security import descriptors

OWNER = SecurityInformation.OWNER
GROUP = SecurityInformation.GROUP
DACL = SecurityInformation.DACL
SACL = SecurityInformation.SACL

STORED = parse_sddl("O:BAG:BUD:P(A;;GA;;;BA)S:AI(AU;FA;GA;;;WD)")
INCOMING = parse_sddl("O:SYG:AND:AI(D;;GR;;;AN)S:P(AU;SA;GR;;;AU)")

parts = st.integers(0, 15).map(SecurityInformation)


@pytest.mark.parametrize(
    ("information", "text"),
    [
        (OWNER, "O:BA"),
        (GROUP, "G:BU"),
        (DACL, "D:P(A;;GA;;;BA)"),
        (SACL, "S:AI(AU;FA;GA;;;WD)"),
        (OWNER | DACL, "O:BAD:P(A;;GA;;;BA)"),
        (GROUP | SACL, "G:BUS:AI(AU;FA;GA;;;WD)"),
        (OWNER | GROUP | DACL | SACL, "O:BAG:BUD:P(A;;GA;;;BA)S:AI(AU;FA;GA;;;WD)"),
    ],
)
def test_extract(information: SecurityInformation, text: str) -> None:
    selected = extract(STORED, information)
    assert selected == parse_sddl(text)
    assert SecurityDescriptor.from_bytes(selected.to_bytes()) == selected


@pytest.mark.parametrize(
    ("information", "text"),
    [
        (OWNER, "O:SYG:BUD:P(A;;GA;;;BA)S:AI(AU;FA;GA;;;WD)"),
        (GROUP, "O:BAG:AND:P(A;;GA;;;BA)S:AI(AU;FA;GA;;;WD)"),
        (DACL, "O:BAG:BUD:AI(D;;GR;;;AN)S:AI(AU;FA;GA;;;WD)"),
        (SACL, "O:BAG:BUD:P(A;;GA;;;BA)S:P(AU;SA;GR;;;AU)"),
        (OWNER | GROUP | DACL | SACL, "O:SYG:AND:AI(D;;GR;;;AN)S:P(AU;SA;GR;;;AU)"),
    ],
)
def test_merge(information: SecurityInformation, text: str) -> None:
    assert to_sddl(merge(STORED, INCOMING, information)) == text


def test_control_bits_travel_with_their_part() -> None:
    """Every bit but the resource manager's belongs to exactly one part."""
    full = SecurityDescriptor(control=Control(0xFFFF), rm_control=0x77)
    control = {part: int(extract(full, part).control) for part in (OWNER, GROUP, DACL, SACL)}
    assert control == {OWNER: 0x8001, GROUP: 0x8002, DACL: 0x95CC, SACL: 0xAA30}
    everything = extract(full, SecurityInformation.PARTS)
    assert int(everything.control) == 0xFFFF & ~Control.RM_CONTROL_VALID
    assert everything.rm_control == 0
    merged = merge(full, SecurityDescriptor.EMPTY, SecurityInformation.PARTS)
    assert (int(merged.control), merged.rm_control) == (0xC000, 0x77)


def test_selecting_a_part_that_is_missing_removes_it() -> None:
    empty = SecurityDescriptor.EMPTY
    assert merge(STORED, empty, SACL) == parse_sddl("O:BAG:BUD:P(A;;GA;;;BA)")
    assert merge(STORED, parse_sddl("D:NO_ACCESS_CONTROL"), DACL).has_null_dacl
    assert not merge(STORED, empty, DACL).has_null_dacl


@pytest.mark.parametrize("number", [1, 2, 4, 8, 5, 15, 0x80000000, 0x40000000])
def test_legal_selections(number: int) -> None:
    assert int(SecurityInformation.from_wire(number)) == number


@pytest.mark.parametrize(
    "number", [0, 0x10, 0x1F, 0x80000001, 0x40000004, 0xC0000000, 0x20000000, 0x10000000]
)
def test_illegal_selections(number: int) -> None:
    with pytest.raises(ValueError, match=f"0x{number:08x}"):
        SecurityInformation.from_wire(number)


@pytest.mark.parametrize(
    "information", [SecurityInformation.SIGN_PUBLIC_KEY, SecurityInformation.KEYX_PUBLIC_KEY | DACL]
)
def test_keys_are_no_part_of_a_descriptor(information: SecurityInformation) -> None:
    with pytest.raises(ValueError, match="more than parts"):
        extract(STORED, information)
    with pytest.raises(ValueError, match="more than parts"):
        merge(STORED, INCOMING, information)


@given(descriptors(), descriptors(), parts)
def test_laws(stored: SecurityDescriptor, incoming: SecurityDescriptor, which: int) -> None:
    information = SecurityInformation(which)
    others = SecurityInformation.PARTS & ~information
    merged = merge(stored, incoming, information)
    assert extract(merged, information) == extract(incoming, information)
    assert extract(merged, others) == extract(stored, others)
    assert merge(stored, extract(stored, information), information) == stored
    assert merge(merged, incoming, information) == merged
