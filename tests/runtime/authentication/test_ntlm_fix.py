"""The NTLM acceptor against messages as MS-NLMP allows them and other clients send them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spnego
from spnego import NegotiateOptions
from spnego._ntlm import NTLMProxy

from mqis.protocol.authentication import (
    ANONYMOUS,
    AuthenticationError,
    AuthType,
    SecurityContext,
)
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import nt_hash
from mqis.runtime.authentication.ntlm_fix import check_pyspnego
from tests.runtime.authentication.handmade import (
    ALWAYS_SIGN,
    EOL,
    EXTENDED,
    FLAGS,
    KEY_56,
    KEY_128,
    KEY_EXCH,
    SEAL,
    SIGN,
    UNICODE,
    Client,
    av,
    message,
    negotiate,
)
from tests.runtime.authentication.pairs import ACCOUNTS, ALICE, CLIENT, PASSWORD, SERVER, TARGET

NAME = av(1, "SRV1".encode("utf-16-le"))
TIME = av(7, bytes(range(8)))
MIC = av(6, b"\2\0\0\0")

BLOBS = {
    "ended once": TIME + NAME + EOL,
    "ended twice, as Windows does": NAME + TIME + EOL + EOL,
    "unusual order": TIME + av(9, "cifs/srv1".encode("utf-16-le")) + NAME + EOL,
    "unknown ids": av(0x1234, b"whatever") + NAME + av(0xFFFF, b"") + EOL,
    "the same id twice": NAME + NAME + EOL,
    "bytes after the end": NAME + EOL + b"\xde\xad\xbe",
    "flags of an odd size": av(6, b"\1") + NAME + EOL,
    "a time stamp beyond datetime": av(7, b"\xff" * 8) + EOL,
    "nothing but an end": EOL,
}
#: What pyspnego's own acceptor makes of them; the rest it refuses.
STOCK_ACCEPTS = {"ended twice, as Windows does"}


def challenged(
    flags: int = FLAGS, level: int = 5, server: PyspnegoAuthenticator = SERVER
) -> tuple[SecurityContext, bytes, bytes]:
    """An acceptor that waits for AUTHENTICATE, the first message, and the challenge."""
    acceptor = server.acceptor(AuthType.NTLM, level)
    first = negotiate(flags)
    challenge = acceptor.step(first)
    assert challenge is not None
    return acceptor, first, challenge


@pytest.mark.parametrize("blob", BLOBS.values(), ids=BLOBS)
def test_the_proof_is_over_the_bytes_that_were_sent(blob: bytes) -> None:
    acceptor, _, challenge = challenged()
    client = Client("alice", "LAB", PASSWORD)
    assert acceptor.step(client.authenticate(challenge, blob)) is None
    assert acceptor.complete
    assert acceptor.identity == ALICE.identity
    for number in range(3):  # and both have the same key
        signature = client.signature(number, b"headbodytail")
        assert acceptor.unprotect(5, b"head", b"body", b"tail", signature, False) == b"body"


@pytest.mark.parametrize(("name", "blob"), BLOBS.items(), ids=BLOBS)
def test_pyspnego_itself_still_needs_the_fix(
    name: str, blob: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, pyspnego has learnt it: the override may be dropped."""
    users = tmp_path / "users"
    users.write_text(f"LAB:alice:{PASSWORD}\n", encoding="utf-8")
    monkeypatch.setenv("NTLM_USER_FILE", str(users))
    acceptor = spnego.server(protocol="ntlm", options=NegotiateOptions.use_ntlm)
    challenge = acceptor.step(negotiate())
    assert challenge is not None
    token = Client("alice", "LAB", PASSWORD).authenticate(challenge, blob)
    if name in STOCK_ACCEPTS:
        acceptor.step(token)
        assert acceptor.complete
    else:
        with pytest.raises(Exception):  # noqa: B017, PT011  (of all kinds)
            acceptor.step(token)


@pytest.mark.parametrize("blob", BLOBS.values(), ids=BLOBS)
def test_a_changed_blob_has_another_proof(blob: bytes) -> None:
    for at in range(44 + len(blob)):
        acceptor, _, challenge = challenged()
        token = bytearray(Client("alice", "LAB", PASSWORD).authenticate(challenge, blob))
        token[88 + 24 + at] ^= 0x10
        with pytest.raises(AuthenticationError, match="wrong password"):
            acceptor.step(bytes(token))
        assert not acceptor.complete


