"""The history of every authority's commits; checks replicas against it.

A version is the state of an object under one sequence number of its partition. An authority uses
each number once. A replica that has a number must have the version that the authority committed
under it, property by property. So a lost or misplaced change is detected as soon as it does harm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    NAME_PROPERTY,
    DirectoryObject,
    Partition,
    PurgeState,
)
from mqis.protocol.ports import Change, View
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.convergence import HeldObject
from mqis.protocol.replication.server_identity import Server
from mqis.protocol.replication.settings import DEFAULTS
from mqis.sim.run_trace import Violation
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.seqnum import SequenceNumber

_MIN = SequenceNumber.MIN
_FIRST = _MIN.increment()
_PURGED = "nothing purged that someone needs"
_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Version:
    """The state of an object under one number; ``held`` is None if it was deleted."""

    id: Guid
    seq: SequenceNumber
    held: HeldObject | None

    @classmethod
    def of(cls, change: Change) -> Version:
        held = HeldObject.of(change) if isinstance(change, DirectoryObject) else None
        return cls(change.id, change.seq, held)

    def __str__(self) -> str:
        what = "deleted" if self.held is None else self.held.type.label
        return f"{what} {self.id} at {self.seq.value}"


@dataclass(frozen=True, slots=True)
class Made:
    """A version that an authority has just made, and the version that it replaces."""

    partition: Guid
    version: Version
    #: The object's previous version.
    replaced: Version | None
    #: The object was like this under an earlier number.
    seen_before: bool = False


@dataclass(slots=True)
class PartitionHistory:
    """All versions in one partition."""

    versions: dict[SequenceNumber, Version] = field(default_factory=dict)
    #: The last version of each object.
    last: dict[Guid, Version] = field(default_factory=dict)
    high: SequenceNumber = _MIN
    #: Deletions that a lying authority announced of objects that are not its own.
    lies: set[SequenceNumber] = field(default_factory=set)
    #: The number and content that the authority had after it was last restored: what it held, by
    #: number. Copies with lower numbers may have changes that were lost.
    base_seq: SequenceNumber = _MIN
    base: dict[Guid, SequenceNumber] = field(default_factory=dict)

    def at(self, seq: SequenceNumber) -> dict[Guid, Version]:
        """The objects of the partition as they were under one number, which is not below the
        base."""
        found = {id_: self.versions[number] for id_, number in self.base.items()}
        for number, version in self.versions.items():
            if self.base_seq < number <= seq:
                if version.held is not None:
                    found[version.id] = version
                else:
                    found.pop(version.id, None)
        return found

    def has_seen(self, version: Version) -> bool:
        """Returns whether the object has been like this under an earlier number."""
        return any(
            old.id == version.id and old.held == version.held and old.seq < version.seq
            for old in self.versions.values()
        )


class NumberHistory:
    """The history of all partitions, and the progress of each server.

    A server is observed within its transactions; ``keep`` follows a commit, ``drop`` a rollback.
    """

    def __init__(self, count: Callable[[str], None] = lambda kind: None) -> None:
        self._count = count
        self.partitions: dict[Guid, PartitionHistory] = {}
        #: The highest number that each server has ever had of each partition. A server that was
        #: made again under its name has another site.
        self.reached: dict[tuple[str, Guid, Guid], SequenceNumber] = {}
        #: The number up to which each authority has purged tombstones.
        self.purged: dict[Guid, SequenceNumber] = {}
        #: The replicas that the last observed operation moved, with their state before.
        self.moved: list[tuple[Partition | None, Partition]] = []
        #: Versions made since ``World`` last took them from here.
        self.fresh: list[Made] = []
        self._seen: dict[tuple[str, Guid], Partition] = {}
        #: A server's partitions when it was last observed: most operations change none.
        self._listed: dict[str, list[Partition]] = {}
        self._undo: list[Callable[[], object]] = []

    def of(self, partition: Guid) -> PartitionHistory:
        return self.partitions.setdefault(partition, PartitionHistory())

    def seen(self, server: str, partition: Guid) -> Partition | None:
        """The state of a partition at a server when it was last observed."""
        return self._seen.get((server, partition))

    def forget(self, server: str) -> None:
        """Forgets a server's progress, because it gets an older disk."""
        for key in [key for key in self._seen if key[0] == server]:
            del self._seen[key]
        self._listed.pop(server, None)

    def keep(self) -> None:
        self._undo.clear()

    def drop(self) -> None:
        while self._undo:
            self._undo.pop()()

    def rebase(self, partition: Guid, view: View) -> None:
        """Takes a restored authority's content as the truth: the rest was lost with its disk."""
        known = self.of(partition)
        changes = list(view.changes(partition, _MIN))
        known.last = {change.id: Version.of(change) for change in changes}
        state = view.partition(partition)
        known.base_seq = _MIN if state is None else state.last_seq
        known.base = {
            change.id: change.seq for change in changes if isinstance(change, DirectoryObject)
        }

    def lied(self, change: DirectoryChange) -> None:
        """Records a deletion that an authority announced of an object that is not its own."""
        assert change.guid is not None
        known = self.of(change.partition)
        if change.seq <= known.high:
            raise ValueError(f"number {change.seq.value} was given out before, it is no new lie")
        known.versions[change.seq] = Version(change.guid, change.seq, None)
        known.lies.add(change.seq)
        known.high = max(known.high, change.seq)

    # --- observing --------------------------------------------------------------------------------

    def observe(self, view: View, me: Server) -> bool:
        """Records and checks what an operation changed in a store; returns whether it did any."""
        self.moved = []
        listed = view.partitions()
        known = self._listed.get(me.name, [])
        if listed == known:
            return False
        self._put(self._listed, me.name, listed)
        news, enterprise = False, self._seen.get((me.name, ENTERPRISE_PARTITION))
        for gone in {state.id for state in known} - {state.id for state in listed}:
            # Replicas of a deleted site are removed; if the site returns, they start from nothing.
            self._remove(self._seen, (me.name, gone))
        for state in listed:
            key = me.name, state.id
            before = self._seen.get(key)
            if before == state:
                continue
            if before is not None and _is_made_again(view, before, state, enterprise):
                self._remove(self._seen, key)
                before = None
            news = True
            self.moved.append((before, state))
            self._note_purge(view, me, state)
            if before is not None:
                self._count_step(before, state)
                _check_step(me, before, state)
                self._check_purge(view, me, before, state)
            self._put(self._seen, key, state)
            self._observe_partition(view, me, state, before)
            where = me.name, me.site, state.id
            self._put(self.reached, where, max(self.reached.get(where, _MIN), state.last_seq))
        return news

    def alive(self, object_type: ObjectType, prefix: str) -> bool:
        """Returns whether some authority has an object whose name begins with ``prefix``."""
        return any(
            version.held is not None
            and version.held.type is object_type
            and str(version.held.content[NAME_PROPERTY[object_type]].value).startswith(prefix)
            for known in self.partitions.values()
            for version in known.last.values()
        )

    def _count_step(self, before: Partition, now: Partition) -> None:
        if now.purged_seq > before.purged_seq and now.purge_state is PurgeState.NORMAL:
            self._count("purge")
        if now.purge_state is not before.purge_state:
            done = now.purge_state is PurgeState.NORMAL
            self._count("sync0 complete" if done else "sync0")

    def _note_purge(self, view: View, me: Server, now: Partition) -> None:
        if now.purged_seq > self.purged.get(now.id, _MIN) and owns(view, me, now.id):
            self._put(self.purged, now.id, now.purged_seq)

    def _check_purge(self, view: View, me: Server, before: Partition, now: Partition) -> None:
        """Checks that an authority purges only what every PSC has had, and a replica only what its
        authority has purged."""
        if now.purged_seq <= before.purged_seq:
            return
        if not owns(view, me, now.id):
            if now.purged_seq == now.last_seq:
                return  # it has no tombstones, and makes whoever asks it resynchronise
            if now.purged_seq > self.purged.get(now.id, _MIN):
                raise Violation(_PURGED, f"{me.name} goes ahead of the authority in {now.id}")
            return
        if now.purged_seq.value >= before.last_seq.value + DEFAULTS.restore_jump:
            return  # a restored authority makes all replicas resynchronise
        for other in view.partitions():
            has_other_owner = other.id and other.owner and not me.is_called(other.owner)
            where = other.owner, other.id, now.id
            if has_other_owner and self.reached.get(where, _MIN) < now.purged_seq:
                raise Violation(
                    _PURGED,
                    f"{me.name} forgets up to {now.purged_seq.value}, "
                    f"and {other.owner} was never there",
                )

    def _put(self, target: dict[_K, _V], key: _K, value: _V) -> None:
        if key in target:
            old = target[key]
            self._undo.append(lambda: target.__setitem__(key, old))
        else:
            self._undo.append(lambda: target.pop(key))
        target[key] = value

    def _remove(self, target: dict[_K, _V], key: _K) -> None:
        if key in target:
            old = target.pop(key)
            self._undo.append(lambda: target.__setitem__(key, old))

    def _observe_partition(
        self, view: View, me: Server, state: Partition, before: Partition | None
    ) -> None:
        own = owns(view, me, state.id)
        after = _MIN if before is None or state.last_seq < before.last_seq else before.last_seq
        for change in view.changes(state.id, after):
            if change.seq > state.last_seq:
                raise Violation(
                    "numbers rise", f"{me.name} has {change.seq.value} above {state.last_seq.value}"
                )
            version = Version.of(change)
            self._check(me, state, version, own or _introduces(me, state, version))

    def _check(self, me: Server, state: Partition, version: Version, own: bool) -> None:
        known = self.of(state.id)
        true = known.versions.get(version.seq)
        if true is not None:
            if not _is_introduced_again(state, version, known.last.get(version.id)):
                _check_same(me, true, version)
        elif not own:
            raise Violation("only the authority's", f"{me.name} has {version}, which nobody made")
        elif version.seq <= known.high:
            raise Violation(
                "numbers rise",
                f"{me.name} made {version} when {known.high.value} was given out already",
            )
        else:
            self._put(known.versions, version.seq, version)
            replaced = known.last.get(version.id)
            self._put(known.last, version.id, version)
            self.fresh.append(Made(state.id, version, replaced, known.has_seen(version)))
            high, known.high = known.high, version.seq
            self._undo.append(lambda: setattr(known, "high", high))


