"""``protocol.authentication.SecurityContext`` around a context of pyspnego."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from spnego import ContextProxy

from mqis.protocol.authentication import (
    AuthenticationError,
    AuthLevel,
    AuthType,
    CallerTicket,
    Identity,
    LogonEnd,
    auth_type_name,
)
from mqis.runtime.authentication.protection import Mechanism, Protection, protection_of
from mqis.wire.security.tokens import check_size, check_spnego

#: The bytes that NTLM sends as signature where nothing is signed.
DUMMY_SIGNATURE = b"\x01" + bytes(15)


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
        self._check = check_spnego if auth_type == AuthType.SPNEGO else check_size
        self._level = check_level(level)
        self._proxy = proxy
        self._find_mechanism = mechanism
        self._mechanism: Mechanism | None = None
        #: None until the exchange is finished, and if it agreed on less than the level requires.
        self._protection: Protection | None = None
        self._started = proxy.usage == "accept"
        self._broken = False

    @property
    def complete(self) -> bool:
        return self._mechanism is not None and not self._broken

    @property
    def identity(self) -> Identity | None:
        return self._mechanism.identity if self._mechanism is not None and self.complete else None

    @property
    def ended(self) -> LogonEnd | None:
        """None: a provider does not know what becomes of an account."""
        return None

    @property
    def lifetime_s(self) -> float:
        """The seconds for which the peer's ticket is still valid; endless without a ticket."""
        return inf if self._mechanism is None else self._mechanism.lifetime_s

    @property
    def ticket(self) -> CallerTicket | None:
        return self._mechanism.ticket if self._mechanism is not None and self.complete else None

    def step(self, token: bytes | None) -> bytes | None:
        if self._broken or self._mechanism is not None:
            raise AuthenticationError(f"{self._name}: a token after the end of the exchange")
        if self._started and not token:
            raise self._failed("a token is missing")
        self._started = True
        try:
            if token:  # before the provider sees it, whose parsers know no bounds
                self._check(token)
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
        if self._level == AuthLevel.CONNECT or mechanism.signing:
            self._protection = protection_of(mechanism)

    def signature_size(self, level: int) -> int:
        if level <= AuthLevel.CONNECT:
            return 0
        return self._ready().signature_size(level == AuthLevel.PRIVACY)

    def protect(
        self, level: int, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> tuple[bytes, bytes]:
        protection, used = self._ready(), self._level
        if level != used and effective_level(level) != used:
            raise ValueError(f"the context is for level {used}, not {level}")
        if used == AuthLevel.CONNECT:
            return body, b""
        try:
            if used < AuthLevel.PRIVACY:
                return body, protection.sign(header, body, trailer, sign_header)
            return protection.seal(header, body, trailer, sign_header)
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
        protection, used = self._ready(), self._level
        if level != used and effective_level(level) != used:
            raise self._failed(f"a message of level {level} in a context of level {used}")
        if used == AuthLevel.CONNECT:
            if signature not in (b"", DUMMY_SIGNATURE):
                raise self._failed("a message at connect level must not be signed")
            return body
        try:
            if used < AuthLevel.PRIVACY:
                protection.verify(header, body, trailer, signature, sign_header)
                return body
            return protection.unseal(header, body, trailer, signature, sign_header)
        except Exception as error:
            raise self._failed(f"the signature is wrong: {error}") from error

    def _ready(self) -> Protection:
        if self._protection is None or self._broken:
            raise self._unusable()
        return self._protection

    def _unusable(self) -> AuthenticationError:
        if self._mechanism is None or self._broken:
            return AuthenticationError(f"{self._name}: the context is not (or no longer) usable")
        return self._failed("signing was not agreed")

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
