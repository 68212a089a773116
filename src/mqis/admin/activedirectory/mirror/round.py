"""One round of a mirror: reads what has changed, or everything, and writes it into the store.

Everything is read and compared at the first time, and whenever the position means nothing: another
domain controller answers, or one that was restored from a backup, or the account has other rights.
Both ways write only what differs, so a round that is interrupted anywhere is simply done again.

Only what is known to be deleted is deleted: an object that the account cannot read stays. Objects
that could not be written are tried again when their name or their queue manager becomes free, and
objects that could not be read, some of them in each round, until they can.

Numbers of changes do not tell everything: a domain controller that was put back from a copy of its
disk, and has changed since, repeats numbers that it had before. So everything is compared once a
day as well, after the changes were read; what differs then, a mirror has missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Set
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic, time

from mqis.admin.activedirectory.mirror.feed import is_refused
from mqis.admin.activedirectory.mirror.forest import NEEDED, MirroredDomain, MirroredForest
from mqis.admin.activedirectory.mirror.writing import (
    MirrorCounts,
    MirrorWriter,
    known_objects,
    machines_that_name,
    unseen,
)
from mqis.protocol.activedirectory.certificates import is_certified
from mqis.protocol.activedirectory.forest import LDAP_CLASSES
from mqis.protocol.activedirectory.importing import kept_objects
from mqis.protocol.activedirectory.mirror.comparing import (
    MirrorComparison,
    MirrorDifference,
)
from mqis.protocol.activedirectory.mirror.cursor import (
    MirrorCursor,
    ServerIdentity,
    read_cursor,
)
from mqis.protocol.activedirectory.mirror.leftout import (
    LeftOut,
    LeftOutReason,
    nameless,
    read_left_out,
)
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.ldap.errors import LdapError, LdapRefused
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ports import Store, View
from mqis.runtime.activedirectory.estate import IN_ORDER, EstateReader
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.filters import Equality, Or
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

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
#: Tried again without a reason to: the account may have got a right, which is no change.
_IN_TURN = (LeftOutReason.UNREAD, LeftOutReason.VALUE)
_SHARED = (ObjectType.SITE, ObjectType.ROUTINGLINK)
#: A change of one of these changes the gates of sites.
_TOPOLOGY = frozenset({ObjectType.MACHINE, ObjectType.SITE, ObjectType.ROUTINGLINK})
_HOSTED = Or(tuple(Equality("objectClass", LDAP_CLASSES[kind].encode()) for kind in _KINDS[:2]))


_UNREAD = LeftOut(LeftOutReason.UNREAD, "an object that the account may not read")


@dataclass(slots=True)
class MirrorRound:
    """The result of a round. ``fresh`` says why everything was compared; empty if it was not."""

    cursor: MirrorCursor
    fresh: str = ""
    #: The changes; of what is left out, what was not told by an earlier round.
    counts: MirrorCounts = field(default_factory=MirrorCounts)
    #: All that the store lacks after the round.
    left_out: dict[Guid, LeftOut] = field(default_factory=dict)
    #: Of a comparison: what the store had otherwise although it was up to date.
    differences: list[MirrorDifference] = field(default_factory=list)

    def tell_new(self, told: Mapping[Guid, LeftOut]) -> None:
        """Keeps in ``counts`` what earlier rounds did not leave out, or for another reason."""
        before = {guid: item.to_bytes() for guid, item in told.items()}
        self.counts.left_out = {
            guid: item
            for guid, item in self.left_out.items()
            if before.get(guid) != item.to_bytes()
        }


@dataclass(slots=True)
class _Pending:
    objects: dict[tuple[ObjectType, Guid], DirectoryObject] = field(default_factory=dict)
    removed: set[Guid] = field(default_factory=set)
    #: Objects that the server does not show: deleted, if it does not show deleted ones, or hidden.
    absent: set[Guid] = field(default_factory=set)
    #: Objects that exist and do not show what they are.
    hidden: set[Guid] = field(default_factory=set)

    def add(self, obj: DirectoryObject) -> None:
        for made in kept_objects(obj):
            self.objects[made.type, made.id] = made

    @property
    def touched(self) -> set[Guid]:
        return self.removed | {guid for _, guid in self.objects}


class EstateMirror:
    """Rounds between one forest and one store. ``owner`` is the name of the mirror."""

    def __init__(
        self,
        client: LdapDirectoryClient,
        store: Store,
        owner: str,
        after_commit: Callable[[], None] | None = None,
        *,
        others: Sequence[LdapDirectoryClient] = (),
        sweep_share: float = 0.05,
        clock: Callable[[], float] = time,
    ) -> None:
        """``others`` are controllers of further domains of the forest.

        ``sweep_share`` is the part of the time that looking for deletions may take.
        """
        self._clients = (client, *others)
        self._store = store
        self._owner = owner
        self._after_commit = after_commit
        self._sweep_share = sweep_share
        self._clock = clock
        #: What the reader left out in this round, or read with a default.
        self._noted: dict[Guid, LeftOut] = {}
        self._swept = 0.0
        self._pause_s = 0.0
        self._last_again = Guid(bytes(16))

    async def round(self, *, compare: bool = False) -> MirrorRound:
        """Brings the store up to date; ``LdapError`` if the directory cannot be read.

        With ``compare``, and once a day, everything is compared after that.
        """
        self._noted = {}
        forest = await MirroredForest.open(self._clients, self._skip, self._unfit)
        cursor = await asyncio.to_thread(self._cursor)
        doubt = "the store is new" if cursor is None else forest.doubt(cursor)
        comparison = MirrorComparison() if compare and cursor is not None else None
        if cursor is not None and not doubt:
            due = cursor.is_due(self._clock())
            if compare or due:
                self._pause_s = 0.0  # what is deleted is a change, and no difference
            try:
                done = await self._next(forest, cursor)
                if not (compare or due):
                    return done
                why = "this was asked for" if compare else "this is done once a day"
                return await self._compare(forest, done, why)
            except LdapRefused as error:
                if forest.uses_numbers(cursor) or not is_refused(error):
                    raise
                doubt = "the account may not use DirSync any more"
        return await self._fresh(forest, await forest.begin(), doubt, comparison)

    def _skip(self, kind: ObjectType, entry: LdapEntry, reason: ProtocolError) -> None:
        self._note(LeftOutReason.VALUE, kind, entry, str(reason))

    def _unfit(self, kind: ObjectType, entry: LdapEntry, values: Sequence[BadAttribute]) -> None:
        self._note(LeftOutReason.DEFAULT, kind, entry, "; ".join(map(str, values)))

    def _note(self, reason: LeftOutReason, kind: ObjectType, entry: LdapEntry, text: str) -> None:
        guid = entry.guid or nameless(entry.name)
        self._noted[guid] = LeftOut(reason, text, kind, entry.plain_name)

    def _cursor(self) -> MirrorCursor | None:
        with self._store.read() as view:
            return read_cursor(view)

    def _left_out(self) -> dict[Guid, LeftOut]:
        with self._store.read() as view:
            return read_left_out(view)

    async def _expect(self, forest: MirroredForest, cursor: MirrorCursor) -> None:
        await forest.expect(cursor)

    # --- everything -------------------------------------------------------------------------------

    async def _fresh(
        self,
        forest: MirroredForest,
        cursor: MirrorCursor,
        why: str,
        comparison: MirrorComparison | None = None,
    ) -> MirrorRound:
        self._noted = {}
        result = MirrorRound(cursor, why)
        told = await asyncio.to_thread(self._left_out)
        write = partial(self._write, server=cursor.server, result=result, comparison=comparison)
        seen: set[tuple[ObjectType, Guid]] = set()
        late: list[DirectoryObject] = []
        async for batch in _batches(forest.estate, IN_ORDER):
            seen |= {(obj.type, obj.id) for obj in batch}
            late += await asyncio.to_thread(write, batch, ())
        unseen = await asyncio.to_thread(self._unseen, seen)
        gone = await self._confirmed(forest, unseen)
        await self._expect(forest, cursor)
        if comparison is not None:
            meanwhile = await self._changed_since(forest, cursor)
            comparison.changed, comparison.removed = set(meanwhile.objects), meanwhile.removed
        lacking = dict.fromkeys(unseen - gone, _UNREAD) | self._noted
        result.cursor = cursor.compared(self._clock())
        await asyncio.to_thread(write, late, gone, lacking)
        self._was_swept(0.0)
        result.tell_new(told)
        return result

    async def _compare(self, forest: MirroredForest, done: MirrorRound, why: str) -> MirrorRound:
        """Compares everything with a store that is up to date; what differs was missed."""
        result = await self._fresh(forest, done.cursor, why, MirrorComparison())
        result.counts.created += done.counts.created
        result.counts.updated += done.counts.updated
        result.counts.deleted += done.counts.deleted
        return result

    async def _changed_since(self, forest: MirroredForest, cursor: MirrorCursor) -> _Pending:
        """Reads the objects that changed while everything was read, as the next round does."""
        noted = dict(self._noted)
        changed, _ = await (await forest.now()).changes(cursor)
        pending = _Pending()
        await self._look_at_all(forest, changed, pending)
        await self._complete(forest, pending, self._unmade(changed))
        pending.removed |= pending.absent
        self._noted = noted
        return pending

    def _unseen(self, seen: set[tuple[ObjectType, Guid]]) -> set[Guid]:
        with self._store.read() as view:
            return unseen(view, seen)

    async def _confirmed(self, forest: MirroredForest, missing: Iterable[Guid]) -> set[Guid]:
        """Asks for each object: one that cannot be read as a whole may exist all the same."""
        held, gone = sorted(missing), set[Guid]()
        for start in range(0, len(held), _TOGETHER):
            found = await forest.confirmed(held[start : start + _TOGETHER])
            for guid, entries in found.items():
                if all(entry.values("objectClass") and _kind(entry) is None for entry in entries):
                    gone.add(guid)
        return gone

    # --- changes ----------------------------------------------------------------------------------

    async def _next(self, forest: MirroredForest, cursor: MirrorCursor) -> MirrorRound:
        await forest.expect_sites()
        changed, after = await forest.changes(cursor)
        left_out = await asyncio.to_thread(self._left_out)
        looked = changed | self._some_of(left_out)
        pending = _Pending()
        await self._look_at_all(forest, looked, pending)
        unknown = pending.absent
        if forest.hides_deletions(cursor) and monotonic() - self._swept >= self._pause_s:
            pending.removed |= await self._missing(forest)
            unknown = set()
        while freed := await asyncio.to_thread(self._freed, left_out, pending) - looked:
            looked |= freed
            await self._look_at_all(forest, freed, pending)
        regained = {guid for guid, item in left_out.items() if item.reason is LeftOutReason.UNREAD}
        await self._complete(forest, pending, self._unmade(changed | regained))
        result = MirrorRound(after)
        if not looked and not pending.removed:
            result.left_out = left_out
        else:
            done = looked | pending.touched
            lacking = {guid: item for guid, item in left_out.items() if guid not in done}
            lacking |= dict.fromkeys(unknown | pending.hidden, _UNREAD) | self._noted
            await self._expect(forest, cursor)
            values = list(pending.objects.values()), pending.removed, lacking
            await asyncio.to_thread(self._write, *values, server=forest.server, result=result)
            result.tell_new(left_out)
        return result

    def _some_of(self, left_out: Mapping[Guid, LeftOut]) -> set[Guid]:
        """Takes some objects in turn, so that many of them make no round long."""
        waiting = sorted(guid for guid, item in left_out.items() if item.reason in _IN_TURN)
        behind = [guid for guid in waiting if guid > self._last_again]
        chosen = [*behind, *waiting][:_TOGETHER]
        self._last_again = chosen[-1] if chosen else self._last_again
        return set(chosen)

    def _freed(self, left_out: Mapping[Guid, LeftOut], pending: _Pending) -> set[Guid]:
        """The objects that may find their name free now, or their queue manager there."""
        touched = pending.touched
        if not touched:
            return set()
        with self._store.read() as view:
            return {
                guid
                for guid, item in left_out.items()
                if item.host in touched or _is_free(view, item, touched)
            }

    async def _look_at_all(
        self, forest: MirroredForest, guids: Iterable[Guid], pending: _Pending
    ) -> None:
        held = sorted(guids)
        for start in range(0, len(held), _TOGETHER):
            part = held[start : start + _TOGETHER]
            await asyncio.gather(*(self._look_at(forest, guid, pending) for guid in part))

    async def _look_at(self, forest: MirroredForest, guid: Guid, pending: _Pending) -> None:
        """Reads a changed object as it is now; it may have vanished since."""
        domain, entry = await forest.look_at(guid)
        if entry is None:
            pending.absent.add(guid)
        elif entry.values("isDeleted"):
            pending.removed.add(guid)
        elif not entry.values("objectClass"):
            pending.hidden.add(guid)
        elif entry.is_of("computer"):
            await self._hosted(domain, guid, pending)
        else:
            await self._take(domain.reader, _kind(entry), guid, pending)
            if await asyncio.to_thread(self._is_renamed, guid, pending):
                await self._hosted(domain, guid, pending)

    def _is_renamed(self, guid: Guid, pending: _Pending) -> bool:
        """Returns whether a queue manager has another name than in the store.

        It may have lost its name to another one: the entries of its queues stay unchanged.
        """
        machine = pending.objects.get((ObjectType.MACHINE, guid))
        if machine is None:
            return False
        with self._store.read() as view:
            held = view.get(ObjectType.MACHINE, guid)
        return held is not None and held.path != machine.path

    async def _take(
        self, reader: ForestReader, kind: ObjectType | None, guid: Guid, pending: _Pending
    ) -> None:
        try:
            obj = None if kind is None else await reader.read_one(kind, guid)
        except (DirectoryError, ProtocolError, WireError) as error:
            if isinstance(error, LdapError):
                raise
            self._noted[guid] = LeftOut(LeftOutReason.VALUE, str(error), kind)
            return
        if obj is not None:
            pending.add(obj)
        elif kind is None:
            pending.removed.add(guid)
        else:
            pending.absent.add(guid)

    async def _hosted(self, domain: MirroredDomain, host: Guid, pending: _Pending) -> None:
        """A computer's name is part of its machine and queues, whose entries stay unchanged."""
        above = await domain.client.read(host, ("objectClass",))
        if above is None:
            return
        query = LdapQuery(above.name, filter=_HOSTED, attributes=NEEDED)
        async with aclosing(domain.client.search(query)) as found:
            below = [entry async for entry in found]
        for entry in below:
            if entry.guid is not None:
                await self._take(domain.reader, _kind(entry), entry.guid, pending)

    def _unmade(self, guids: Set[Guid]) -> set[ObjectType | None]:
        """The types of those objects that show a value of which no object can be made."""
        return {self._noted[guid].kind for guid in guids & self._noted.keys()}

    async def _complete(
        self, forest: MirroredForest, pending: _Pending, unmade: Set[ObjectType | None]
    ) -> None:
        """Adds objects whose entries change without a number when another one does.

        That one may show enough for them even if it is ``unmade``: a gate with a bad descriptor.
        """
        kinds = {*unmade, *(kind for kind, _ in pending.objects)}
        if pending.removed:
            for guid in await asyncio.to_thread(self._referrers, pending.removed):
                if (ObjectType.MACHINE, guid) not in pending.objects:
                    await self._look_at(forest, guid, pending)
        if pending.removed or kinds & _TOPOLOGY:
            async with aclosing(forest.estate.objects(_SHARED)) as found:
                async for obj in found:
                    pending.add(obj)
                    pending.removed.discard(obj.id)

    def _referrers(self, gone: set[Guid]) -> set[Guid]:
        with self._store.read() as view:
            return machines_that_name(view, gone) - gone

    # --- deletions that the account does not see --------------------------------------------------

    async def _missing(self, forest: MirroredForest) -> set[Guid]:
        """Lists all identifiers: those of the store that are not among them are deleted."""
        began = monotonic()
        present = set[Guid]()
        places = [(each.client, each.reader.forest.domain) for each in forest.domains]
        first = forest.domains[0]
        for client, context in [*places, (first.client, first.reader.forest.configuration)]:
            query = LdapQuery(str(context), filter=_ALL_KINDS, attributes=("objectGUID",))
            async with aclosing(client.search(query)) as found:
                async for entry in found:
                    present |= {Guid(raw) for raw in entry.values("objectGUID")}
        gone = await self._confirmed(forest, await asyncio.to_thread(self._known) - present)
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
        objects: Sequence[DirectoryObject],
        removed: Iterable[Guid],
        lacking: Mapping[Guid, LeftOut] | None = None,
        *,
        server: ServerIdentity,
        result: MirrorRound,
        comparison: MirrorComparison | None = None,
    ) -> list[DirectoryObject]:
        """Writes one transaction; returns the objects that the store did not take.

        The last one of a round has what is ``lacking`` beside these, and keeps the position.
        """
        written = {obj.id for obj in objects}
        before = {guid: item for guid, item in result.left_out.items() if guid not in written}
        cursor = result.cursor
        with self._store.write() as tx:
            writer = MirrorWriter(tx, self._owner, server.host, comparison)
            writer.remove_all(removed)
            writer.put_all(objects)
            left_out = {**(lacking or {}), **before, **writer.counts.left_out}
            if lacking is not None:
                if comparison is not None:
                    cursor = replace(cursor, differed=len(comparison.found))
                writer.finish(cursor, left_out)
        if self._after_commit is not None:
            self._after_commit()
        result.cursor, result.left_out = cursor, left_out
        result.counts.add(writer.counts)
        result.differences = [] if comparison is None else comparison.found
        return [obj for obj in objects if obj.id in left_out and not left_out[obj.id].is_held]


