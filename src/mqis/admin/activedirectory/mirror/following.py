"""Follows a directory for ever: a round when something changes, and a wait when it is away.

The notification control keeps a search open that brings an entry at each change. It only wakes the
mirror; what has changed is asked in the round, so a lost notification costs a pause and no change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress

from mqis.admin.activedirectory.mirror.round import EstateMirror, MirrorRound
from mqis.protocol.activedirectory.forest import Forest
from mqis.protocol.clock import pause_after
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.errors import LdapRefused
from mqis.protocol.ldap.ports import LdapQuery
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.wire.ldap import controls

#: Seconds between two rounds without a notification, and between a wake-up and its round: the
#: changes of one moment are one round.
INTERVAL_S = 5.0
SETTLE_S = 0.05
#: Seconds before a directory that is away is asked again: doubled up to the most.
FIRST_WAIT_S = 1.0
MOST_WAIT_S = 60.0

AWAY = (ProtocolError, OSError)

#: Called with the result of each round, or with the reason of a wait.
Report = Callable[[MirrorRound | Exception], None]


class DirectoryWatch:
    """Sets ``woken`` at each change of the directory, as long as the server notifies."""

    def __init__(self, clients: Sequence[tuple[LdapDirectoryClient, Forest]]) -> None:
        """``clients`` are of the domains of a forest; the first one has its configuration."""
        self.woken = asyncio.Event()
        self._clients = [client for client, _ in clients]
        first, forest = clients[0]
        places = [(client, each.domain) for client, each in clients]
        self._tasks = [
            asyncio.create_task(self._watch(client, str(context)))
            for client, context in [*places, (first, forest.configuration)]
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients:
            await client.close()

    async def _watch(self, client: LdapDirectoryClient, context: str) -> None:
        failures = 0
        while True:
            try:
                await self._listen(client, context)
                failures = 0
            except LdapRefused:
                return  # this server notifies nobody: the mirror asks now and then
            except AWAY:
                pass
            failures += 1
            await asyncio.sleep(pause_after(failures, FIRST_WAIT_S, MOST_WAIT_S))

    async def _listen(self, client: LdapDirectoryClient, context: str) -> None:
        listening = controls.notification, controls.show_deleted
        query = LdapQuery(context, attributes=("objectGUID",), controls=listening, page_size=0)
        async with aclosing(client.search(query)) as changes:
            async for _ in changes:
                self.woken.set()


async def follow(
    mirror: EstateMirror,
    watch: DirectoryWatch,
    report: Report,
    stop: asyncio.Event,
    *,
    interval_s: float = INTERVAL_S,
) -> None:
    """Makes rounds until ``stop`` is set. A directory that is away is waited for."""
    failures = 0
    while not stop.is_set():
        watch.woken.clear()
        try:
            report(await mirror.round())
            failures = 0
        except AWAY as error:
            report(error)
            failures += 1
            await _until(stop, pause_after(failures, FIRST_WAIT_S, MOST_WAIT_S))
            continue
        await _until(watch.woken, interval_s, stop)
        await _until(stop, SETTLE_S)


async def _until(
    event: asyncio.Event, timeout_s: float, other: asyncio.Event | None = None
) -> None:
    """Waits for an event, at most so long; ``other`` ends the wait too."""
    waiting = [asyncio.ensure_future(event.wait())]
    if other is not None:
        waiting.append(asyncio.ensure_future(other.wait()))
    try:
        await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
