"""NTLM's signatures, judged by MS-NLMP's published examples and by pyspnego as the peer.

impacket and Samba judge the same code in ``test_judges``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import spnego
from spnego import ContextProxy, ContextReq, NTLMHash
from spnego._context import GSSMech
from spnego._ntlm import NTLMProxy
from spnego._ntlm_raw.messages import NegotiateFlags
from spnego.iov import BufferType

from mqis.protocol.authentication import AuthenticationError, AuthLevel, AuthType
from mqis.runtime.authentication.account import nt_hash
from mqis.runtime.authentication.negotiate import Negotiate
from mqis.runtime.authentication.ntlm_fix import NtlmAcceptor, NtlmInitiator
from mqis.runtime.authentication.ntlm_protection import (
    NtlmDirection,
    NtlmProtection,
    NtlmSession,
    seal_key,
    sign_key,
)
from mqis.runtime.authentication.protection import PyspnegoProtection, protection_of
from tests.runtime.authentication.pairs import ACCOUNTS, PASSWORD, SERVER, connect

PUBLISHED = json.loads(Path("tests/data/nlmp/signatures.json").read_text(encoding="utf-8"))
PLAINTEXT = bytes.fromhex(PUBLISHED["plaintext"])
EXAMPLES = {example["section"]: example for example in PUBLISHED["examples"]}

KEY_EXCHANGE = pytest.mark.parametrize("key_exchange", [True, False])
NEGOTIATED = pytest.mark.parametrize("negotiated", [False, True], ids=["ntlm", "spnego"])


# --- MS-NLMP's examples ---------------------------------------------------------------------------


@pytest.mark.parametrize("section", EXAMPLES)
def test_published_messages(section: str) -> None:
    example = EXAMPLES[section]
    keys = bytes.fromhex(example["seal_key"]), bytes.fromhex(example["sign_key"])
    direction = NtlmDirection(*keys, key_exchange=example["key_exchange"])
    assert direction.rc4(PLAINTEXT).hex() == example["sealed"]
    assert direction.signature(PLAINTEXT).hex() == example["signature"]


def test_published_keys() -> None:
    example = EXAMPLES["4.2.4.4"]
    key = bytes.fromhex(example["exported_session_key"])
    assert seal_key(key, b"client-to-server").hex() == example["seal_key"]
    assert sign_key(key, b"client-to-server").hex() == example["sign_key"]


def test_a_published_message_between_both_sides() -> None:
    example = EXAMPLES["4.2.4.4"]
    key = bytes.fromhex(example["exported_session_key"])
    client = NtlmProtection(NtlmSession(key, is_client=True, key_exchange=True))
    server = NtlmProtection(NtlmSession(key, is_client=False, key_exchange=True))
    sealed, signature = client.seal(b"", PLAINTEXT, b"", True)
    assert (sealed.hex(), signature.hex()) == (example["sealed"], example["signature"])
    assert server.unseal(b"", sealed, b"", signature, True) == PLAINTEXT


# --- pyspnego as the peer -------------------------------------------------------------------------


def mechanisms(*, negotiated: bool, key_exchange: bool = True) -> tuple[Any, Any]:
    """Both sides of a finished exchange, which have protected nothing yet."""
    initiator = NtlmInitiator(
        "LAB",
        "alice",
        nt_hash(PASSWORD),
        host="srv1.lab.test",
        service="host",
        signing=True,
        sealing=True,
    )
    if not key_exchange:
        initiator._context_req &= ~NegotiateFlags.key_exch
    acceptor = NtlmAcceptor(ACCOUNTS, "SRV1", "LAB", allow_anonymous=False)
    acceptor._names = SERVER._names
    sides: tuple[ContextProxy, ContextProxy] = (initiator, acceptor)
    if negotiated:
        sides = (
            Negotiate("initiate", {GSSMech.ntlm: initiator}),
            Negotiate("accept", {GSSMech.ntlm: acceptor}),
        )
    talk(*sides)
    return initiator, acceptor


def talk(initiator: ContextProxy, acceptor: ContextProxy) -> None:
    token = initiator.step()
    while token:
        token = acceptor.step(token)
        token = initiator.step(token) if token else None
    assert initiator.complete
    assert acceptor.complete


def messages(seed: int, count: int = 40) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Header, body and trailer of messages of many lengths."""
    random = Random(seed)
    for number in range(count):
        size = random.choice((0, 1, 15, 16, 63, 64, 65, 1000, 5000, number))
        yield random.randbytes(24), random.randbytes(size), random.randbytes(8)


