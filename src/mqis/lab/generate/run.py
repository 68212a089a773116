"""Makes the changes of a generated enterprise, and delivers them to all servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mqis.lab.generate.delivery import ChangeUnderWay, Delivery
from mqis.lab.generate.generated_history import ChangeHistory
from mqis.lab.generate.plan import GeneratePlan, PlannedServer
from mqis.lab.generate.planted_faults import (
    Duplicate,
    Gap,
    JournalDamage,
    PlantedEvidence,
    PlantedFault,
    PlantedHygiene,
    PlantedState,
)
from mqis.lab.generate.synchronizing import catch_up
from mqis.protocol.directory.objects import DirectoryObject, Partition, Scope
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.server_identity import Role
from mqis.wire.guid import Guid

#: 2024-03-01T08:00:00Z
_EPOCH_US = 1_709_280_000_000_000
#: Choices for the number of changes that are sent together.
_GATHERED = (1, 2, 5, 20)
#: The number of servers that are not away.
_AWAKE = 4
#: The clock of one server is a year ahead.
_AHEAD_US = 365 * 86_400 * 1_000_000

Progress = Callable[[int, int], None]


class GeneratorRun:
    """Makes the history of an enterprise and delivers its changes; plants nothing yet."""

    def __init__(self, plan: GeneratePlan, tx: Transaction, directory: Path) -> None:
        self.plan = plan
        self.tx = tx
        self.directory = directory
        self.history = ChangeHistory(plan, tx)
        self.random = self.history.random
        journals = directory / "journals"
        self.delivery = Delivery(self.history.members, journals, self.random, self.history.keys)
        self.result = Generated(plan, self.history.members)
        self.now_us = _EPOCH_US
        #: Every so many changes the servers seal their segments.
        self._sealed_every = plan.changes // plan.segments + 1
        self._waiting: dict[Guid, list[ChangeUnderWay]] = {}
        self.overrides: dict[tuple[str, Guid], PlantedState] = {}
        self.backups = [m.name for m in self.history.members if m.role is Role.BSC]
        #: The server whose journal is damaged, so that missing records prove nothing.
        self.damaged = self.backups[-1] if self.backups and plan.faults else ""
        #: The server whose export is damaged.
        self.garbled = self.backups[0] if self.backups else ""
        #: By server: an export that was made before the last changes.
        self.older: dict[str, str] = {}
        self.born: dict[Guid, int] = {}
        if plan.faults:
            self.delivery.ahead_us[self.history.members[1].name] = _AHEAD_US

    # --- changes without faults -------------------------------------------------------------------

    def history_of_changes(self, progress: Progress) -> None:
        self.tick()
        self.history.build()
        self.settle(50)
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
            self.tick()
            self.history.step()
            self.settle(self.random.choice(_GATHERED))
            if (number + 1) % self._sealed_every == 0:
                self.delivery.seal_all()
            if number % 1000 == 0:
                progress(number, self.plan.changes)
        self._flush()

    def tick(self) -> None:
        self.now_us = max(self.now_us, self.delivery.now_us) + self.random.randint(1000, 60_000)
        self.history.now_us = self.delivery.now_us = self.now_us

    def settle(self, at_most: int) -> None:
        """Records new changes, and sends those of a partition once there are ``at_most``."""
        for change in self.history.take():
            self.count(change)
            waiting = self._waiting.setdefault(change.obj.partition, [])
            waiting.append(self.delivery.made(change))
            if len(waiting) >= at_most:
                self._flush(change.obj.partition)

    def count(self, change: OwnChange) -> None:
        self.result.changes += 1
        if change.kind is ChangeKind.CREATE:
            self.born[change.obj.id] = change.obj.seq.value

    def _flush(self, partition: Guid | None = None) -> None:
        for id_ in [partition] if partition is not None else list(self._waiting):
            if batch := self._waiting.pop(id_, []):
                self.delivery.send(batch)

    def ordinary(self, partition: Guid) -> DirectoryObject:
        """Creates a queue and delivers it to all servers."""
        self.tick()
        queue = self.history.create_queue(scope=Scope.ENTERPRISE, site=partition)
        self.settle(1)
        return queue

    def state(self, partition: Guid) -> Partition:
        return next(state for state in self.tx.partitions() if state.id == partition)


# --- The result of generating: the enterprise, and everything that is planted in it ---------------


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
    #: Faults of the directory itself, which every complete copy shows.
    hygiene: list[PlantedHygiene] = field(default_factory=list)

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
            "hygiene": [asdict(fault) for fault in self.hygiene],
        }
