"""A logged-in user's own connection to a directory server, so that the server checks the rights."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar

from mqis.client.directory import DirectoryClient
from mqis.client.remote import Remote, RemoteUser, connect
from mqis.client.servers import LogonRefusedError, ServerAddress
from mqis.views.console.server_places import NotShownError, ServerPlace
from mqis.views.console.visitor_rights import Proof
from mqis.views.presentation.users import split_user

__all__ = ["LogonRefusedError", "Visitors", "log_on"]

T = TypeVar("T")

#: Longer than the client's own timeout.
_TIMEOUT_S = 60.0


class _LoopRunner:
    """Runs the client's coroutines on the console's loop, one at a time, for its threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turn = Lock()

    def run(self, coro: Coroutine[Any, Any, T], /) -> T:
        with self._turn:
            return asyncio.run_coroutine_threadsafe(coro, self._loop).result(_TIMEOUT_S)


class Visitors:
    """The login of a user at a server."""

    def __init__(self, user: RemoteUser, proof: Proof, client: DirectoryClient) -> None:
        self.user = str(user)
        #: The identity for reading other servers' content.
        self.proof = proof
        self._runner = _LoopRunner(asyncio.get_running_loop())
        self._client = client

    @property
    def place(self) -> str:
        """The name of the server."""
        return self.proof.at

    @property
    def remote(self) -> Remote:
        """A client for threads other than the loop's; make a new one for each page, as it caches
        names."""
        return Remote(self._runner, self._client)

    async def close(self) -> None:
        await self._client.close()


async def log_on(place: ServerPlace, name: str, password: str, *, verify: bool) -> Visitors:
    """Logs on; ``LogonRefusedError`` if the server refuses, ``NoServerError`` if it is down."""
    if place.rpc is None:
        raise NotShownError(
            f"cannot log in at {place.name}: the console only has files of it, not its address"
        )
    domain, user = split_user(name)
    address = replace(ServerAddress.parse(place.rpc), mapper_port=place.mapper_port)
    remote_user = RemoteUser(user, domain, verify=verify)
    client = await connect([address], remote_user, password)
    return Visitors(remote_user, Proof.of(domain, user, place.name, password), client)
