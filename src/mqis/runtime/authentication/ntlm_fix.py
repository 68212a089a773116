"""NTLM by pyspnego, with corrections of its acceptor. No other module depends on its internals.

The behaviour of pyspnego 0.12.4, and what this module does instead:

- It rebuilds the client's blob from parsed AV pairs and computes the NT proof over its own bytes.
  Impacket and Samba end theirs differently, so both were refused. MS-NLMP 3.3.2 says what the
  proof covers, all of the blob as sent, and that is what is checked here.
- It finds accounts in the file that NTLM_USER_FILE names, which all servers of a process share.
  Here they come from an object.
- It accepts LM and NTLMv1 responses unless LM_COMPAT_LEVEL says otherwise. Here it is NTLMv2 only.
- It slices fields without checking them, so a message that was cut short loses its fields, and
  skips the MIC if the message, which nothing protects then, leaves no room for it. Here every
  field lies inside the message, and a MIC that the proven blob promises must be there.
- It echoes every flag that the client sends, and signs with a constant if SIGN is missing
  afterwards. Here the challenge holds only what we do, and ``sealing`` and ``signing`` tell what
  was agreed.
- It ignores the target that the client meant. Here a logon that was meant for another
  server is refused (``target``).
- It leaves the Version field out of a CHALLENGE that does not negotiate it. MS-NLMP 2.2.1.2 has
  the field in the fixed header, and some clients look for the payload behind it. Here it is
  always there, zero if the client does not negotiate it.
- It has no anonymous logon (MS-NLMP 3.2.5.1.2). Here it is an identity of its own.

All of it overrides methods that pyspnego does not promise to keep. ``check_pyspnego`` compares
them with what this was written for when the module is imported.
"""

from __future__ import annotations

import hmac
import inspect
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from importlib.metadata import version
from math import inf
from typing import Any, ClassVar

from spnego import ContextReq, NTLMHash
from spnego._negotiate import NegotiateProxy
from spnego._ntlm import NTLMProxy
from spnego._ntlm_raw.crypto import hmac_md5, ntowfv2, rc4k
from spnego._ntlm_raw.messages import (
    AvId,
    Challenge,
    FileTime,
    Negotiate,
    NegotiateFlags,
    TargetInfo,
    Version,
)
from spnego.channel_bindings import GssChannelBindings

from mqis.protocol.authentication import (
    ANONYMOUS,
    NOWHERE,
    Addresses,
    AuthenticationError,
    Identity,
)
from mqis.runtime.authentication.account import (
    NT_HASH_SIZE,
    Accounts,
    Claim,
    MemoryAccounts,
    any_claim,
    resolve,
)
from mqis.runtime.authentication.ntlm_protection import SIGNATURE_SIZE, NtlmSession
from mqis.runtime.authentication.target import OwnNames
from mqis.wire.reader import Reader

_SUPPORTED = (
    NegotiateFlags.key_56
    | NegotiateFlags.key_128
    | NegotiateFlags.key_exch
    | NegotiateFlags.version
    | NegotiateFlags.extended_session_security
    | NegotiateFlags.always_sign
    | NegotiateFlags.seal
    | NegotiateFlags.sign
    | NegotiateFlags.unicode
)
_ALWAYS = (
    NegotiateFlags.ntlm
    | NegotiateFlags.request_target
    | NegotiateFlags.target_info
    | NegotiateFlags.target_type_server
)
# Without the extended session security a signature is a CRC; without 128 bits a key is guessed.
_SIGNING = NegotiateFlags.sign | NegotiateFlags.extended_session_security | NegotiateFlags.key_128
_SEALING = _SIGNING | NegotiateFlags.seal
_PROTECTING = NegotiateFlags.sign | NegotiateFlags.seal | NegotiateFlags.key_exch

# Version ends the fixed header of CHALLENGE_MESSAGE (MS-NLMP 2.2.1.2); the payload follows.
_VERSION_AT, _VERSION_SIZE = 48, 8
_CHALLENGE_HEADER = _VERSION_AT + _VERSION_SIZE
# NTLMv2_CLIENT_CHALLENGE (MS-NLMP 2.2.2.7) after the 16 bytes of the proof: two version bytes,
# 6 reserved, time stamp 8, client challenge 8, 4 reserved, then the AV pairs.
_PROOF_SIZE = 16
_AV_PAIRS_AT = _PROOF_SIZE + 28
_NT_RESPONSE_MIN = _AV_PAIRS_AT + 4
_MIC_PROVIDED = 0x0000_0002
#: Characters of a target that an error repeats.
_SHOWN = 80