@NEGOTIATED
@KEY_EXCHANGE
def test_pyspnego_and_we_protect_the_same(negotiated: bool, key_exchange: bool) -> None:
    """Each side in turn is pyspnego's; signed and sealed messages share a direction's numbers."""
    for ours_is_client in (True, False):
        initiator, acceptor = mechanisms(negotiated=negotiated, key_exchange=key_exchange)
        own, peer = (initiator, acceptor) if ours_is_client else (acceptor, initiator)
        direct, other = protection_of(own), PyspnegoProtection(peer)
        assert isinstance(direct, NtlmProtection)
        for number, (header, body, trailer) in enumerate(messages(int(ours_is_client))):
            sender, receiver = (direct, other) if number % 3 else (other, direct)
            if number % 5:
                sealed, signature = sender.seal(header, body, trailer, True)
                opened = receiver.unseal(header, sealed, trailer, signature, True)
                assert opened == body
            else:
                signature = sender.sign(header, body, trailer, True)
                receiver.verify(header, body, trailer, signature, True)


@NEGOTIATED
def test_the_numbers_of_the_exchange_are_those_of_pyspnego(negotiated: bool) -> None:
    """Fails if a new pyspnego signs other messages before the first call, or resets otherwise."""
    initiator, acceptor = mechanisms(negotiated=negotiated)
    for side in (initiator, acceptor):
        session = side.ntlm_session
        assert (session.sent, session.received) == ((1, 1) if negotiated else (0, 0))
        assert session.sent == vars(side)["_NTLMProxy__seq_num_out"]
        assert session.received == vars(side)["_NTLMProxy__seq_num_in"]
        assert session.key == side.session_key
        assert len(session.key) == 16
        direct = NtlmProtection(session)
        assert direct.seal(b"h", b"body", b"t", True) == PyspnegoProtection(side).seal(
            b"h", b"body", b"t", True
        )


@pytest.mark.parametrize("protocol", ["ntlm", "negotiate"])
@pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_a_client_that_is_all_pyspnego(protocol: str, level: int) -> None:
    """Nothing of this project is on the client's side."""
    request = ContextReq.default | ContextReq.confidentiality
    client = spnego.client(
        NTLMHash("LAB\\alice", nt_hash=nt_hash(PASSWORD).hex()),
        hostname="srv1.lab.test",
        protocol=protocol,
        context_req=request,
        options=spnego.NegotiateOptions[f"use_{protocol}"],
    )
    auth_type = AuthType.NTLM if protocol == "ntlm" else AuthType.SPNEGO
    acceptor = SERVER.acceptor(auth_type, level)
    token = client.step()
    while token:
        answer = acceptor.step(token)
        token = client.step(answer) if answer else None
    for header, body, trailer in messages(3, 10):
        if level == AuthLevel.INTEGRITY:
            sent, signature = body, client.sign(header + body + trailer)
        else:
            sent, signature = pyspnego_seals(client, header, body, trailer)
        assert acceptor.unprotect(level, header, sent, trailer, signature, True) == body
        sent, signature = acceptor.protect(level, header, body, trailer, True)
        if level == AuthLevel.INTEGRITY:
            client.verify(header + sent + trailer, signature)
        else:
            assert pyspnego_opens(client, header, sent, trailer, signature) == body


def pyspnego_seals(
    client: ContextProxy, header: bytes, body: bytes, trailer: bytes
) -> tuple[bytes, bytes]:
    sealed = client.wrap_iov(
        [
            BufferType.header,
            (BufferType.sign_only, header),
            (BufferType.data, body),
            (BufferType.sign_only, trailer),
        ]
    ).buffers
    return sealed[2].data or b"", sealed[0].data or b""


def pyspnego_opens(
    client: ContextProxy, header: bytes, body: bytes, trailer: bytes, signature: bytes
) -> bytes:
    opened = client.unwrap_iov(
        [
            (BufferType.header, signature),
            (BufferType.sign_only, header),
            (BufferType.data, body),
            (BufferType.sign_only, trailer),
        ]
    )
    return opened.buffers[2].data or b""


# --- the seam -------------------------------------------------------------------------------------


def test_an_exchange_without_signing_gives_no_keys() -> None:
    initiator, acceptor = mechanisms(negotiated=False)
    for side in (initiator, acceptor):
        side._context_attr &= ~NegotiateFlags.key_128
        assert side.ntlm_session is None
        assert isinstance(protection_of(side), PyspnegoProtection)


def test_an_unfinished_exchange_gives_no_keys() -> None:
    initiator, acceptor = mechanisms(negotiated=False)
    for side in (initiator, acceptor):
        side._complete = False
        assert side.ntlm_session is None


