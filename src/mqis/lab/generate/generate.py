"""Carries out a plan: makes the history, its delivery, the faults, exports and manifest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from mqis.lab.generate.delivery import (
    EXPIRED_BECAUSE,
    REFUSED_BECAUSE,
    ChangeUnderWay,
    Delivery,
    DeliveryHop,
    Mishap,
)
from mqis.lab.generate.exports import Exports, replica_of
from mqis.lab.generate.faults import (
    DIFFERENCES,
    MISHAPS,
    Duplicate,
    Gap,
    JournalDamage,
    PlantedEvidence,
    PlantedFault,
    PlantedState,
)
from mqis.lab.generate.history import ChangeHistory
from mqis.lab.generate.plan import GenerateError, GeneratePlan, PlannedServer
from mqis.lab.generate.spoiling import (
    add_stranger,
    copy_journal,
    cut_export,
    damage_journal,
    garble_line,
    lost_segment,
    misname_export,
)
from mqis.lab.generate.synchronizing import ask_in_vain, catch_up
from mqis.protocol.directory.objects import DirectoryObject, Partition, Scope
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.changes import scope_of
from mqis.protocol.replication.convergence import Difference, copy_of, differences
from mqis.protocol.replication.server import Role
from mqis.storage.memory import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import props
from mqis.wire.seqnum import SequenceNumber

#: 2024-03-01T08:00:00Z
_EPOCH_US = 1_709_280_000_000_000
_REASONS = {"refused": REFUSED_BECAUSE, "expired": EXPIRED_BECAUSE}
#: Choices for the number of changes that are sent together.
_GATHERED = (1, 2, 5, 20)
#: The number of servers that are not away.
_AWAKE = 4
#: The clock of one server is a year ahead.
_AHEAD_US = 365 * 86_400 * 1_000_000
#: The number of changes after an early export.
_LATE_CHANGES = 2
#: The cause of an object that only one replica holds and no journal mentions.
_FOREIGN = "foreign"

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Generated:
    """The result: the enterprise, and everything that an audit has to find in it."""

    plan: GeneratePlan
    members: list[PlannedServer]
    changes: int = 0
    #: The number of answered sync requests.
    rounds: int = 0
    faults: list[PlantedFault] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    damage: list[JournalDamage] = field(default_factory=list)
    #: Faults of the journals and exports themselves.
    evidence: list[PlantedEvidence] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return {
            "plan": asdict(self.plan),
            "servers": [
                {"name": m.name, "site": str(m.site), "role": m.role.value, "psc": m.psc}
                for m in self.members
            ],
            "changes": self.changes,
            "rounds": self.rounds,
            "faults": [fault.as_json() for fault in self.faults],
            "gaps": [asdict(gap) for gap in self.gaps],
            "duplicates": [asdict(duplicate) for duplicate in self.duplicates],
            "damage": [asdict(damage) for damage in self.damage],
            "evidence": [asdict(finding) for finding in self.evidence],
        }


def generate(
    plan: GeneratePlan, directory: Path, progress: Progress = lambda done, total: None
) -> Generated:
    """Fills a new directory with ``journals``, ``exports`` and ``manifest.json``."""
    if directory.exists() and any(directory.iterdir()):
        raise GenerateError(f"{directory} is not empty; name a new directory")
    store = MemoryStore()
    with store.write() as tx:
        run = _Run(plan, tx, directory)
        try:
            run.history_of_changes(progress)
            if plan.faults:
                run.plant()
        finally:
            run.delivery.close()
        run.write_exports()
        if plan.faults:
            run.spoil()
    run.write_manifest()
    return run.result


class _Run:
    def __init__(self, plan: GeneratePlan, tx: Transaction, directory: Path) -> None:
        self.plan = plan
        self.tx = tx
        self.directory = directory
        self.history = ChangeHistory(plan, tx)
        self.random = self.history.random
        self.delivery = Delivery(self.history.members, directory / "journals", self.random)
        self.result = Generated(plan, self.history.members)
        self._now = _EPOCH_US
        self._waiting: dict[Guid, list[ChangeUnderWay]] = {}
        self._overrides: dict[tuple[str, Guid], PlantedState] = {}
        backups = [m.name for m in self.history.members if m.role is Role.BSC]
        #: The server whose journal is damaged, so that missing records prove nothing.
        self._damaged = backups[-1] if backups and plan.faults else ""
        #: The server whose export is damaged.
        self._garbled = backups[0] if backups else ""
        #: By server: an export that was made before the last changes.
        self._older: dict[str, str] = {}
        self._born: dict[Guid, int] = {}
        if plan.faults:
            self.delivery.ahead_us[self.history.members[1].name] = _AHEAD_US

    # --- changes without faults -------------------------------------------------------------------

    def history_of_changes(self, progress: Progress) -> None:
        self._tick()
        self.history.build()
        self._settle(50)
        apart, total = self.plan.apart, self.plan.changes
        if apart:
            self._flush()
            self.delivery.away = frozenset(m.name for m in self.history.members[_AWAKE:])
            self._step(range(apart), progress)
            self.delivery.away = frozenset()
            self.result.rounds = catch_up(self.delivery, self.tx)
        self._step(range(apart, total), progress)
        progress(total, total)

    def _step(self, numbers: range, progress: Progress) -> None:
        for number in numbers:
            self._tick()
            self.history.step()
            self._settle(self.random.choice(_GATHERED))
            if number % 1000 == 0:
                progress(number, self.plan.changes)
        self._flush()

    def _tick(self) -> None:
        self._now = max(self._now, self.delivery.now_us) + self.random.randint(1000, 60_000)
        self.history.now_us = self.delivery.now_us = self._now

    def _settle(self, at_most: int) -> None:
        """Records new changes, and sends those of a partition once there are ``at_most``."""
        for change in self.history.take():
            self._count(change)
            waiting = self._waiting.setdefault(change.obj.partition, [])
            waiting.append(self.delivery.made(change))
            if len(waiting) >= at_most:
                self._flush(change.obj.partition)

    def _count(self, change: OwnChange) -> None:
        self.result.changes += 1
        if change.kind is ChangeKind.CREATE:
            self._born[change.obj.id] = change.obj.seq.value

    def _flush(self, partition: Guid | None = None) -> None:
        for id_ in [partition] if partition is not None else list(self._waiting):
            if batch := self._waiting.pop(id_, []):
                self.delivery.send(batch)

    def _ordinary(self, partition: Guid) -> DirectoryObject:
        """Creates a queue and delivers it to all servers."""
        self._tick()
        queue = self.history.create_queue(scope=Scope.ENTERPRISE, site=partition)
        self._settle(1)
        return queue

    # --- the faults -------------------------------------------------------------------------------

    def plant(self) -> None:
        for number in range(self.plan.faults):
            for index, kind in enumerate(MISHAPS):
                what = "different" if kind == "corrupted" else DIFFERENCES[(number + index) % 3]
                self._plant(kind, what, self._hop())
            self._plant("lost", DIFFERENCES[number % 3], self._hop(self._damaged))
            self._duplicate()
            self._foreign()
        self._contradict()
        self._make_segments()

    def _hop(self, target: str = "") -> tuple[Guid, DeliveryHop]:
        """A random partition, and the last step of its path to ``target`` or a random server."""
        sites = sorted({m.site for m in self.history.members})
        names = [m.name for m in self.history.members if m.name != self._damaged]
        while True:
            partition = self.random.choice(sites)
            way = self.delivery.path(partition, target or self.random.choice(names))
            if way[-1].source != way[-1].target:
                return partition, way[-1]

    def _plant(self, kind: str, what: str, where: tuple[Guid, DeliveryHop]) -> None:
        partition, hop = where
        queue = self._ordinary(partition) if what != "missing" else None
        self._tick()
        after, before = self._faulty_change(what, partition, queue)
        (change,) = self.history.take()
        self._count(change)
        sent = self.delivery.made(change)
        self.delivery.send([sent], Mishap(kind, hop))
        reached = [hop.target] if kind == "corrupted" else self.delivery.below(hop.target)
        for server in reached:
            held = _corrupted(after) if kind == "corrupted" and after is not None else before
            self._overrides[server, sent.object_id] = PlantedState(held)
            certain = hop.target != self._damaged
            cause = kind if certain else "unknown"
            reason = _REASONS.get(kind, "") if certain else ""
            found = _difference(after, held)
            assert found.kind == what, (found, what)
            self.result.faults.append(
                PlantedFault(
                    server,
                    what,
                    cause,
                    found.type.label,
                    str(found.id),
                    str(partition),
                    sent.change.seq.value,
                    hop.source,
                    hop.target,
                    found.properties,
                    reason,
                )
            )
            if kind != "corrupted" and server != self._damaged:
                number = sent.change.seq.value
                self.result.gaps.append(Gap(server, str(partition), number, number))
        self._ordinary(partition)  # a later change, so that the missed number is a gap
        if kind == "lost" and hop.target != self._damaged:
            ask_in_vain(self.delivery, hop, self._state(partition))

    def _faulty_change(
        self, what: str, partition: Guid, queue: DirectoryObject | None
    ) -> tuple[DirectoryObject | None, DirectoryObject | None]:
        """Makes the change that a server misses, the object's last; returns it after and before."""
        if queue is None:
            made = self.history.create_queue(scope=Scope.ENTERPRISE, site=partition)
            self.history.queues.remove(made)
            return made, None
        if what == "extra":
            self.history.delete_queue(queue)
            return None, queue
        changed = self.history.update_queue(queue)
        self.history.queues.remove(changed)
        return changed, queue

    def _duplicate(self) -> None:
        partition, hop = self._hop()
        self._tick()
        made = self.history.create_queue(scope=Scope.ENTERPRISE, site=partition)
        (change,) = self.history.take()
        self._count(change)
        self.delivery.send([self.delivery.made(change)], Mishap("duplicated", hop))
        self.result.duplicates.append(Duplicate(hop.target, str(partition), made.seq.value))

    def _foreign(self) -> None:
        """Plants an object in a replica that its authority never made."""
        partition, hop = self._hop()
        like = next(q for q in self.history.queues if q.partition == partition)
        id_ = self.history.entropy.guid()
        name = f"{(like.path or '').partition(chr(92))[0]}\\stray{id_}"
        stray = DirectoryObject(
            like.type,
            id_,
            partition,
            SequenceNumber.MIN,
            props({**like.properties, PropId.Q_PATHNAME: name}),
        )
        self._overrides[hop.target, id_] = PlantedState(stray)
        self.result.faults.append(
            PlantedFault(
                hop.target,
                "extra",
                _FOREIGN,
                like.type.label,
                str(id_),
                str(partition),
                None,
                None,
                None,
            )
        )

    def _state(self, partition: Guid) -> Partition:
        return next(state for state in self.tx.partitions() if state.id == partition)

    # --- faults of the files ----------------------------------------------------------------------

    def _untouched(self, partition: Guid) -> DirectoryObject:
        """A queue of a partition that all servers hold as it is."""
        touched = {id_ for _, id_ in self._overrides}
        wanted = (q for q in self.history.queues if q.partition == partition)
        return next(q for q in wanted if q.id not in touched and scope_of(q) is Scope.ENTERPRISE)

    def _contradict(self) -> None:
        """Lets the export of an authority differ from its own journal and all replicas."""
        authority = self.history.members[0]
        self._ordinary(authority.site)
        queue = self._untouched(authority.site)
        wrong = _corrupted(queue)
        self._overrides[authority.name, queue.id] = PlantedState(wrong)
        found = _difference(queue, wrong)
        self.result.faults.append(
            PlantedFault(
                authority.name,
                "different",
                "authority_corrupted",
                queue.type.label,
                str(queue.id),
                str(queue.partition),
                queue.seq.value,
                None,
                None,
                found.properties,
                "its export contradicts its own journal",
            )
        )

    def _make_segments(self) -> None:
        """Divides the journal to damage; exports one server before the last changes."""
        sites = sorted({m.site for m in self.history.members})
        self.delivery.seal(self._damaged)
        self._ordinary(sites[0])
        self.delivery.seal(self._damaged)
        for site in sites:  # so that the segments left show the last number of each
            self._ordinary(site)
        self.delivery.seal(self._damaged)
        before = {s.id: s.last_seq.value for s in self.tx.partitions()}
        self._export_early()
        for state in self.tx.partitions():
            if state.last_seq.value > before[state.id]:
                span = before[state.id] + 1, state.last_seq.value
                self.result.evidence.append(
                    PlantedEvidence("missing_end", self._damaged, None, str(state.id), *span)
                )

    def _export_early(self) -> None:
        pscs = [m for m in self.history.members if m.role is not Role.BSC]
        member, partition = pscs[-1], pscs[0].site
        held = Exports(self.tx, self.history.members, self._overrides)
        self._older[member.name] = held.text(member, self.random)
        number = self._state(partition).last_seq.value
        hop = self.delivery.path(partition, member.name)[-1]
        for _ in range(_LATE_CHANGES):
            late = self._ordinary(partition)
            self.result.faults.append(
                PlantedFault(
                    member.name,
                    "missing",
                    "export_older",
                    late.type.label,
                    str(late.id),
                    str(partition),
                    late.seq.value,
                    hop.source,
                    hop.target,
                    (),
                    f"the export of {member.name} ends at change {number}",
                )
            )
        file = str(self.directory / "exports" / f"{member.name}.jsonl")
        self.result.evidence.append(PlantedEvidence("older_export", member.name, file))

    def write_exports(self) -> None:
        held = Exports(self.tx, self.history.members, self._overrides)
        held.write(self.directory / "exports", self.random, self._older)

    def spoil(self) -> None:
        """Removes, copies and damages files."""
        journals, exports = self.directory / "journals", self.directory / "exports"
        first, second = self.history.members[:2]
        found = self.result.evidence
        found.append(lost_segment(journals / self._damaged, self._damaged))
        self.result.damage += damage_journal(journals / self._damaged, self._damaged)
        found += copy_journal(journals, self._garbled)
        like, state = self._untouched(first.site), self._state(first.site)
        id_ = self.history.entropy.guid()
        found.append(add_stranger(journals, id_, like, state, self._now))
        found.append(misname_export(exports, first.name, second.name))
        found.append(PlantedEvidence("clock_ahead", second.name))
        self._damage_export(exports / f"{self._garbled}.jsonl")

    def _damage_export(self, path: Path) -> None:
        damage, objects = cut_export(path)
        lost = {obj.id for obj in objects}
        sites = sorted({m.site for m in self.history.members})
        garbled = next(q for q in map(self._untouched, sites) if q.id not in lost)
        self.result.damage += [damage, garble_line(path, garbled.id)]
        size = path.stat().st_size  # the same: a byte was replaced
        assert damage.offset == size
        for obj in (*objects, garbled):
            self._lose(obj)

    def _lose(self, obj: DirectoryObject) -> None:
        """An object of the damaged export cannot be read; that replaces any other fault of it."""
        server, label = self._garbled, str(obj.id)
        faults = self.result.faults
        self.result.faults = [f for f in faults if (f.server, f.id) != (server, label)]
        held = self.tx.get(obj.type, obj.id)
        elsewhere = self.delivery.members[server].site != obj.partition
        if held is None or (elsewhere and scope_of(held) is Scope.SITE):
            return
        hop = self.delivery.path(obj.partition, server)[-1]
        about = obj.type.label, label, str(obj.partition), self._born[obj.id]
        self.result.faults.append(
            PlantedFault(server, "missing", "export_damaged", *about, hop.source, hop.target)
        )

    def write_manifest(self) -> None:
        text = json.dumps(self.result.as_json(), indent=2)
        (self.directory / "manifest.json").write_text(text + "\n", encoding="ascii")


def _difference(after: DirectoryObject | None, held: DirectoryObject | None) -> Difference:
    """The difference between two states of an object, by the rule of ``convergence``."""
    authority = copy_of([after] if after is not None else [])
    replica = copy_of([replica_of(held)] if held is not None else [])
    (found,) = differences(authority, replica, same_site=True)
    return found


def _corrupted(obj: DirectoryObject) -> DirectoryObject:
    label = f"{obj.value(PropId.Q_LABEL)!s}?"
    return replace(obj, properties=props({**obj.properties, PropId.Q_LABEL: label}))
