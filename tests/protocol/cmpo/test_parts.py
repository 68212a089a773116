"""Name objects and the rules of security."""

from __future__ import annotations

import pickle

import pytest

from mqis.protocol.authentication import ANONYMOUS, AuthLevel, Identity
from mqis.protocol.cmpo.nameobject import NameObject, is_host_name
from mqis.protocol.cmpo.partner_security import (
    SecurityLevel,
    admits,
    attempts,
    is_machine,
    principal,
)
from mqis.protocol.cmpo.session_setup import SessionError
from mqis.wire.cmpo.codes import CmResult, ComProtocol
from mqis.wire.guid import Guid

CID = Guid.parse("b51996ef-c434-4f79-a288-56efd302fc8e")
MUTUAL, INCOMING, NONE = SecurityLevel.MUTUAL, SecurityLevel.INCOMING, SecurityLevel.NONE
SOMEBODY = Identity("CORP", "ALPHA$")
PRIVACY = AuthLevel.PRIVACY


def test_name_objects_are_equal_by_cid_and_host() -> None:
    name = NameObject("Alpha", CID)
    same = NameObject("ALPHA", CID, ComProtocol.SPX)
    assert name == same
    assert hash(name) == hash(same)
    assert name != NameObject("BETA", CID)
    assert name != NameObject("Alpha", Guid.parse("b51996ef-c434-4f79-a288-56efd302fc8f"))
    assert name != "Alpha"


def test_name_objects_as_text() -> None:
    name = NameObject("Alpha", CID)
    assert str(name) == "Alpha/b51996ef-c434-4f79-a288-56efd302fc8e"
    assert NameObject.parse(str(name)) == name
    for wrong in ("Alpha", "/", "Alpha/x", f"/{CID}", f"much-too-long-name/{CID}"):
        with pytest.raises(ValueError, match=r"HOST/CID|GUID|NetBIOS"):
            NameObject.parse(wrong)
    with pytest.raises(ValueError, match="'Alpha' is not of the form HOST/CID"):
        NameObject.parse("Alpha")
    with pytest.raises(ValueError, match="null GUID"):
        NameObject("Alpha", Guid.NULL)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("A", True),
        ("Machine_1", True),
        ("FIFTEEN-LETTERS", True),
        ("SIXTEEN-LETTERS-", False),
        ("", False),
        (" A", False),
        ("A\nB", False),
        ("A\\B", False),
        ("A:B", False),
        ("\U0001f600" * 7, True),
        ("\U0001f600" * 8, False),  # sixteen units
    ],
)
def test_host_names(text: str, good: bool) -> None:
    assert is_host_name(text) is good


@pytest.mark.parametrize(
    ("level", "credentials", "expected"),
    [
        (MUTUAL, True, (True,)),
        (INCOMING, True, (True, False)),
        (INCOMING, False, (False,)),
        (NONE, True, (True, False)),
        (NONE, False, (False,)),
    ],
)
def test_calls_out(level: SecurityLevel, credentials: bool, expected: tuple[bool, ...]) -> None:
    assert attempts(level, credentials=credentials) == expected


@pytest.mark.parametrize("initiated_here", [False, True])
@pytest.mark.parametrize("level", SecurityLevel)
def test_calls_in(level: SecurityLevel, initiated_here: bool) -> None:
    def let_in(auth_level: int, identity: Identity | None) -> bool:
        return admits(level, auth_level, identity, initiated_here=initiated_here)

    assert let_in(PRIVACY, SOMEBODY)
    lax = level is NONE or (level is INCOMING and initiated_here)
    assert let_in(AuthLevel.NONE, None) is lax
    assert let_in(AuthLevel.INTEGRITY, SOMEBODY) is lax
    assert let_in(PRIVACY, ANONYMOUS) is lax


def test_machines() -> None:
    assert is_machine(SOMEBODY, "alpha")
    assert not is_machine(SOMEBODY, "beta")
    assert not is_machine(Identity("CORP", "alpha"), "alpha")
    assert not is_machine(None, "alpha")


def test_whom_to_expect() -> None:
    assert principal("BETA", None) == "host/BETA"
    assert principal("BETA", SOMEBODY) == "host/ALPHA"
    assert principal("BETA", Identity("CORP", "alice")) == "host/BETA"


def test_errors_travel() -> None:
    error = SessionError(CmResult.TIMED_OUT, "no session with B")
    assert "TIMED_OUT (0x80000124)" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.result, str(copy)) == (error.result, str(error))
