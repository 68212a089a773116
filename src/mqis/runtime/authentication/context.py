"""``protocol.authentication.SecurityContext`` around a context of pyspnego."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from spnego import ContextProxy
from spnego._context import IOV, IOVUnwrapResult, IOVWrapResult
from spnego.iov import BufferType

from mqis.protocol.authentication import AuthenticationError, AuthLevel, Identity, auth_type_name

#: The bytes that NTLM sends as signature where nothing is signed.
DUMMY_SIGNATURE = b"\x01" + bytes(15)


class Mechanism(Protocol):
    """The mechanism that protects the messages: NTLM or Kerberos, also inside Negotiate."""

    @property
    def complete(self) -> bool: ...
    @property
    def identity(self) -> Identity | None: ...
    @property
    def signing(self) -> bool: ...
    @property
    def sealing(self) -> bool: ...
    @property
    def signs_whole(self) -> bool:
        """True if signatures cover header and trailer even without header signing."""

    def signature_size(self, sealed: bool) -> int: ...
    def sign(self, data: bytes) -> bytes: ...
    def verify(self, data: bytes, mic: bytes) -> int: ...
    def wrap_iov(self, iov: Iterable[IOV]) -> IOVWrapResult: ...
    def unwrap_iov(self, iov: Iterable[IOV]) -> IOVUnwrapResult: ...


class ProviderContext:
    """One security context. Every error of the provider becomes ``AuthenticationError``.

    A provider that cannot sign at a level that requires it fails only at the first message, as with
    other servers (auth3 has no answer that could refuse it earlier). One that cannot seal at
    privacy fails at once.
    """

    def __init__(
        self,
        auth_type: int,
        level: int,
        proxy: ContextProxy,
        mechanism: Callable[[], Mechanism],
    ) -> None:
        self._name = auth_type_name(auth_type)
        self._level = check_level(level)
        self._proxy = proxy
        self._find_mechanism = mechanism
        self._mechanism: Mechanism | None = None
        self._started = proxy.usage == "accept"
        self._broken = False

    @property
    def complete(self) -> bool:
        return self._mechanism is not None and not self._broken

    @property
    def identity(self) -> Identity | None:
        return self._mechanism.identity if self._mechanism is not None and self.complete else None

    def step(self, token: bytes | None) -> bytes | None:
        if self._broken or self._mechanism is not None:
            raise AuthenticationError(f"{self._name}: a token after the end of the exchange")
        if self._started and not token:
            raise self._failed("a token is missing")
        self._started = True
        try:
            answer = self._proxy.step(token)
            if self._proxy.complete:
                self._finish(self._find_mechanism())
        except AuthenticationError:
            self._broken = True
            raise
        except Exception as error:  # a provider's errors are of any kind, and all mean the same
            raise self._failed(f"the token is refused: {error}") from error
        return answer or None

    def _finish(self, mechanism: Mechanism) -> None:
        if not mechanism.complete:
            raise self._failed("the exchange ended before the peer was authenticated")
        if self._level == AuthLevel.PRIVACY and not mechanism.sealing:
            raise self._failed("encryption was not agreed")
        self._mechanism = mechanism

    def signature_size(self, level: int) -> int:
        if level <= AuthLevel.CONNECT:
            return 0
        return self._ready().signature_size(level == AuthLevel.PRIVACY)

    def protect(
        self, level: int, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> tuple[bytes, bytes]:
        mechanism = self._ready()
        if effective_level(level) != self._level:
            raise ValueError(f"the context is for level {self._level}, not {level}")
        if self._level == AuthLevel.CONNECT:
            return body, b""
        try:
            if self._level < AuthLevel.PRIVACY:
                return body, mechanism.sign(self._covered(header, body, trailer, sign_header))
            iov = self._buffers(BufferType.header, header, body, trailer, sign_header)
            sealed = {b.type: b.data or b"" for b in mechanism.wrap_iov(iov).buffers}
            return sealed[BufferType.data], sealed[BufferType.header]
        except Exception as error:
            raise self._failed(f"the message cannot be protected: {error}") from error

    def unprotect(  # noqa: PLR0917
        self,
        level: int,
        header: bytes,
        body: bytes,
        trailer: bytes,
        signature: bytes,
        sign_header: bool,
    ) -> bytes:
        mechanism = self._ready()
        if effective_level(level) != self._level:
            raise self._failed(f"a message of level {level} in a context of level {self._level}")
        if self._level == AuthLevel.CONNECT:
            if signature not in (b"", DUMMY_SIGNATURE):
                raise self._failed("a message at connect level must not be signed")
            return body
        try:
            if self._level < AuthLevel.PRIVACY:
                mechanism.verify(self._covered(header, body, trailer, sign_header), signature)
                return body
            token = (BufferType.header, signature)
            result = mechanism.unwrap_iov(self._buffers(token, header, body, trailer, sign_header))
            if not result.encrypted:
                raise self._failed("the message is not encrypted")
            return next(b.data or b"" for b in result.buffers if b.type == BufferType.data)
        except AuthenticationError:
            raise
        except Exception as error:
            raise self._failed(f"the signature is wrong: {error}") from error

    def _ready(self) -> Mechanism:
        if self._broken or self._mechanism is None:
            raise AuthenticationError(f"{self._name}: the context is not (or no longer) usable")
        if self._level > AuthLevel.CONNECT and not self._mechanism.signing:
            raise self._failed("signing was not agreed")
        return self._mechanism

    def _whole(self, sign_header: bool) -> bool:
        return sign_header or (self._mechanism is not None and self._mechanism.signs_whole)

    def _covered(self, header: bytes, body: bytes, trailer: bytes, sign_header: bool) -> bytes:
        return header + body + trailer if self._whole(sign_header) else body

    def _buffers(
        self, token: IOV, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> list[IOV]:
        data = (BufferType.data, body)
        if not self._whole(sign_header):
            return [token, data]
        return [token, (BufferType.sign_only, header), data, (BufferType.sign_only, trailer)]

    def _failed(self, reason: str) -> AuthenticationError:
        self._broken = True
        return AuthenticationError(f"{self._name}: {reason}")


def effective_level(level: int) -> int:
    """The level that is used: connect for default, packet for call (MS-RPCE 2.2.1.1.8)."""
    if level == AuthLevel.CALL:
        return AuthLevel.PACKET
    return AuthLevel.CONNECT if level == AuthLevel.DEFAULT else level


def check_level(level: int) -> int:
    effective = effective_level(level)
    if not AuthLevel.CONNECT <= effective <= AuthLevel.PRIVACY:
        raise AuthenticationError(f"authentication level {level} does not authenticate")
    return effective
