"""The connection of one command to a directory server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from mqis.cli.credentials import Login
from mqis.client.remote import TIMEOUT_S, Remote, RemoteUser, connect
from mqis.client.servers import ServerAddress
from mqis.config.nodes import NodePlace
from mqis.enterprise.setup import Administrator, Changing


def addresses(login: Login) -> list[ServerAddress]:
    """Parses the addresses of the servers; raises ValueError for a text that is none."""
    found = []
    for text in login.servers:
        try:
            found.append(replace(ServerAddress.parse(text), mapper_port=login.mapper_port))
        except ValueError as error:
            raise ValueError(f"--server {text}: {error}") from None
    return found


@contextmanager
def connected(
    login: Login,
    servers: Sequence[ServerAddress],
    secret: str | None,
    timeout_s: float = TIMEOUT_S,
) -> Iterator[Remote]:
    """Connects to the first server that answers; the connection ends with the block."""
    user = None
    if login.name is not None:
        user = RemoteUser(login.name, login.domain, login.auth_type, login.level, login.verify)
    with asyncio.Runner() as runner:
        client = runner.run(connect(servers, user, secret, timeout_s))
        try:
            yield Remote(runner, client)
        finally:
            runner.run(client.close())


#: Servers that start together on one computer can keep its disk busy for a while.
_TIMEOUT_S = 120.0


@contextmanager
def administer(node: NodePlace, administrator: Administrator) -> Iterator[Changing]:
    """Connects to a directory server as its administrator; implements ``setup.Connect``."""
    address = ServerAddress(node.address, node.rpc_port)
    login = Login((str(address),), domain=administrator.domain, name=administrator.name)
    with connected(login, [address], administrator.password, _TIMEOUT_S) as found:
        yield found