_ALL_KINDS = Or(
    (
        *(Equality("objectClass", LDAP_CLASSES[kind].encode()) for kind in _KINDS),
        Equality("objectClass", b"user"),
    )
)


def _kind(entry: LdapEntry) -> ObjectType | None:
    """The type of an entry; None for what is no object, such as a user without certificates."""
    found = next((kind for kind in _KINDS if entry.is_of(LDAP_CLASSES[kind])), None)
    if found is not None or not entry.is_of("user") or entry.is_of("computer"):
        return found
    return ObjectType.USER if is_certified(entry) else None


def _is_free(view: View, item: LeftOut, touched: set[Guid]) -> bool:
    """Returns whether nobody has the name of an object, or one that changes now."""
    if item.reason is not LeftOutReason.NAME or item.kind is None:
        return False
    holder = view.find(item.kind, item.name)
    return holder is None or holder.id in touched or holder.value(PropId.Q_QMID) in touched


async def _batches(
    estate: EstateReader, kinds: tuple[ObjectType, ...]
) -> AsyncIterator[list[DirectoryObject]]:
    batch: list[DirectoryObject] = []
    async with aclosing(estate.objects(kinds)) as found:
        async for obj in found:
            batch += kept_objects(obj)
            if len(batch) >= _BATCH:
                yield batch
                batch = []
    yield batch
