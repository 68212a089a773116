"""Other implementations as clients of our acceptor: impacket, Samba, and MIT Kerberos."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from Cryptodome.Cipher import ARC4
from impacket import ntlm
from impacket.dcerpc.v5.rpcrt import SEC_TRAILER, MSRPCRequestHeader
from impacket.spnego import SPNEGO_NegTokenInit, SPNEGO_NegTokenResp, TypesMech

from mqis.protocol.authentication import ANONYMOUS, AuthenticationError, AuthType, SecurityContext
from tests.runtime.authentication.pairs import ALICE, PASSWORD, SERVER

pytestmark = pytest.mark.interop

SYSTEM_PYTHON = "/usr/bin/python3"
SCRIPT = Path(__file__).with_name("samba_gensec.py")
NTLM_MECH = TypesMech["NTLMSSP - Microsoft NTLM Security Support Provider"]


# --- impacket -------------------------------------------------------------------------------------


class Impacket:
    """The keys and sequence numbers of impacket's DCE/RPC client, which keeps them to itself."""

    def __init__(self, flags: int, session_key: bytes) -> None:
        self.flags = flags
        self.number = 0
        self.keys = {
            side: (
                ntlm.SIGNKEY(flags, session_key, side),
                ARC4.new(ntlm.SEALKEY(flags, session_key, side)).encrypt,
            )
            for side in ("Client", "Server")
        }

    def sign(self, side: str, number: int, whole: bytes) -> bytes:
        key, handle = self.keys[side]
        return bytes(ntlm.SIGN(self.flags, key, whole, number, handle).getData())

    def seal(self, side: str, number: int, whole: bytes, body: bytes) -> tuple[bytes, bytes]:
        key, handle = self.keys[side]
        sealed, signature = ntlm.SEAL(self.flags, key, None, whole, body, number, handle)
        return sealed, bytes(signature.getData())

    def unseal(self, side: str, sealed: bytes) -> bytes:
        return bytes(self.keys[side][1](sealed))


def impacket_ntlm(level: int, *, user: str = "alice", password: str = PASSWORD) -> Any:
    """An acceptor that impacket has logged on to, and impacket's side."""
    acceptor = SERVER.acceptor(AuthType.NTLM, level)
    domain = "LAB" if user else ""
    type1 = ntlm.getNTLMSSPType1("", domain, signingRequired=True, use_ntlmv2=True)
    challenge = acceptor.step(type1.getData())
    type3, key = ntlm.getNTLMSSPType3(type1, challenge, user, password, domain, use_ntlmv2=True)
    acceptor.step(type3.getData())
    return acceptor, Impacket(type3["flags"], key)


def impacket_spnego(level: int) -> Any:
    acceptor = SERVER.acceptor(AuthType.SPNEGO, level)
    type1 = ntlm.getNTLMSSPType1("", "LAB", signingRequired=True, use_ntlmv2=True)
    opening = SPNEGO_NegTokenInit()
    opening["MechTypes"] = [NTLM_MECH]
    opening["MechToken"] = type1.getData()
    challenge = SPNEGO_NegTokenResp(acceptor.step(opening.getData()))["ResponseToken"]
    type3, key = ntlm.getNTLMSSPType3(type1, challenge, "alice", PASSWORD, "LAB", use_ntlmv2=True)
    answer = SPNEGO_NegTokenResp()
    answer["ResponseToken"] = type3.getData()
    acceptor.step(answer.getData())
    return acceptor, Impacket(type3["flags"], key)


def request(body: bytes, level: int) -> tuple[bytes, bytes, bytes]:
    """Header, body and trailer of a request as impacket lays it out (rpcrt.py, _transport_send)."""
    trailer = SEC_TRAILER()
    trailer["auth_type"], trailer["auth_level"], trailer["auth_ctx_id"] = 10, level, 79231
    pdu = MSRPCRequestHeader()
    pdu["pduData"], pdu["sec_trailer"], pdu["auth_data"] = body, trailer.getData(), bytes(16)
    whole = bytes(pdu.get_packet())[:-16]
    cut = len(whole) - 8
    return whole[: cut - len(body)], body, whole[cut:]


@pytest.mark.parametrize("connect", [impacket_ntlm, impacket_spnego])
@pytest.mark.parametrize("sign_header", [False, True])
def test_impacket_signs_the_whole_pdu(connect: Any, sign_header: bool) -> None:
    acceptor, client = connect(5)
    assert acceptor.identity == ALICE.identity
    for number in range(5):
        header, body, trailer = request(b"stub%d..." % number * 4, 5)
        signature = client.sign("Client", number, header + body + trailer)
        assert acceptor.unprotect(5, header, body, trailer, signature, sign_header) == body
        sent, signature = acceptor.protect(5, header, body, trailer, sign_header)
        assert sent == body
        assert signature == client.sign("Server", number, header + body + trailer)


