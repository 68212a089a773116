"""The digest that a server signature protects with GSS_Wrap, method by method.

The text gives MD5 over counts, identifiers and values and leaves the bytes of a value open; here a
value is hashed bare: a scalar little-endian, a GUID as its sixteen bytes, blobs and vectors as
their contents, text as UTF-16 without its terminator (MQDS-3.1.4.7-10). Client and server share
this module, so that they cannot disagree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from mqis.wire.guid import Guid
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.writer import Writer


def value_bytes(variant: PropVariant) -> bytes:
    """A value as it goes into a digest."""
    value = variant.value
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass")
    if isinstance(value, tuple):
        return b"".join(_element_bytes(variant.vt, element) for element in value)
    writer = Writer()
    variant.encode(writer)
    return writer.getvalue()


def _element_bytes(vt: VarType, element: object) -> bytes:
    if isinstance(element, PropVariant):
        return value_bytes(element)
    if isinstance(element, str):
        return element.encode("utf-16-le", "surrogatepass")
    if isinstance(element, Guid):
        return element.raw
    assert isinstance(element, int)
    scalar = VarType(vt & 0x0FFF)
    return value_bytes(PropVariant(scalar, element))


def _md5(*parts: bytes) -> bytes:
    return hashlib.md5(b"".join(parts), usedforsecurity=False).digest()


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def properties_digest(ids: Iterable[int], values: Iterable[PropVariant]) -> bytes:
    """S_DSGetProps and its kin, S_DSLookupNext (3.1.4.7): count, then identifier and value."""
    pairs = list(zip(ids, values, strict=True))
    body = (_u32(propid) + value_bytes(variant) for propid, variant in pairs)
    return _md5(_u32(len(pairs)), *body)


def security_digest(buffer: bytes) -> bytes:
    """S_DSGetObjectSecurity (3.1.4.11): one, then the whole buffer, padding included."""
    return _md5(_u32(1), buffer)


def servers_digest(index: int, servers: str) -> bytes:
    """S_DSCreateServersCache (3.1.4.20): two values without identifiers."""
    return _md5(_u32(2), _u32(index), servers.encode("utf-16-le", "surrogatepass"))


def blob_digest(data: bytes) -> bytes:
    """S_DSGetComputerSites, S_DSGetGCListInDomain (3.3.4.1, 3.3.4.8): one tagged blob."""
    return _md5(_u32(1), _u32(VarType.BLOB), _u32(len(data)), data)


def challenge_digest(challenge: bytes) -> bytes:
    """S_DSQMGetObjectSecurityChallengeResponceProc (note <74>)."""
    return _md5(challenge)


def machine_properties_digest(
    challenge: bytes, ids: Iterable[int], values: Iterable[PropVariant]
) -> bytes:
    """S_DSQMSetMachinePropertiesSignProc (note <77>): the challenge, then the properties."""
    pairs = list(zip(ids, values, strict=True))
    body = (_u32(propid) + value_bytes(variant) for propid, variant in pairs)
    return _md5(challenge, _u32(len(pairs)), *body)
