"""Digests of the content that replicas have to agree on; millions of them can be compared.

``protocol.replication.convergence`` defines that content: the same properties of the same objects.
A digest of 64 bits stands for each value. That is enough: only two values of one property of one
object are ever compared.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.replication.convergence import HeldObject
from mqis.protocol.replication.replicated import FILLERS, REPLICATED

#: By the number of an object type: its properties in the order of their digests.
LISTED: dict[int, tuple[int, ...]] = {
    int(kind): tuple(int(propid) for propid in listed if propid not in FILLERS)
    for kind, listed in REPLICATED.items()
}
_SIGNED = Struct("<q")


def digests(obj: DirectoryObject) -> tuple[int, list[int], bool]:
    """Returns (digest of the object, digests of its properties, whether it is site-only, E58)."""
    held = HeldObject.of(obj)
    parts = [digest(held.content[propid].packed()) for propid in LISTED[int(obj.type)]]
    whole = digest(b"".join(map(_SIGNED.pack, (int(obj.type), *parts))))
    return whole, parts, held.site_only


def digest(octets: bytes) -> int:
    number: int = _SIGNED.unpack(blake2b(octets, digest_size=8).digest())[0]
    return number
