"""A security provider for tests: it authenticates, signs and encrypts, but is not secure.

Both sides know a secret, and number their contexts so that each has its own keys. The steps of a
context depend on its authentication type, so that tests cover all ways of negotiation:

    NTLM       hello, challenge, proof            bind, bind_ack, auth3
    SPNEGO     hello, challenge, proof, proof     bind, bind_ack, alter_context, its answer
    KERBEROS   hello with proof, proof            bind, bind_ack

Signatures are HMACs with a sequence number for each direction. NTLM's always cover the header, the
others only if header signing was negotiated, as in reality. At level privacy the body is encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
from itertools import count

from mqis.protocol.authentication import (
    ANONYMOUS,
    NOWHERE,
    Addresses,
    AuthenticationError,
    AuthLevel,
    AuthType,
    CallerTicket,
    Identity,
    LogonEnd,
    auth_type_name,
)

SIGNATURE_SIZE = 16
_SUPPORTED = (AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS)
_CHALLENGE = b"challenge "


class SharedSecret:
    """``Authenticator`` and ``Initiator`` in one, for a server and its clients."""

    def __init__(self, secret: bytes = b"secret", name: str = "somebody") -> None:
        self._secret = secret
        self._name = name
        self._numbers = count(1)

    def acceptor(
        self, auth_type: int, level: int, addresses: Addresses = NOWHERE
    ) -> SharedSecretContext:
        return self._context(auth_type, accepting=True)

    def initiator(self, auth_type: int, level: int, target: str) -> SharedSecretContext:
        return self._context(auth_type, accepting=False)

    def _context(self, auth_type: int, *, accepting: bool) -> SharedSecretContext:
        kind, number = _supported(auth_type), next(self._numbers)
        return SharedSecretContext(self._secret, kind, self._name, number, accepting=accepting)


def _supported(auth_type: int) -> AuthType:
    if auth_type not in _SUPPORTED:
        raise AuthenticationError(f"{auth_type_name(auth_type)} is not supported")
    return AuthType(auth_type)


class SharedSecretContext:
    """The ``SecurityContext`` of either side."""

    def __init__(
        self, secret: bytes, auth_type: AuthType, name: str, number: int, *, accepting: bool
    ) -> None:
        self._secret = secret
        self._type = auth_type
        self._accepting = accepting
        self._name = name.encode()
        #: Makes this context's keys unique; the side that proves itself first adopts the other's.
        self._nonce = b"%d" % number
        self._steps = 0
        self._broken = False
        self._sent = 0
        self._received = 0
        self.complete = False

    @property
    def identity(self) -> Identity | None:
        """The caller; a client without a name logs on as nobody, as NTLM's may."""
        if not self._accepting or not self.complete:
            return None
        return Identity("TEST", self._name.decode("latin-1")) if self._name else ANONYMOUS

    @property
    def ended(self) -> LogonEnd | None:
        """None: the secret is valid for ever."""
        return None

    @property
    def ticket(self) -> CallerTicket | None:
        """None: there is no KDC."""
        return None

    # --- steps ------------------------------------------------------------------------------------

    def step(self, token: bytes | None) -> bytes | None:
        if self._broken or self.complete:
            raise AuthenticationError("the context is complete or broken; it takes no more tokens")
        self._steps += 1
        try:
            return self._accept(token or b"") if self._accepting else self._initiate(token)
        except AuthenticationError:
            self._broken = True
            raise

    def _accept(self, token: bytes) -> bytes | None:
        if self._steps == 1:
            return self._hello(token)
        if not hmac.compare_digest(token, self._proof(b"client")):
            raise AuthenticationError("the proof is wrong")
        self.complete = True
        return self._proof(b"server") if self._type == AuthType.SPNEGO else None

    def _hello(self, token: bytes) -> bytes:
        word, name, nonce, proof = (*token.split(b" ", 3), b"", b"", b"")[:4]
        if word != b"hello":
            raise AuthenticationError("the token is not a hello")
        self._name = name
        if self._type != AuthType.KERBEROS:
            return _CHALLENGE + self._nonce
        self._nonce = nonce
        if not hmac.compare_digest(proof, self._proof(b"client")):
            raise AuthenticationError("the proof is wrong")
        self.complete = True
        return self._proof(b"server")

    def _initiate(self, token: bytes | None) -> bytes | None:
        if token is None:
            hello = [b"hello", self._name]
            if self._type == AuthType.KERBEROS:
                hello += [self._nonce, self._proof(b"client")]
            return b" ".join(hello)
        if token.startswith(_CHALLENGE) and self._type != AuthType.KERBEROS:
            self._nonce = token.removeprefix(_CHALLENGE)
            self.complete = self._type == AuthType.NTLM
            return self._proof(b"client")
        if not hmac.compare_digest(token, self._proof(b"server")):
            raise AuthenticationError("the server did not authenticate itself")
        self.complete = True
        return None

    def _proof(self, side: bytes) -> bytes:
        return hmac.digest(self._secret, side + self._session, "sha256").hex().encode()

    @property
    def _session(self) -> bytes:
        return self._name + b" " + self._nonce

    # --- messages ---------------------------------------------------------------------------------

    def signature_size(self, level: int) -> int:
        return SIGNATURE_SIZE if level > AuthLevel.CONNECT else 0

    def protect(
        self, level: int, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> tuple[bytes, bytes]:
        if self._broken:
            raise AuthenticationError("the context is broken")
        key = self._key(self._accepting, self._sent)
        self._sent += 1
        signature = self._sign(key, header, body, trailer, sign_header=sign_header)
        return self._crypt(level, key, body), signature

    def unprotect(  # noqa: PLR0917
        self,
        level: int,
        header: bytes,
        body: bytes,
        trailer: bytes,
        signature: bytes,
        sign_header: bool,
    ) -> bytes:
        key = self._key(not self._accepting, self._received)
        self._received += 1
        body = self._crypt(level, key, body)
        right = self._sign(key, header, body, trailer, sign_header=sign_header)
        if self._broken or not hmac.compare_digest(right, signature):
            self._broken = True
            raise AuthenticationError("the signature is wrong")
        return body

    def _key(self, from_acceptor: bool, number: int) -> bytes:
        message = b"%d %d " % (from_acceptor, number) + self._session
        return hmac.digest(self._secret, message, "sha256")

    def _sign(
        self, key: bytes, header: bytes, body: bytes, trailer: bytes, *, sign_header: bool
    ) -> bytes:
        whole = sign_header or self._type == AuthType.NTLM
        signed = header + body + trailer if whole else body
        return hmac.digest(key, signed, "sha256")[:SIGNATURE_SIZE]

    @staticmethod
    def _crypt(level: int, key: bytes, body: bytes) -> bytes:
        if level != AuthLevel.PRIVACY:
            return body
        stream = hashlib.shake_128(key).digest(len(body))
        return bytes(a ^ b for a, b in zip(body, stream, strict=True))
