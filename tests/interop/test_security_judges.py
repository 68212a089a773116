"""Other implementations judge our descriptors, texts and access checks: impacket and Samba."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from impacket.ldap.ldaptypes import LDAP_SID, SR_SECURITY_DESCRIPTOR

from mqis.protocol.security.access import Token, access_check
from mqis.protocol.security.masks import UserRights, generic_mapping
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security import sid as well_known
from mqis.wire.security.acl import Ace, AceFlags, AceType, Acl, ObjectAce, OpaqueAce, PlainAce
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sddl import parse_sddl, to_sddl
from mqis.wire.security.sid import Sid
from tests.security_values import expressible, has_null_sacl
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.interop

SYSTEM_PYTHON = "/usr/bin/python3"
SCRIPT = Path(__file__).with_name("samba_security.py")

ALICE = Sid.parse("S-1-5-21-1-2-3-1001")
BOB = Sid.parse("S-1-5-21-1-2-3-1002")
STAFF = Sid.parse("S-1-5-21-1-2-3-2001")
GROUPS = (
    STAFF,
    well_known.EVERYONE,
    well_known.AUTHENTICATED_USERS,
    well_known.ADMINISTRATORS,
)
TRUSTEES = (ALICE, BOB, *GROUPS, well_known.OWNER_RIGHTS)
GUID = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
MAXIMUM_ALLOWED = 0x02000000
SYSTEM_SECURITY = 0x01000000

AccessCase = tuple[SecurityDescriptor, Token, int]


# --- a fixed corpus -------------------------------------------------------------------------------


class Corpus:
    """Values that depend on the seed alone."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def sid(self) -> Sid:
        if self._random.random() < 0.6:
            return self._random.choice(TRUSTEES)
        subs = tuple(self._random.getrandbits(32) for _ in range(self._random.randint(1, 15)))
        return Sid(self._random.randint(0, 255), subs)

    def guid(self) -> Guid | None:
        return Guid(self._random.randbytes(16)) if self._random.random() < 0.5 else None

    def ace(self) -> Ace:
        mask = self._random.choice((0x10, 0xF003F, 0x80000000, self._random.getrandbits(32)))
        flags = AceFlags(self._random.getrandbits(8) & 0xDF)  # 0x20: Samba has no word for it
        ace_type = AceType(self._random.choice((0, 1, 2, 5, 6, 7)))
        if ace_type <= AceType.SYSTEM_AUDIT:
            return PlainAce(ace_type, mask, self.sid(), flags)
        return ObjectAce(ace_type, mask, self.sid(), self.guid(), self.guid(), flags)

    def acl(self) -> Acl | None:
        if self._random.random() < 0.2:
            return None
        return Acl(tuple(self.ace() for _ in range(self._random.randint(0, 5))))

    def descriptor(self) -> SecurityDescriptor:
        return SecurityDescriptor(
            self.sid() if self._random.random() < 0.8 else None,
            self.sid() if self._random.random() < 0.8 else None,
            self.acl(),
            self.acl(),
            Control(self._random.getrandbits(16) & ~Control.RM_CONTROL_VALID),
        )

    # Small worlds, in which a token and a list have something to do with each other.

    def access_ace(self) -> Ace:
        mask = self._random.choice((0x1, 0x7, 0x20, 0x3F, 0xF003F, 0xF003F, 0x60000, 0x80000))
        flags = AceFlags(self._random.choice((0, 0, 0, 0, 0x02, 0x0A, 0x10)))
        sid = self._random.choice(TRUSTEES)
        kind = self._random.random()
        if kind < 0.65:
            return PlainAce(AceType.ACCESS_ALLOWED, mask, sid, flags)
        if kind < 0.85:
            return PlainAce(AceType.ACCESS_DENIED, mask, sid, flags)
        if kind < 0.95:
            return ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, mask, sid, self.guid(), None, flags)
        return ObjectAce(AceType.ACCESS_DENIED_OBJECT, mask, sid, None, self.guid(), flags)

    def access_case(self) -> AccessCase:
        sd = SecurityDescriptor(
            self._random.choice((None, ALICE, ALICE, BOB, STAFF)),
            dacl=Acl(tuple(self.access_ace() for _ in range(self._random.randint(0, 8)))),
        )
        token = Token(
            self._random.choice((ALICE, BOB)),
            frozenset(group for group in GROUPS if self._random.random() < 0.7),
            security_privilege=self._random.random() < 0.2,
            take_ownership_privilege=self._random.random() < 0.2,
        )
        wishes = (0x1, 0x2, 0x4, 0x20, 0x10000, 0x20000, 0x40000, 0x80000, SYSTEM_SECURITY)
        generic = (0x80000000, 0x40000000, 0x10000000)
        kind = self._random.random()
        if kind < 0.3:
            desired = MAXIMUM_ALLOWED | self._random.choice((0, 0, 0x1, 0x20000, 0x80000))
        elif kind < 0.4:
            desired = self._random.choice(generic)
        else:
            desired = sum(self._random.sample(wishes, self._random.choice((1, 1, 1, 2, 3))))
        return sd, token, desired


