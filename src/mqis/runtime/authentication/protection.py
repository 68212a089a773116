"""The seam between a finished exchange and the protection of its messages.

pyspnego makes the exchange. Its NTLM contexts only give their keys; ``ntlm_protection`` signs and
seals with them. All others, which is Kerberos, protect messages through pyspnego.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from spnego._context import IOV, IOVUnwrapResult, IOVWrapResult
from spnego.iov import BufferType

from mqis.protocol.authentication import AuthenticationError, CallerTicket, Identity
from mqis.runtime.authentication.ntlm_protection import NtlmProtection, NtlmSession


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

    @property
    def ntlm_session(self) -> NtlmSession | None:
        """The keys of a complete NTLM exchange that agreed on signing; None for all others."""

    @property
    def lifetime_s(self) -> float:
        """The seconds for which the ticket is still valid; endless without a ticket."""

    @property
    def ticket(self) -> CallerTicket | None:
        """What an acceptor may act as the caller with (Kerberos only)."""

    def signature_size(self, sealed: bool) -> int: ...
    def sign(self, data: bytes) -> bytes: ...
    def verify(self, data: bytes, mic: bytes) -> int: ...
    def wrap_iov(self, iov: Iterable[IOV]) -> IOVWrapResult: ...
    def unwrap_iov(self, iov: Iterable[IOV]) -> IOVUnwrapResult: ...


class Protection(Protocol):
    """Protects the messages of a finished exchange: each direction in its own order.

    The parts of a message are as in ``protocol.authentication.SecurityContext``. ``verify`` and
    ``unseal`` raise for any other message than the peer's next one, and cannot be used afterwards.
    """

    def signature_size(self, sealed: bool) -> int: ...
    def sign(self, header: bytes, body: bytes, trailer: bytes, sign_header: bool) -> bytes: ...
    def verify(
        self, header: bytes, body: bytes, trailer: bytes, signature: bytes, sign_header: bool
    ) -> None: ...
    def seal(
        self, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> tuple[bytes, bytes]: ...
    def unseal(
        self, header: bytes, body: bytes, trailer: bytes, signature: bytes, sign_header: bool
    ) -> bytes: ...


def protection_of(mechanism: Mechanism) -> Protection:
    """The protection of the messages that follow a finished exchange."""
    session = mechanism.ntlm_session
    return PyspnegoProtection(mechanism) if session is None else NtlmProtection(session)


class PyspnegoProtection:
    """A ``Protection`` by pyspnego."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism

    def signature_size(self, sealed: bool) -> int:
        return self._mechanism.signature_size(sealed)

    def sign(self, header: bytes, body: bytes, trailer: bytes, sign_header: bool) -> bytes:
        return self._mechanism.sign(self._covered(header, body, trailer, sign_header))

    def verify(
        self, header: bytes, body: bytes, trailer: bytes, signature: bytes, sign_header: bool
    ) -> None:
        self._mechanism.verify(self._covered(header, body, trailer, sign_header), signature)

    def seal(
        self, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> tuple[bytes, bytes]:
        iov = self._buffers(BufferType.header, header, body, trailer, sign_header)
        sealed = {b.type: b.data or b"" for b in self._mechanism.wrap_iov(iov).buffers}
        return sealed[BufferType.data], sealed[BufferType.header]

    def unseal(
        self, header: bytes, body: bytes, trailer: bytes, signature: bytes, sign_header: bool
    ) -> bytes:
        token = (BufferType.header, signature)
        iov = self._buffers(token, header, body, trailer, sign_header)
        result = self._mechanism.unwrap_iov(iov)
        if not result.encrypted:
            raise AuthenticationError("the message is not encrypted")
        return next(b.data or b"" for b in result.buffers if b.type == BufferType.data)

    def _covered(self, header: bytes, body: bytes, trailer: bytes, sign_header: bool) -> bytes:
        return header + body + trailer if self._whole(sign_header) else body

    def _whole(self, sign_header: bool) -> bool:
        return sign_header or self._mechanism.signs_whole

    def _buffers(
        self, token: IOV, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> list[IOV]:
        data = (BufferType.data, body)
        if not self._whole(sign_header):
            return [token, data]
        return [token, (BufferType.sign_only, header), data, (BufferType.sign_only, trailer)]
