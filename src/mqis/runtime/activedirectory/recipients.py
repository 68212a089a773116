"""Resolves queue aliases and distribution lists (MS-MQDSSM 3.1.6.8, 3.1.6.9).

names = await Recipients(client).resolve("DL=b92cc7c8-0b1e-434b-b7ad-a1b791e457dd")
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from mqis.protocol.activedirectory.recipients import (
    FORMAT_NAME,
    MEMBER,
    MOST_LEVELS,
    RECIPIENT_ATTRIBUTES,
    RecipientKind,
    alias_target,
    list_guid,
    public_format_name,
    recipient_kind,
)
from mqis.protocol.activedirectory.results import DirectoryStatus, status_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.ldap.errors import LdapRefused
from mqis.protocol.ldap.ports import LdapDirectory
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult

log = logging.getLogger(__name__)

_HRESULTS = {
    DirectoryStatus.OBJECT_NOT_FOUND: HResult.MQDS_OBJECT_NOT_FOUND,
    DirectoryStatus.ATTRIBUTE_NOT_FOUND: HResult.E_ADS_PROPERTY_NOT_FOUND,
}


@dataclass(slots=True)
class Recipients:
    """Resolves one name. A list that was met before adds nothing: lists may name each other.

    A failure is ``DirectoryError`` with the outcome that the text has for it, and names the entry.
    """

    client: LdapDirectory
    _met: set[Guid] = field(default_factory=set)

    async def resolve(self, name: str) -> list[str]:
        """Returns the format names of ``DL=GUID``, or of a list or an alias by its DN."""
        guid = list_guid(name)
        if guid is not None:
            return await self.resolve_list(guid)
        entry = await self._read(name, RECIPIENT_ATTRIBUTES)
        if recipient_kind(entry) is RecipientKind.ALIAS:
            return [await self.resolve_alias(entry.name)]
        return await self._resolved(entry, level=-1)

    async def resolve_alias(self, name: str) -> str:
        """Returns the format name of an alias (3.1.6.8)."""
        entry = await self._read(name, (*RECIPIENT_ATTRIBUTES, FORMAT_NAME))
        if not entry.values(FORMAT_NAME):
            raise _failed(DirectoryStatus.ATTRIBUTE_NOT_FOUND, f"{name}: {FORMAT_NAME} is missing")
        try:
            return alias_target(entry).text
        except BadAttribute as error:
            raise _failed(DirectoryStatus.GENERIC_ERROR, str(error)) from error

    async def resolve_list(self, guid: Guid, level: int = 0) -> list[str]:
        """Returns the format names of a list and of the lists in it, in their order (3.1.6.9)."""
        if guid in self._met:
            return []
        if level == MOST_LEVELS:
            raise _failed(DirectoryStatus.GENERIC_ERROR, f"lists in {MOST_LEVELS} lists")
        self._met.add(guid)
        found = await self._read(guid, (*RECIPIENT_ATTRIBUTES, MEMBER))
        names: list[str] = []
        for member in found.values(MEMBER):
            entry = await self._read(member.decode(), RECIPIENT_ATTRIBUTES)
            names += await self._resolved(entry, level)
        return names

    async def _resolved(self, entry: LdapEntry, level: int) -> list[str]:
        match recipient_kind(entry), entry.guid:
            case RecipientKind.QUEUE, Guid() as guid:
                return [public_format_name(guid)]
            case RecipientKind.ALIAS, _:
                try:
                    return [await self.resolve_alias(entry.name)]
                except DirectoryError as error:
                    raise _failed(DirectoryStatus.GENERIC_ERROR, str(error.detail)) from error
            case RecipientKind.LIST, Guid() as guid:
                return await self.resolve_list(guid, level + 1)
        classes = entry.values("objectClass")
        what = classes[-1].decode(errors="replace") if classes else "of no class"
        raise _failed(
            DirectoryStatus.GENERIC_ERROR,
            f"{entry.name} is {what}, not a queue, an alias or a list: nothing can be sent to it",
        )

    async def _read(self, name: str | Guid, attributes: tuple[str, ...]) -> LdapEntry:
        """Members come in ranges, which the connection completes."""
        try:
            found = await self.client.read(name, attributes)
        except LdapRefused as error:
            raise _failed(status_of(error.code), str(error)) from error
        if found is None:
            raise _failed(DirectoryStatus.OBJECT_NOT_FOUND, f"there is no entry {name}")
        return found


def _failed(status: DirectoryStatus, detail: str) -> DirectoryError:
    log.info("%s: %s", status.value, detail)
    return DirectoryError(_HRESULTS.get(status, HResult.MQ_ERROR_DS_ERROR), detail)
