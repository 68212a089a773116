"""An RSA public key as SubjectPublicKeyInfo (RFC 5280 4.1), the form that OpenSSL reads.

The SHA-256 of these bytes identifies a key: ``openssl pkey -pubin -outform DER | sha256sum``.
"""

from __future__ import annotations

from base64 import encodebytes
from hashlib import sha256

from mqis.wire.mqds.keys import RsaPublicKey

_INTEGER, _BIT_STRING, _SEQUENCE = 0x02, 0x03, 0x30
#: rsaEncryption (RFC 8017 A.1) without parameters, in DER.
_RSA = bytes.fromhex("300d06092a864886f70d0101010500")
_LINE = 48


def key_info(key: RsaPublicKey) -> bytes:
    """The key as SubjectPublicKeyInfo in DER."""
    numbers = _der(_SEQUENCE, _number(key.modulus) + _number(key.exponent))
    return _der(_SEQUENCE, _RSA + _der(_BIT_STRING, b"\0" + numbers))


def key_id(key: RsaPublicKey) -> bytes:
    """The SHA-256 of the key as SubjectPublicKeyInfo."""
    return sha256(key_info(key)).digest()


def key_pem(key: RsaPublicKey) -> str:
    """The key in PEM."""
    data = key_info(key)
    lines = [encodebytes(data[at : at + _LINE]).decode() for at in range(0, len(data), _LINE)]
    return "".join(["-----BEGIN PUBLIC KEY-----\n", *lines, "-----END PUBLIC KEY-----\n"])


def _number(value: int) -> bytes:
    # One bit more than the number has: the first one is the sign.
    return _der(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
