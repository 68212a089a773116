"""Retention: history begins at a snapshot, and nothing goes before all of it is archived."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mqis import places
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.errors import StorageError
from mqis.storage.archive import Archiver, archiver
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import segments, snapshots
from mqis.storage.journal.journal_reader import records
from mqis.storage.journal.keeping import Keeper, retain
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState

SERVER = Guid(b"s" * 16)


def happen(store: MemoryStore, times: int) -> None:
    with store.write() as tx:
        for number in range(times):
            tx.append(JournalRecord(number, RecordKind.CHANGE, RecordState.LOCAL))


@pytest.mark.req("SEC-13-03")
def test_what_is_archived_stays_while_an_older_file_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive fails at the second segment, whose start is a snapshot that is archived."""
    directory, store = tmp_path / "journal", MemoryStore()
    with closing(Journal(directory, "PSC1", SERVER)) as journal:
        appender = Appender(store, journal)
        for _ in range(4):
            appender.snapshot()
            happen(store, 5)
            appender.flush()
        made = Archiver(directory, tmp_path / "archive", SERVER)
        keeper = Keeper(store, journal, every=100, keep=1, is_archived=made.is_archived)
        with monkeypatch.context() as patched:

            def refusing(source: Path, place: Path) -> None:
                if source.name == "segment-0000000002.mqj":
                    raise StorageError("the share is full")
                places.put_at(source, place)

            patched.setattr(archiver, "put_at", refusing)
            with pytest.raises(StorageError, match="the share is full"):
                made.step()
        keeper.prune()
        assert list(segments(directory)) == [2, 3, 4]
        assert list(snapshots(directory)) == [5, 10, 15], "segment 2 begins at snapshot 5"
        assert not check_journal(directory).faults
        made.step()
        keeper.prune()
    assert list(segments(directory)) == [4]
    assert list(snapshots(directory)) == [15]


def test_history_begins_at_a_snapshot_not_at_a_segment_in_between(tmp_path: Path) -> None:
    """Several segments between two snapshots, and none behind the newest: the check is content."""
    store = MemoryStore()
    with store.write() as tx:
        tx.put_partition(Partition(ENTERPRISE_PARTITION, "PSC1"))
    with closing(Journal(tmp_path, "PSC1", SERVER, segment_bytes=600)) as journal:
        keeper = Keeper(store, journal, every=10, keep=1)
        keeper.flush()
        for _ in range(2):
            happen(store, 10)
            keeper.flush()
        assert list(snapshots(tmp_path)) == [10, 20]
        assert [entry.lsn for entry in records(tmp_path)] == list(range(11, 21))
        assert not check_journal(tmp_path).faults
        happen(store, 1)
        keeper.flush()  # the segment behind the newest snapshot has begun
        assert list(snapshots(tmp_path)) == [20]
        assert [entry.lsn for entry in records(tmp_path)] == [21]
        assert not check_journal(tmp_path).faults


def test_a_segment_without_records_is_deleted_with_the_others(tmp_path: Path) -> None:
    """A crash between its header and its first record; the next one has the same first number."""
    store = MemoryStore()
    with closing(Journal(tmp_path, "PSC1", SERVER)) as journal:
        happen(store, 2)
        Appender(store, journal).flush()
        journal.seal()
        journal._begin(3)
        journal.seal()
        appender = Appender(store, journal)
        for _ in range(2):
            happen(store, 2)
            appender.snapshot()
        happen(store, 1)
        appender.flush()
    assert list(segments(tmp_path)) == [1, 2, 3, 4, 5]
    retain(tmp_path, 1)
    assert list(segments(tmp_path)) == [5]
