"""Group commit on every store: what a task is told is what the store holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, Transaction
from mqis.runtime.writer import MAX_BATCH, GroupCommitWriter
from mqis.storage.sql_store import SqlTransaction
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber
from tests.builders import SITE, partition, queue, tombstone, user
from tests.failing_store import FailingStore
from tests.plugins.stores import Database
from tests.waiting import DEADLINE_S, in_time

QUEUE = ObjectType.QUEUE
Operation = Callable[[Transaction], int]


class NoError(Exception):
    """The error that an operation raises when it refuses."""


def take_number(transaction: Transaction) -> int:
    """As a directory change does: the next number of the partition, and a change that bears it."""
    last = (transaction.partition(SITE) or partition(last_seq=0)).last_seq.increment()
    transaction.put_partition(partition(last_seq=last.value))
    transaction.bury(tombstone(last.value, seq=last.value))
    return last.value


def refuse(transaction: Transaction) -> int:
    take_number(transaction)
    raise NoError("no")


def collide(transaction: Transaction) -> int:
    """Fails inside the database, not in our own code."""
    transaction.insert(queue(1, "taken"))
    transaction.insert(queue(2, "TAKEN"))
    return take_number(transaction)


def changes(store: Store) -> list[int]:
    with store.read() as view:
        return [change.seq.value for change in view.changes(SITE, SequenceNumber.MIN)]


def last_number(store: Store) -> int:
    with store.read() as view:
        found = view.partition(SITE)
        return 0 if found is None else found.last_seq.value


class Gate:
    """An operation that keeps the writer busy, so that what is submitted meanwhile gathers."""

    def __init__(self) -> None:
        self.running, self.opened = Event(), Event()

    def __call__(self, _transaction: Transaction) -> None:
        self.running.set()
        assert self.opened.wait(DEADLINE_S)

    async def closed(self, writer: GroupCommitWriter) -> asyncio.Task[None]:
        task = asyncio.create_task(writer.submit(self))
        await asyncio.to_thread(self.running.wait, DEADLINE_S)
        return task


async def gathered(
    writer: GroupCommitWriter, *operations: Callable[[Transaction], int]
) -> list[int | BaseException]:
    """The outcomes of operations that share one transaction."""
    gate, before = Gate(), writer.commits
    first = await gate.closed(writer)
    tasks = [asyncio.create_task(writer.submit(operation)) for operation in operations]
    await asyncio.sleep(0)
    gate.opened.set()
    await first
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert writer.commits == before + 2  # the gate's own, and one for all of them
    return outcomes


# --- results and errors ---------------------------------------------------------------------------


async def submit_one_by_one(store: Store) -> None:
    writer = GroupCommitWriter(store)
    assert await writer.submit(take_number) == 1
    assert changes(store) == [1]  # durable and visible when submit returns
    with pytest.raises(NoError, match="no"):
        await writer.submit(refuse)
    with pytest.raises(StorageError):
        await writer.submit(collide)
    assert await writer.submit(take_number) == 2
    assert await writer.submit(lambda t: t.count(QUEUE)) == 0
    await writer.close()
    assert changes(store) == [1, 2]
    assert (writer.flush_seconds.count, writer.batch_sizes.count) == (5, 5)
    assert (writer.batch_sizes.total, writer.waiting, writer.failing) == (5, 0, False)


def test_results_and_errors_reach_their_tasks(store: Store) -> None:
    asyncio.run(submit_one_by_one(store))


def test_a_failing_operation_does_not_disturb_its_group(store: Store) -> None:
    async def run() -> list[int | BaseException]:
        writer = GroupCommitWriter(store)
        operations = (take_number, refuse, take_number, collide, refuse, take_number)
        outcomes = await gathered(writer, *operations)
        await writer.close()
        return outcomes

    outcomes = asyncio.run(run())
    kinds = [o if isinstance(o, int) else type(o) for o in outcomes]
    assert kinds == [1, NoError, 2, StorageError, NoError, 3]
    assert changes(store) == [1, 2, 3]
    assert last_number(store) == 3
    with store.read() as view:
        assert view.count(QUEUE) == 0


def test_stop_iteration_is_an_error_as_any_other(store: Store) -> None:
    """A future cannot carry it; the group must not wait forever for that."""

    def run_out(transaction: Transaction) -> int:
        next(transaction.objects(QUEUE))
        return 0

    async def run() -> list[int | BaseException]:
        writer = GroupCommitWriter(store)
        outcomes = await in_time(gathered(writer, run_out, take_number))
        await writer.close()
        return outcomes

    failed, number = asyncio.run(run())
    assert isinstance(failed, RuntimeError)
    assert isinstance(failed.__cause__, StopIteration)
    assert number == 1


def test_numbers_come_in_the_order_of_submission(store: Store) -> None:
    async def run() -> list[int]:
        writer = GroupCommitWriter(store)
        tasks = [asyncio.create_task(writer.submit(take_number)) for _ in range(200)]
        outcomes = await asyncio.gather(*tasks)
        await writer.close()
        return outcomes

    assert asyncio.run(run()) == list(range(1, 201))
    assert changes(store) == list(range(1, 201))


def test_concurrent_tasks_share_commits(store: Store) -> None:
    async def work(writer: GroupCommitWriter) -> None:
        for _ in range(10):
            await writer.submit(take_number)

    async def run() -> tuple[int, int]:
        writer = GroupCommitWriter(store)
        await asyncio.gather(*(work(writer) for _ in range(16)))
        await writer.close()
        return writer.commits, writer.operations

    commits, operations = asyncio.run(run())
    assert operations == 160
    assert commits < operations / 2
    assert last_number(store) == 160


def test_a_group_is_bounded(store: Store) -> None:
    async def run() -> int:
        writer = GroupCommitWriter(store)
        gate = Gate()
        first = await gate.closed(writer)
        tasks = [asyncio.create_task(writer.submit(take_number)) for _ in range(2 * MAX_BATCH)]
        await asyncio.sleep(0)
        gate.opened.set()
        await asyncio.gather(first, *tasks)
        await writer.close()
        return writer.commits

    assert asyncio.run(run()) == 3


def test_loops_of_two_threads(store: Store) -> None:
    async def work(writer: GroupCommitWriter) -> None:
        await asyncio.gather(*(writer.submit(take_number) for _ in range(20)))

    writer = GroupCommitWriter(store)
    threads = [Thread(target=lambda: asyncio.run(work(writer))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    asyncio.run(writer.close())
    assert last_number(store) == 40


# --- savepoints -----------------------------------------------------------------------------------


class Runs:
    """Operations that note each time that they run."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def of(self, name: str, operation: Operation) -> Operation:
        def noted(transaction: Transaction) -> int:
            self.names.append(name)
            return operation(transaction)

        return noted


