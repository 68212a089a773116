"""The realms of a keytab file.

A file of MIT's format 2, big-endian: 0x05 0x02, then entries, each behind its length (negative:
a hole of that length). An entry begins with

 0  u16  components of the name      2  u16  length of the realm      4  the realm
"""

from __future__ import annotations

from struct import Struct

from mqis.wire.errors import WireError
from mqis.wire.reader import Reader

_SIZE, _HEAD = Struct(">i"), Struct(">HH")
_VERSION = b"\x05\x02"


def decode_realms(data: bytes) -> list[str]:
    """The realm of each key; ``UnicodeDecodeError`` for one that is not UTF-8."""
    reader = Reader(data)
    if reader.bytes(2, "the version") != _VERSION:
        raise WireError("it does not begin with the version 5.2", 0)
    found = []
    while reader.remaining >= _SIZE.size:
        (size,) = reader.unpack(_SIZE, "the length of an entry")
        if size < 0:
            reader.bytes(-size, "a hole")
            continue
        entry = reader.sub(size, "an entry")
        _, length = entry.unpack(_HEAD, "the head of an entry")
        found.append(entry.bytes(length, "a realm").decode("utf-8"))
    return found