class _Ntlm(NTLMProxy):
    """The base of both sides, a ``protection.Mechanism``.

    It counts the messages that Negotiate signs (its mechListMIC) before the exchange is finished:
    the first call has the next sequence number, but its RC4 stream begins anew (MS-SPNG, "NTLM RC4
    Key State for MechListMIC and First Signed Message").
    """

    signs_whole: ClassVar[bool] = True
    lifetime_s: ClassVar[float] = inf
    ticket: ClassVar[None] = None
    identity: Identity | None = None
    _signed = _verified = 0

    @property
    def signing(self) -> bool:
        return self._context_attr & _SIGNING == _SIGNING

    @property
    def sealing(self) -> bool:
        return self._context_attr & _SEALING == _SEALING

    @property
    def ntlm_session(self) -> NtlmSession | None:
        if not self.complete or not self.signing:
            return None
        return NtlmSession(
            self.session_key,
            is_client=self.usage == "initiate",
            key_exchange=bool(self._context_attr & NegotiateFlags.key_exch),
            sent=self._signed,
            received=self._verified,
        )

    def sign(self, data: bytes, qop: int | None = None) -> bytes:
        self._signed += 1
        return super().sign(data, qop)

    def verify(self, data: bytes, mic: bytes) -> int:
        self._verified += 1
        return super().verify(data, mic)

    def signature_size(self, sealed: bool) -> int:
        return SIGNATURE_SIZE


class NtlmAcceptor(_Ntlm):
    """The server's side of NTLM."""

    def __init__(
        self,
        accounts: Accounts,
        server: str,
        domain: str,
        *,
        allow_anonymous: bool,
        names: OwnNames | None = None,
        addresses: Addresses = NOWHERE,
        claim: Claim = any_claim,
    ) -> None:
        # Only an initiator is made without looking for NTLM_USER_FILE.
        super().__init__(username=_hash_credential(bytes(NT_HASH_SIZE)), usage="initiate")
        self._credential = None
        self.usage = "accept"
        self._accounts = accounts
        self._server = server
        self._domain = domain
        self._allow_anonymous = allow_anonymous
        self._names = names or OwnNames.of(server, domain)
        self._addresses = addresses
        self._claim = claim
        self._client_sent_mic = False
        #: NEGOTIATE and CHALLENGE as they were on the wire, which the MIC covers.
        self._exchanged = b""
        self._decoy = secrets.token_bytes(NT_HASH_SIZE)

    @property
    def client_principal(self) -> str | None:
        return str(self.identity) if self.complete else None

    @property
    def _requires_mech_list_mic(self) -> bool:
        """True if the client sent a MIC: Negotiate requires a mechListMIC only then."""
        return self._client_sent_mic

    def _step_accept_negotiate(self, token: bytes) -> bytes:
        negotiate = Negotiate.unpack(token)
        if not negotiate.flags & NegotiateFlags.unicode:
            raise AuthenticationError("NTLM: the client does not offer Unicode names")
        flags = (negotiate.flags & _SUPPORTED) | _ALWAYS
        pairs = TargetInfo()
        pairs[AvId.nb_computer_name] = self._server.upper()
        pairs[AvId.nb_domain_name] = self._domain.upper() or self._server.upper()
        pairs[AvId.dns_computer_name] = self._server.lower()
        pairs[AvId.timestamp] = FileTime.now(tz=UTC)
        challenge = Challenge(
            int(flags),
            secrets.token_bytes(8),
            target_name=pairs[AvId.nb_domain_name],
            target_info=pairs,
            version=Version.get_current(),
        )
        challenge.flags = int(flags)  # pyspnego sets the flag wherever there is a field
        self._temp_negotiate, self._temp_challenge = negotiate, challenge
        answer = challenge.pack()
        if not flags & NegotiateFlags.version:
            answer = answer[:_VERSION_AT] + bytes(_VERSION_SIZE) + answer[_CHALLENGE_HEADER:]
        self._exchanged = token + answer
        return answer

    def _step_accept_authenticate(
        self, token: bytes, channel_bindings: GssChannelBindings | None
    ) -> None:
        challenge = self._temp_challenge
        if challenge is None:
            raise AuthenticationError("NTLM: AUTHENTICATE comes before NEGOTIATE")
        message = _Authenticate.decode(token)
        flags = message.flags & challenge.flags
        if message.is_anonymous:
            if not self._allow_anonymous:
                raise AuthenticationError("NTLM: anonymous logon is not allowed")
            identity, key, mic_promised = ANONYMOUS, bytes(16), False
        else:
            identity, key = self._prove(message, challenge.server_challenge)
            pairs = _av_pairs(message.nt)
            self._check_target(pairs)
            mic_promised = _promises_mic(pairs)
        if flags & NegotiateFlags.key_exch and flags & (NegotiateFlags.sign | NegotiateFlags.seal):
            if len(message.session_key) != 16:
                raise AuthenticationError("NTLM: the session key does not have 16 bytes")
            key = rc4k(key, message.session_key)
        if mic_promised:
            mic, rest = message.split_mic()
            if not hmac.compare_digest(hmac_md5(key, self._exchanged + rest), mic):
                raise AuthenticationError("NTLM: the MIC is wrong, a message was changed")
        self._client_sent_mic = mic_promised
        self.identity = identity
        self._session_key = key
        self._context_attr = flags
        self._complete = True

    def _prove(self, message: _Authenticate, server_challenge: bytes) -> tuple[Identity, bytes]:
        """The identity of the sender, and the session base key (MS-NLMP 3.3.2)."""
        if len(message.nt) < _NT_RESPONSE_MIN:
            raise AuthenticationError("NTLM: only NTLMv2 responses are accepted")
        own_names = (self._domain, self._server)
        account = resolve(self._accounts, own_names, message.domain, message.user)
        # An unknown name costs the same and gets the same answer as a wrong password.
        secret = self._decoy if account is None else account.nt_hash
        response_key = ntowfv2(message.user, secret, message.domain)
        proof = hmac_md5(response_key, server_challenge + message.nt[_PROOF_SIZE:])
        named = f"{message.domain}\\{message.user}" if message.domain else message.user
        self._claim(named, account)
        if not hmac.compare_digest(proof, message.nt[:_PROOF_SIZE]) or account is None:
            raise AuthenticationError("NTLM: unknown account or wrong password")
        return account.identity, hmac_md5(response_key, proof)

    def _check_target(self, pairs: list[tuple[int, bytes]]) -> None:
        """Refuses a logon that was meant for another server; some clients name none."""
        for value in (value for av_id, value in pairs if av_id == AvId.target_name):
            target = value.decode("utf-16-le", errors="replace")
            if target and not self._names.include(target, self._addresses):
                raise AuthenticationError(
                    f"NTLM: the logon is meant for {target[:_SHOWN]!r}, which is not a name of "
                    "this server; if it is, list it in security.names"
                )