@pytest.mark.parametrize("pairs", [b"", b"\1", b"\1\0\x40\0abc", NAME, av(6, b"\2\0\0\0")])
def test_a_proven_blob_whose_pairs_do_not_end(pairs: bytes) -> None:
    acceptor, _, challenge = challenged()
    with pytest.raises(AuthenticationError):
        acceptor.step(Client("alice", "LAB", PASSWORD).authenticate(challenge, pairs))


def test_names_change_the_proof() -> None:
    for user, domain in (("alicf", "LAB"), ("alice", "LAC"), ("alice", "")):
        acceptor, _, challenge = challenged()
        right = Client("alice", "LAB", PASSWORD)
        nt = right.nt_response(challenge, EOL)
        with pytest.raises(AuthenticationError, match="wrong password"):
            acceptor.step(message(FLAGS, lm=b"", nt=nt, domain=domain, user=user))


# --- the MIC --------------------------------------------------------------------------------------


def test_a_promised_mic_is_checked() -> None:
    client = Client("alice", "LAB", PASSWORD)
    acceptor, first, challenge = challenged()
    token = client.with_mic(first, challenge, MIC + EOL)
    acceptor.step(token)
    assert acceptor.complete

    for at in range(len(token)):
        acceptor, first, challenge = challenged()
        changed = bytearray(client.with_mic(first, challenge, MIC + EOL))
        changed[at] ^= 0x01
        with pytest.raises(AuthenticationError):
            acceptor.step(bytes(changed))


def test_a_promised_mic_cannot_be_left_out() -> None:
    """The place of the payload is not proven, so it does not excuse anything."""
    client = Client("alice", "LAB", PASSWORD)
    for room in (64, 72, 79, 80, 88):
        acceptor, _, challenge = challenged()
        with pytest.raises(AuthenticationError, match="MIC"):
            acceptor.step(client.authenticate(challenge, MIC + EOL, room))


def test_a_mic_over_another_first_message() -> None:
    """Somebody took SEAL out of what the client offered."""
    client = Client("alice", "LAB", PASSWORD, FLAGS)
    acceptor, _, challenge = challenged(FLAGS)
    with pytest.raises(AuthenticationError, match="MIC"):
        acceptor.step(client.with_mic(negotiate(FLAGS | SEAL), challenge, MIC + EOL))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("nt", [b"", bytes(24), bytes(16), bytes(47)])
@pytest.mark.parametrize("lm", [b"\1" * 24, bytes(24)])
def test_lm_and_ntlmv1_are_refused(nt: bytes, lm: bytes) -> None:
    acceptor, _, _ = challenged()
    with pytest.raises(AuthenticationError, match="only NTLMv2"):
        acceptor.step(message(FLAGS, lm=lm, nt=nt, domain="LAB", user="alice"))


def test_a_client_without_unicode() -> None:
    with pytest.raises(AuthenticationError, match="Unicode"):
        SERVER.acceptor(AuthType.NTLM, 5).step(negotiate(FLAGS & ~UNICODE | 2))
    acceptor, _, challenge = challenged()
    with pytest.raises(AuthenticationError, match="Unicode"):
        acceptor.step(
            Client("alice", "LAB", PASSWORD, FLAGS & ~UNICODE).authenticate(challenge, EOL)
        )


def test_fields_outside_the_message() -> None:
    """Nothing cut off may turn into nothing sent, which would be an anonymous logon."""
    for field in range(6):
        for start, length in ((0xFFFFFFF0, 4), (10_000, 4), (0, 8), (60, 8)):
            acceptor, _, challenge = challenged()
            token = bytearray(Client("alice", "LAB", PASSWORD).authenticate(challenge, EOL))
            at = 12 + 8 * field
            token[at : at + 2] = length.to_bytes(2, "little")
            token[at + 4 : at + 8] = start.to_bytes(4, "little")
            with pytest.raises(AuthenticationError, match="outside"):
                acceptor.step(bytes(token))


@pytest.mark.parametrize("key", [b"", bytes(15), bytes(17)])
def test_a_session_key_of_the_wrong_size(key: bytes) -> None:
    flags = FLAGS | KEY_EXCH
    acceptor, _, challenge = challenged(flags)
    nt = Client("alice", "LAB", PASSWORD).nt_response(challenge, EOL)
    with pytest.raises(AuthenticationError, match="16 bytes"):
        acceptor.step(message(flags, lm=b"", nt=nt, domain="LAB", user="alice", key=key))


