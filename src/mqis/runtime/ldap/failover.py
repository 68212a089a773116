"""``protocol.ldap.ports.LdapDirectory`` over domain controllers, with failover.

A lost connection is opened again at the next request. A search that lost its connection before its
first entry, and a read, are repeated once. A change is never repeated: it may have been made.

Referrals are not followed: the server that one names would be offered the login. A search that is
answered by a referral is refused, references beside entries are passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.ldap.errors import LdapConnectionLost, LdapRefused
from mqis.protocol.ldap.ports import LdapQuery, entry_name
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.ldap_connection import LdapConnection
from mqis.runtime.ldap.searching import SearchOutcome, search
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
    ) -> AsyncGenerator[LdapEntry, None]:
        outcome = outcome or SearchOutcome()
        begun = False
        for attempt in (1, 2):
            connection = await self.connection()
            try:
                entries = search(
                    connection,
                    query,
                    timeout_s=self._settings.operation_timeout_s,
                    outcome=outcome,
                )
                async with aclosing(entries):
                    async for entry in entries:
                        begun = True
                        yield LdapEntry(entry.name, entry.attributes)
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
    ) -> LdapEntry | None:
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
