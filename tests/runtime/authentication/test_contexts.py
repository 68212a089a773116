"""Our initiator and our acceptor, joined in memory: NTLM, and NTLM inside Negotiate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from spnego import KerberosCCache

from mqis.protocol.authentication import (
    AuthenticationError,
    AuthLevel,
    AuthType,
    SecurityContext,
    auth_type_name,
)
from mqis.runtime.authentication import kerberos
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import MemoryAccounts, nt_hash
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from tests.runtime.authentication.pairs import (
    ALICE,
    BOB,
    CLIENT,
    PASSWORD,
    SERVER,
    TARGET,
    connect,
    exchange,
)

TYPES = pytest.mark.parametrize("auth_type", [AuthType.NTLM, AuthType.SPNEGO])
LEVELS = pytest.mark.parametrize("level", [2, 3, 4, 5, 6])
SIGNED = pytest.mark.parametrize("level", [3, 4, 5, 6])

HEADER, BODY, TRAILER = (
    bytes(range(24)),
    b"stub and verification trailer...",
    b"\x0a\x05\0\0\1\0\0\0",
)


def client(name: str, password: str, domain: str = "") -> PyspnegoInitiator:
    return PyspnegoInitiator(LogonCredentials(name, domain, nt_hash=nt_hash(password)))


def send(
    sender: SecurityContext, receiver: SecurityContext, level: int, body: bytes, signs: bool
) -> bytes:
    sent, signature = sender.protect(level, HEADER, body, TRAILER, signs)
    assert len(signature) == sender.signature_size(level)
    if level == AuthLevel.PRIVACY and len(body) > 8:
        assert sent != body
    return receiver.unprotect(level, HEADER, sent, TRAILER, signature, signs)


@TYPES
@LEVELS
@pytest.mark.parametrize("sign_header", [False, True])
def test_fifty_messages_each_way(auth_type: int, level: int, sign_header: bool) -> None:
    initiator, acceptor = connect(auth_type, level)
    assert initiator.complete
    assert acceptor.complete
    assert initiator.identity is None
    assert acceptor.identity == ALICE.identity
    for number in range(50):
        body = bytes([number]) * (number * 7 % 100)
        assert send(initiator, acceptor, level, body, sign_header) == body
        if number % 3:  # the two directions count on their own
            assert send(acceptor, initiator, level, body[::-1], sign_header) == body[::-1]


@TYPES
def test_signature_sizes(auth_type: int) -> None:
    initiator, acceptor = connect(auth_type, AuthLevel.PRIVACY)
    for context in (initiator, acceptor):
        assert [context.signature_size(level) for level in (2, 3, 4, 5, 6)] == [0, 16, 16, 16, 16]


@TYPES
def test_a_password_in_place_of_its_hash(auth_type: int) -> None:
    by_password = PyspnegoInitiator(LogonCredentials("alice", "LAB", password=PASSWORD))
    assert connect(auth_type, AuthLevel.PRIVACY, by_password)[1].identity == ALICE.identity


@pytest.mark.parametrize(
    ("domain", "name", "password", "account"),
    [
        ("lab", "ALICE", PASSWORD, ALICE),
        ("", "alice", PASSWORD, ALICE),  # the server's own domain
        ("SRV1", "alice", PASSWORD, ALICE),
        ("", "alice@lab", PASSWORD, ALICE),
        ("", "bob", "bob's", BOB),
        ("LAB", "bob", "bob's", BOB),  # an account without domain belongs to this server
        ("srv1", "bob", "bob's", BOB),
    ],
)
def test_which_account_is_meant(domain: str, name: str, password: str, account: object) -> None:
    acceptor = connect(AuthType.NTLM, 5, client(name, password, domain))[1]
    assert acceptor.identity == getattr(account, "identity")  # noqa: B009


@TYPES
@pytest.mark.parametrize(
    ("name", "domain", "password"),
    [
        ("alice", "LAB", PASSWORD + "x"),
        ("alice", "LAB", PASSWORD.upper()),
        ("alice", "LAB", ""),
        ("mallory", "LAB", PASSWORD),
        ("alice", "ELSEWHERE", PASSWORD),
        ("bob", "ELSEWHERE", "bob's"),
        ("alice@elsewhere", "", PASSWORD),
    ],
)
def test_a_wrong_password_and_an_unknown_account_look_alike(
    auth_type: int, name: str, domain: str, password: str
) -> None:
    acceptor = SERVER.acceptor(auth_type, 5)
    initiator = client(name, password, domain).initiator(auth_type, 5, TARGET)
    with pytest.raises(AuthenticationError, match="unknown account or wrong password"):
        exchange(initiator, acceptor)
    assert not acceptor.complete
    assert acceptor.identity is None


@TYPES
def test_a_refused_context_stays_refused(auth_type: int) -> None:
    tokens = exchange(CLIENT.initiator(auth_type, 5, TARGET), SERVER.acceptor(auth_type, 5))
    acceptor = SERVER.acceptor(auth_type, 5)
    initiator = CLIENT.initiator(auth_type, 5, TARGET)
    challenge = acceptor.step(initiator.step(None))
    right = initiator.step(challenge)
    with pytest.raises(AuthenticationError):
        acceptor.step(tokens[2])
    with pytest.raises(AuthenticationError, match="after the end"):
        acceptor.step(right)
    with pytest.raises(AuthenticationError):
        acceptor.protect(5, HEADER, BODY, TRAILER, False)
    assert not acceptor.complete


@TYPES
def test_a_last_token_is_worth_nothing_against_another_challenge(auth_type: int) -> None:
    tokens = exchange(CLIENT.initiator(auth_type, 5, TARGET), SERVER.acceptor(auth_type, 5))
    acceptor = SERVER.acceptor(auth_type, 5)
    acceptor.step(tokens[0])
    with pytest.raises(AuthenticationError):
        acceptor.step(tokens[2])
    assert not acceptor.complete


@TYPES
def test_nothing_works_before_the_end(auth_type: int) -> None:
    acceptor = SERVER.acceptor(auth_type, 5)
    initiator = CLIENT.initiator(auth_type, 5, TARGET)
    acceptor.step(initiator.step(None))
    for context in (initiator, acceptor):
        assert not context.complete
        with pytest.raises(AuthenticationError):
            context.protect(5, HEADER, BODY, TRAILER, False)
        with pytest.raises(AuthenticationError):
            context.unprotect(5, HEADER, BODY, TRAILER, bytes(16), False)


@TYPES
@pytest.mark.parametrize("token", [None, b""])
def test_an_acceptor_wants_a_token(auth_type: int, token: bytes | None) -> None:
    with pytest.raises(AuthenticationError, match="missing"):
        SERVER.acceptor(auth_type, 5).step(token)


# --- damage on the way ----------------------------------------------------------------------------


Change = Callable[[bytes], bytes]
NTLM_OID = bytes.fromhex("2b06010401823702020a")


def completes(auth_type: int, leg: int, change: Change) -> bool:
    """Returns whether the acceptor completes if token ``leg`` is changed in transit.

    Any other exception than AuthenticationError is left to fail the test.
    """
    sides = (CLIENT.initiator(auth_type, 5, TARGET), SERVER.acceptor(auth_type, 5))
    token: bytes | None = None
    try:
        for number in range(4):
            token = sides[number % 2].step(token)
            if token is None:
                break
            token = change(token) if number == leg else token
    except AuthenticationError:
        return False
    return sides[1].complete


def cut(length: int) -> Change:
    return lambda token: token[:length]


def flip(at: int, mask: int) -> Change:
    return lambda token: token[:at] + bytes([token[at] ^ mask]) + token[at + 1 :]


def sample(auth_type: int, leg: int) -> bytes:
    sides = (CLIENT.initiator(auth_type, 5, TARGET), SERVER.acceptor(auth_type, 5))
    return exchange(*sides)[leg]


def meaning(token: bytes) -> set[int]:
    """The offsets of an SPNEGO token where the mechanism, its message and the MIC stand."""
    start = token.index(b"NTLMSSP")
    mic = 20 if token[-20:-16] == bytes.fromhex("a3120410") else 0
    offsets = {*range(start, len(token) - mic), *range(len(token) - min(mic, 16), len(token))}
    if NTLM_OID in token:
        oid = token.index(NTLM_OID)
        offsets.update(range(oid, oid + len(NTLM_OID)))
    return offsets


ALL_LEGS = pytest.mark.parametrize(
    ("auth_type", "leg"),
    [(auth_type, leg) for auth_type in (AuthType.NTLM, AuthType.SPNEGO) for leg in range(3)],
)


@ALL_LEGS
def test_a_token_that_was_cut_short(auth_type: int, leg: int) -> None:
    assert completes(auth_type, leg, cut(10_000))
    for length in range(len(sample(auth_type, leg))):
        assert not completes(auth_type, leg, cut(length)), length


@ALL_LEGS
def test_a_token_that_was_changed(auth_type: int, leg: int) -> None:
    """The MIC of the last NTLM message covers all three, so every changed byte of them is seen.

    The wrapping of SPNEGO has bytes on which nothing depends, such as lengths read leniently.
    """
    token = sample(auth_type, leg)
    offsets = meaning(token) if auth_type == AuthType.SPNEGO else set(range(len(token)))
    assert len(offsets) >= 40
    for at in range(len(token)):
        for mask in (0x01, 0x80) if at % 3 else (0xFF, 0x20):
            survived = completes(auth_type, leg, flip(at, mask))
            assert not (survived and at in offsets), (at, mask)


@TYPES
@pytest.mark.parametrize("garbage", [b"\0", b"NTLMSSP\0", b"\x60\x82", b"\xa1\x84\xff\xff\xff\xff"])
def test_garbage(auth_type: int, garbage: bytes) -> None:
    for token in (garbage, garbage * 40, bytes(300)):
        with pytest.raises(AuthenticationError):
            SERVER.acceptor(auth_type, 5).step(token)
        initiator = CLIENT.initiator(auth_type, 5, TARGET)
        initiator.step(None)
        with pytest.raises(AuthenticationError):
            initiator.step(token)


# --- damage to messages ---------------------------------------------------------------------------


@TYPES
@SIGNED
@pytest.mark.parametrize("sign_header", [False, True])
def test_a_changed_message_is_refused(auth_type: int, level: int, sign_header: bool) -> None:
    """NTLM covers header and trailer whether header signing was agreed or not."""
    for part in range(4):
        for position in (0, -1):
            initiator, acceptor = connect(auth_type, level)
            body, signature = initiator.protect(level, HEADER, BODY, TRAILER, sign_header)
            parts = [bytearray(p) for p in (HEADER, body, TRAILER, signature)]
            parts[part][position] ^= 0x40
            h, b, t, s = (bytes(p) for p in parts)
            with pytest.raises(AuthenticationError, match="signature is wrong"):
                acceptor.unprotect(level, h, b, t, s, sign_header)
            with pytest.raises(AuthenticationError):  # and the right one comes too late
                acceptor.unprotect(level, HEADER, body, TRAILER, signature, sign_header)
            assert not acceptor.complete


@TYPES
@SIGNED
def test_replayed_reordered_and_reflected_messages(auth_type: int, level: int) -> None:
    def messages(count: int) -> tuple[SecurityContext, SecurityContext, list[tuple[bytes, bytes]]]:
        initiator, acceptor = connect(auth_type, level)
        sent = [initiator.protect(level, HEADER, BODY, TRAILER, True) for _ in range(count)]
        return initiator, acceptor, sent

    _, acceptor, [(body, signature)] = messages(1)
    assert acceptor.unprotect(level, HEADER, body, TRAILER, signature, True) == BODY
    with pytest.raises(AuthenticationError):
        acceptor.unprotect(level, HEADER, body, TRAILER, signature, True)

    _, acceptor, [_, (body, signature)] = messages(2)
    with pytest.raises(AuthenticationError):
        acceptor.unprotect(level, HEADER, body, TRAILER, signature, True)

    initiator, _, [(body, signature)] = messages(1)
    with pytest.raises(AuthenticationError):
        initiator.unprotect(level, HEADER, body, TRAILER, signature, True)

    _, other, _ = messages(0)
    _, _, [(body, signature)] = messages(1)
    with pytest.raises(AuthenticationError):
        other.unprotect(level, HEADER, body, TRAILER, signature, True)


@TYPES
@SIGNED
@pytest.mark.parametrize("signature", [b"", bytes(16), b"\x01" + bytes(15), bytes(15), bytes(17)])
def test_no_real_signature(auth_type: int, level: int, signature: bytes) -> None:
    acceptor = connect(auth_type, level)[1]
    with pytest.raises(AuthenticationError):
        acceptor.unprotect(level, HEADER, BODY, TRAILER, signature, False)


@TYPES
def test_connect_level_protects_nothing(auth_type: int) -> None:
    initiator, acceptor = connect(auth_type, AuthLevel.CONNECT)
    assert initiator.protect(2, HEADER, BODY, TRAILER, False) == (BODY, b"")
    for signature in (b"", b"\x01" + bytes(15)):
        assert acceptor.unprotect(2, HEADER, BODY, TRAILER, signature, False) == BODY
    with pytest.raises(AuthenticationError):
        acceptor.unprotect(2, HEADER, BODY, TRAILER, bytes(16), False)


def test_a_message_of_another_level() -> None:
    initiator, acceptor = connect(AuthType.NTLM, AuthLevel.PRIVACY)
    with pytest.raises(ValueError, match="level 6, not 5"):
        initiator.protect(5, HEADER, BODY, TRAILER, False)
    for level in (2, 5):
        with pytest.raises(AuthenticationError):
            acceptor.unprotect(level, HEADER, BODY, TRAILER, b"", False)


def test_call_level_is_packet_level() -> None:
    initiator, acceptor = connect(AuthType.NTLM, AuthLevel.CALL)
    body, signature = initiator.protect(AuthLevel.PACKET, HEADER, BODY, TRAILER, False)
    assert acceptor.unprotect(AuthLevel.CALL, HEADER, body, TRAILER, signature, False) == BODY


# --- what can be had ------------------------------------------------------------------------------


@pytest.mark.parametrize("auth_type", [0x00, 0x0E, 0x44, 0x64, 0x7B])
def test_unsupported_types_are_named(auth_type: int) -> None:
    name = auth_type_name(auth_type)
    with pytest.raises(AuthenticationError, match=f"{name} is not supported"):
        SERVER.acceptor(auth_type, 5)
    with pytest.raises(AuthenticationError, match=f"{name} is not supported"):
        CLIENT.initiator(auth_type, 5, TARGET)


@TYPES
@pytest.mark.parametrize("level", [1, 7, 255])
def test_levels_that_do_not_authenticate(auth_type: int, level: int) -> None:
    with pytest.raises(AuthenticationError, match=f"level {level}"):
        SERVER.acceptor(auth_type, level)
    with pytest.raises(AuthenticationError, match=f"level {level}"):
        CLIENT.initiator(auth_type, level, TARGET)


def test_without_the_extra_kerberos_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kerberos, "HAS_GSSAPI", False)
    with pytest.raises(AuthenticationError, match=r"mqis\[kerberos\]"):
        SERVER.acceptor(AuthType.KERBEROS, 5)
    by_password = PyspnegoInitiator(LogonCredentials("alice", "LAB", password=PASSWORD))
    with pytest.raises(AuthenticationError, match=r"mqis\[kerberos\]"):
        by_password.initiator(AuthType.KERBEROS, 5, TARGET)


@pytest.mark.parametrize(
    ("password", "ccache", "credential"),
    [
        (PASSWORD, None, ("alice@LAB.EXAMPLE", PASSWORD)),
        (PASSWORD, "FILE:/x", KerberosCCache("FILE:/x", "alice@LAB.EXAMPLE")),
        (None, "FILE:/x", KerberosCCache("FILE:/x", "alice@LAB.EXAMPLE")),
        (None, None, None),
    ],
)
def test_kerberos_takes_a_named_ticket_cache_before_a_password(
    password: str | None, ccache: str | None, credential: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gssapi")
    taken: list[object] = []
    monkeypatch.setattr(
        kerberos._Kerberos,
        "__init__",
        lambda _self, username, _gssapi_credential, **_rest: taken.append(
            username or _gssapi_credential
        ),
    )
    monkeypatch.setattr(kerberos, "_log_on", lambda *given: given)
    kerberos.KerberosInitiator(
        "alice@LAB.EXAMPLE", password, ccache, host="dc1", service="ldap", sealing=True
    )
    assert taken == [credential]


def test_credentials_without_a_secret() -> None:
    nobody = PyspnegoInitiator(LogonCredentials("alice"))
    for auth_type in (AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS):
        with pytest.raises(AuthenticationError, match="needs a password"):
            nobody.initiator(auth_type, 5, TARGET)


def test_secrets_are_not_shown() -> None:
    shown = repr(LogonCredentials("alice", password="geheim", nt_hash=b"h" * 16)) + repr(ALICE)
    assert "geheim" not in shown
    assert "hhhh" not in shown
    assert ALICE.nt_hash.hex() not in shown
    assert str(ALICE.nt_hash) not in shown


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NTLM_USER_FILE", "/nonexistent")
    monkeypatch.setenv("LM_COMPAT_LEVEL", "0")  # which would send LM hashes
    initiator, acceptor = connect(AuthType.NTLM, AuthLevel.PRIVACY)
    assert acceptor.identity == ALICE.identity
    assert send(initiator, acceptor, 6, BODY, True) == BODY


def test_two_servers_of_one_process_have_their_own_accounts() -> None:
    other = PyspnegoAuthenticator(MemoryAccounts([BOB]), "SRV2", "LAB")
    assert connect(AuthType.NTLM, 5)[1].identity == ALICE.identity
    with pytest.raises(AuthenticationError):
        connect(AuthType.NTLM, 5, server=other)