class NtlmInitiator(_Ntlm):
    """The client's side of NTLM: NTLMv2 with extended session security, whatever LM_COMPAT_LEVEL.

    ``signing`` and ``sealing`` are requirements: if the server, or an attacker in between, removes
    them, the logon fails. It always sends a MIC; pyspnego does so only if the challenge has a time
    stamp, which an attacker in between could remove. ``layered`` is false inside TLS, where servers
    refuse a second protection: nothing is signed or sealed after the logon.
    """

    def __init__(
        self,
        domain: str,
        name: str,
        secret: bytes,
        *,
        host: str,
        service: str,
        signing: bool,
        sealing: bool,
        layered: bool = True,
    ) -> None:
        request = ContextReq.integrity | ContextReq.replay_detect | ContextReq.sequence_detect
        if sealing:
            request |= ContextReq.confidentiality
        super().__init__(
            username=_hash_credential(secret), hostname=host, service=service, context_req=request
        )
        if self._credential is None:
            raise RuntimeError("pyspnego made an initiator without its credential")
        self._credential.domain, self._credential.username = domain or None, name
        self._lm = self._nt_v1 = False
        self._nt_v2 = True
        self._context_req |= NegotiateFlags.extended_session_security
        self._context_req &= ~NegotiateFlags.lm_key
        self._mic_required = True
        if not layered:  # pyspnego would send a key of one octet, which Samba refuses
            self._context_req &= ~_PROTECTING
        if not host:
            self.spn = None  # pyspnego would name a host "unspecified"
        self._required = _SEALING if sealing else _SIGNING if signing else 0

    def _step_initiate(
        self,
        in_token: bytes | None = None,
        *,
        channel_bindings: GssChannelBindings | None = None,
    ) -> bytes:
        token = super()._step_initiate(in_token, channel_bindings=channel_bindings)
        if self.complete and self._required & ~self._context_attr:
            missing = NegotiateFlags(self._required & ~self._context_attr)
            self._complete = False
            raise AuthenticationError(f"NTLM: the server does not offer {missing!s}")
        return token


def _hash_credential(secret: bytes) -> NTLMHash:
    """A credential by hash, for which pyspnego reads no environment and computes no LM hash."""
    return NTLMHash("account", nt_hash=secret.hex())


