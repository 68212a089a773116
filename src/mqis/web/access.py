"""A user's own connection to a directory server, so that the server's rights decide."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar

from mqis.client.directory import DirectoryClient
from mqis.client.remote import LogonError, Remote, User, connect
from mqis.client.servers import ServerAddress
from mqis.views.console.places import Place, PlacesError
from mqis.views.console.rights import Proof
from mqis.views.presentation.users import split_user

__all__ = ["Access", "LogonError", "log_on"]

T = TypeVar("T")

#: More than the client itself waits for an answer.
_TIMEOUT_S = 60.0


class _LoopRunner:
    """Runs the client's coroutines on the console's loop, one at a time, for its threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turn = Lock()

    def run(self, coro: Coroutine[Any, Any, T], /) -> T:
        with self._turn:
            return asyncio.run_coroutine_threadsafe(coro, self._loop).result(_TIMEOUT_S)


class Access:
    """Who has logged in where."""

    def __init__(self, user: User, proof: Proof, client: DirectoryClient) -> None:
        self.user = str(user)
        #: As whom they read what other servers have.
        self.proof = proof
        self._runner = _LoopRunner(asyncio.get_running_loop())
        self._client = client

    @property
    def place(self) -> str:
        """The server, by name."""
        return self.proof.at

    @property
    def remote(self) -> Remote:
        """For threads other than the loop's; what it remembers of names is for one page."""
        return Remote(self._runner, self._client)

    async def close(self) -> None:
        await self._client.close()


async def log_on(place: Place, name: str, password: str, *, verify: bool) -> Access:
    """``LogonError`` if the server does not believe it, ``NoServerError`` if it is not there."""
    if place.rpc is None:
        raise PlacesError(f"{place.name} takes no calls here: the console only has its files")
    domain, user = split_user(name)
    address = replace(ServerAddress.parse(place.rpc), mapper_port=place.mapper_port)
    who = User(user, domain, verify=verify)
    client = await connect([address], who, password)
    return Access(who, Proof.of(domain, user, place.name, password), client)
