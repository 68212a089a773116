"""Kerberos with a KDC of MIT, on a loopback port, for as long as these tests run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mqis.protocol.authentication import (
    AuthenticationError,
    AuthType,
    Identity,
    LogonEnd,
    SecurityContext,
)
from mqis.runtime.authentication import kerberos
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.server.logon import AuditedAuthenticator
from mqis.testing.ports import free_port
from mqis.wire.security.sid import ADMINISTRATORS
from tests.runtime.authentication.pairs import ACCOUNTS, ALICE, PASSWORD, connect
from tests.waiting import wait_until

pytestmark = pytest.mark.interop

REALM = "LAB"
HOST = "srv1.lab.test"
TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local")
TYPES = pytest.mark.parametrize("auth_type", [AuthType.KERBEROS, AuthType.SPNEGO])
HEADER, BODY, TRAILER = (
    bytes(range(24)),
    b"stub and verification trailer...",
    b"\x10\x05\0\0\1\0\0\0",
)


def tool(name: str) -> str | None:
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


@dataclass(frozen=True, slots=True)
class Realm:
    keytab: Path
    environment: dict[str, str]

    def administer(self, command: str) -> None:
        """Gives the KDC's database a command."""
        program = [str(tool("kadmin.local")), "-q", command]
        subprocess.run(program, env=self.environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    if not kerberos.available():
        pytest.skip("the extra mqis[kerberos] (gssapi, krb5) is not installed")
    missing = [name for name in TOOLS if tool(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found: krb5-kdc is not installed")
    directory = tmp_path_factory.mktemp("kdc")
    port = free_port()
    keytab = directory / "server.keytab"
    environment = configure(directory, port)

    def run(*command: str) -> None:
        name = tool(command[0])
        assert name is not None
        subprocess.run([name, *command[1:]], env=environment, check=True, capture_output=True)

    run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    run("kadmin.local", "-q", f'addprinc -pw "{PASSWORD}" alice')
    run("kadmin.local", "-q", f'addprinc -pw "{PASSWORD}" carol')
    run("kadmin.local", "-q", f'addprinc -pw "{PASSWORD}" alice/admin')
    run("kadmin.local", "-q", f'addprinc -maxlife "10 minutes" -pw "{PASSWORD}" hasty')
    run("kadmin.local", "-q", f"addprinc -randkey host/{HOST}")
    run("kadmin.local", "-q", f"ktadd -k {keytab} host/{HOST}")
    kdc = subprocess.Popen(
        [str(tool("krb5kdc")), "-n", "-P", str(directory / "pid")],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    old = os.environ.get("KRB5_CONFIG")
    os.environ["KRB5_CONFIG"] = environment["KRB5_CONFIG"]
    try:
        wait_for(port)
        yield Realm(keytab, environment)
    finally:
        kdc.terminate()
        kdc.wait()
        del os.environ["KRB5_CONFIG"]
        if old is not None:
            os.environ["KRB5_CONFIG"] = old


def wait_for(port: int) -> None:
    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(answers, "the KDC answers")


def configure(directory: Path, port: int) -> dict[str, str]:
    (directory / "krb5.conf").write_text(
        f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\nrdns = false\n"
        "dns_canonicalize_hostname = false\nudp_preference_limit = 1\n"
        f"[realms]\n{REALM} = {{\nkdc = 127.0.0.1:{port}\n}}\n"
        f"[domain_realm]\n.lab.test = {REALM}\n"
    )
    (directory / "kdc.conf").write_text(
        f"[kdcdefaults]\nkdc_listen = 127.0.0.1:{port}\nkdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n{REALM} = {{\ndatabase_name = {directory}/principal\n"
        f"key_stash_file = {directory}/stash\nacl_file = {directory}/acl\n}}\n"
    )
    return os.environ | {
        "KRB5_CONFIG": str(directory / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
    }


def pair(
    realm: Realm, auth_type: int, level: int, name: str = "alice", password: str = PASSWORD
) -> tuple[SecurityContext, SecurityContext]:
    accounts = ACCOUNTS if auth_type == AuthType.KERBEROS else MemoryAccounts([ALICE])
    server = PyspnegoAuthenticator(accounts, "SRV1", REALM, keytab=str(realm.keytab))
    client = PyspnegoInitiator(LogonCredentials(name, REALM, password=password))
    return connect(auth_type, level, client, server, target=f"host/{HOST}")


@TYPES
@pytest.mark.parametrize("level", [2, 4, 5, 6])
@pytest.mark.parametrize("sign_header", [False, True])
def test_messages_each_way(realm: Realm, auth_type: int, level: int, sign_header: bool) -> None:
    initiator, acceptor = pair(realm, auth_type, level)
    assert acceptor.identity == ALICE.identity
    for number in range(20):
        for sender, receiver in ((initiator, acceptor), (acceptor, initiator)):
            body = bytes([number]) * (16 * number)
            sent, signature = sender.protect(level, HEADER, body, TRAILER, sign_header)
            assert len(signature) == sender.signature_size(level)
            assert len(sent) == len(body)
            assert (sent == body) == (level < 6 or not body)
            got = receiver.unprotect(level, HEADER, sent, TRAILER, signature, sign_header)
            assert got == body


@TYPES
@pytest.mark.parametrize("level", [5, 6])
@pytest.mark.parametrize("part", ["header", "body", "trailer", "signature"])
def test_what_a_signature_covers(realm: Realm, auth_type: int, level: int, part: str) -> None:
    """Header and trailer only if header signing was agreed."""
    for sign_header in (False, True):
        initiator, acceptor = pair(realm, auth_type, level)
        body, signature = initiator.protect(level, HEADER, BODY, TRAILER, sign_header)
        parts = {"header": HEADER, "body": body, "trailer": TRAILER, "signature": signature}
        parts[part] = parts[part][:-1] + bytes([parts[part][-1] ^ 1])
        if part in ("header", "trailer") and not sign_header:
            assert acceptor.unprotect(level, **parts, sign_header=False) == BODY
            continue
        with pytest.raises(AuthenticationError, match="signature is wrong"):
            acceptor.unprotect(level, **parts, sign_header=sign_header)


@TYPES
@pytest.mark.parametrize("level", [5, 6])
def test_replayed_and_reordered(realm: Realm, auth_type: int, level: int) -> None:
    for before, refused in (([0], 0), ([], 1), ([0, 1], 0)):
        initiator, acceptor = pair(realm, auth_type, level)
        sent = [initiator.protect(level, HEADER, BODY, TRAILER, True) for _ in range(2)]
        for body, signature in (sent[number] for number in before):
            acceptor.unprotect(level, HEADER, body, TRAILER, signature, True)
        body, signature = sent[refused]
        with pytest.raises(AuthenticationError):
            acceptor.unprotect(level, HEADER, body, TRAILER, signature, True)


def test_a_principal_without_an_account(realm: Realm) -> None:
    acceptor = pair(realm, AuthType.KERBEROS, 5, "carol")[1]
    assert acceptor.identity == Identity(REALM, "carol")


@pytest.mark.req("SEC-10-01")
def test_an_instance_of_a_user_is_not_that_user(realm: Realm) -> None:
    acceptor = pair(realm, AuthType.KERBEROS, 5, "alice/admin")[1]
    assert acceptor.identity == Identity(REALM, "alice/admin")


def test_a_wrong_password(realm: Realm) -> None:
    with pytest.raises(AuthenticationError, match="no ticket"):
        pair(realm, AuthType.KERBEROS, 5, password="guess")


def test_negotiate_falls_back_to_ntlm(realm: Realm) -> None:
    """A server without a key for Kerberos asks for NTLM instead."""
    server = PyspnegoAuthenticator(ACCOUNTS, "SRV1", REALM, names=[HOST])
    client = PyspnegoInitiator(LogonCredentials("alice", REALM, password=PASSWORD))
    initiator, acceptor = connect(AuthType.SPNEGO, 6, client, server, target=f"host/{HOST}")
    assert acceptor.identity == ALICE.identity
    assert acceptor.signature_size(6) == 16
    body, signature = initiator.protect(6, HEADER, BODY, TRAILER, True)
    assert acceptor.unprotect(6, HEADER, body, TRAILER, signature, True) == BODY


def test_a_last_token_is_worth_nothing_to_another_context(realm: Realm) -> None:
    server = PyspnegoAuthenticator(ACCOUNTS, "SRV1", REALM, keytab=str(realm.keytab))
    client = PyspnegoInitiator(LogonCredentials("alice", REALM, password=PASSWORD))
    initiator = client.initiator(AuthType.KERBEROS, 5, f"host/{HOST}")
    first = initiator.step(None)
    acceptor = server.acceptor(AuthType.KERBEROS, 5)
    last = initiator.step(acceptor.step(first))
    other = server.acceptor(AuthType.KERBEROS, 5)
    with pytest.raises(AuthenticationError):  # the same ticket again: MIT's replay cache
        other.step(first)
    assert acceptor.step(last) is None
    assert acceptor.complete


class ChangingAccounts(MemoryAccounts):
    """Accounts that a test exchanges."""

    def use(self, *accounts: Account) -> None:
        super().__init__(accounts)
        self.edition += 1


def audited(
    realm: Realm, name: str, accounts: MemoryAccounts, clock: Callable[[], float]
) -> SecurityContext:
    """The server's side of a logon with a ticket."""
    server = PyspnegoAuthenticator(accounts, "SRV1", REALM, keytab=str(realm.keytab))
    client = PyspnegoInitiator(LogonCredentials(name, REALM, password=PASSWORD))
    authenticator = AuditedAuthenticator(server, clock=clock)
    return connect(AuthType.KERBEROS, 5, client, authenticator, target=f"host/{HOST}")[1]


@pytest.mark.req("SEC-18-03")
def test_a_logon_ends_with_its_ticket(realm: Realm) -> None:
    now = [1000.0]
    hasty = audited(realm, "hasty", MemoryAccounts(), lambda: now[0])
    usual = audited(realm, "carol", MemoryAccounts(), lambda: now[0])
    now[0] += 580
    assert (hasty.ended, usual.ended) == (None, None)
    now[0] += 20 + 300 + 1  # and the difference of clocks that Kerberos allows
    assert (hasty.ended, usual.ended) == (LogonEnd.EXPIRED, None)
    assert hasty.identity is None
    now[0] += 12 * 3600
    assert usual.ended is LogonEnd.EXPIRED


@pytest.mark.req("SEC-18-01")
def test_a_principal_whose_account_is_removed_has_to_log_on_again(realm: Realm) -> None:
    accounts = ChangingAccounts([ALICE])
    alice = audited(realm, "alice", accounts, lambda: 0.0)
    carol = audited(realm, "carol", accounts, lambda: 0.0)
    assert alice.identity == ALICE.identity
    accounts.use(replace(ALICE, groups=frozenset({ADMINISTRATORS})))
    assert alice.identity == replace(ALICE.identity, groups=frozenset({ADMINISTRATORS}))
    accounts.use()
    assert alice.ended is LogonEnd.REVOKED
    assert not alice.identity
    assert carol.identity == Identity(REALM, "carol"), "who never had an account keeps the logon"
