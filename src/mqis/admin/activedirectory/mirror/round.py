"""One round of a mirror: reads what has changed, or everything, and writes it into the store.

Everything is read and compared at the first time, and whenever the position means nothing: another
domain controller answers, or one that was restored from a backup, or the account has other rights.
Both ways write only what differs, so a round that is interrupted anywhere is simply done again.

Only what is known to be deleted is deleted: an object that the account cannot read stays. Objects
that could not be read or written are looked at again, some of them in each round, until they can.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic

from mqis.admin.activedirectory.mirror.feed import ChangeFeed, is_refused, read_identity
from mqis.admin.activedirectory.mirror.writing import (
    MirrorCounts,
    MirrorWriter,
    known_objects,
    machines_that_name,
    unseen,
)
from mqis.protocol.activedirectory.entry import LdapEntry
from mqis.protocol.activedirectory.forest import LDAP_CLASSES
from mqis.protocol.activedirectory.mirror.comparing import mirrored
from mqis.protocol.activedirectory.mirror.cursor import (
    MirrorCursor,
    MirrorMode,
    ServerIdentity,
    read_cursor,
)
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.ldap.errors import LdapError, LdapRefused
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ports import Store
from mqis.runtime.activedirectory.reading import IN_ORDER, ForestReader
from mqis.runtime.ldap.directory import LdapDirectoryClient
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap import controls
from mqis.wire.ldap.filters import Equality, Or
from mqis.wire.mqds.objecttype import ObjectType

#: Objects of one transaction, and reads at the same time.
_BATCH = 200
_TOGETHER = 50
_KINDS = (
    ObjectType.QUEUE,
    ObjectType.MACHINE,
    ObjectType.SITE,
    ObjectType.ENTERPRISE,
    ObjectType.ROUTINGLINK,
)
#: A change of one of these changes the gates of sites.
_TOPOLOGY = frozenset({ObjectType.MACHINE, ObjectType.SITE, ObjectType.ROUTINGLINK})
_NEEDED = ("objectClass", "objectGUID", "isDeleted", "mSMQSignCertificates", "mSMQDigests")
_HOSTED = Or(tuple(Equality("objectClass", LDAP_CLASSES[kind].encode()) for kind in _KINDS[:2]))


class MirrorInterrupted(LdapError):
    """Another domain controller answered, or rights changed, in a round: it is done again."""


@dataclass(slots=True)
class MirrorRound:
    """The result of a round. ``fresh`` says why everything was compared; empty if it was not."""

    cursor: MirrorCursor
    fresh: str = ""
    counts: MirrorCounts = field(default_factory=MirrorCounts)
    #: Entries that could not be read, and why.
    unreadable: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    objects: dict[tuple[ObjectType, Guid], DirectoryObject] = field(default_factory=dict)
    removed: set[Guid] = field(default_factory=set)
    #: Objects that the server does not show: deleted, if it does not show deleted ones, or hidden.
    absent: set[Guid] = field(default_factory=set)
    #: Objects that exist and do not show what they are.
    hidden: set[Guid] = field(default_factory=set)

    def add(self, obj: DirectoryObject) -> None:
        for made in mirrored(obj):
            self.objects[made.type, made.id] = made


class EstateMirror:
    """Rounds between one directory and one store. ``owner`` is the name of the mirror."""

    def __init__(
        self,
        client: LdapDirectoryClient,
        store: Store,
        owner: str,
        after_commit: Callable[[], None] | None = None,
        *,
        sweep_share: float = 0.05,
    ) -> None:
        """``sweep_share`` is the part of the time that looking for deletions may take."""
        self._client = client
        self._store = store
        self._owner = owner
        self._after_commit = after_commit
        self._sweep_share = sweep_share
        self._unreadable: list[str] = []
        self._swept = 0.0
        self._pause_s = 0.0
        self._last_again = Guid(bytes(16))

    async def round(self) -> MirrorRound:
        """Brings the store up to date; ``LdapError`` if the directory cannot be read."""
        self._unreadable = []
        reader = await ForestReader.open(self._client, self._skip)
        server = await read_identity(self._client)
        feed = ChangeFeed(self._client, reader.forest)
        seen = await feed.sees_deletions()
        cursor = await asyncio.to_thread(self._cursor)
        doubt = "the store is new" if cursor is None else cursor.doubt(server, sees_deletions=seen)
        if cursor is not None and not doubt:
            try:
                return await self._next(reader, feed, server, cursor)
            except LdapRefused as error:
                if cursor.mode is MirrorMode.USN or not is_refused(error):
                    raise
                doubt = "the account may not use DirSync any more"
        return await self._fresh(reader, feed, await feed.begin(server, sees_deletions=seen), doubt)

    def _skip(self, reason: ProtocolError) -> None:
        self._unreadable.append(str(reason))

    def _cursor(self) -> MirrorCursor | None:
        with self._store.read() as view:
            return read_cursor(view)

    async def _expect(self, feed: ChangeFeed, cursor: MirrorCursor) -> None:
        """What several servers say together is the state of none of them.

        Nor is what an account reads that loses a right meanwhile.
        """
        found = await read_identity(self._client)
        if found.invocation != cursor.server.invocation:
            raise MirrorInterrupted(f"{found.host} answers instead of {cursor.server.host}")
        if await feed.sees_deletions() != cursor.sees_deletions:
            raise MirrorInterrupted(f"{found.host}: the account has other rights than before")
        await _expect_sites(feed, found)

    # --- everything -------------------------------------------------------------------------------

    async def _fresh(
        self, reader: ForestReader, feed: ChangeFeed, cursor: MirrorCursor, why: str
    ) -> MirrorRound:
        result = MirrorRound(cursor, why)
        server = cursor.server
        seen: set[tuple[ObjectType, Guid]] = set()
        late: list[DirectoryObject] = []
        async for batch in _batches(reader, IN_ORDER):
            seen |= {(obj.type, obj.id) for obj in batch}
            late += await asyncio.to_thread(self._write, batch, (), None, server, result.counts)
        gone = await self._confirmed(await asyncio.to_thread(self._unseen, seen))
        await self._expect(feed, cursor)
        await asyncio.to_thread(self._write, late, gone, cursor, server, result.counts)
        self._was_swept(0.0)
        result.unreadable = self._unreadable
        return result

    def _unseen(self, seen: set[tuple[ObjectType, Guid]]) -> set[Guid]:
        with self._store.read() as view:
            return unseen(view, seen)

    async def _confirmed(self, missing: Iterable[Guid]) -> set[Guid]:
        """Asks for each object: one that cannot be read as a whole may exist all the same."""
        held, gone = sorted(missing), set[Guid]()
        for start in range(0, len(held), _TOGETHER):
            part = held[start : start + _TOGETHER]
            found = await asyncio.gather(*(self._client.read(guid, _NEEDED) for guid in part))
            for guid, answer in zip(part, found, strict=True):
                entry = None if answer is None else LdapEntry(answer.name, answer.attributes)
                if entry is None or (entry.values("objectClass") and _kind(entry) is None):
                    gone.add(guid)
        return gone

    # --- changes ----------------------------------------------------------------------------------

    async def _next(
        self,
        reader: ForestReader,
        feed: ChangeFeed,
        server: ServerIdentity,
        cursor: MirrorCursor,
    ) -> MirrorRound:
        await _expect_sites(feed, server)
        changed, after = await feed.changes(cursor, server)
        again = self._some_of(cursor.waiting)
        pending = _Pending()
        looked = sorted(changed | again)
        for start in range(0, len(looked), _TOGETHER):
            part = looked[start : start + _TOGETHER]
            await asyncio.gather(*(self._look_at(reader, guid, pending) for guid in part))
        unknown = pending.absent
        if not cursor.sees_deletions and monotonic() - self._swept >= self._pause_s:
            pending.removed |= await self._missing(reader)
            unknown = set()
        await self._complete(reader, pending)
        result = MirrorRound(after)
        if looked or pending.removed:
            waiting = (cursor.waiting - again) | unknown | pending.hidden
            await self._expect(feed, cursor)
            values = list(pending.objects.values()), pending.removed, after.waits_for(waiting)
            await asyncio.to_thread(self._write, *values, server, result.counts)
        for guid in again - changed:
            result.counts.left_out.pop(guid, None)  # told before
        result.unreadable = self._unreadable
        return result

    def _some_of(self, waiting: frozenset[Guid]) -> set[Guid]:
        """Takes some objects in turn, so that many of them make no round long."""
        behind = sorted(guid for guid in waiting if guid > self._last_again)
        chosen = [*behind, *sorted(waiting)][:_TOGETHER]
        self._last_again = chosen[-1] if chosen else self._last_again
        return set(chosen)

    async def _look_at(self, reader: ForestReader, guid: Guid, pending: _Pending) -> None:
        """Reads a changed object as it is now; it may have vanished since."""
        found = await self._client.read(guid, _NEEDED, (controls.show_deleted,))
        entry = None if found is None else LdapEntry(found.name, found.attributes)
        if entry is None:
            pending.absent.add(guid)
        elif entry.values("isDeleted"):
            pending.removed.add(guid)
        elif not entry.values("objectClass"):
            pending.hidden.add(guid)
        elif entry.is_of("computer"):
            await self._hosted(reader, guid, pending)
        else:
            await self._take(reader, _kind(entry), guid, pending)

    async def _take(
        self, reader: ForestReader, kind: ObjectType | None, guid: Guid, pending: _Pending
    ) -> None:
        try:
            obj = None if kind is None else await reader.read_one(kind, guid)
        except (DirectoryError, ProtocolError, WireError) as error:
            if isinstance(error, LdapError):
                raise
            self._unreadable.append(str(error))
            return
        if obj is not None:
            pending.add(obj)
        elif kind is None:
            pending.removed.add(guid)
        else:
            pending.absent.add(guid)

    async def _hosted(self, reader: ForestReader, computer: Guid, pending: _Pending) -> None:
        """A computer's name is part of its machine and queues, whose entries stay unchanged."""
        above = await self._client.read(computer, ("objectClass",))
        if above is None:
            return
        query = LdapQuery(above.name, filter=_HOSTED, attributes=_NEEDED)
        async with aclosing(self._client.search(query)) as found:
            below = [LdapEntry(entry.name, entry.attributes) async for entry in found]
        for entry in below:
            if entry.guid is not None:
                await self._take(reader, _kind(entry), entry.guid, pending)

    async def _complete(self, reader: ForestReader, pending: _Pending) -> None:
        """Adds objects whose entries change without a number when another one does."""
        kinds = {kind for kind, _ in pending.objects}
        if pending.removed:
            for guid in await asyncio.to_thread(self._referrers, pending.removed):
                if (ObjectType.MACHINE, guid) not in pending.objects:
                    await self._take(reader, ObjectType.MACHINE, guid, pending)
        if pending.removed or kinds & _TOPOLOGY:
            async with aclosing(reader.objects((ObjectType.SITE, ObjectType.ROUTINGLINK))) as found:
                async for obj in found:
                    pending.add(obj)
                    pending.removed.discard(obj.id)

    def _referrers(self, gone: set[Guid]) -> set[Guid]:
        with self._store.read() as view:
            return machines_that_name(view, gone) - gone

    # --- deletions that the account does not see --------------------------------------------------

    async def _missing(self, reader: ForestReader) -> set[Guid]:
        """Lists all identifiers: those of the store that are not among them are deleted."""
        began = monotonic()
        present = set[Guid]()
        for context in (reader.forest.domain, reader.forest.configuration):
            query = LdapQuery(str(context), filter=_ALL_KINDS, attributes=("objectGUID",))
            async with aclosing(self._client.search(query)) as found:
                async for entry in found:
                    present |= {Guid(raw) for raw in entry.values("objectGUID")}
        gone = await self._confirmed(await asyncio.to_thread(self._known) - present)
        self._was_swept(monotonic() - began)
        return gone

    def _known(self) -> set[Guid]:
        with self._store.read() as view:
            return known_objects(view)

    def _was_swept(self, took_s: float) -> None:
        self._swept = monotonic()
        self._pause_s = took_s / self._sweep_share

    # --- the store --------------------------------------------------------------------------------

    def _write(
        self,
        objects: Iterable[DirectoryObject],
        removed: Iterable[Guid],
        cursor: MirrorCursor | None,
        server: ServerIdentity,
        counts: MirrorCounts,
    ) -> list[DirectoryObject]:
        """Writes one transaction; returns the objects that the store did not take."""
        held = list(objects)
        with self._store.write() as tx:
            writer = MirrorWriter(tx, self._owner, server.host)
            writer.remove_all(removed)
            writer.put_all(held)
            if cursor is not None:
                writer.finish(cursor)
        if self._after_commit is not None:
            self._after_commit()
        for obj in held:
            counts.left_out.pop(obj.id, None)
        counts.add(writer.counts)
        return [obj for obj in held if obj.id in writer.counts.left_out]


