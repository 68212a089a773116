"""Snapshots that a server takes by itself, and what goes for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.errors import StorageError
from mqis.storage.journal import Journal
from mqis.storage.journal import appender as appender_module
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import segments, snapshot_name, snapshots
from mqis.storage.journal.journal_reader import Segment, records
from mqis.storage.journal.keeping import Keeper
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState

SERVER = Guid(b"s" * 16)


@contextmanager
def keeping(
    store: MemoryStore, directory: Path, *, every: int = 10, keep: int = 0
) -> Iterator[Keeper]:
    with closing(Journal(directory, "PSC1", SERVER)) as journal:
        yield Keeper(store, journal, every=every, keep=keep)


def found(store: MemoryStore) -> None:
    with store.write() as tx:
        tx.put_partition(Partition(ENTERPRISE_PARTITION, "PSC1"))


def happen(store: MemoryStore, times: int) -> None:
    with store.write() as tx:
        for number in range(times):
            tx.append(JournalRecord(number, RecordKind.CHANGE, RecordState.LOCAL))


def test_a_journal_begins_with_what_is_there(tmp_path: Path) -> None:
    store = MemoryStore()
    found(store)
    with keeping(store, tmp_path) as keeper:
        assert keeper.flush() == 0
        assert list(snapshots(tmp_path)) == [0]
        happen(store, 3)
        assert keeper.copy() == 3
        assert keeper.flush() == 0
    assert list(snapshots(tmp_path)) == [0]
    (segment,) = segments(tmp_path).values()
    assert Segment.load(segment).header.snapshot == snapshot_name(0)
    assert str(ENTERPRISE_PARTITION) in (tmp_path / snapshot_name(0)).read_text("ascii")
    assert [entry.lsn for entry in records(tmp_path)] == [1, 2, 3]
    assert [str(fault) for fault in check_journal(tmp_path).faults] == []


def test_a_new_server_has_nothing_to_begin_with(tmp_path: Path) -> None:
    store = MemoryStore()
    with keeping(store, tmp_path) as keeper:
        happen(store, 2)
        keeper.flush()
        assert not snapshots(tmp_path)
        found(store)
        keeper.flush()
        assert list(snapshots(tmp_path)) == [2]


def test_one_after_so_many_records_also_over_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    found(store)
    for _ in range(5):
        with keeping(store, tmp_path) as keeper:
            happen(store, 6)
            keeper.flush()
    assert list(snapshots(tmp_path)) == [6, 18, 30]
    assert [entry.lsn for entry in records(tmp_path)] == list(range(1, 31))


def test_what_lies_before_the_kept_ones_goes(tmp_path: Path) -> None:
    store = MemoryStore()
    found(store)
    with keeping(store, tmp_path, keep=2) as keeper:
        for _ in range(5):
            happen(store, 10)
            keeper.flush()
    assert list(snapshots(tmp_path)) == [40, 50]
    assert [entry.lsn for entry in records(tmp_path)] == list(range(41, 51))
    assert [str(fault) for fault in check_journal(tmp_path).faults] == []


def test_one_that_fails_is_taken_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise StorageError("no room left")

    store = MemoryStore()
    found(store)
    with keeping(store, tmp_path) as keeper:
        happen(store, 1)
        with monkeypatch.context() as patched:
            patched.setattr(appender_module, "write_snapshot", full)
            with pytest.raises(StorageError, match="no room"):
                keeper.flush()
        assert [entry.lsn for entry in records(tmp_path)] == [1]
        keeper.flush()
    assert list(snapshots(tmp_path)) == [1]


def test_others_may_not_read_a_snapshot(tmp_path: Path) -> None:
    store = MemoryStore()
    found(store)
    with keeping(store, tmp_path) as keeper:
        keeper.flush()
    (path,) = snapshots(tmp_path).values()
    assert path.stat().st_mode & 0o077 == 0
