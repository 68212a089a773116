"""What replicas have to agree on, as numbers that can be compared by the million.

The rule is ``protocol.replication.convergence``: the same properties, of the same objects. A digest
of 64 bits stands for a value: all that is ever compared are two values of one property of one
object.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.replication.convergence import Held
from mqis.protocol.replication.replicated import FILLERS, REPLICATED

#: The properties of each type in the order of their digests, by the number of the type.
LISTED: dict[int, tuple[int, ...]] = {
    int(kind): tuple(int(propid) for propid in listed if propid not in FILLERS)
    for kind, listed in REPLICATED.items()
}
_SIGNED = Struct("<q")


def digests(obj: DirectoryObject) -> tuple[int, list[int], bool]:
    """Of the whole, of each property; and whether other sites may hold the object or not (E58)."""
    held = Held.of(obj)
    parts = [digest(held.content[propid].packed()) for propid in LISTED[int(obj.type)]]
    whole = digest(b"".join(map(_SIGNED.pack, (int(obj.type), *parts))))
    return whole, parts, held.site_only


def digest(octets: bytes) -> int:
    number: int = _SIGNED.unpack(blake2b(octets, digest_size=8).digest())[0]
    return number