@dataclass(frozen=True, slots=True)
class _Authenticate:
    """AUTHENTICATE_MESSAGE (MS-NLMP 2.2.1.3); every field is checked to lie inside the message.

    Signature 8, MessageType 4, six times (length u16, maximum u16, offset u32), flags u32; Version
    8 and MIC 16 where the first payload leaves room for them.
    """

    raw: bytes
    lm: bytes
    nt: bytes
    domain: str
    user: str
    session_key: bytes
    flags: int
    payload_at: int

    @classmethod
    def decode(cls, token: bytes) -> _Authenticate:
        reader = Reader(token)
        if reader.bytes(8) != b"NTLMSSP\0" or reader.u32() != 3:
            raise AuthenticationError("NTLM: the message is no AUTHENTICATE message")
        fields, starts = [], [len(token)]
        for _ in range(6):
            length, _maximum, start = reader.u16(), reader.u16(), reader.u32()
            if length and (start < 64 or start + length > len(token)):
                raise AuthenticationError("NTLM: a field lies outside its message")
            fields.append(token[start : start + length] if length else b"")
            if length:
                starts.append(start)
        flags = reader.u32()
        if not flags & NegotiateFlags.unicode:
            raise AuthenticationError("NTLM: names are not in Unicode")
        lm, nt, domain, user, _workstation, session_key = fields
        return cls(
            token,
            lm,
            nt,
            domain.decode("utf-16-le"),
            user.decode("utf-16-le"),
            session_key,
            flags,
            min(starts),
        )

    @property
    def is_anonymous(self) -> bool:
        return not self.user and not self.nt and self.lm in (b"", b"\0")

    def split_mic(self) -> tuple[bytes, bytes]:
        """The MIC, and the message with zeros in its place."""
        if self.payload_at >= 88:
            at = 72
        elif self.payload_at >= 80:  # pyspnego's own client leaves an unused Version out
            at = 64
        else:
            raise AuthenticationError("NTLM: a MIC was promised and is not there")
        return self.raw[at : at + 16], self.raw[:at] + bytes(16) + self.raw[at + 16 :]


def _av_pairs(nt: bytes) -> list[tuple[int, bytes]]:
    """The AV pairs of an NTLMv2 response in order, some of them perhaps twice.

    Unknown pairs and bytes after the end are ignored.
    """
    reader = Reader(nt, _AV_PAIRS_AT)
    pairs: list[tuple[int, bytes]] = []
    while (av_id := reader.u16()) != AvId.eol:
        pairs.append((av_id, bytes(reader.bytes(reader.u16()))))
    return pairs


def _promises_mic(pairs: list[tuple[int, bytes]]) -> bool:
    """Returns whether any MsvAvFlags announces a MIC."""
    flags = (int.from_bytes(value, "little") for av_id, value in pairs if av_id == AvId.flags)
    return any(each & _MIC_PROVIDED for each in flags)


# --- the internals of pyspnego that this module expects -------------------------------------------

_EXPECTED: tuple[tuple[Callable[..., Any], tuple[str, ...]], ...] = (
    (NTLMProxy._step_accept_negotiate, ("self", "token")),
    (NTLMProxy._step_accept_authenticate, ("self", "token", "channel_bindings")),
    (NTLMProxy._step_initiate, ("self", "in_token", "channel_bindings")),
    (NegotiateProxy._step_spnego_input, ("self", "in_token", "channel_bindings")),
    (NegotiateProxy._rebuild_context_list, ("self", "mech_types", "channel_bindings")),
    (NegotiateProxy._preferred_mech_list, ("self",)),
    (NegotiateProxy._is_same_mech, ("mech", "oid")),
    (ntowfv2, ("username", "nt_hash", "domain_name")),
    (hmac_md5, ("key", "data")),
    (rc4k, ("k", "d")),
)
_EXPECTED_STATE = {
    "_complete": False,
    "_context_attr": 0,
    "_credential": None,
    "_mic_required": False,
    "_session_key": None,
    "_temp_challenge": None,
    "_temp_negotiate": None,
    "usage": "accept",
}


def check_pyspnego(
    expected: tuple[tuple[Callable[..., Any], tuple[str, ...]], ...] = _EXPECTED,
) -> None:
    """Raises if the internals of pyspnego differ from those that this module overrides."""
    for function, parameters in expected:
        found = tuple(inspect.signature(function).parameters)
        if found != parameters:
            _unexpected(f"{function.__qualname__} takes {found}, not {parameters}")
    acceptor = NtlmAcceptor(_NOBODY, "", "", allow_anonymous=False)
    state = vars(acceptor)
    for name, value in _EXPECTED_STATE.items():
        if name not in state or state[name] != value:
            _unexpected(f"{name} of a new context is {state.get(name, 'missing')!r}, not {value!r}")


def _unexpected(what: str) -> None:
    raise RuntimeError(
        f"pyspnego {version('pyspnego')} differs from what mqis overrides: {what}; "
        "install pyspnego 0.12.4"
    )


_NOBODY = MemoryAccounts()
check_pyspnego()
