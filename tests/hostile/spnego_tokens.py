"""SPNEGO tokens by hand, as an attacker makes them (RFC 4178 4.2.1)."""

from __future__ import annotations

from tests.runtime.authentication.handmade import negotiate

SPNEGO = 9
OID_NTLM = bytes.fromhex("060a2b06010401823702020a")
OID_SPNEGO = bytes.fromhex("06062b0601050502")


def der(tag: int, *contents: bytes) -> bytes:
    body = b"".join(contents)
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + body


def init(mechanisms: bytes, *fields: bytes) -> bytes:
    """NegTokenInit in its InitialContextToken."""
    types = der(0xA0, der(0x30, mechanisms))
    return der(0x60, OID_SPNEGO, der(0xA0, der(0x30, types, *fields)))


def offering(count: int, payload: int = 0) -> bytes:
    """NTLM, its first message with a long name, and as many other mechanisms as it takes."""
    others = der(0x06, b"\x2b\x01") * (count - 1)
    first = negotiate() + bytes(payload)
    return init(OID_NTLM + others, der(0xA2, der(0x04, first)))