@pytest.mark.parametrize("auth_type", [AuthType.NTLM, AuthType.SPNEGO])
@pytest.mark.parametrize("level", [AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_calls_do_not_reach_pyspnego(
    auth_type: int, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    initiator, acceptor = connect(auth_type, level)
    for name in ("sign", "verify", "wrap_iov", "unwrap_iov"):
        monkeypatch.setattr(NTLMProxy, name, None)
    for sender, receiver in ((initiator, acceptor), (acceptor, initiator)):
        body, signature = sender.protect(level, b"header", b"body", b"trailer", True)
        assert receiver.unprotect(level, b"header", body, b"trailer", signature, True) == b"body"


def test_keys_are_not_shown() -> None:
    assert "7365637265" not in repr(NtlmSession(b"secret" * 3, is_client=True, key_exchange=True))
    assert "secret" not in repr(NtlmSession(b"secret" * 3, is_client=True, key_exchange=True))


# --- attacks --------------------------------------------------------------------------------------


def pair(*, key_exchange: bool = True, seq: int = 0) -> tuple[NtlmProtection, NtlmProtection]:
    sides = (
        NtlmSession(b"k" * 16, is_client=client, key_exchange=key_exchange, sent=seq, received=seq)
        for client in (True, False)
    )
    client, server = map(NtlmProtection, sides)
    return client, server


@KEY_EXCHANGE
@pytest.mark.parametrize("sealed", [True, False])
def test_every_changed_bit_is_noticed(key_exchange: bool, sealed: bool) -> None:
    parts = (b"head", b"the body", b"tail")
    client, _ = pair(key_exchange=key_exchange)
    if sealed:
        body, signature = client.seal(*parts, True)
    else:
        body, signature = parts[1], client.sign(*parts, True)
    message = parts[0] + body + parts[2] + signature
    cuts = [0, 4, 12, 16, 32]
    for bit in range(len(message) * 8):
        changed = bytearray(message)
        changed[bit // 8] ^= 1 << bit % 8
        head, middle, tail, mac = (bytes(changed[start:end]) for start, end in pairwise(cuts))
        _, server = pair(key_exchange=key_exchange)
        with pytest.raises(AuthenticationError):
            (server.unseal if sealed else server.verify)(head, middle, tail, mac, True)


@KEY_EXCHANGE
@pytest.mark.parametrize("size", [0, 1, 8, 15, 17, 64, 0xFFFF])
def test_signatures_of_another_size(key_exchange: bool, size: int) -> None:
    client, server = pair(key_exchange=key_exchange)
    signature = (client.sign(b"h", b"b", b"t", True) * 4096)[:size]
    with pytest.raises(AuthenticationError):
        server.verify(b"h", b"b", b"t", signature, True)


@KEY_EXCHANGE
def test_messages_in_another_order(key_exchange: bool) -> None:
    """Every order of three messages is refused, except the one in which they were sent."""
    client, _ = pair(key_exchange=key_exchange)
    sent = [client.seal(b"h", b"body", b"t", True) for _ in range(3)]
    for first in range(3):
        for second in range(3):
            _, server = pair(key_exchange=key_exchange)
            accepted = [first] if _opens(server, sent[first]) else []
            accepted += [second] if accepted and _opens(server, sent[second]) else []
            assert accepted == {(0, 1): [0, 1]}.get((first, second), [0] if first == 0 else [])


def _opens(server: NtlmProtection, message: tuple[bytes, bytes]) -> bool:
    try:
        return server.unseal(b"h", message[0], b"t", message[1], True) == b"body"
    except AuthenticationError:
        return False


def test_a_message_is_not_taken_back_from_the_peer() -> None:
    client, server = pair()
    signature = client.sign(b"h", b"b", b"t", True)
    with pytest.raises(AuthenticationError):
        client.verify(b"h", b"b", b"t", signature, True)
    server.verify(b"h", b"b", b"t", signature, True)


def test_no_sequence_number_comes_twice() -> None:
    """The number after the last one is refused, not 0 again: messages could be replayed then."""
    client, server = pair(key_exchange=False, seq=0xFFFF_FFFF)
    signature = client.sign(b"h", b"b", b"t", True)
    assert signature[-4:] == b"\xff\xff\xff\xff"
    server.verify(b"h", b"b", b"t", signature, True)
    with pytest.raises(OverflowError):
        client.sign(b"h", b"b", b"t", True)
    with pytest.raises(OverflowError):
        server.verify(b"h", b"b", b"t", signature, True)


def test_bob_is_not_alice() -> None:
    """A session key of another logon protects nothing here."""
    client, _ = pair()
    other = NtlmProtection(NtlmSession(b"o" * 16, is_client=False, key_exchange=True))
    with pytest.raises(AuthenticationError):
        other.verify(b"h", b"b", b"t", client.sign(b"h", b"b", b"t", True), True)
