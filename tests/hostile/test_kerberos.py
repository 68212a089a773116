"""Kerberos principals that are not who they seem: of other realms, with other names.

These attacks need no KDC of the attacker here: what a realm says is given as GSSAPI gives it to the
server. ``tests/runtime/authentication/test_kerberos.py`` has the same exchange with a real KDC.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mqis.protocol.authentication import AuthenticationError, AuthType, Identity
from mqis.runtime.authentication import kerberos
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.wire.security.sid import ADMINISTRATORS, Sid

ALICE = Account(
    "LAB", "alice", Sid.parse("S-1-5-21-1-2-3-1000"), nt_hash("x"), frozenset({ADMINISTRATORS})
)
LOCAL = Account("", "root", Sid.parse("S-1-5-21-1-2-3-1001"), nt_hash("x"))
PARTNER = Account("PARTNER.TEST", "carol", Sid.parse("S-1-5-21-1-2-3-1002"), nt_hash("x"))
ACCOUNTS = MemoryAccounts([ALICE, LOCAL, PARTNER])


def keytab(*realms: str) -> bytes:
    entries = b""
    for realm in realms:
        encoded = realm.encode()
        body = struct.pack(">HH", 2, len(encoded)) + encoded + b"\0\4host\0\3srv" + bytes(30)
        entries += struct.pack(">i", len(body)) + body
    return b"\x05\x02" + entries


class _Told(kerberos.KerberosAcceptor):
    """An acceptor whose exchange is over; GSSAPI says who the client is."""

    complete = True
    client_principal = ""

    def __init__(self, principal: str, realms: frozenset[str]) -> None:
        self.client_principal = principal
        self._accounts = ACCOUNTS
        self._own_names = ("LAB", "SRV1")
        self._own_realms = realms


def who(principal: str, realm: str = "LAB.EXAMPLE.COM") -> Identity | None:
    return _Told(principal, frozenset({realm})).identity


@pytest.mark.req("SEC-10-01")
@pytest.mark.parametrize(
    "principal",
    [
        "alice@LAB.EVIL.TEST",  # begins as the own domain does
        "alice@LAB",  # is called as the own domain is
        "alice@lab.example.com",  # another realm to Kerberos, which compares exactly
        "root@SRV1",  # is called as the server is
        "root@LAB",
        "root@",
        "alice@LAB.EXAMPLE.COM@EVIL.TEST",
        "carol@partner.test.evil.test",
    ],
)
def test_a_user_of_another_realm_is_not_one_of_ours(principal: str) -> None:
    found = who(principal)
    assert found is not None
    assert found.sid is None
    assert found.groups == frozenset()


@pytest.mark.req("SEC-10-01")
@pytest.mark.parametrize(
    "name",
    ["alice/admin", "alice/srv1", "LAB\\\\alice", "alice\\@LAB", "LAB\\\\LAB/alice", "host/srv1"],
)
def test_a_name_that_contains_another_is_not_that_user(name: str) -> None:
    found = who(f"{name}@LAB.EXAMPLE.COM")
    assert found is not None
    assert found.sid is None


@pytest.mark.req("SEC-10-01")
def test_own_users_and_users_of_a_partner_by_its_full_name_are_known() -> None:
    assert who("alice@LAB.EXAMPLE.COM") == ALICE.identity
    assert who("root@LAB", "LAB") == LOCAL.identity
    assert who("carol@PARTNER.TEST") == PARTNER.identity


@pytest.mark.req("SEC-10-01")
def test_the_keys_of_the_whole_computer_are_not_those_of_a_server_without_a_keytab(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KRB5_KTNAME or /etc/krb5.keytab would let in whoever has a ticket for this computer."""
    monkeypatch.setattr(kerberos, "check_available", lambda: None)
    server = PyspnegoAuthenticator(ACCOUNTS, "SRV1", "LAB")
    with pytest.raises(AuthenticationError, match=r"no security\.keytab"):
        server.acceptor(AuthType.KERBEROS, 5)


@pytest.mark.req("SEC-10-01")
def test_a_keytab_that_others_may_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads it makes tickets for everybody."""
    path = tmp_path / "server.keytab"
    path.write_bytes(keytab("LAB"))
    path.chmod(0o644)
    monkeypatch.setattr(kerberos, "check_available", lambda: None)
    server = PyspnegoAuthenticator(ACCOUNTS, "SRV1", "LAB", keytab=str(path))
    with pytest.raises(AuthenticationError, match="chmod 600"):
        server.acceptor(AuthType.KERBEROS, 5)