@pytest.mark.parametrize("connect", [impacket_ntlm, impacket_spnego])
@pytest.mark.parametrize("sign_header", [False, True])
def test_impacket_seals_the_body(connect: Any, sign_header: bool) -> None:
    acceptor, client = connect(6)
    for number in range(5):
        header, body, trailer = request(b"stub%d..." % number * 4, 6)
        sealed, signature = client.seal("Client", number, header + body + trailer, body)
        assert acceptor.unprotect(6, header, sealed, trailer, signature, sign_header) == body
        answer = acceptor.protect(6, header, body[::-1], trailer, sign_header)
        whole = header + body[::-1] + trailer
        assert answer == client.seal("Server", number, whole, body[::-1])


def test_impacket_with_a_wrong_password() -> None:
    with pytest.raises(AuthenticationError, match="wrong password"):
        impacket_ntlm(5, password="guess")


def test_impacket_without_identity() -> None:
    acceptor, client = impacket_ntlm(5, user="", password="")
    assert acceptor.identity == ANONYMOUS
    signature = client.sign("Client", 0, b"hbt")
    assert acceptor.unprotect(5, b"h", b"b", b"t", signature, False) == b"b"


# --- Samba ----------------------------------------------------------------------------------------


class Samba:
    """Samba's gensec in a process of the system's Python."""

    def __init__(self, auth_type: int, level: int, password: str | None) -> None:
        self.process = subprocess.Popen(
            [SYSTEM_PYTHON, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.tell(
            auth_type=int(auth_type), level=level, user="alice", domain="LAB", password=password
        )

    def tell(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.tell(**order)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def log_on(self, acceptor: SecurityContext) -> None:
        answer = self.ask(token="")
        while not acceptor.complete:
            token = acceptor.step(bytes.fromhex(answer["token"]))
            if token is not None:
                answer = self.ask(token=token.hex())
        assert answer["done"]

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def _samba_installed() -> None:
    found = subprocess.run(
        [SYSTEM_PYTHON, "-c", "import samba.gensec"], capture_output=True, check=False
    )
    if found.returncode:
        pytest.skip("python3-samba is not installed")


@pytest.fixture
def samba(_samba_installed: None) -> Iterator[Any]:
    started: list[Samba] = []

    def start(auth_type: int, level: int, password: str | None = PASSWORD) -> Samba:
        started.append(Samba(auth_type, level, password))
        return started[-1]

    yield start
    for client in started:
        client.close()


TYPES = pytest.mark.parametrize("auth_type", [AuthType.NTLM, AuthType.SPNEGO])


@TYPES
@pytest.mark.parametrize("level", [4, 5])
def test_samba_signs_and_checks(samba: Any, auth_type: int, level: int) -> None:
    client = samba(auth_type, level)
    acceptor = SERVER.acceptor(auth_type, level)
    client.log_on(acceptor)
    assert acceptor.identity == ALICE.identity
    for number in range(3):
        parts = (b"header", b"body%d" % number, b"trailer")
        data, whole = parts[1].hex(), b"".join(parts).hex()
        signature = bytes.fromhex(client.ask(sign=[data, whole])["signature"])
        assert acceptor.unprotect(level, *parts, signature, False) == parts[1]
        signature = acceptor.protect(level, *parts, False)[1]
        assert client.ask(check=[data, whole, signature.hex()]) == {"ok": True}
    assert "error" in client.ask(check=[data, whole, bytes(16).hex()])


@TYPES
def test_samba_seals_and_opens(samba: Any, auth_type: int) -> None:
    """Its Python interface seals a message of its own: a body without header and trailer."""
    client = samba(auth_type, 6)
    acceptor = SERVER.acceptor(auth_type, 6)
    client.log_on(acceptor)
    for number in range(3):
        text = b"secret %d" % number
        sealed = bytes.fromhex(client.ask(wrap=text.hex())["data"])
        assert acceptor.unprotect(6, b"", sealed[16:], b"", sealed[:16], True) == text
        body, signature = acceptor.protect(6, b"", text[::-1], b"", True)
        assert client.ask(unwrap=(signature + body).hex()) == {"data": text[::-1].hex()}


@TYPES
def test_samba_with_a_wrong_password(samba: Any, auth_type: int) -> None:
    with pytest.raises(AuthenticationError, match="wrong password"):
        samba(auth_type, 5, "guess").log_on(SERVER.acceptor(auth_type, 5))


@TYPES
def test_samba_without_identity(samba: Any, auth_type: int) -> None:
    acceptor = SERVER.acceptor(auth_type, 2)
    samba(auth_type, 2, None).log_on(acceptor)
    assert acceptor.identity == ANONYMOUS
