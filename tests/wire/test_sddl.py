"""Descriptors as text: MS-DTYP 2.5.1."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.guid import Guid
from mqis.wire.security.acl import AceFlags, AceType, Acl, ObjectAce, OpaqueAce, allow
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sddl import parse_sddl, rights_text, to_sddl
from mqis.wire.security.sid import EVERYONE, LOCAL_SYSTEM, Sid
from tests.security_values import deny, expressible, has_null_sacl
from tests.strategies.security import descriptors, masks, typed_aces

#: MS-DTYP 2.5.1.4: text, and the bytes it stands for.
EXAMPLE = (
    "O:BAG:BAD:P(A;CIOI;GRGX;;;BU)(A;CIOI;GA;;;BA)(A;CIOI;GA;;;SY)(A;CIOI;GA;;;CO)"
    "S:P(AU;FA;GR;;;WD)"
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
GUID = "a1b2c3d4-0001-0002-0304-05060708090a"


def test_the_example_of_the_specification() -> None:
    sd = parse_sddl(EXAMPLE)
    assert sd.to_bytes() == EXAMPLE_BYTES
    assert to_sddl(sd) == EXAMPLE.replace("CIOI", "OICI")


@pytest.mark.parametrize(
    ("text", "sd"),
    [
        ("", SecurityDescriptor.EMPTY),
        ("O:WD", SecurityDescriptor(owner=EVERYONE)),
        ("G:S-1-5-21-1-2-3-513", SecurityDescriptor(group=Sid(5, (21, 1, 2, 3, 513)))),
        ("D:", SecurityDescriptor(dacl=Acl.EMPTY)),
        ("D:NO_ACCESS_CONTROL", SecurityDescriptor(control=Control.DACL_PRESENT)),
        (
            "D:PARAI(A;;0x20020;;;WD)(D;IDCR;SD;;;SY)",
            SecurityDescriptor(
                dacl=Acl(
                    (
                        allow(EVERYONE, 0x20020),
                        deny(LOCAL_SYSTEM, 0x10000, AceFlags.INHERITED | 0x20),
                    )
                ),
                control=Control.DACL_PROTECTED
                | Control.DACL_COMPUTED_INHERITANCE_REQUIRED
                | Control.DACL_AUTO_INHERITED,
            ),
        ),
        (
            f"S:AI(OU;SAFA;GW;{GUID};;WD)(OU;;0x0;;{GUID};WD)(OU;;GA;;;WD)",
            SecurityDescriptor(
                sacl=Acl(
                    (
                        ObjectAce(
                            AceType.SYSTEM_AUDIT_OBJECT,
                            0x40000000,
                            EVERYONE,
                            Guid.parse(GUID),
                            flags=AceFlags.SUCCESSFUL_ACCESS | AceFlags.FAILED_ACCESS,
                        ),
                        ObjectAce(AceType.SYSTEM_AUDIT_OBJECT, 0, EVERYONE, None, Guid.parse(GUID)),
                        ObjectAce(AceType.SYSTEM_AUDIT_OBJECT, 0x10000000, EVERYONE),
                    )
                ),
                control=Control.SACL_AUTO_INHERITED,
            ),
        ),
        (
            "O:S-1-0xa1b2c3d4e5f6D:S:PNO_ACCESS_CONTROL",
            SecurityDescriptor(
                owner=Sid(0xA1B2C3D4E5F6),
                dacl=Acl.EMPTY,
                control=Control.SACL_PRESENT | Control.SACL_PROTECTED,
            ),
        ),
    ],
)
def test_text_and_value(text: str, sd: SecurityDescriptor) -> None:
    assert to_sddl(sd) == text
    assert parse_sddl(text) == sd


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (0, "0x0"),
        (0xF0000, "RCSDWDWO"),
        (0xF0000000, "GAGRGWGX"),
        (0x80020000, "GRRC"),
        (0xF003F, "0xf003f"),
        (0x100000, "0x100000"),
        (0xFFFFFFFF, "0xffffffff"),
    ],
)
def test_names_only_where_they_are_exact(mask: int, text: str) -> None:
    assert rights_text(mask) == text


@pytest.mark.parametrize(
    ("rights", "mask"),
    [
        ("", 0),
        ("0", 0),
        ("17", 17),
        ("017", 15),
        ("0xF00F7", 0xF00F7),
        ("0X1f", 0x1F),
        ("4294967295", 0xFFFFFFFF),
        ("CCDCLCSWRPWPDTLOCR", 0x1FF),
        ("FA", 0x1F01FF),
        ("FX", 0x1200A0),
        ("FW", 0x120116),
        ("FR", 0x120089),
        ("KA", 0xF003F),
        ("KR", 0x20019),
        ("KX", 0x20019),
        ("KW", 0x20006),
        ("WOGA", 0x10080000),
    ],
)
def test_rights_that_are_read(rights: str, mask: int) -> None:
    assert parse_sddl(f"D:(A;;{rights};;;WD)").dacl == Acl((allow(EVERYONE, mask),))


#: The aliases of 2.5.1.1 that mean the same SID everywhere, by 2.4.2.4.
ALIASES = {
    "ED": "S-1-5-9",
    "BA": "S-1-5-32-544",
    "BG": "S-1-5-32-546",
    "BU": "S-1-5-32-545",
    "AO": "S-1-5-32-548",
    "BO": "S-1-5-32-551",
    "PO": "S-1-5-32-550",
    "SO": "S-1-5-32-549",
    "AU": "S-1-5-11",
    "PS": "S-1-5-10",
    "CO": "S-1-3-0",
    "CG": "S-1-3-1",
    "SY": "S-1-5-18",
    "PU": "S-1-5-32-547",
    "WD": "S-1-1-0",
    "RE": "S-1-5-32-552",
    "IU": "S-1-5-4",
    "NU": "S-1-5-2",
    "SU": "S-1-5-6",
    "RC": "S-1-5-12",
    "WR": "S-1-5-33",
    "AN": "S-1-5-7",
    "RU": "S-1-5-32-554",
    "LS": "S-1-5-19",
    "NS": "S-1-5-20",
    "RD": "S-1-5-32-555",
    "NO": "S-1-5-32-556",
    "MU": "S-1-5-32-558",
    "LU": "S-1-5-32-559",
    "IS": "S-1-5-32-568",
    "CY": "S-1-5-32-569",
    "OW": "S-1-3-4",
    "ER": "S-1-5-32-573",
    "CD": "S-1-5-32-574",
    "AC": "S-1-15-2-1",
    "RA": "S-1-5-32-575",
    "ES": "S-1-5-32-576",
    "MS": "S-1-5-32-577",
    "UD": "S-1-5-84-0-0-0-0-0",
    "HA": "S-1-5-32-578",
    "AA": "S-1-5-32-579",
    "RM": "S-1-5-32-580",
    "LW": "S-1-16-4096",
    "ME": "S-1-16-8192",
    "MP": "S-1-16-8448",
    "HI": "S-1-16-12288",
    "SI": "S-1-16-16384",
}


@pytest.mark.parametrize(("alias", "sid"), ALIASES.items())
def test_aliases(alias: str, sid: str) -> None:
    sd = SecurityDescriptor(owner=Sid.parse(sid), group=Sid.parse(sid))
    assert to_sddl(sd) == f"O:{alias}G:{alias}"
    assert parse_sddl(f"O:{alias}G:{sid}") == sd


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("X:WD", "one of O: G: D: S:", 0),
        ("O", "one of O: G: D: S:", 0),
        ("O:WD ", "one of O: G: D: S:", 4),
        ("O:WDO:SY", "twice", 4),
        ("D:D:", "twice", 2),
        ("O:", "SID or its alias", 2),
        ("O:XX", "SID or its alias", 2),
        ("O:DA", "DA depends on a domain", 2),
        ("O:S-1-5-4294967296", "32 bits", 2),
        ("O:S-1-05", "not a SID", 2),
        ("D:(", "ACE type", 3),
        ("D:(XA;;GA;;;WD)", "ACE type", 3),
        ("D:(A)", "';'", 4),
        ("D:(A;XX;GA;;;WD)", "ACE flag", 5),
        ("D:(A;OIC;GA;;;WD)", "ACE flag", 7),
        ("D:(A;;XX;;;WD)", "right", 6),
        ("D:(A;;G;;;WD)", "right", 6),
        ("D:(A;;09;;;WD)", "';'", 7),
        ("D:(A;;0x100000000;;;WD)", "32 bits", 6),
        ("D:(A;;99999999999;;;WD)", "32 bits", 6),
        ("D:(OA;;GA;nonsense;;WD)", "';'", 10),
        (f"D:(A;;GA;{GUID};;WD)", "OA, OD and OU", 9),
        (f"D:(A;;GA;;{GUID};WD)", "OA, OD and OU", 9),
        ("D:(A;;GA;;;)", "SID or its alias", 11),
        ("D:(A;;GA;;;WD", "')'", 13),
        ("D:(A;;GA;;;WD)x", "one of O: G: D: S:", 14),
        ("D:NO_ACCESS_CONTROL(A;;GA;;;WD)", "one of O: G: D: S:", 19),
        ("D:" + "(A;;GA;;;WD)" * 3277, "at most 65532 bytes", 2),
    ],
)
def test_mistakes_are_named_with_their_position(text: str, reason: str, position: int) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(reason)}.* at position {position}$"):
        parse_sddl(text)


def test_opaque_aces_have_no_text() -> None:
    with pytest.raises(ValueError, match="type 0x0a has no text"):
        to_sddl(SecurityDescriptor(dacl=Acl((OpaqueAce(0x0A, b""),))))


def test_what_the_text_has_no_word_for() -> None:
    control = Control(0xFFFF) & ~Control.SACL_PRESENT
    sd = SecurityDescriptor(owner=EVERYONE, dacl=Acl.EMPTY, control=control, rm_control=7)
    assert to_sddl(sd) == "O:WDD:PARAI"
    assert expressible(sd) == parse_sddl("O:WDD:PARAI")
    assert expressible(sd).control == Control(0x8000 | 0x1000 | 0x0400 | 0x0100 | 0x0004)


@given(descriptors(typed_aces))
def test_round_trip(sd: SecurityDescriptor) -> None:
    again = parse_sddl(to_sddl(sd))
    assert again == expressible(sd)
    assert (again.owner, again.group, again.dacl, again.sacl) == (
        sd.owner,
        sd.group,
        sd.dacl,
        sd.sacl,
    )
    assert (again.has_null_dacl, has_null_sacl(again)) == (sd.has_null_dacl, has_null_sacl(sd))


@given(masks)
def test_rights_round_trip(mask: int) -> None:
    assert parse_sddl(f"D:(A;;{rights_text(mask)};;;WD)").dacl == Acl((allow(EVERYONE, mask),))


@given(
    st.one_of(
        st.text(max_size=40),
        st.text("OGDS:();AUWD0x19-PIRC", max_size=40),
        st.builds(
            lambda at, character: EXAMPLE[:at] + character + EXAMPLE[at + 1 :],
            st.integers(0, len(EXAMPLE) - 1),
            st.text(max_size=2),
        ),
    )
)
def test_any_text_parses_or_is_a_value_error_with_position(text: str) -> None:
    try:
        sd = parse_sddl(text)
    except ValueError as error:
        assert re.search(r" at position \d+$", str(error))  # noqa: PT017
    else:
        assert parse_sddl(to_sddl(sd)) == sd
