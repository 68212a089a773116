"""RSA signatures (PKCS #1 v1.5): over MD5, as old queue managers make them, and over SHA-256.

Libraries no longer support keys of 512 bits and digests of MD5, with reason: such a signature
proves little today. The two callbacks that use it are off by default (MS-MQDS 3.2.4). The seals of
a journal are signed over SHA-256.
"""

from __future__ import annotations

from hashlib import sha256

from mqis.wire.mqds.keys import RsaPublicKey

#: DigestInfo of MD5 and of SHA-256 (RFC 8017 9.2), before the digest itself.
_MD5_INFO = bytes.fromhex("3020300c06082a864886f70d020505000410")
_SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


def encoded_digest(digest: bytes, size: int, info: bytes = _MD5_INFO) -> bytes:
    """EMSA-PKCS1-v1_5 of a digest, by default of MD5, for a modulus of ``size`` bytes."""
    tail = b"\x00" + info + digest
    padding = size - len(tail) - 2
    if padding < 8:
        raise ValueError(f"a modulus of {size} bytes is too small to sign with")
    return b"\x00\x01" + b"\xff" * padding + tail


def verify_md5(key: RsaPublicKey, digest: bytes, signature: bytes) -> bool:
    """Returns whether ``signature``, least significant byte first, is that of ``digest``."""
    return _verify(key, digest, signature[::-1], _MD5_INFO)


def verify_sha256(key: RsaPublicKey, data: bytes, signature: bytes) -> bool:
    """Returns whether ``signature``, most significant byte first, is that of ``data``."""
    return _verify(key, sha256(data).digest(), signature, _SHA256_INFO)


def _verify(key: RsaPublicKey, digest: bytes, signature: bytes, info: bytes) -> bool:
    size = key.bit_length // 8
    if len(signature) != size or key.modulus <= 0:
        return False
    try:
        expected = encoded_digest(digest, size, info)
    except ValueError:
        return False
    representative = int.from_bytes(signature, "big")
    if representative >= key.modulus:  # RFC 8017 5.2.2: one signature, not two
        return False
    number = pow(representative, key.exponent, key.modulus)
    return number.to_bytes(size, "big") == expected


def sign_md5(modulus: int, private_exponent: int, digest: bytes) -> bytes:
    """The signature that ``verify_md5`` accepts, for clients that hold such a key."""
    size = (modulus.bit_length() + 7) // 8
    number = pow(int.from_bytes(encoded_digest(digest, size), "big"), private_exponent, modulus)
    return number.to_bytes(size, "little")