@pytest.mark.parametrize("missing", [SIGN, EXTENDED, KEY_128, SIGN | ALWAYS_SIGN])
@pytest.mark.parametrize("offered", [False, True])
def test_messages_need_signing_that_was_agreed(missing: int, offered: bool) -> None:
    """The constant that NTLM signs with otherwise is not taken for a signature."""
    acceptor, _, challenge = challenged(FLAGS if offered else FLAGS & ~missing)
    client = Client("alice", "LAB", PASSWORD, FLAGS & ~missing if offered else FLAGS)
    acceptor.step(client.authenticate(challenge, EOL))
    assert acceptor.complete
    with pytest.raises(AuthenticationError, match="signing was not agreed"):
        acceptor.unprotect(5, b"h", b"b", b"t", b"\x01" + bytes(15), False)


@pytest.mark.parametrize("missing", [SEAL, SIGN, EXTENDED, KEY_128])
def test_privacy_needs_encryption_that_was_agreed(missing: int) -> None:
    flags = (FLAGS | SEAL | KEY_56) & ~missing
    acceptor, _, challenge = challenged(flags, level=6)
    with pytest.raises(AuthenticationError, match="encryption was not agreed"):
        acceptor.step(Client("alice", "LAB", PASSWORD, flags).authenticate(challenge, EOL))


@pytest.mark.parametrize("missing", [SIGN, EXTENDED, KEY_128, SEAL])
def test_a_client_does_not_answer_a_server_that_takes_protection_away(missing: int) -> None:
    initiator = CLIENT.initiator(AuthType.NTLM, 6, TARGET)
    challenge = SERVER.acceptor(AuthType.NTLM, 6).step(initiator.step(None))
    assert challenge is not None
    flags = int.from_bytes(challenge[20:24], "little") & ~missing
    with pytest.raises(AuthenticationError, match="does not offer"):
        initiator.step(challenge[:20] + flags.to_bytes(4, "little") + challenge[24:])
    assert not initiator.complete


def test_the_challenge_holds_only_what_we_do() -> None:
    _, _, challenge = challenged(0xFFFF_FFFF)
    flags = int.from_bytes(challenge[20:24], "little")
    assert flags & (0x2 | 0x40 | 0x80 | 0x800 | 0x4000 | 0x400000) == 0
    assert flags & FLAGS == FLAGS


def test_challenges_differ() -> None:
    assert len({challenged()[2][24:32] for _ in range(20)}) == 20


# --- anonymous ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lm", [b"", b"\0"])
def test_an_anonymous_logon(lm: bytes) -> None:
    acceptor, _, _ = challenged()
    acceptor.step(message(FLAGS, lm=lm, nt=b"", domain="", user=""))
    assert acceptor.complete
    assert acceptor.identity == ANONYMOUS
    client = Client("", "", "")
    client.session_key = bytes(16)
    assert acceptor.unprotect(5, b"h", b"b", b"t", client.signature(0, b"hbt"), False) == b"b"


def test_an_anonymous_logon_where_that_is_not_allowed() -> None:
    strict = PyspnegoAuthenticator(ACCOUNTS, "SRV1", "LAB", allow_anonymous=False)
    acceptor, _, _ = challenged(server=strict)
    with pytest.raises(AuthenticationError, match="anonymous"):
        acceptor.step(message(FLAGS, lm=b"\0", nt=b"", domain="", user=""))


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "", "nt": bytes(60), "lm": b"\0"},
        {"user": "alice", "nt": b"", "lm": b"\0"},
        {"user": "", "nt": b"", "lm": bytes(24)},
    ],
)
def test_half_an_anonymous_logon_is_none(fields: dict[str, Any]) -> None:
    acceptor, _, _ = challenged()
    with pytest.raises(AuthenticationError):
        acceptor.step(message(FLAGS, domain="LAB", **fields))


# --- hashes, and what pyspnego looks like ---------------------------------------------------------


@pytest.mark.parametrize(
    ("password", "digest"),
    [
        ("Password", "a4f49c406510bdcab6824ee7c30fd852"),  # MS-NLMP 4.2.2.1.2
        ("", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        (
            "SecREt01",
            "cd06ca7c7e10c99b1d33b7485a2ed808",
        ),  # the NTLM document of the Davenport project
    ],
)
def test_nt_hash_vectors(password: str, digest: str) -> None:
    assert nt_hash(password).hex() == digest


def test_a_password_that_looks_like_hashes_is_a_password() -> None:
    text = "0" * 32 + ":" + "1" * 32
    assert nt_hash(text) != bytes.fromhex("1" * 32)


def test_a_pyspnego_that_changed_is_named() -> None:
    check_pyspnego()
    changed = ((NTLMProxy._step_accept_negotiate, ("self", "token", "more")),)
    with pytest.raises(RuntimeError, match=r"pyspnego .* NTLMProxy._step_accept_negotiate takes"):
        check_pyspnego(changed)
