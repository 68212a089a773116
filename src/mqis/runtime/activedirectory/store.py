"""``protocol.ports.Store`` over an Active Directory: the store of a pass-through server.

store = ActiveDirectoryStore(LdapSettings(...))
with store.read() as view:
    view.find(ObjectType.QUEUE, "srv1\\orders")
"""

from __future__ import annotations

from contextlib import AbstractContextManager, aclosing, nullcontext

from mqis.protocol.activedirectory.schema import DISPLAY_NAME, needed_names, schema_query
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Transaction, View
from mqis.runtime.activedirectory.changing import ForestTransaction
from mqis.runtime.activedirectory.connection import ForestConnection
from mqis.runtime.activedirectory.forestview import ForestView
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.runtime.ldap.settings import LdapSettings
from mqis.wire.mqds.objecttype import ObjectType


class ActiveDirectoryStore:
    """Views and transactions over one connection. Waits for the network: use it from threads."""

    def __init__(self, settings: LdapSettings, *, sites_allowed: bool = False) -> None:
        self.connection = ForestConnection(settings)
        self._sites_allowed = sites_allowed

    def read(self) -> AbstractContextManager[View]:
        return nullcontext(ForestView(self.connection))

    def write(self) -> AbstractContextManager[Transaction]:
        """Changes are made one by one as they come; nothing is taken back."""
        return nullcontext(ForestTransaction(self.connection, sites_allowed=self._sites_allowed))

    def check(self) -> list[str]:
        """The defects that a server meets at once: no answer, or no enterprise object."""
        try:
            with self.read() as view:
                found = next(view.objects(ObjectType.ENTERPRISE), None)
        except DirectoryError as error:
            return [error.detail]
        if found is None:
            return [f"{self.connection.where}: Message Queuing was never set up in this forest"]
        return []

    def schema_defects(self) -> list[str]:
        """What the schema lacks, in one line; empty if it has all that Message Queuing needs."""
        try:
            missing = self.connection.ask(ObjectType.ENTERPRISE, missing_names)
        except DirectoryError as error:
            return [error.detail]
        lacking = f"{self.connection.where}: the schema does not show {', '.join(missing)}"
        hint = "extend it, or let the account of store.user read it"
        return [f"{lacking}; {hint}"] if missing else []

    def close(self) -> None:
        self.connection.close()


async def missing_names(reader: ForestReader) -> list[str]:
    """The classes and attributes that are needed and that the schema does not show."""
    found: set[bytes] = set()
    async with aclosing(reader.client.search(schema_query(reader.forest))) as entries:
        async for entry in entries:
            found |= {name.lower() for name in entry.values(DISPLAY_NAME)}
    return [name for name in needed_names() if name.lower().encode() not in found]
