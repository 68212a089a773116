"""The controllers that one round of a mirror reads: one of each domain of a forest.

The first one has the configuration, too: sites, links and the enterprise. What an entry is now is
asked of all of them, because an object may have moved from one domain to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mqis.admin.activedirectory.connecting import expect_all_attributes
from mqis.admin.activedirectory.mirror.feed import ChangeFeed, read_identity
from mqis.protocol.activedirectory.mirror.cursor import MirrorCursor, MirrorMode, ServerIdentity
from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.ldap.errors import LdapError, LdapRefused
from mqis.runtime.activedirectory.estate import EstateReader
from mqis.runtime.activedirectory.reading import ForestReader, Skipped, Unfit
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.wire.guid import Guid
from mqis.wire.ldap import controls
from mqis.wire.ldap.codes import ResultCode

#: What tells which object an entry is, and whether it is one.
NEEDED = ("objectClass", "objectGUID", "isDeleted", "mSMQSignCertificates", "mSMQDigests")


@dataclass(frozen=True, slots=True)
class MirroredDomain:
    """One controller, as it was when the round began."""

    client: LdapDirectoryClient
    reader: ForestReader
    feed: ChangeFeed
    server: ServerIdentity
    sees_deletions: bool

    @classmethod
    async def open(
        cls, client: LdapDirectoryClient, skipped: Skipped, unfit: Unfit, *, first: bool
    ) -> MirroredDomain:
        reader = await ForestReader.open(client, skipped, unfit)
        await expect_all_attributes(client)
        server = await read_identity(client)
        feed = ChangeFeed(client, reader.forest, configuration=first)
        return cls(client, reader, feed, server, await feed.sees_deletions())

    async def expect(self, cursor: MirrorCursor) -> None:
        """What several servers say together is the state of none of them.

        Nor is what an account reads that loses a right meanwhile. The round is done again.
        """
        found = await read_identity(self.client)
        if found.invocation != cursor.server.invocation:
            raise LdapError(f"{found.host} answers instead of {cursor.server.host}")
        if await self.feed.sees_deletions() != cursor.sees_deletions:
            raise LdapError(f"{found.host}: the account has other rights than before")
        await self.expect_sites()

    async def expect_sites(self) -> None:
        """Without a site the account sees too little to tell what changed, and what is deleted."""
        if not await self.feed.sees_site():
            raise LdapError(
                f"{self.server.host}: the account sees no site, so nothing is deleted from the "
                "mirror; give it the right to read the configuration"
            )


@dataclass(frozen=True, slots=True)
class MirroredForest:
    """All controllers of a round; positions are of the first one and have those of the others."""

    domains: tuple[MirroredDomain, ...]
    estate: EstateReader

    @classmethod
    async def open(
        cls, clients: Sequence[LdapDirectoryClient], skipped: Skipped, unfit: Unfit
    ) -> MirroredForest:
        """``ProtocolError`` if these are not different domains of one forest."""
        domains = [
            await MirroredDomain.open(client, skipped, unfit, first=not at)
            for at, client in enumerate(clients)
        ]
        return cls(tuple(domains), EstateReader.of([domain.reader for domain in domains]))

    @property
    def server(self) -> ServerIdentity:
        return self.domains[0].server

    def doubt(self, cursor: MirrorCursor) -> str:
        """Returns why a position means nothing at these servers; empty if it can go on."""
        known = cursor.each
        if [each.server.domain for each in known] != [d.server.domain for d in self.domains]:
            return "other domains are named than before"
        doubts = (
            each.doubt(domain.server, sees_deletions=domain.sees_deletions)
            for each, domain in zip(known, self.domains, strict=True)
        )
        return next(filter(None, doubts), "")

    async def begin(self) -> MirrorCursor:
        """Returns the position before everything that is read from now on."""
        first, *others = [
            await each.feed.begin(each.server, sees_deletions=each.sees_deletions)
            for each in self.domains
        ]
        return replace(first, others=tuple(others))

    async def changes(self, cursor: MirrorCursor) -> tuple[set[Guid], MirrorCursor]:
        """Returns the objects that have changed, and the position behind these changes."""
        changed: set[Guid] = set()
        after = []
        for each, domain in zip(cursor.each, self.domains, strict=True):
            found, behind = await domain.feed.changes(each, domain.server)
            changed |= found
            after.append(behind)
        return changed, replace(after[0], others=tuple(after[1:]))

    async def now(self) -> MirroredForest:
        """With the numbers of the last changes as they are now."""
        domains = [replace(d, server=await read_identity(d.client)) for d in self.domains]
        return replace(self, domains=tuple(domains))

    async def expect(self, cursor: MirrorCursor) -> None:
        for each, domain in zip(cursor.each, self.domains, strict=True):
            await domain.expect(each)

    async def expect_sites(self) -> None:
        for domain in self.domains:
            await domain.expect_sites()

    def uses_numbers(self, cursor: MirrorCursor) -> bool:
        """Returns whether all positions are numbers of changes, which no server refuses."""
        return all(each.mode is MirrorMode.USN for each in cursor.each)

    def hides_deletions(self, cursor: MirrorCursor) -> bool:
        """Returns whether the account sees no deleted objects of one of the domains."""
        return not all(each.sees_deletions for each in cursor.each)

    async def look_at(self, guid: Guid) -> tuple[MirroredDomain, LdapEntry | None]:
        """Returns an entry where it lives; else a deleted one, or one that does not show itself."""
        found = [(domain, await self._read(domain, guid)) for domain in self.domains]
        return min(found, key=lambda each: _rank(each[1]))

    async def confirmed(self, missing: Iterable[Guid]) -> dict[Guid, list[LdapEntry]]:
        """Asks every domain for each object: it may exist although it was not read."""
        held = sorted(missing)
        shown: dict[Guid, list[LdapEntry]] = {guid: [] for guid in held}
        for domain in self.domains:
            found = await asyncio.gather(*(self._read(domain, g, deleted=False) for g in held))
            for guid, entry in zip(held, found, strict=True):
                if entry is not None:
                    shown[guid].append(entry)
        return shown

    async def _read(
        self, domain: MirroredDomain, guid: Guid, *, deleted: bool = True
    ) -> LdapEntry | None:
        """A controller may refer those who ask for an object of another domain to that one."""
        shown = (controls.show_deleted,) if deleted else ()
        try:
            return await domain.client.read(guid, NEEDED, shown)
        except LdapRefused as error:
            if error.code != ResultCode.REFERRAL:
                raise
            return None


def _rank(entry: LdapEntry | None) -> int:
    if entry is None:
        return 3
    if entry.values("isDeleted"):
        return 1
    return 0 if entry.values("objectClass") else 2
