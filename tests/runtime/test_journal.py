"""The thread between outbox and files: woken by the writer, not stopped by a full disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, Transaction
from mqis.runtime.journal_thread import JournalThread
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal.journal_reader import records
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from tests.waiting import DEADLINE_S, wait_until

RECORD = JournalRecord(0, RecordKind.CHANGE, RecordState.LOCAL)


def held(directory: Path) -> list[int]:
    return [entry.lsn for entry in records(directory)]


def waiting(store: Store) -> list[int]:
    with store.read() as view:
        return [lsn for lsn, _ in view.outbox(0, 1000)]


def append(transaction: Transaction) -> int:
    return transaction.append(RECORD)


def test_records_follow_their_commits(store: Store, tmp_path: Path) -> None:
    async def work() -> None:
        thread = JournalThread(appender, pause_s=0.01, flush_s=0.05)
        writer = GroupCommitWriter(store, thread.wake)
        try:
            lsns = await asyncio.gather(*(writer.submit(append) for _ in range(20)))
            assert sorted(lsns) == list(range(1, 21))
            await asyncio.to_thread(wait_until, lambda: held(tmp_path) == list(range(1, 21)))
            await asyncio.to_thread(wait_until, lambda: waiting(store) == [])
            await writer.submit(append)
        finally:
            await writer.close()
            await asyncio.to_thread(thread.close)
        assert thread.copied == 21

    with closing(Journal(tmp_path, "PSC1", Guid.NULL)) as journal:
        appender = Appender(store, journal)
        asyncio.run(work())
        assert held(tmp_path) == list(range(1, 22))
        assert waiting(store) == []
        assert journal.durable_lsn == 21


def test_an_operation_that_fails_wakes_nobody_of_its_own(tmp_path: Path) -> None:
    """But a commit of the group does, and a commit that fails does not."""
    woken = 0

    def wake() -> None:
        nonlocal woken
        woken += 1

    class Broken(MemoryStore):
        @contextmanager
        def write(self) -> Iterator[Transaction]:
            with super().write() as transaction:
                yield transaction
                raise StorageError("no room left")

    async def work(store: Store) -> None:
        writer = GroupCommitWriter(store, wake)
        try:
            await writer.submit(append)
        except StorageError:
            pass
        finally:
            await writer.close()

    asyncio.run(work(Broken()))
    assert woken == 0
    asyncio.run(work(MemoryStore()))
    assert woken == 1


def test_what_an_earlier_process_left_is_copied_at_the_start(tmp_path: Path) -> None:
    store = MemoryStore()
    with store.write() as transaction:
        transaction.append(RECORD)
    with closing(Journal(tmp_path, "PSC1", Guid.NULL)) as journal:
        thread = JournalThread(Appender(store, journal))
        wait_until(lambda: waiting(store) == [])
        thread.close()
    assert held(tmp_path) == [1]


class Failing:
    """An appender whose disk is full until told otherwise."""

    def __init__(self) -> None:
        self.full = True
        self.attempts = 0
        self.tried = Event()

    def copy(self) -> int:
        self.attempts += 1
        self.tried.set()
        if self.full:
            raise StorageError("no room left")
        return 1

    flush = copy


def test_it_goes_on_when_there_is_room_again() -> None:
    told: list[str | None] = []
    appender = Failing()
    thread = JournalThread(
        appender,
        lambda error: told.append(None if error is None else str(error)),
        pause_s=0.001,
        retry_s=0.01,
    )
    wait_until(lambda: appender.attempts >= 3)
    assert told == ["no room left"], "once, not at every attempt"
    assert thread.failed
    appender.full = False
    wait_until(lambda: told == ["no room left", None])
    assert not thread.failed
    before = appender.attempts
    thread.wake()
    wait_until(lambda: appender.attempts > before)
    thread.close()


def test_closing_does_not_wait_for_a_retry() -> None:
    appender = Failing()
    thread = JournalThread(appender, retry_s=1000.0)
    assert appender.tried.wait(DEADLINE_S)
    thread.close()
    assert appender.attempts >= 2, "it tries a last time"