_ALL_KINDS = Or(
    (
        *(Equality("objectClass", LDAP_CLASSES[kind].encode()) for kind in _KINDS),
        Equality("objectClass", b"user"),
    )
)


async def _expect_sites(feed: ChangeFeed, server: ServerIdentity) -> None:
    """Without a site the account sees too little to tell what has changed, and what is deleted."""
    if not await feed.sees_site():
        raise LdapError(
            f"{server.host}: the account sees no site, so nothing is deleted from the mirror; give "
            "it the right to read the configuration"
        )


def _kind(entry: LdapEntry) -> ObjectType | None:
    """The type of an entry; None for what is no object, such as a user without certificates."""
    found = next((kind for kind in _KINDS if entry.is_of(LDAP_CLASSES[kind])), None)
    if found is not None or not entry.is_of("user") or entry.is_of("computer"):
        return found
    certified = entry.values("mSMQSignCertificates") or entry.values("mSMQDigests")
    return ObjectType.USER if certified else None


async def _batches(
    reader: ForestReader, kinds: tuple[ObjectType, ...]
) -> AsyncIterator[list[DirectoryObject]]:
    batch: list[DirectoryObject] = []
    async with aclosing(reader.objects(kinds)) as found:
        async for obj in found:
            batch += mirrored(obj)
            if len(batch) >= _BATCH:
                yield batch
                batch = []
    yield batch
