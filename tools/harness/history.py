"""Computes the content that a store must have after its writers were killed; does no I/O.

Each task has at most one pending operation, and no two tasks touch the same queue. So after a kill
every queue is known exactly, except for one operation of each task, which may have been done or
not. The store itself shows which, because nothing can have followed it. From then on that is known
too, and so is the operation of each sequence number from the first to the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mqis.protocol.directory.objects import DeletedObject, DirectoryObject
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber
from tools.harness.storewriter import OPERATIONS, SITE, queue


@dataclass(frozen=True, slots=True)
class Content:
    """The whole content of a store."""

    last_seq: int
    live: Mapping[Guid, DirectoryObject]
    dead: Mapping[Guid, DeletedObject]

    @classmethod
    def of(cls, view: View) -> Content:
        partition = view.partition(SITE)
        changes = list(view.changes(SITE, SequenceNumber.MIN))
        return cls(
            0 if partition is None else partition.last_seq.value,
            {obj.id: obj for obj in view.objects(ObjectType.QUEUE)},
            {gone.id: gone for gone in changes if isinstance(gone, DeletedObject)},
        )

    def describe(self, id_: Guid) -> str:
        found = []
        if obj := self.live.get(id_):
            found.append(
                f"the queue at number {obj.seq.value}, label {obj.value(PropId.Q_LABEL)!r}"
            )
        if gone := self.dead.get(id_):
            found.append(f"a tombstone at number {gone.seq.value}")
        return " and ".join(found) or "neither the queue nor a tombstone"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An operation that a task was about to submit, from the worker's line."""

    task: int
    name: str
    id: Guid
    label: str
    after: int
    """The highest number that was acknowledged to any task when this was submitted."""

    def __str__(self) -> str:
        return f"{self.name} of queue {self.id} (round.task.step {self.label})"


@dataclass(frozen=True, slots=True)
class Version:
    """The result of the last operation on a queue."""

    attempt: Attempt
    seq: int

    @property
    def alive(self) -> bool:
        return self.attempt.name != "delete"


@dataclass(slots=True)
class History:
    """The operations on one store over all rounds, and their required results."""

    versions: dict[Guid, Version] = field(default_factory=dict)
    numbers: dict[int, Attempt] = field(default_factory=dict)
    pending: dict[int, Attempt] = field(default_factory=dict)
    acknowledged: int = 0
    faults: list[str] = field(default_factory=list)
    _highest: int = 0

    def hear(self, line: str) -> None:
        """Processes one line of the worker; ``open`` and ``opened`` do not affect the content."""
        verb, *words = line.split()
        if verb == "try":
            task, name, id_, label = words
            self._try(Attempt(int(task), name, Guid.parse(id_), label, self._highest))
        elif verb == "ack":
            task, name, id_, seq = words
            self._ack(int(task), name, Guid.parse(id_), int(seq))
        elif line not in ("open", "opened"):
            raise ValueError(f"{line!r} is not a line of the worker")

    def _try(self, attempt: Attempt) -> None:
        if attempt.task in self.pending or attempt.name not in OPERATIONS:
            raise ValueError(f"the worker cannot try {attempt} now")
        old = self.versions.get(attempt.id)
        if (old is not None and old.alive) != (attempt.name != "create"):
            self.faults.append(f"the worker found a store in which it could try {attempt}")
        self.pending[attempt.task] = attempt

    def _ack(self, task: int, name: str, id_: Guid, seq: int) -> None:
        attempt = self.pending.pop(task, None)
        if attempt is None or (attempt.name, attempt.id) != (name, id_):
            raise ValueError(f"task {task} had not tried the {name} of queue {id_}")
        self.acknowledged += 1
        self._highest = max(self._highest, seq)
        self._done(attempt, seq)

    def _done(self, attempt: Attempt, seq: int) -> None:
        if seq in self.numbers:
            self.faults.append(f"number {seq} was given to {self.numbers[seq]} and to {attempt}")
        if seq <= attempt.after:
            self.faults.append(
                f"number {seq} was given to {attempt}, which came after number {attempt.after}"
            )
        self.numbers[seq] = attempt
        self.versions[attempt.id] = Version(attempt, seq)

    def settle(self, content: Content) -> list[str]:
        """Describes everything that ``content``, read after a kill, lacks or has in excess."""
        for attempt in self.pending.values():
            seq = _seq_if_done(attempt, content)
            if seq is not None:
                self._done(attempt, seq)
        self.pending.clear()
        faults = [
            *self.faults,
            *(fault for version in self.versions.values() for fault in _check(version, content)),
            *self._unrequested(content),
            *self._number_faults(content),
        ]
        self.faults.clear()
        self._highest = max(self._highest, content.last_seq)
        return faults

    def _unrequested(self, content: Content) -> Iterator[str]:
        for id_ in (content.live.keys() | content.dead.keys()) - self.versions.keys():
            yield f"never requested: of queue {id_} the store holds {content.describe(id_)}"

    def _number_faults(self, content: Content) -> Iterator[str]:
        for seq in sorted(set(range(1, content.last_seq + 1)) - self.numbers.keys()):
            yield f"number {seq} was skipped: no operation got it"
        for seq in sorted(n for n in self.numbers if n > content.last_seq):
            yield (
                f"lost: the partition ends at number {content.last_seq}, "
                f"but number {seq} was given to {self.numbers[seq]}"
            )


def _seq_if_done(attempt: Attempt, content: Content) -> int | None:
    """The number of an unacknowledged operation if the store shows that it was done."""
    if attempt.name == "delete":
        gone = content.dead.get(attempt.id)
        return None if gone is None else gone.seq.value
    obj = content.live.get(attempt.id)
    done = obj is not None and obj.value(PropId.Q_LABEL) == attempt.label
    return obj.seq.value if obj is not None and done else None


def _check(version: Version, content: Content) -> Iterator[str]:
    attempt, obj = version.attempt, content.live.get(version.attempt.id)
    gone = content.dead.get(attempt.id)
    if version.alive:
        expected = queue(attempt.id, attempt.label, SequenceNumber(version.seq))
        right = obj == expected and gone is None
    else:
        right = obj is None and gone is not None and gone.seq.value == version.seq
    if not right:
        yield (
            f"lost: {attempt}, number {version.seq}; the store holds {content.describe(attempt.id)}"
        )
