"""The server that a client says it logs on to."""

from __future__ import annotations

import socket

import pytest

from mqis.protocol.authentication import NOWHERE, Addresses, AuthenticationError, AuthType
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.target import OwnNames, host_of
from tests.runtime.authentication.handmade import EOL, Client, av, negotiate
from tests.runtime.authentication.pairs import ACCOUNTS, PASSWORD

pytestmark = pytest.mark.req("SEC-5-02")
REMOTE = Addresses("192.0.2.77", "192.0.2.1")
LOCAL = Addresses("127.0.0.1", "127.0.0.1")
MAPPED = Addresses("::ffff:192.0.2.77", "::ffff:192.0.2.1")
SIX = Addresses("2001:db8::77", "2001:db8::1")
NAMES = OwnNames.of("AMS-DIR1", "LAB", ["dir.example.org", "10.9.9.9", "msmq svc", "MSMQ/alias"])

OURS = [
    ("host/ams-dir1", REMOTE),
    ("HOST/AMS-DIR1", REMOTE),
    ("cifs/ams-dir1.lab", REMOTE),
    ("rpc/ams-dir1.lab.", REMOTE),
    ("ams-dir1", REMOTE),
    ("host/ams-dir1:2879", REMOTE),
    ("host/ams-dir1:2879/instance", REMOTE),
    ("host/dir.example.org", REMOTE),
    ("host/10.9.9.9", REMOTE),
    ("MSMQ svc", REMOTE),
    ("msmq/alias", REMOTE),
    ("host/192.0.2.1", REMOTE),
    ("host/192.0.2.1", MAPPED),
    ("host/2001:db8::1", SIX),
    ("host/[2001:db8:0::1]:2879", SIX),
    ("host/localhost", LOCAL),
    ("host/127.0.0.1", LOCAL),
    ("host/[::1]", LOCAL),
]
FOREIGN = [
    ("cifs/alias", REMOTE),
    ("host/ams-dir2", REMOTE),
    ("host/ams-dir1.evil.example", REMOTE),
    ("ams-dir1/intranet", REMOTE),
    ("host/intranet/ams-dir1", REMOTE),
    ("host/192.0.2.2", REMOTE),
    ("host/192.0.2.1", NOWHERE),
    ("host/localhost", REMOTE),
    ("host/127.0.0.1", REMOTE),
    ("host/", REMOTE),
    ("/", LOCAL),
    ("host/unspecified", LOCAL),
]


@pytest.mark.parametrize(("target", "addresses"), OURS)
def test_names_of_ours(target: str, addresses: Addresses) -> None:
    assert NAMES.include(target, addresses)


@pytest.mark.parametrize(("target", "addresses"), FOREIGN)
def test_names_of_others(target: str, addresses: Addresses) -> None:
    assert not NAMES.include(target, addresses)


def test_the_names_of_the_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "box.corp.example")
    names = OwnNames.of("dir1", "")
    ours = ("box", "box.corp.example", "dir1", "dir1.corp.example")
    assert all(names.include(f"host/{name}", REMOTE) for name in ours)
    assert not names.include("host/corp.example", REMOTE)
    assert not OwnNames.of("", "").include("host/", REMOTE)


def test_hosts() -> None:
    assert [host_of(t) for t in ("a/b/c", "b", "a/[::1]:5", "a/::1", "a/b:1")] == [
        *("b", "b", "::1", "::1", "b")
    ]


def refusal(*targets: str | bytes) -> str:
    """The acceptor's error for a right password with these targets; '' if it accepts."""
    server = PyspnegoAuthenticator(ACCOUNTS, "SRV1", "LAB")
    acceptor = server.acceptor(AuthType.NTLM, 5, REMOTE)
    challenge = acceptor.step(negotiate())
    assert challenge is not None
    values = (t if isinstance(t, bytes) else t.encode("utf-16-le") for t in targets)
    pairs = b"".join(av(9, value) for value in values)
    try:
        acceptor.step(Client("alice", "LAB", PASSWORD).authenticate(challenge, pairs + EOL))
    except AuthenticationError as error:
        assert not acceptor.complete
        assert acceptor.identity is None
        return str(error)
    assert acceptor.complete
    return ""


def test_a_client_that_names_no_target_is_let_in() -> None:
    assert refusal() == ""
    assert refusal("") == ""
    assert refusal("host/srv1") == ""


def test_a_logon_for_another_server_is_refused() -> None:
    assert "meant for 'cifs/other', which is not a name" in refusal("cifs/other")
    assert "meant for" in refusal("host/srv1", "host/other"), "each of several has to be ours"
    assert "meant for" in refusal(b"\x00\xd8\x00"), "half a surrogate and half a character"
    assert len(refusal("host/" + "x" * 30_000)) < 300
