"""The realms of the keys in a keytab file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mqis.protocol.authentication import AuthenticationError
from mqis.wire.errors import WireError
from mqis.wire.security.keytab import decode_realms

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
        return frozenset(decode_realms(data))
    except (WireError, UnicodeDecodeError) as error:
        raise AuthenticationError(f"{path}: this is no keytab: {error}") from error
