"""Logons by GSS-SPNEGO, judged by the server's side of NTLM: what is protected, and by what."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from spnego import ContextReq
from spnego._context import GSSMech

from mqis.protocol.authentication import AuthenticationError
from mqis.protocol.ldap.errors import LdapError
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.authentication import kerberos
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.authentication.negotiate import Negotiate
from mqis.runtime.authentication.ntlm_fix import NtlmAcceptor
from mqis.runtime.authentication.target import OwnNames
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.runtime.ldap.settings import LdapSettings, TlsSettings, channel_binding
from mqis.runtime.ldap.spnego import LdapProtection, SpnegoExchange, SpnegoMechanism, SpnegoUser
from mqis.testing.ldap import ScriptedDirectory, entry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage, MessageStream
from mqis.wire.ldap.requests import SaslBind, SearchRequest, SimpleBind, TokenStream, frame
from mqis.wire.ldap.responses import BindResponse, LdapResult
from mqis.wire.security.sid import Sid
from tests.runtime.ldap.certificates import server_context
from tests.waiting import in_time

ACCOUNT = Account("LAB", "mqis", Sid.parse("S-1-5-21-1-2-3-1000"), nt_hash("secret"), frozenset())
LOGIN = LdapLogin("LAB\\mqis", "secret", BindMethod.NTLM)
#: Flags of NEGOTIATE_MESSAGE (MS-NLMP 2.2.2.5).
SIGN, SEAL = 0x10, 0x20
ORDERED = ContextReq.integrity | ContextReq.replay_detect | ContextReq.sequence_detect


@dataclass
class SpnegoDirectory(ScriptedDirectory):
    """Logs callers on by NTLM, and talks to them under its protection outside of TLS."""

    #: Bytes that came and went after the logon, as they were on the wire.
    carried: bytearray = field(default_factory=bytearray)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        names = OwnNames.of("DC1", "LAB", ["127.0.0.1"])
        accounts = MemoryAccounts([ACCOUNT])
        ntlm = NtlmAcceptor(accounts, "DC1", "LAB", allow_anonymous=False, names=names)
        acceptor, stream, tokens = (
            Negotiate("accept", {GSSMech.ntlm: ntlm}), MessageStream(), TokenStream(),
        )  # fmt: skip
        layered = False
        while data := await reader.read(65536):
            if layered:
                self.carried += data
                data = b"".join(acceptor.unwrap(token).data for token in tokens.feed(data))
            stream.feed(data)
            for message, _ in stream.messages():
                self.received.append(message)
                answers = self._logon(acceptor, message) or self._usual(message)
                for answer in answers:
                    operation, *controls = answer if isinstance(answer, tuple) else (answer,)
                    out = LdapMessage(message.id, operation, tuple(controls)).encode()
                    if layered:
                        out = frame(acceptor.wrap(out).data)
                        self.carried += out
                    writer.write(out)
                layered = acceptor.complete and not self.ldaps

    @staticmethod
    def _logon(acceptor: Negotiate, message: LdapMessage) -> list[Any]:
        if not isinstance(message.operation, SaslBind):
            return []
        token = acceptor.step(message.operation.token)
        ended = ResultCode.SUCCESS if acceptor.complete else ResultCode.SASL_BIND_IN_PROGRESS
        return [BindResponse(LdapResult(ended), token)]

    @property
    def tokens(self) -> list[bytes]:
        found = [bind for bind in self.operations(SaslBind) if isinstance(bind, SaslBind)]
        assert {bind.mechanism for bind in found} == {"GSS-SPNEGO"}
        return [bind.token or b"" for bind in found]


def logged_on(server: SpnegoDirectory, tls: TlsSettings = TlsSettings()) -> None:  # noqa: B008
    async def run() -> None:
        async with server:
            settings = LdapSettings((LdapUrl.parse(server.url),), LOGIN, tls)
            client = LdapDirectoryClient(DomainControllers(settings))
            found = await client.read("CN=secret,DC=x")
            assert found is not None
            assert found.values("cn") == (b"hidden-value",)
            await client.close()

    asyncio.run(in_time(run()))


def flags(token: bytes) -> int:
    """The flags of the NEGOTIATE_MESSAGE in a token."""
    at = token.index(b"NTLMSSP\0\x01\0\0\0") + 12
    return int.from_bytes(token[at : at + 4], "little")


def directory(**options: Any) -> SpnegoDirectory:
    return SpnegoDirectory([entry("CN=secret,DC=x", cn=b"hidden-value")], **options)


@pytest.mark.req("MQDSSM-3.1.6.18-04")
def test_outside_of_tls_everything_after_the_logon_is_encrypted() -> None:
    server = directory()
    logged_on(server)
    assert flags(server.tokens[0]) & (SIGN | SEAL) == SIGN | SEAL
    assert len(server.operations(SearchRequest)) == 1
    assert server.carried
    for hidden in (b"hidden-value", b"secret", b"objectClass"):
        assert hidden not in server.carried
    assert server.operations(SimpleBind) == []


@pytest.mark.req("MQDSSM-3.1.6.18-04")
def test_a_simple_bind_is_never_chosen_by_itself() -> None:
    assert LdapLogin("mqis@corp.example", "secret").chosen is BindMethod.NEGOTIATE
    assert LdapLogin("", ccache="FILE:/tmp/cc").chosen is BindMethod.NEGOTIATE
    assert LdapLogin().chosen is BindMethod.ANONYMOUS
    assert LdapLogin("mqis@x", "secret", BindMethod.SIMPLE).chosen is BindMethod.SIMPLE


class DamagedDirectory(SpnegoDirectory):
    """Its challenge says that it is a message of a type that NTLM does not have."""

    @staticmethod
    def _logon(acceptor: Negotiate, message: LdapMessage) -> list[Any]:
        [answer] = SpnegoDirectory._logon(acceptor, message)
        token = answer.token.replace(b"NTLMSSP\0\x02", b"NTLMSSP\0\x07")
        return [BindResponse(answer.result, token)]


def test_a_damaged_token_of_the_server_ends_the_logon() -> None:
    server = DamagedDirectory([])
    with pytest.raises(LdapError, match=r"LAB\\mqis: the logon fails: "):
        logged_on(server)
    assert len(server.tokens) == 1


@pytest.mark.req("MQDSSM-3.1.6.18-05")
def test_inside_tls_the_logon_is_bound_to_the_certificate_and_asks_for_no_layer(
    tmp_path: Path,
) -> None:
    context: ssl.SSLContext = server_context(tmp_path)
    server = directory(tls=context, ldaps=True)
    logged_on(server, TlsSettings(tmp_path / "ca.pem"))
    assert flags(server.tokens[0]) & (SIGN | SEAL) == 0
    assert not server.carried
    certificate = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    unique = b"tls-server-end-point:" + certificate.fingerprint(hashes.SHA256())
    # gss_channel_bindings_struct without addresses, hashed (MS-NLMP 2.2.2.1, MsvAvChannelBindings)
    hashed = hashlib.md5(bytes(16) + len(unique).to_bytes(4, "little") + unique).digest()
    assert b"\x0a\x00\x10\x00" + hashed in server.tokens[-1]


@pytest.mark.parametrize(
    ("protection", "asked"),
    [
        (LdapProtection.NONE, ContextReq.no_integrity),
        (LdapProtection.SIGN, ORDERED),
        (LdapProtection.SEAL, ORDERED),
    ],
)
def test_kerberos_is_asked_for_the_layer_that_is_wanted(
    protection: LdapProtection, asked: ContextReq, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside TLS a domain controller refuses a second layer. GSSAPI itself needs a KDC."""
    made: list[dict[str, Any]] = []

    def initiator(*_user: object, **options: Any) -> None:
        made.append(options)
        raise AuthenticationError("no ticket")

    monkeypatch.setattr(kerberos, "KerberosInitiator", initiator)
    user = SpnegoUser("mqis@corp.example", "secret")
    with pytest.raises(AuthenticationError, match="no ticket"):
        SpnegoExchange(user, "dc1", protection=protection, mechanism=SpnegoMechanism.KERBEROS)
    (options,) = made
    assert options["request"] == ContextReq.mutual_auth | asked
    assert options["sealing"] is (protection is LdapProtection.SEAL)


def test_a_certificate_signed_in_an_unknown_way_is_bound_by_sha_256(tmp_path: Path) -> None:
    """RFC 5929 4.1 leaves the hash open for an algorithm that names none."""
    server_context(tmp_path)
    known = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    data = known.public_bytes(serialization.Encoding.DER)
    ecdsa_with_sha256 = bytes.fromhex("06082a8648ce3d040302")
    assert data.count(ecdsa_with_sha256) == 2
    unknown = data.replace(ecdsa_with_sha256, bytes.fromhex("06082a8648ce3d04037f"))
    expected = b"tls-server-end-point:" + hashlib.sha256(unknown).digest()
    assert channel_binding(unknown) == expected
