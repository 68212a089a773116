"""Asks a domain controller which objects have changed (MS-ADTS 3.1.1.3.4.1.3, 3.1.1.3.2).

DirSync is asked first: its cookie names what was seen. An account without that right gets the same
for what it may read, or searches for greater numbers (uSNChanged), which are one server's own.
"""

from __future__ import annotations

from contextlib import aclosing

from mqis.protocol.activedirectory.forest import Forest, change_number
from mqis.protocol.activedirectory.mirror.cursor import MirrorCursor, MirrorMode, ServerIdentity
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.ldap.errors import LdapRefused, LdapViolation
from mqis.protocol.ldap.ports import LdapQuery
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.searching import SearchOutcome
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap import controls
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.controls import DIR_SYNC, DirSync, DirSyncFlags, find_control
from mqis.wire.ldap.filters import And, Equality, GreaterOrEqual, Or

#: Classes of objects, and computers, whose names are part of machines and queues.
_CLASSES = (
    "mSMQQueue", "mSMQConfiguration", "computer", "user", "site", "mSMQEnterpriseSettings",
    "mSMQSiteLink",
)  # fmt: skip
_OF_INTEREST = Or(tuple(Equality("objectClass", name.encode()) for name in _CLASSES))
#: DirSync tells of an entry only if one of the attributes that are asked for has changed.
_ALL = ("*",)
_FLAGS = {
    MirrorMode.DIRSYNC: DirSyncFlags.NONE,
    MirrorMode.DIRSYNC_READABLE: DirSyncFlags.OBJECT_SECURITY,
}
_REFUSED = (
    ResultCode.INSUFFICIENT_ACCESS_RIGHTS,
    ResultCode.UNWILLING_TO_PERFORM,
    ResultCode.UNAVAILABLE_CRITICAL_EXTENSION,
)
#: Answers of one DirSync round; each brings some entries or ends it.
_MOST_ANSWERS = 100_000


class ChangeFeed:
    """The changes of the contexts that matter: the domain and the configuration.

    The domains of a forest share the configuration: one of them tells its changes.
    """

    def __init__(
        self, client: LdapDirectoryClient, forest: Forest, *, configuration: bool = True
    ) -> None:
        self._client = client
        self._configuration = str(forest.configuration)
        shared = (self._configuration,) if configuration else ()
        self._contexts = (str(forest.domain), *shared)

    async def begin(self, server: ServerIdentity, *, sees_deletions: bool) -> MirrorCursor:
        """Returns the position before everything that is read from now on."""
        for mode in _FLAGS:
            try:
                cookies = [(await self._synchronised(mode, c, b""))[1] for c in self._contexts]
            except LdapRefused as error:
                if not is_refused(error):
                    raise
                continue
            return MirrorCursor(server, mode, tuple(cookies), sees_deletions)
        return MirrorCursor(server, MirrorMode.USN, (), sees_deletions)

    async def changes(
        self, cursor: MirrorCursor, server: ServerIdentity
    ) -> tuple[set[Guid], MirrorCursor]:
        """Returns the objects that have changed, and the position behind these changes."""
        if cursor.mode is MirrorMode.USN:
            found = (
                await self._numbered(cursor.server.usn) if server.usn > cursor.server.usn else []
            )
            return set(found), cursor.moved(server.usn, ())
        changed: set[Guid] = set()
        cookies = []
        for context, cookie in zip(self._contexts, cursor.cookies, strict=True):
            guids, after = await self._synchronised(cursor.mode, context, cookie)
            changed |= guids
            cookies.append(after)
        return changed, cursor.moved(server.usn, tuple(cookies))

    async def _numbered(self, usn: int) -> list[Guid]:
        newer = GreaterOrEqual("uSNChanged", b"%d" % (usn + 1))
        found: list[Guid] = []
        for context in self._contexts:
            query = LdapQuery(
                context,
                filter=And((newer, _OF_INTEREST)),
                attributes=("objectGUID",),
                controls=(controls.show_deleted,),
            )
            async with aclosing(self._client.search(query)) as entries:
                async for entry in entries:
                    found += _guids(entry)
        return found

    async def _synchronised(
        self, mode: MirrorMode, context: str, cookie: bytes
    ) -> tuple[set[Guid], bytes]:
        found: set[Guid] = set()
        for _ in range(_MOST_ANSWERS):
            asked = DirSync(int(_FLAGS[mode]), 0, cookie)
            query = LdapQuery(
                context,
                filter=_OF_INTEREST,
                attributes=_ALL,
                controls=(asked.control(),),
                page_size=0,
            )
            outcome = SearchOutcome()
            async with aclosing(self._client.search(query, outcome)) as entries:
                async for entry in entries:
                    found.update(_guids(entry))
            answer = _answer(outcome)
            cookie = answer.cookie
            if not answer.more:
                return found, cookie
        raise LdapViolation(f"{self._client.where}: DirSync of {context} does not end")

    async def sees_deletions(self) -> bool:
        """Ordinary users see no more than the name of the container of deleted objects."""
        container = f"CN=Deleted Objects,{self._contexts[0]}"
        found = await self._client.read(container, ("objectClass",), (controls.show_deleted,))
        return found is not None and bool(found.values("objectClass"))

    async def sees_site(self) -> bool:
        """Every forest has a site: an account that sees none has lost the right to read."""
        query = LdapQuery(
            self._configuration, filter=Equality("objectClass", b"site"), attributes=("objectGUID",)
        )
        async with aclosing(self._client.search(query)) as found:
            return any([True async for _ in found])


def is_refused(error: LdapRefused) -> bool:
    """Returns whether the server lets this account not use DirSync."""
    return error.code in _REFUSED


def _guids(entry: LdapEntry) -> list[Guid]:
    return [Guid(value) for value in entry.values("objectGUID") if len(value) == 16]


def _answer(outcome: SearchOutcome) -> DirSync:
    value = find_control(outcome.controls, DIR_SYNC)
    try:
        return DirSync.from_bytes(value or b"")
    except WireError as error:
        raise LdapViolation(f"the answer to DirSync is damaged: {error}") from error


async def read_identity(client: LdapDirectoryClient) -> ServerIdentity:
    """Reads who answers: the server, the copy of its database, and its last change."""
    root = await client.read("", ("dsServiceName", "dnsHostName", "highestCommittedUSN",
                                  "defaultNamingContext"))  # fmt: skip
    if root is None:
        raise ProtocolError(f"{client.where}: the server shows no root entry")
    service = await client.read(root.text("dsServiceName"), ("invocationId",))
    domain = await client.read(root.text("defaultNamingContext"), ("objectGUID",))
    try:
        usn = change_number(root.text("highestCommittedUSN"))
    except ProtocolError as error:
        raise ProtocolError(f"{client.where}: {error}") from None
    return ServerIdentity(
        _identifier(client, service, "invocationId"),
        root.text("dnsHostName"),
        usn,
        _identifier(client, domain, "objectGUID"),
    )


def _identifier(client: LdapDirectoryClient, entry: LdapEntry | None, attribute: str) -> Guid:
    values = () if entry is None else entry.values(attribute)
    if not values or len(values[0]) != 16:
        raise ProtocolError(
            f"{client.where}: the server does not show its {attribute}: it is no Active Directory, "
            "or the account may not read its configuration"
        )
    return Guid(values[0])
