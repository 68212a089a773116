"""What a keytab file tells about its server: the realms that its keys belong to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mqis.protocol.authentication import AuthenticationError
from mqis.wire.errors import WireError
from mqis.wire.security.keytab import decode_realms

#: More than a keytab with a thousand keys has.
_MOST = 1 << 20
#: Others may not read it, and only its owner may write it.
_TOO_OPEN = stat.S_IRWXO | stat.S_IWGRP


def realms_of(path: str | Path) -> frozenset[str]:
    """Return the realms of the keys; ``AuthenticationError`` for a file that cannot be trusted."""
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST + 1)
    except OSError as error:
        raise AuthenticationError(f"{path}: cannot be read: {error.strerror or error}") from error
    if mode & _TOO_OPEN:
        raise AuthenticationError(
            f"{path}: others may read or change this keytab, and so could be anybody here: "
            f"chmod 600 {path}"
        )
    if len(data) > _MOST:
        raise AuthenticationError(f"{path}: a keytab has at most {_MOST} bytes")
    try:
        return frozenset(decode_realms(data))
    except (WireError, UnicodeDecodeError) as error:
        raise AuthenticationError(f"{path}: this is no keytab: {error}") from error