DESCRIPTORS = [Corpus(seed).descriptor() for seed in range(150)]
ACCESS_CASES = [Corpus(seed).access_case() for seed in range(600)]


# --- impacket -------------------------------------------------------------------------------------


def impacket_ace(ace: Any) -> Ace:
    body = ace["Ace"]
    ace_type, flags = AceType(ace["AceType"]), AceFlags(ace["AceFlags"])
    sid = Sid.parse(body["Sid"].formatCanonical())
    if ace_type <= AceType.SYSTEM_AUDIT:
        return PlainAce(ace_type, body["Mask"]["Mask"], sid, flags)
    object_type, inherited = (
        Guid(body[name]) if body[name] else None for name in ("ObjectType", "InheritedObjectType")
    )
    return ObjectAce(ace_type, body["Mask"]["Mask"], sid, object_type, inherited, flags)


def impacket_acl(acl: Any) -> Acl | None:
    return None if acl == b"" else Acl(tuple(impacket_ace(ace) for ace in acl.aces))


def impacket_sid(sid: Any) -> Sid | None:
    return None if sid == b"" else Sid.parse(sid.formatCanonical())


def test_impacket_reads_our_sids_and_we_its() -> None:
    corpus = Corpus(1)
    for sid in (corpus.sid() for _ in range(50)):
        theirs = LDAP_SID(data=sid.to_bytes())
        assert theirs.formatCanonical() == str(sid)
        written = LDAP_SID()
        written.fromCanonical(str(sid))
        assert Sid.from_bytes(written.getData()) == sid


def test_impacket_reads_our_descriptors_and_we_its() -> None:
    """Those with a DACL: without one, impacket mistakes the rest of the buffer for it."""
    judged = [sd for sd in DESCRIPTORS if sd.dacl is not None]
    assert len(judged) > 100
    for sd in judged:
        theirs = SR_SECURITY_DESCRIPTOR(data=sd.to_bytes())
        assert theirs["Control"] == sd.control
        assert impacket_sid(theirs["OwnerSid"]) == sd.owner
        assert impacket_sid(theirs["GroupSid"]) == sd.group
        assert impacket_acl(theirs["Dacl"]) == sd.dacl
        assert impacket_acl(theirs["Sacl"]) == sd.sacl
        assert theirs.getData() == sd.to_bytes()


def test_impacket_reads_our_callback_aces() -> None:
    body = (0x10).to_bytes(4, "little") + well_known.EVERYONE.to_bytes() + b"artx"
    sd = SecurityDescriptor(dacl=Acl((OpaqueAce(AceType.ACCESS_DENIED_CALLBACK, body),)))
    theirs = SR_SECURITY_DESCRIPTOR(data=sd.to_bytes())["Dacl"].aces[0]["Ace"]
    assert theirs["Sid"].formatCanonical() == "S-1-1-0"
    assert theirs["ApplicationData"] == b"artx"


# --- Samba ----------------------------------------------------------------------------------------


def as_samba_case(sd: SecurityDescriptor, token: Token, desired: int) -> list[object]:
    """Samba's check maps nothing, which its callers do beforehand."""
    assert token.user is not None
    privileges = ["security"] if token.security_privilege else []
    privileges += ["take_ownership"] if token.take_ownership_privilege else []
    mapped = generic_mapping(ObjectType.QUEUE).map(desired)
    sids = [str(sid) for sid in (token.user, *sorted(token.groups))]
    return [sd.to_bytes().hex(), sids, privileges, mapped]


