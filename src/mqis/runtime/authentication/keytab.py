"""The realms of the keys in a keytab file.

A file of MIT's format 2, big-endian: 0x05 0x02, then entries, each after its length (negative:
a hole of that length). An entry begins with

 0  u16  components of the name      2  u16  length of the realm      4  the realm
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from struct import Struct

from mqis.protocol.authentication import AuthenticationError
from mqis.wire.errors import WireError
from mqis.wire.reader import Reader

_SIZE, _HEAD = Struct(">i"), Struct(">HH")
_VERSION = b"\x05\x02"
#: The largest file read: more than a keytab with a thousand keys has.
_MOST = 1 << 20
#: Permissions that a keytab must not give: any to others, writing to the group.
_TOO_OPEN = stat.S_IRWXO | stat.S_IWGRP


def realms_of(path: str | Path) -> frozenset[str]:
    """Returns the realms of the keys; ``AuthenticationError`` for a file that cannot be trusted."""
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST + 1)
    except OSError as error:
        raise AuthenticationError(f"{path}: cannot be read: {error.strerror or error}") from error
    if mode & _TOO_OPEN:
        raise AuthenticationError(
            f"{path}: other users may read or change this keytab and so log on as anybody: "
            f"run chmod 600 {path}"
        )
    if len(data) > _MOST:
        raise AuthenticationError(f"{path}: a keytab has at most {_MOST} bytes")
    try:
        return frozenset(_realms(data))
    except (WireError, UnicodeDecodeError) as error:
        raise AuthenticationError(f"{path}: this is no keytab: {error}") from error


def _realms(data: bytes) -> list[str]:
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
