"""The servers that a command may ask, the user that it logs on as, and the password."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from mqis.config.passwords import first_line, read_password_file
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.views.presentation import users
from mqis.wire.errors import MqisError

PASSWORD_FILE = "MQIS_PASSWORD_FILE"
#: The port of endpoint mappers.
MAPPER_PORT = 135


@dataclass(frozen=True, slots=True)
class Login:
    """The servers to try in order, and the user to log on as."""

    servers: tuple[str, ...]
    mapper_port: int = MAPPER_PORT
    domain: str = ""
    name: str | None = None
    level: AuthLevel = AuthLevel.PRIVACY
    auth_type: AuthType = AuthType.SPNEGO
    verify: bool = True

    @property
    def who(self) -> str:
        if self.name is None:
            return "nobody"
        return f"{self.domain}\\{self.name}" if self.domain else self.name


def split_user(text: str) -> tuple[str, str]:
    """Splits ``DOMAIN\\NAME``; refuses a text without a name."""
    domain, name = users.split_user(text)
    if not name:
        raise typer.BadParameter(f"--user {text}: the name is missing; write [DOMAIN\\]NAME")
    return domain, name


def password(user: str) -> str:
    """Reads the password of a user.

    Never from an argument: others on this computer could see it.
    """
    password_file = os.environ.get(PASSWORD_FILE)
    if password_file:
        return read_password_file(Path(password_file))
    if sys.stdin.isatty():
        return str(typer.prompt(f"Password of {user}", hide_input=True, err=True))
    line = sys.stdin.readline()
    if not line:
        raise MqisError(
            f"no password for {user}: give it on the standard input, or in a file that "
            f"{PASSWORD_FILE} names"
        )
    return first_line(line)
