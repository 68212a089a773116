"""Two stores are given the same random operations and must never differ in anything visible."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Change, Store, Transaction, View
from mqis.storage.memory_store import MemoryStore
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber
from tests.builders import guid, machine, partition, queue, tombstone, user
from tests.plugins.stores import PostgresServer

# Few of each, so that operations meet: the same identifiers, names, owners, keys, partitions.
NUMBERS = range(1, 4)
OWNERS = [Guid.NULL, guid(0x2001), guid(0x2002)]
PARTITIONS = [guid(0x3001), guid(0x3002)]
NAMES = ["one", "ONE", "two", "drei\ud800"]
LABELS = ["", "x", "X", "y"]
TYPES = [ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.USER]
# Every key that one of these objects can have, whether or not one has it at the moment.
KEYS: dict[ObjectType, list[tuple[PropId, bytes]]] = {
    ObjectType.QUEUE: [(PropId.Q_LABEL, b"x"), (PropId.Q_LABEL, b"y")],
    ObjectType.MACHINE: [(PropId.QM_SITE_IDS, id_.raw) for id_ in PARTITIONS],
    ObjectType.USER: [(PropId.U_DIGEST, id_.raw) for id_ in OWNERS[1:]],
}

FAMILIES = ["acks", "replies", "purged", "appended"]
RECORD = JournalRecord(1, RecordKind.CHANGE, RecordState.LOCAL)

seqs = st.integers(0, 40)


@st.composite
def objects(draw: st.DrawFn) -> DirectoryObject:
    number, where = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(PARTITIONS))
    name, seq = draw(st.sampled_from(NAMES)), draw(seqs)
    match draw(st.sampled_from(TYPES)):
        case ObjectType.QUEUE:
            owner, label = draw(st.sampled_from(OWNERS)), draw(st.sampled_from(LABELS))
            return queue(number, name, machine=owner, label=label, partition=where, seq=seq)
        case ObjectType.MACHINE:
            sites = tuple(draw(st.lists(st.sampled_from(PARTITIONS), max_size=3)))
            return machine(number, name, sites=sites, partition=where, seq=seq)
        case _:
            digests = tuple(draw(st.lists(st.sampled_from(OWNERS), max_size=2)))
            return user(number, digests=digests, seq=seq)


@dataclass(frozen=True)
class Operation:
    """By name, so that a failing sequence can be read."""

    name: str
    obj: DirectoryObject
    which: int

    @property
    def key(self) -> bytes:
        return b"k" * (self.obj.seq.value % 3)

    def __call__(self, transaction: Transaction) -> None:
        held = transaction.get(self.obj.type, self.obj.id)
        match self.name:
            case "insert":
                transaction.insert(self.obj)
            case "update":
                transaction.update(held or self.obj, self.obj)
            case "delete":
                transaction.delete(held or self.obj)
            case "delete one that is there":
                found = [obj for kind in TYPES for obj in transaction.objects(kind)]
                transaction.delete(found[self.which % len(found)] if found else self.obj)
            case "bury":
                seq, where = self.obj.seq.value, PARTITIONS[self.which % 2]
                transaction.bury(tombstone(NUMBERS[self.which % 3], partition=where, seq=seq))
            case "unbury":
                where = PARTITIONS[self.which % 2]
                transaction.unbury(where, guid(NUMBERS[self.which % 3]))
            case "put partition":
                where = [Guid.NULL, *PARTITIONS][self.which % 3]
                transaction.put_partition(partition(where, last_seq=self.obj.seq.value))
            case "drop partition":
                transaction.drop_partition([Guid.NULL, *PARTITIONS][self.which % 3])
            case _:
                self._beside_objects(transaction)

    def _beside_objects(self, transaction: Transaction) -> None:
        match self.name:
            case "purge":
                count = transaction.purge(PARTITIONS[self.which % 2], self.obj.seq)
                transaction.put_state("purged", b"", bytes([count]))
            case "put state":
                transaction.put_state(FAMILIES[self.which % 2], self.key, self.obj.id.raw)
            case "drop state":
                transaction.drop_state(FAMILIES[self.which % 2], self.key)
            case "append":
                lsn = transaction.append(replace(RECORD, seq=self.obj.seq))
                transaction.put_state("appended", b"", lsn.to_bytes(8, "big"))
            case "trim outbox":
                transaction.trim_outbox(self.which)
            case _:
                raise AssertionError(self.name)


NAMED = ["insert", "insert", "update", "delete", "delete one that is there"]
NAMED += ["bury", "unbury", "put partition", "drop partition", "purge"]
NAMED += ["put state", "drop state", "append", "append", "trim outbox"]
operations = st.builds(Operation, st.sampled_from(NAMED), objects(), st.integers(0, 11))


def by_number(change: Change) -> tuple[int, str, int, bytes]:
    kind = change.type if isinstance(change, DirectoryObject) else change.object_type
    return change.seq.value, type(change).__name__, kind, change.id.raw


def everything(view: View) -> dict[object, object]:
    """All that a view shows, through every method that it has."""
    seen: dict[object, object] = {"partitions": view.partitions()}
    for kind in TYPES:
        seen["objects", kind] = list(view.objects(kind))
        seen["count", kind] = view.count(kind)
        seen["get", kind] = [view.get(kind, guid(number)) for number in NUMBERS]
        seen["find", kind] = [view.find(kind, name) for name in NAMES]
        seen["owned", kind] = [list(view.owned_by(kind, owner)) for owner in OWNERS + PARTITIONS]
        seen["having", kind] = [list(view.having(kind, *key)) for key in KEYS[kind]]
    for where in [Guid.NULL, *PARTITIONS]:
        changes = list(view.changes(where, SequenceNumber(3)))
        assert [c.seq for c in changes] == sorted(c.seq for c in changes)
        # Numbers are unique in a sound store; where they are not, the order is not promised.
        seen["changes", where] = sorted(changes, key=by_number)
        seen["partition", where] = view.partition(where)
    seen["states"] = [view.states(family) for family in FAMILIES]
    seen["state"] = [view.state(FAMILIES[0], b"k" * length) for length in range(3)]
    seen["outbox"] = [view.outbox(after, limit) for after, limit in [(0, 100), (2, 3), (5, 100)]]
    seen["tombstones"] = [view.tombstones(guid(number)) for number in NUMBERS]
    return seen


class UndoError(Exception):
    """Raised to roll back."""


class Twins(RuleBasedStateMachine):
    """A store to test beside the one in memory, both in the same transaction or in none."""

    def __init__(self, opener: Callable[[], tuple[Store, ExitStack]]) -> None:
        super().__init__()
        tested, self.cleanup = opener()
        self.stores: list[Store] = [MemoryStore(), tested]
        self.open: list[AbstractContextManager[Transaction]] = []
        self.transactions: list[Transaction] = []
        self.savepoints: list[list[AbstractContextManager[None]]] = []

    @initialize()
    def compare_at_the_start(self) -> None:
        self.same_for_readers()

    # --- transactions and savepoints

    @precondition(lambda self: not self.transactions)
    @rule()
    def begin(self) -> None:
        self.open = [store.write() for store in self.stores]
        self.transactions = [opened.__enter__() for opened in self.open]

    @precondition(lambda self: self.transactions and len(self.savepoints) < 3)
    @rule()
    def set_savepoint(self) -> None:
        self.savepoints.append([transaction.savepoint() for transaction in self.transactions])
        for savepoint in self.savepoints[-1]:
            savepoint.__enter__()

    @precondition(lambda self: self.savepoints)
    @rule(keep=st.booleans())
    def end_savepoint(self, keep: bool) -> None:
        for savepoint in self.savepoints.pop():
            self.end(savepoint, keep)

    @precondition(lambda self: self.transactions)
    @rule(keep=st.booleans())
    def end_transaction(self, keep: bool) -> None:
        while self.savepoints:
            self.end_savepoint(keep)
        for opened in self.open:
            self.end(opened, keep)
        self.open, self.transactions = [], []
        self.same_for_readers()

    def end(self, context: AbstractContextManager[object], keep: bool) -> None:
        if keep:
            context.__exit__(None, None, None)
        else:
            undo = UndoError()
            assert not context.__exit__(UndoError, undo, undo.__traceback__)

    # --- what a transaction can do

    @precondition(lambda self: self.transactions)
    @rule(operations=st.lists(operations, min_size=1, max_size=10))
    def operate(self, operations: list[Operation]) -> None:
        """Several before everything is compared, because comparing is what takes the time."""
        for operation in operations:
            self.both(operation)

    def both(self, operation: Operation) -> None:
        """Each in a savepoint, as the group commit does it; both succeed or both refuse."""
        refused = [False, False]
        for which, transaction in enumerate(self.transactions):
            try:
                with transaction.savepoint():
                    operation(transaction)
            except StorageError:
                refused[which] = True
        assert refused[0] == refused[1]

    # --- what must hold

    @invariant()
    def same_for_the_transaction(self) -> None:
        if self.transactions:
            memory, tested = map(everything, self.transactions)
            assert tested == memory

    def same_for_readers(self) -> None:
        """Outside transactions; that nothing shows earlier is in the contract tests."""
        with self.stores[0].read() as memory, self.stores[1].read() as tested:
            assert everything(tested) == everything(memory)

    def teardown(self) -> None:
        if self.transactions:
            self.end_transaction(keep=False)
        self.cleanup.close()


def drive(opener: Callable[[], tuple[Store, ExitStack]], max_examples: int) -> None:
    class Opened(Twins):
        def __init__(self) -> None:
            super().__init__(opener)

    limits = settings(max_examples=max_examples, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(Opened, settings=limits)


def test_sqlite_like_memory() -> None:
    def opener() -> tuple[Store, ExitStack]:
        cleanup = ExitStack()
        directory = cleanup.enter_context(tempfile.TemporaryDirectory())
        store = SqliteStore(Path(directory) / "mqis.db")
        cleanup.callback(store.close)
        return store, cleanup

    drive(opener, max_examples=30)


def test_postgres_like_memory(postgres_server: PostgresServer) -> None:
    store = postgres_server.new_schema().open()
    examples = count()

    def opener() -> tuple[Store, ExitStack]:
        """One store for all, emptied: a new schema each time would be most of the run."""
        if next(examples):
            with store.write() as transaction:
                for kind in TYPES:
                    for obj in list(transaction.objects(kind)):
                        transaction.delete(obj)
                run = transaction._run  # type: ignore[attr-defined]
                for table in ("tombstones", "partitions", "states", "outbox"):
                    run(f"DELETE FROM {table}")
                run("UPDATE outbox_last SET lsn=0")
                assert run("SELECT count(*) FROM lookup_keys") == [(0,)]
                assert run("SELECT count(*) FROM creators") == [(0,)]
        return store, ExitStack()

    drive(opener, max_examples=10)
    store.close()
