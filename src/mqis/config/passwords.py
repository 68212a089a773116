"""Passwords that commands and servers log on with: from a file or from the environment.

Never from an argument: everybody on a computer can read the arguments of a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mqis.config.errors import ConfigError
from mqis.files import is_open_to_others, system_reason

LDAP_PASSWORD_FILE: Final = "MQIS_LDAP_PASSWORD_FILE"
LDAP_PASSWORD: Final = "MQIS_LDAP_PASSWORD"
#: A file that is longer holds no password.
_LONGEST: Final = 4096


def read_password_file(path: Path) -> str:
    """The first line of a file that nobody but its owner may read or write."""
    try:
        with path.open(encoding="utf-8-sig") as opened:
            # Of the open file: its name may lead to another one a moment later.
            if is_open_to_others(opened.fileno()):
                raise ConfigError(f"{path}: others may read this password; chmod 600 {path}")
            line = first_line(opened.read(_LONGEST))
    except (OSError, UnicodeDecodeError) as error:
        reason = system_reason(error)
        raise ConfigError(f"{path}: the password cannot be read: {reason}") from error
    if not line:
        raise ConfigError(f"{path}: the first line must be the password, but is empty")
    return line


def first_line(text: str) -> str:
    return text.partition("\n")[0].rstrip("\r")


def find_ldap_password(
    user: str, file: Path | None, option: str, environment: Mapping[str, str]
) -> str:
    """The password of an account of an Active Directory: in the file, or in the environment.

    ``option`` names the setting that names a file, for the error.
    """
    path = file or environment.get(LDAP_PASSWORD_FILE)
    if path:
        return read_password_file(Path(path))
    if LDAP_PASSWORD in environment:
        return environment[LDAP_PASSWORD]
    raise ConfigError(
        f"no password for {user}: put it into a file that {option} or {LDAP_PASSWORD_FILE} names, "
        f"or into {LDAP_PASSWORD}"
    )