def decline(transaction: Transaction) -> int:
    """Refuses as the directory does: it has read, and changed nothing."""
    transaction.partition(SITE)
    raise NoError("no")


def read_badly(transaction: Transaction) -> int:
    assert isinstance(transaction, SqlTransaction)
    transaction._run("SELECT nothing FROM nowhere")
    return 0


@pytest.fixture
def statements(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that transactions run."""
    seen: list[str] = []
    plain = SqlTransaction._counted

    def watched(self: SqlTransaction, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        seen.append(sql)
        return plain(self, sql, parameters)

    monkeypatch.setattr(SqlTransaction, "_counted", watched)
    return seen


def outcomes_of(database: Database, *operations: Operation) -> tuple[list[object], int]:
    """The outcomes of operations in one group, their errors by type, and the rollbacks."""

    async def run(store: Store) -> tuple[list[object], int]:
        writer = GroupCommitWriter(store)
        outcomes = await gathered(writer, *operations)
        await writer.close()
        assert writer.failures == 0
        return [o if isinstance(o, int) else type(o) for o in outcomes], writer.rollbacks

    with closing(database.open()) as store:
        return asyncio.run(run(store))


def test_a_group_that_refuses_early_needs_no_savepoint(
    database: Database, statements: list[str]
) -> None:
    runs = Runs()
    group = [runs.of(name, operation) for name, operation in (("a", take_number), ("b", decline))]
    group.append(runs.of("c", take_number))
    assert outcomes_of(database, *group) == ([1, NoError, 2], 0)
    assert runs.names == ["a", "b", "c"]
    assert not [sql for sql in statements if "SAVEPOINT" in sql]


@pytest.mark.parametrize("failing", [refuse, collide, read_badly])
def test_the_others_run_again_if_one_fails_after_a_change(
    database: Database, statements: list[str], failing: Operation
) -> None:
    """A statement that fails counts like a change: PostgreSQL goes on after a rollback only."""
    runs = Runs()
    named = {"a": take_number, "b": decline, "c": failing, "d": take_number, "e": refuse}
    error = NoError if failing is refuse else StorageError
    outcomes = outcomes_of(database, *(runs.of(*item) for item in named.items()))
    assert outcomes == ([1, NoError, error, 2, NoError], 1)
    assert "".join(runs.names) == "abcade"  # errors stand, and who got one does not run again
    assert statements.count("SAVEPOINT s1") == 3
    with closing(database.open()) as store:
        assert changes(store) == [1, 2]
        assert last_number(store) == 2


def test_a_failing_commit_is_a_rollback_too(store: Store) -> None:
    failing = FailingStore(store)

    async def run() -> None:
        writer = GroupCommitWriter(failing)
        failing.fail = True
        with pytest.raises(StorageError):
            await writer.submit(take_number)
        assert (writer.failures, writer.rollbacks) == (1, 1)
        await writer.close()

    asyncio.run(run())


# --- when the commit fails ------------------------------------------------------------------------


def test_a_failing_commit_fails_all_of_its_group(store: Store) -> None:
    failing = FailingStore(store)

    async def run() -> None:
        writer = GroupCommitWriter(failing)
        failing.fail = True
        tasks = [writer.submit(operation) for operation in (take_number, refuse, take_number)]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(o) for o in outcomes] == [StorageError, NoError, StorageError]
        assert changes(store) == []
        failing.fail = False
        assert await writer.submit(take_number) == 1
        await writer.close()

    asyncio.run(run())
    assert changes(store) == [1]


def test_a_full_disk_is_told_as_it_is(tmp_path: Path) -> None:
    """Of many operations some fit and some do not: told done is there, told failed is not."""

    def insert(number: int) -> Callable[[Transaction], int]:
        def operation(transaction: Transaction) -> int:
            size = 30_000 if number % 3 else 10
            transaction.insert(user(number, certificate=bytes(size)))
            return number

        return operation

    async def run(store: SqliteStore) -> set[int]:
        writer = GroupCommitWriter(store)
        tasks = []
        for number in range(1, 81):
            tasks.append(asyncio.create_task(writer.submit(insert(number))))
            if number % 10 == 0:
                await asyncio.sleep(0.01)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await writer.close()
        assert any(isinstance(outcome, StorageError) for outcome in outcomes)
        return {outcome for outcome in outcomes if isinstance(outcome, int)}

    path = tmp_path / "mqis.db"
    with closing(SqliteStore(path)) as store:
        (session,) = store._writers.idle
        session.run("PRAGMA max_page_count=120")
        done = asyncio.run(run(store))
    assert done
    with closing(SqliteStore(path)) as store, store.read() as view:
        assert {int.from_bytes(o.id.raw, "big") for o in view.objects(ObjectType.USER)} == done


# --- cancelling and closing -----------------------------------------------------------------------


def test_the_operation_of_a_cancelled_task_is_durable(store: Store) -> None:
    async def run() -> None:
        writer = GroupCommitWriter(store)
        gate = Gate()
        first = await gate.closed(writer)
        task = asyncio.create_task(writer.submit(take_number))
        other = asyncio.create_task(writer.submit(take_number))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.opened.set()
        await first
        assert await in_time(other) == 2
        await writer.close()

    asyncio.run(run())
    assert changes(store) == [1, 2]


def test_close_finishes_what_was_submitted(store: Store) -> None:
    async def run() -> list[int]:
        writer = GroupCommitWriter(store)
        tasks = [asyncio.create_task(writer.submit(take_number)) for _ in range(MAX_BATCH + 44)]
        await asyncio.sleep(0)
        await writer.close()
        assert last_number(store) == MAX_BATCH + 44
        return [await task for task in tasks]

    assert asyncio.run(run()) == list(range(1, MAX_BATCH + 45))


def test_submit_after_close_is_refused(store: Store) -> None:
    async def run() -> None:
        writer = GroupCommitWriter(store)
        await writer.submit(take_number)
        await writer.close()
        await writer.close()
        with pytest.raises(StorageError, match="closed for writing"):
            await writer.submit(take_number)

    asyncio.run(run())
    assert changes(store) == [1]


def test_a_loop_that_is_gone_does_not_stop_the_writer(store: Store) -> None:
    """Its operation is durable; only nobody is left to hear of it."""
    writer = GroupCommitWriter(store)
    gate = Gate()

    async def leave() -> None:
        await gate.closed(writer)
        waiting = asyncio.ensure_future(writer.submit(take_number))
        await asyncio.sleep(0)
        waiting.cancel()

    async def come() -> int:
        number = await writer.submit(take_number)
        await writer.close()
        return number

    asyncio.run(leave())
    gate.opened.set()
    assert asyncio.run(come()) == 2


def test_what_was_acknowledged_is_there_after_reopening(database: Database) -> None:
    async def run(store: Store) -> None:
        writer = GroupCommitWriter(store)
        await asyncio.gather(*(writer.submit(take_number) for _ in range(20)))
        await writer.close()

    with closing(database.open()) as store:
        asyncio.run(run(store))
    with closing(database.open()) as store:
        assert changes(store) == list(range(1, 21))


# --- for those who keep the order themselves ------------------------------------------------------


def test_callbacks_come_in_the_order_of_the_operations(store: Store) -> None:
    async def run() -> None:
        writer = GroupCommitWriter(store)
        order: list[int] = []
        futures = [writer.enqueue(take_number) for _ in range(600)]  # more than one group
        for future in futures:
            future.add_done_callback(lambda done: order.append(done.result()))
        assert await asyncio.gather(*futures) == list(range(1, 601))
        assert order == list(range(1, 601))
        await writer.close()
        with pytest.raises(StorageError, match="closed for writing"):
            writer.enqueue(take_number)

    asyncio.run(run())


def test_failed_commits_are_counted_before_the_next_operation(tmp_path: Path) -> None:
    class Failing(SqliteStore):
        fail = True

        @contextmanager
        def write(self) -> Iterator[Transaction]:
            with super().write() as transaction:
                yield transaction
                if self.fail:
                    raise StorageError("the disk is full")

    async def run(store: Failing) -> None:
        writer = GroupCommitWriter(store)
        with pytest.raises(StorageError, match="the disk is full"):
            await writer.submit(take_number)
        store.fail = False
        assert await writer.submit(lambda _transaction: writer.failures) == 1
        with pytest.raises(NoError):
            await writer.submit(refuse)
        assert writer.failures == 1, "an operation that says no is no failed commit"
        await writer.close()

    with closing(Failing(tmp_path / "d.db", create=True)) as store:
        asyncio.run(run(store))
