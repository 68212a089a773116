"""The port by which stores, imports and mirrors use an LDAP directory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import EntryChange, RenameEntry
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.controls import LdapControl
from mqis.wire.ldap.filters import Filter
from mqis.wire.ldap.names import guid_name
from mqis.wire.ldap.requests import EVERYTHING


@dataclass(frozen=True, slots=True)
class LdapQuery:
    """A search. ``page_size`` 0 asks for everything at once, as DirSync and notifications need."""

    base: str
    scope: SearchScope = SearchScope.SUBTREE
    filter: Filter = EVERYTHING
    attributes: tuple[str, ...] = ()
    controls: tuple[LdapControl, ...] = ()
    page_size: int = 500


class LdapDirectory(Protocol):
    """A directory that is read and changed entry by entry; a dump of one is only read.

    A refusal is ``LdapRefused`` with the result code; a lost connection is ``LdapConnectionLost``,
    after which it is unknown if a change was made. Entries are named by their distinguished name or
    by their GUID.
    """

    def search(self, query: LdapQuery) -> AsyncGenerator[LdapEntry, None]:
        """Yields the entries found, with all values of their attributes."""

    async def read(
        self,
        name: str | Guid,
        attributes: Sequence[str] = (),
        controls: Sequence[LdapControl] = (),
    ) -> LdapEntry | None:
        """Returns one entry by its name or GUID; None if there is none."""

    async def apply(
        self, change: EntryChange | RenameEntry, controls: Sequence[LdapControl] = ()
    ) -> None:
        """Makes one change; ``controls`` go beside the change's own."""

    async def close(self) -> None: ...


def entry_name(name: str | Guid) -> str:
    """The name of an entry on the wire; a GUID finds it wherever it stands."""
    return guid_name(name) if isinstance(name, Guid) else name