def _introduces(me: Server, state: Partition, version: Version) -> bool:
    """True for the machine of a new site's PSC, which the PEC creates in the site's partition."""
    return me.is_pec and _is_of_owner(state, version)


def _is_introduced_again(state: Partition, version: Version, last: Version | None) -> bool:
    """True for that machine in an undeleted site, as it was when the site was deleted.

    It has the first number again, until the PSC tells its own: all that it has changed since has
    higher ones.
    """
    if version.seq != _FIRST or last is None or not _is_of_owner(state, version):
        return False
    return version.held == last.held


def _is_of_owner(state: Partition, version: Version) -> bool:
    if version.held is None or version.held.type is not ObjectType.MACHINE:
        return False
    return version.held.content[PropId.QM_PATHNAME].value == state.owner


def _check_same(me: Server, true: Version, seen: Version) -> None:
    if true.id != seen.id or (true.held is None) != (seen.held is None):
        raise Violation("one change for a number", f"{me.name} has {seen}, the authority {true}")
    if true.held is None or seen.held is None or true.held == seen.held:
        return
    wrong = sorted(
        propid for propid, value in true.held.content.items() if seen.held.content[propid] != value
    )
    raise Violation("replicas equal", f"{me.name} has {seen} with other values of {wrong}")


def _is_made_again(view: View, before: Partition, now: Partition, known: Partition | None) -> bool:
    """Returns whether one operation removed a replica and began it anew: its site came back.

    ``known`` is the enterprise's partition before the operation.
    """
    if now.last_seq >= before.last_seq or known is None:
        return False
    site = view.get(ObjectType.SITE, now.id)
    return site is not None and site.seq > known.last_seq


def _check_step(me: Server, before: Partition, now: Partition) -> None:
    """Checks that a replica's numbers only rise, except in a full resynchronisation.

    That ends with the numbers of the server that answered, which may be behind: a PSC that was
    restored, or one that has deleted the site meanwhile.
    """
    if now.last_seq < before.last_seq and now.purge_state is PurgeState.NORMAL:
        raise Violation(
            "numbers rise",
            f"{me.name} goes back from {before.last_seq.value} to {now.last_seq.value} in {now.id}",
        )
    if now.purged_seq < before.purged_seq and before.purge_state is PurgeState.NORMAL:
        raise Violation("numbers rise", f"{me.name} has purged less than before in {now.id}")