def case(sddl: str, desired: int) -> AccessCase:
    token = Token(ALICE, frozenset((well_known.EVERYONE,)))
    return parse_sddl(sddl.format(alice=ALICE)), token, desired


#: Where Samba's rules are other ones: its answer, ours, and the reason for ours.
DIFFERENCES: dict[str, tuple[AccessCase, int | None, int | None]] = {
    # 2.5.3.2: "No DACL ... any access check will succeed", NULL or absent. Samba lets NULL pass
    # and denies everything, even to the owner, if the list is absent.
    "absent DACL": (case("O:BA", 0x1), None, 0x1),
    "absent DACL, owner": (case("O:{alice}", 0x20000), None, 0x20000),
    # The maximum that a NULL list allows is everything that the object knows. Samba counts ACEs.
    "maximum of a NULL DACL": (case("D:NO_ACCESS_CONTROL", MAXIMUM_ALLOWED), 0, 0xF003F),
    # 2.5.3.2 ends in access_denied if the maximum is nothing. Samba grants nothing, successfully.
    "maximum is nothing": (case("D:", MAXIMUM_ALLOWED), 0, None),
    # 2.4.4.5: an object ACE whose GUID is not found is ignored. Samba lets any object ACE deny.
    "object deny with a GUID": (
        case(f"D:(OD;;0x1;{GUID};;WD)(A;;0x1;;;WD)", 0x1),
        None,
        0x1,
    ),
    # 2.5.3.2 gives ACCESS_SYSTEM_SECURITY to the privilege alone. Samba also to an ACE or no list.
    "system security by an ACE": (
        case("D:(A;;0xffffffff;;;WD)", SYSTEM_SECURITY),
        SYSTEM_SECURITY,
        None,
    ),
    "system security by a NULL DACL": (
        case("D:NO_ACCESS_CONTROL", SYSTEM_SECURITY),
        SYSTEM_SECURITY,
        None,
    ),
    # Generic bits of an ACE mean nothing to the check (2.4.3), so they are no result of it either.
    "maximum with a generic bit": (
        case("D:(A;;0x10000001;;;WD)", MAXIMUM_ALLOWED),
        0x10000001,
        0x1,
    ),
}


