"""Clients that do not negotiate NTLMSSP_NEGOTIATE_VERSION (MS-NLMP 2.2.1.2).

Version belongs to the fixed header of a CHALLENGE, and is zero unless negotiated. A client may
read the 56 bytes of that header as one structure and look for the names behind it.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

import pytest

from mqis.protocol.authentication import AuthType, SecurityContext
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from tests.runtime.authentication.handmade import EOL, Client, av
from tests.runtime.authentication.pairs import ACCOUNTS, ALICE, PASSWORD, SERVER

VERSION = 0x02000000
HEADER = struct.Struct("<8sI HHI I 8s 8s HHI 8s")

#: NEGOTIATE without the flag, octet by octet: signature, type, flags, domain, workstation, payload.
LAYOUTS = {
    # A header of 40 octets, in which Version is zero.
    "go-msrpc": "4e544c4d53535000 01000000 358288e0"
    "0000 0000 28000000 0000 0000 28000000 0000000000000000",
    # A header of 32 octets with empty names at offset 0.
    "impacket": "4e544c4d53535000 01000000 358288e0 0000 0000 00000000 0000 0000 00000000",
    # A header of 32 octets with both names right behind it: LAB, JUDGE.
    "Samba": "4e544c4d53535000 01000000 15820860"
    "0300 0300 20000000 0500 0500 23000000 4c4142 4a55444745",
}


@dataclass(frozen=True)
class FixedHeader:
    """CHALLENGE_MESSAGE as a structure of 56 octets with a payload behind it."""

    flags: int
    version: bytes
    target_name: str
    target_info: bytes
    rest: int

    @classmethod
    def read(cls, challenge: bytes) -> FixedHeader:
        fields = HEADER.unpack_from(challenge)
        signature, kind, name_size, _, name_at, flags, _, _, info_size, _, info_at, version = fields
        assert (signature, kind) == (b"NTLMSSP\0", 2)
        payload = challenge[HEADER.size :]
        name_at, info_at = name_at - HEADER.size, info_at - HEADER.size
        assert min(name_at, info_at) >= 0, "the payload begins inside the fixed header"
        name = payload[name_at : name_at + name_size].decode("utf-16-le")
        info = payload[info_at : info_at + info_size]
        return cls(flags, version, name, info, len(payload) - name_size - info_size)


def challenged(first: bytes) -> tuple[SecurityContext, bytes]:
    acceptor = SERVER.acceptor(AuthType.NTLM, 5)
    challenge = acceptor.step(first)
    assert challenge is not None
    return acceptor, challenge


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_field_is_there_and_zero(layout: str) -> None:
    first = bytes.fromhex(LAYOUTS[layout])
    _, challenge = challenged(first)
    header = FixedHeader.read(challenge)
    assert header.flags & VERSION == 0
    assert header.version == bytes(8)
    assert header.target_name == "LAB"
    assert header.target_info.startswith(av(1, "SRV1".encode("utf-16-le")))
    assert header.target_info.endswith(EOL)
    assert header.rest == 0


def _pairs(info: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while info:
        kind, size = struct.unpack_from("<HH", info)
        found[kind], info = info[4 : 4 + size], info[4 + size :]
    return found


@pytest.mark.parametrize(("domain", "named"), [("Lab", "LAB"), ("", "SRV1")])
def test_the_server_tells_who_it_is_and_what_time_it_has(domain: str, named: str) -> None:
    """MS-NLMP 2.2.2.1; a server without a domain is its own."""
    acceptor = PyspnegoAuthenticator(ACCOUNTS, "Srv1", domain).acceptor(AuthType.NTLM, 5)
    challenge = acceptor.step(bytes.fromhex(LAYOUTS["impacket"]))
    assert challenge is not None
    header = FixedHeader.read(challenge)
    pairs = _pairs(header.target_info)
    texts = {kind: pairs.pop(kind).decode("utf-16-le") for kind in (1, 2, 3)}
    assert texts == {1: "SRV1", 2: named, 3: "srv1"}
    assert header.target_name == named
    (ticks,) = struct.unpack("<Q", pairs.pop(7))
    assert abs(ticks / 1e7 - 11_644_473_600 - time.time()) < 600
    assert pairs == {0: b""}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_such_a_client_logs_on_and_signs(layout: str) -> None:
    """The client returns the target information that it found behind the header, and a MIC."""
    first = bytes.fromhex(LAYOUTS[layout])
    acceptor, challenge = challenged(first)
    header = FixedHeader.read(challenge)
    client = Client("alice", "LAB", PASSWORD, header.flags & ~0x4000_0000)
    pairs = header.target_info.removesuffix(EOL) + av(6, b"\2\0\0\0") + EOL
    assert acceptor.step(client.with_mic(first, challenge, pairs)) is None
    assert acceptor.identity == ALICE.identity
    signature = client.signature(0, b"headbodytail")
    assert acceptor.unprotect(5, b"head", b"body", b"tail", signature, False) == b"body"


def test_a_client_that_negotiates_it_gets_a_version() -> None:
    first = bytearray.fromhex(LAYOUTS["go-msrpc"])
    first[15] |= VERSION >> 24
    header = FixedHeader.read(challenged(bytes(first))[1])
    assert header.flags & VERSION
    assert header.version[7] == 15  # NTLMSSP_REVISION_W2K3
    assert header.rest == 0


@pytest.mark.interop
def test_impacket_without_a_version() -> None:
    ntlm = pytest.importorskip("impacket.ntlm")
    first = ntlm.getNTLMSSPType1("", "LAB", signingRequired=True, use_ntlmv2=True)
    assert first.getData() == bytes.fromhex(LAYOUTS["impacket"])
    acceptor, challenge = challenged(first.getData())
    read = ntlm.NTLMAuthChallenge(challenge)
    assert read["domain_name"].decode("utf-16-le") == "LAB"
    pairs = ntlm.AV_PAIRS(read["TargetInfoFields"])
    assert pairs[ntlm.NTLMSSP_AV_HOSTNAME][1].decode("utf-16-le") == "SRV1"
    last, _ = ntlm.getNTLMSSPType3(first, challenge, "alice", PASSWORD, "LAB", use_ntlmv2=True)
    acceptor.step(last.getData())
    assert acceptor.identity == ALICE.identity
