"""The password of a directory connection: from a file or from the environment.

Never from an argument: everybody on a computer can read the arguments of a process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mqis.wire.errors import MqisError

PASSWORD_FILE: Final = "MQIS_LDAP_PASSWORD_FILE"
PASSWORD: Final = "MQIS_LDAP_PASSWORD"
#: A file that is longer holds no password.
_LONGEST: Final = 4096
#: Permission bits of group and others.
_OTHERS: Final = 0o077


class LdapPasswordError(MqisError):
    """There is no password, or it cannot be read."""


def find_password(user: str, file: Path | None, option: str, environment: Mapping[str, str]) -> str:
    """The first line of the password file, or the password of the environment.

    ``option`` names the setting that names a file, for the error.
    """
    path = file or environment.get(PASSWORD_FILE)
    if path:
        try:
            with Path(path).open(encoding="utf-8") as opened:
                if os.fstat(opened.fileno()).st_mode & _OTHERS:
                    raise LdapPasswordError(
                        f"{path}: others may read this password; chmod 600 {path}"
                    )
                return opened.read(_LONGEST).partition("\n")[0].rstrip("\r")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LdapPasswordError(f"{path}: the password cannot be read: {reason}") from error
    if PASSWORD in environment:
        return environment[PASSWORD]
    raise LdapPasswordError(
        f"no password for {user}: put it into a file that {option} or {PASSWORD_FILE} names, or "
        f"into {PASSWORD}"
    )
