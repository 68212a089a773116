"""Signs and seals the messages of a finished NTLM exchange directly (MS-NLMP 3.4).

pyspnego does the same, but with some forty operations on enumerations a message; nearly all calls
are signed, so that was most of their cost. Only the strong form is here, which is the only one
that a logon may agree on: extended session security with keys of 128 bits.

    SignKey   = MD5(ExportedSessionKey + "session key to ... signing key magic constant")
    SealKey   = MD5(ExportedSessionKey + "session key to ... sealing key magic constant")
    Checksum  = HMAC_MD5(SignKey, SeqNum + Message)[0..7], through RC4 if a key was exchanged
    Signature = version 1 (u32), Checksum (8 bytes), SeqNum (u32)

Each direction has its own keys, its own RC4 stream and its own sequence numbers, so a message that
is changed, repeated, left out, moved or sent back has another signature than the expected one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import md5
from hmac import compare_digest
from typing import Final

from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives.ciphers import Cipher

from mqis.protocol.authentication import AuthenticationError

SIGNATURE_SIZE: Final = 16

_VERSION: Final = b"\x01\0\0\0"
_CHECKSUM_SIZE: Final = 8
_CLIENT, _SERVER = b"client-to-server", b"server-to-client"
#: HMAC (RFC 2104) hashes the key, filled up to a block of MD5 and combined with these bytes.
_BLOCK_SIZE: Final = 64
_INNER, _OUTER = 0x36, 0x5C


@dataclass(frozen=True, slots=True)
class NtlmSession:
    """The outcome of an NTLM exchange that agreed on signing with keys of 128 bits."""

    #: ExportedSessionKey.
    key: bytes = field(repr=False)
    is_client: bool
    #: NTLMSSP_NEGOTIATE_KEY_EXCH: checksums are encrypted.
    key_exchange: bool
    #: Messages that the exchange itself has signed in each direction: Negotiate's mechListMIC.
    sent: int = 0
    received: int = 0


class NtlmDirection:
    """The messages of one direction: their keys, RC4 stream and sequence numbers."""

    def __init__(
        self, seal_key: bytes, sign_key: bytes, *, key_exchange: bool, seq: int = 0
    ) -> None:
        #: Encrypts or decrypts the next bytes of the stream.
        self.rc4: Callable[[bytes], bytes] = Cipher(ARC4(seal_key), mode=None).encryptor().update
        self._key_exchange = key_exchange
        self._seq = seq
        # The keyed halves of the HMAC are hashed once: hmac.digest takes three times as long.
        self._inner = md5(_combined(sign_key, _INNER))
        self._outer = md5(_combined(sign_key, _OUTER))

    def signature(self, message: bytes) -> bytes:
        """The signature of the next message.

        ``OverflowError`` after 2**32 messages: a number that comes again would let a message be
        replayed.
        """
        seq = self._seq.to_bytes(4, "little")
        self._seq += 1
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(seq + message)
        outer.update(inner.digest())
        checksum = outer.digest()[:_CHECKSUM_SIZE]
        return _VERSION + (self.rc4(checksum) if self._key_exchange else checksum) + seq


class NtlmProtection:
    """``protection.Protection`` by NTLM, which signs the header and trailer in any case."""

    def __init__(self, session: NtlmSession) -> None:
        ours, theirs = (_CLIENT, _SERVER) if session.is_client else (_SERVER, _CLIENT)
        self._out = _direction(session, ours, session.sent)
        self._in = _direction(session, theirs, session.received)

    def signature_size(self, sealed: bool) -> int:
        return SIGNATURE_SIZE

    def sign(self, header: bytes, body: bytes, trailer: bytes, sign_header: bool) -> bytes:
        return self._out.signature(header + body + trailer)

    def verify(
        self, header: bytes, body: bytes, trailer: bytes, signature: bytes, sign_header: bool
    ) -> None:
        if not compare_digest(self._in.signature(header + body + trailer), signature):
            raise AuthenticationError("it is not that of the peer's next message")

    def seal(
        self, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> tuple[bytes, bytes]:
        sealed = self._out.rc4(body)  # the body comes before the checksum in the stream
        return sealed, self._out.signature(header + body + trailer)

    def unseal(
        self, header: bytes, body: bytes, trailer: bytes, signature: bytes, sign_header: bool
    ) -> bytes:
        opened = self._in.rc4(body)
        self.verify(header, opened, trailer, signature, sign_header)
        return opened


def sign_key(session_key: bytes, direction: bytes) -> bytes:
    """SIGNKEY (MS-NLMP 3.4.5.2)."""
    return _derived(session_key, direction, b"signing")


def seal_key(session_key: bytes, direction: bytes) -> bytes:
    """SEALKEY (MS-NLMP 3.4.5.3) with 128 bits."""
    return _derived(session_key, direction, b"sealing")


def _derived(session_key: bytes, direction: bytes, use: bytes) -> bytes:
    constant = b"session key to %s %s key magic constant\0" % (direction, use)
    return md5(session_key + constant).digest()


def _direction(session: NtlmSession, name: bytes, seq: int) -> NtlmDirection:
    return NtlmDirection(
        seal_key(session.key, name),
        sign_key(session.key, name),
        key_exchange=session.key_exchange,
        seq=seq,
    )


def _combined(key: bytes, byte: int) -> bytes:
    return bytes(each ^ byte for each in key.ljust(_BLOCK_SIZE, b"\0"))