@pytest.fixture(scope="module")
def samba() -> dict[str, Any]:
    """Samba's answers to everything, from one process."""
    probe = [SYSTEM_PYTHON, "-I", "-c", "import samba.security, samba.dcerpc.security"]
    found = Path(SYSTEM_PYTHON).exists()
    if not found or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip(f"{SYSTEM_PYTHON} lacks samba: install the Debian package python3-samba")
    work = {
        "descriptors": [sd.to_bytes().hex() for sd in DESCRIPTORS],
        "sddl": [to_sddl(sd) for sd in SPOKEN],
        "checks": [as_samba_case(*args) for args in ACCESS_CASES]
        + [as_samba_case(*args) for args, _, _ in DIFFERENCES.values()],
    }
    command = [SYSTEM_PYTHON, "-I", str(SCRIPT)]
    done = subprocess.run(
        command,
        input=json.dumps(work),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


#: Samba's parser knows no NULL list, and after an empty one takes the S of "S:" for a flag.
SPOKEN = [
    sd
    for sd in DESCRIPTORS
    if not (sd.has_null_dacl or has_null_sacl(sd))
    and not (sd.dacl == Acl.EMPTY and sd.sacl is not None)
]


def samba_guid(text: str | None) -> Guid | None:
    return None if text is None else Guid.parse(text)


def samba_acl(view: list[list[Any]] | None) -> Acl | None:
    if view is None:
        return None
    aces: list[Ace] = []
    for number, flags, mask, object_type, inherited, trustee in view:
        ace_type, sid = AceType(number), Sid.parse(trustee)
        if ace_type <= AceType.SYSTEM_AUDIT:
            aces.append(PlainAce(ace_type, mask, sid, AceFlags(flags)))
        else:
            guids = (samba_guid(object_type), samba_guid(inherited))
            aces.append(ObjectAce(ace_type, mask, sid, guids[0], guids[1], AceFlags(flags)))
    return Acl(tuple(aces))


def test_samba_unpacks_our_descriptors(samba: dict[str, Any]) -> None:
    for sd, view in zip(DESCRIPTORS, samba["descriptors"], strict=True):
        assert view["control"] == sd.control
        assert view["owner"] == (None if sd.owner is None else str(sd.owner))
        assert view["group"] == (None if sd.group is None else str(sd.group))
        assert samba_acl(view["dacl"]) == sd.dacl
        assert samba_acl(view["sacl"]) == sd.sacl


def test_we_unpack_what_samba_packs(samba: dict[str, Any]) -> None:
    """Samba writes owner, group, SACL, DACL, which is another order than ours."""
    orders = set()
    for sd, view in zip(DESCRIPTORS, samba["descriptors"], strict=True):
        data = bytes.fromhex(view["packed"])
        assert SecurityDescriptor.from_bytes(data) == sd
        orders.add(data == sd.to_bytes())
    assert orders == {True, False}


def test_samba_says_the_same_in_sddl(samba: dict[str, Any]) -> None:
    """For a NULL list Samba says nothing at all, where we say NO_ACCESS_CONTROL."""
    for sd, view in zip(DESCRIPTORS, samba["descriptors"], strict=True):
        hidden = Control(0)
        if sd.has_null_dacl:
            hidden |= Control(0x1504)
        if has_null_sacl(sd):
            hidden |= Control(0x2A10)
        expected = expressible(sd)
        said = SecurityDescriptor(
            expected.owner,
            expected.group,
            expected.dacl,
            expected.sacl,
            expected.control & ~hidden,
        )
        assert parse_sddl(view["sddl"]) == said


def test_samba_understands_our_sddl(samba: dict[str, Any]) -> None:
    assert len(SPOKEN) > 50
    for sd, packed in zip(SPOKEN, samba["sddl"], strict=True):
        assert SecurityDescriptor.from_bytes(bytes.fromhex(packed)) == expressible(sd)


def ours(sd: SecurityDescriptor, token: Token, desired: int) -> int | None:
    result = access_check(sd, token, desired, generic_mapping(ObjectType.QUEUE))
    return result.granted if result else None


def test_samba_agrees_on_access(samba: dict[str, Any]) -> None:
    granted = 0
    for args, theirs in zip(ACCESS_CASES, samba["checks"][: len(ACCESS_CASES)], strict=True):
        answer = ours(*args)
        granted += answer is not None
        if answer is None and args[2] == MAXIMUM_ALLOWED:
            answer = 0  # "maximum is nothing" below
        assert answer == theirs, args
    assert 150 < granted < len(ACCESS_CASES) - 150  # neither answer is a matter of course


@pytest.mark.parametrize("name", DIFFERENCES)
def test_where_samba_differs(samba: dict[str, Any], name: str) -> None:
    answers = dict(zip(DIFFERENCES, samba["checks"][len(ACCESS_CASES) :], strict=True))
    args, theirs, expected = DIFFERENCES[name]
    assert ours(*args) == expected
    assert answers[name] == theirs


def test_samba_has_the_same_directory_rights(samba: dict[str, Any]) -> None:
    """MS-ADTS is not at hand; Samba's table confirms the values that users borrow from it."""
    theirs = samba["rights"]
    assert theirs["SEC_ADS_SELF_WRITE"] == UserRights.DS_WRITE_PROPERTY_EXTENDED
    assert theirs["SEC_ADS_WRITE_PROP"] == UserRights.DS_WRITE_PROPERTY
    assert theirs["SEC_ADS_GENERIC_READ"] == UserRights.GENERIC_READ_MAPPING
    assert theirs["SEC_ADS_GENERIC_WRITE"] == UserRights.GENERIC_WRITE_MAPPING
    assert theirs["SEC_ADS_GENERIC_EXECUTE"] == UserRights.GENERIC_EXECUTE_MAPPING
    assert theirs["SEC_ADS_GENERIC_ALL"] == UserRights.GENERIC_ALL_MAPPING
