"""The options and the connection of commands that use a directory server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from mqis.cli.credentials import MAPPER_PORT, PASSWORD_FILE, Login, password, split_user
from mqis.config.nodes import default_run, is_run, load_nodes
from mqis.protocol.authentication import AuthLevel, AuthType

if TYPE_CHECKING:
    from mqis.client.remote import Remote


#: Names the server of commands without --server.
SERVER = "MQIS_SERVER"


class ProtectionLevel(StrEnum):
    """The authentication levels of RPC calls."""

    CONNECT = "connect"
    PACKET = "packet"
    INTEGRITY = "integrity"
    PRIVACY = "privacy"


class Provider(StrEnum):
    """The security packages that authenticate a user."""

    NEGOTIATE = "negotiate"
    NTLM = "ntlm"
    KERBEROS = "kerberos"


_TYPES = {
    Provider.NEGOTIATE: AuthType.SPNEGO,
    Provider.NTLM: AuthType.NTLM,
    Provider.KERBEROS: AuthType.KERBEROS,
}

ServerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="HOST[:PORT]",
        help="A directory server: its host, or its name in the run directory of 'mqis up' "
        "($MQIS_RUN, else ./mqis-run). May be repeated: the next one is tried if it does not "
        "answer. Without a port, its endpoint mapper is asked for it. Default: $MQIS_SERVER.",
        show_default=False,
    ),
]
DiscoverOption = Annotated[
    bool, typer.Option("--discover", help="Find a server by broadcast ('mqis discover').")
]
MapperPortOption = Annotated[
    int,
    typer.Option(
        "--mapper-port", metavar="N", min=1, max=65_535, help="The endpoint mapper's port."
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        "-u",
        metavar="[DOMAIN\\]NAME",
        envvar="MQIS_USER",
        help=f"The user to log on as. The password is read from the file that ${PASSWORD_FILE} "
        "names, else asked for at a terminal or read from the standard input. Default: anonymous.",
        show_default=False,
    ),
]
LevelOption = Annotated[
    ProtectionLevel,
    typer.Option(
        help="The protection of a user's calls. Below integrity, a server treats the user as "
        "anonymous, unless its security.min_level allows it."
    ),
]
ProviderOption = Annotated[
    Provider, typer.Option("--auth", help="The security package that authenticates the user.")
]
AnonymousOption = Annotated[
    bool, typer.Option("--anonymous", help="Do not log on, even if $MQIS_USER is set.")
]
VerifyOption = Annotated[
    bool,
    typer.Option("--verify/--no-verify", help="Require the server to sign its answers to a user."),
]


@dataclass(frozen=True)
class LogonOptions:
    """The options of a command that needs a user."""

    _MISSING: ClassVar = f"name a directory server with --server HOST[:PORT] or ${SERVER}"

    server: ServerOption = None
    mapper_port: MapperPortOption = MAPPER_PORT
    user: UserOption = None
    level: LevelOption = ProtectionLevel.PRIVACY
    auth: ProviderOption = Provider.NEGOTIATE
    verify: VerifyOption = True

    def login(self) -> Login:
        """Returns what the options say, as a ``Login``."""
        servers = self.servers()
        if not servers:
            raise typer.BadParameter(self._MISSING)
        if self.is_nobody:
            return Login(servers, self.mapper_port)
        domain, name = split_user(self.user or "")
        level, provider = AuthLevel[self.level.name], _TYPES[self.auth]
        return Login(servers, self.mapper_port, domain, name, level, provider, self.verify)

    def servers(self) -> tuple[str, ...]:
        given = self.server or [os.environ.get(SERVER, "")]
        words = [word.strip() for text in given for word in text.split(",")]
        return tuple(_address(word) for word in words if word)

    @property
    def is_nobody(self) -> bool:
        return not self.user


@dataclass(frozen=True)
class OptionalLogonOptions(LogonOptions):
    """The options of a command that anonymous users may use too."""

    _MISSING: ClassVar = f"{LogonOptions._MISSING}, or find one with --discover"

    anonymous: AnonymousOption = False
    discover: DiscoverOption = False

    @property
    def is_given(self) -> bool:
        """True if an option names a server."""
        return bool(self.server) or self.discover

    def is_wanted(self, *others: object) -> bool:
        """Returns whether the command is to use a server instead of reading a store.

        $MQIS_SERVER counts if the command line names none of ``others``, such as a store.
        """
        return self.is_given or (bool(os.environ.get(SERVER)) and not any(others))

    def servers(self) -> tuple[str, ...]:
        found = super().servers() if self.server or not self.discover else ()
        if self.discover:
            from mqis.cli.discover import discovered  # noqa: PLC0415

            found += tuple(map(str, discovered(self.mapper_port)))
        return found

    @property
    def is_nobody(self) -> bool:
        return self.anonymous or super().is_nobody


def _address(word: str) -> str:
    """The address of a server of the run directory that has this name; any other word as it is."""
    run = default_run()
    node = None if ":" in word or not is_run(run) else load_nodes(run).find(word)
    return word if node is None else node.rpc_address


@contextmanager
def connected(login: Login, secrets: dict[str, str] | None = None) -> Iterator[Remote]:
    """Connects to the first server that answers; the connection ends with the block.

    ``secrets`` are passwords by user that are known already, so that none is asked for twice.
    """
    from mqis.cli import remote  # noqa: PLC0415 -- who reads from a store does not wait for it

    try:
        servers = remote.addresses(login)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    known = {} if secrets is None else secrets
    if login.name is not None and login.who not in known:
        known[login.who] = password(login.who)
    secret = None if login.name is None else known[login.who]
    with remote.connected(login, servers, secret) as found:
        yield found
