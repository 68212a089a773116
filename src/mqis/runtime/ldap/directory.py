"""``protocol.ldap.ports.LdapDirectory`` over domain controllers, with failover and referrals.

A lost connection is opened again at the next request. A search that lost its connection before its
first entry, and a read, are repeated once. A change is never repeated: it may have been made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError, LdapRefused
from mqis.protocol.ldap.ports import LdapQuery, entry_name
from mqis.protocol.ldap.urls import LdapUrl, LdapUrlError
from mqis.runtime.ldap.connection import LdapConnection
from mqis.runtime.ldap.opening import open_connection
from mqis.runtime.ldap.searching import SearchOutcome, search
from mqis.runtime.ldap.servers import DomainControllers
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import (
    AddEntry,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    RenameEntry,
)
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.controls import LdapControl
from mqis.wire.ldap.responses import (
    AddResponse,
    DeleteResponse,
    ModifyResponse,
    RenameResponse,
    SearchEntry,
)

_Changed = AddResponse | ModifyResponse | DeleteResponse | RenameResponse
_VERBS = {AddEntry: "add", ModifyEntry: "modify", DeleteEntry: "delete", RenameEntry: "rename"}


class LdapDirectoryClient:
    """Keeps one connection, and opens another when that is lost."""

    def __init__(self, controllers: DomainControllers) -> None:
        self._controllers = controllers
        self._settings = controllers.settings
        self._connection: LdapConnection | None = None
        self._opening = asyncio.Lock()

    @property
    def where(self) -> str:
        """The server that is connected; empty if there is none."""
        return self._connection.where if self._connection is not None else ""

    async def connection(self) -> LdapConnection:
        """The connection, opened if there is none that works."""
        async with self._opening:
            if self._connection is None or not self._connection.usable:
                self._connection = None
                self._connection = await self._controllers.connect()
            return self._connection

    async def search(
        self, query: LdapQuery, outcome: SearchOutcome | None = None
    ) -> AsyncGenerator[SearchEntry, None]:
        outcome = outcome or SearchOutcome()
        begun = False
        for attempt in (1, 2):
            connection = await self.connection()
            try:
                async with aclosing(self._followed(connection, query, outcome)) as found:
                    async for entry in found:
                        begun = True
                        yield entry
                return
            except LdapConnectionLost:
                connection.abort()
                if begun or attempt == 2:
                    raise

    async def read(
        self,
        name: str | Guid,
        attributes: Sequence[str] = (),
        controls: Sequence[LdapControl] = (),
    ) -> SearchEntry | None:
        query = LdapQuery(
            entry_name(name),
            SearchScope.BASE,
            attributes=tuple(attributes),
            controls=tuple(controls),
            page_size=0,
        )
        try:
            found = [entry async for entry in self.search(query)]
        except LdapRefused as error:
            if error.code == ResultCode.NO_SUCH_OBJECT:
                return None
            raise
        return found[0] if found else None

    async def apply(
        self, change: EntryChange | RenameEntry, controls: Sequence[LdapControl] = ()
    ) -> None:
        if isinstance(change, RenameEntry):
            change = await self._named(change)
        connection = await self.connection()
        try:
            message = await connection.request(
                change,
                (*change.controls, *controls),
                timeout_s=self._settings.operation_timeout_s,
            )
        except LdapConnectionLost:
            connection.abort()
            raise
        answer = message.operation
        if isinstance(answer, _Changed) and answer.result.code != ResultCode.SUCCESS:
            what = f"{_VERBS[type(change)]} {change.name}"
            raise LdapRefused(f"{connection.where}: {what}", answer.result)

    async def _named(self, change: RenameEntry) -> RenameEntry:
        """With a distinguished name: Samba renames no entry that is called by its GUID."""
        if not change.name.startswith("<GUID="):
            return change
        found = await self.read(change.name, ("objectGUID",))
        return change if found is None else replace(change, name=found.name)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    # --- referrals --------------------------------------------------------------------------------

    async def _followed(
        self, connection: LdapConnection, query: LdapQuery, outcome: SearchOutcome
    ) -> AsyncGenerator[SearchEntry, None]:
        """Searches, then goes on at other servers if referrals are followed."""
        timeout_s = self._settings.operation_timeout_s
        hops = self._settings.referral_hops
        try:
            entries = search(connection, query, timeout_s=timeout_s, outcome=outcome)
            async with aclosing(entries):
                async for entry in entries:
                    yield entry
            referrals = [uris for uris in outcome.references if hops]
        except LdapRefused as error:
            if error.code != ResultCode.REFERRAL or not hops:
                raise
            referrals = [error.result.referrals]
        seen = {_place(connection.where, query)} if referrals else set()
        for uris in referrals:
            async for entry in self._elsewhere(uris, query, hops, seen):
                yield entry

    async def _elsewhere(
        self, uris: tuple[str, ...], query: LdapQuery, hops: int, seen: set[str]
    ) -> AsyncGenerator[SearchEntry, None]:
        """Searches at the first of some servers that can be reached, which may refer to others."""
        url, narrowed = _narrowed(uris, query)
        place = _place(str(url), narrowed)
        if place in seen:
            raise LdapError(f"{url}: a referral leads back to a search that was made already")
        if not hops:
            limit = self._settings.referral_hops
            raise LdapError(f"{url}: more than {limit} servers refer to one another")
        seen.add(place)
        connection = await open_connection(url, self._settings)
        outcome, referrals = SearchOutcome(), []
        timeout_s = self._settings.operation_timeout_s
        try:
            entries = search(connection, narrowed, timeout_s=timeout_s, outcome=outcome)
            async with aclosing(entries):
                async for entry in entries:
                    yield entry
            referrals = outcome.references
        except LdapRefused as error:
            if error.code != ResultCode.REFERRAL:
                raise
            referrals = [error.result.referrals]
        finally:
            await connection.close()
        for further in referrals:
            async for entry in self._elsewhere(further, narrowed, hops - 1, seen):
                yield entry


def _narrowed(uris: tuple[str, ...], query: LdapQuery) -> tuple[LdapUrl, LdapQuery]:
    """The first usable server of a referral, and the search that it names."""
    for text in uris:
        try:
            url = LdapUrl.parse(text)
        except LdapUrlError:
            continue
        if url.host:
            return url, replace(
                query,
                base=url.base or query.base,
                scope=query.scope if url.scope is None else url.scope,
                filter=url.filter or query.filter,
            )
    raise LdapError(f"a referral names no LDAP server: {', '.join(uris)[:200]}")


def _place(where: str, query: LdapQuery) -> str:
    """Equal for searches that are the same; servers are compared by their addresses."""
    return f"{where.lower()} {query.base.lower()} {int(query.scope)} {query.filter}"
