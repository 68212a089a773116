"""From the outbox to the files: each record once, whatever happens in between."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.admin.transfer import export_store
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store
from mqis.storage.journal import Appender, Journal, copy
from mqis.storage.journal import appender as appender_module
from mqis.storage.journal import journal as journal_module
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.journal_reader import Segment, records
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.journal.index import read_index
from tests.builders import one_of_each, partition, queue, tombstone
from tests.plugins.stores import Database

SERVER = Guid(b"s" * 16)
RECORD = JournalRecord(0, RecordKind.CHANGE, RecordState.LOCAL, body=b"change")


def append(store: Store, *numbers: int) -> None:
    with store.write() as transaction:
        for number in numbers:
            transaction.append(replace(RECORD, time_us=number))


def waiting(store: Store) -> list[int]:
    with store.read() as view:
        return [lsn for lsn, _ in view.outbox(0, 10_000)]


def held(directory: Path) -> list[int]:
    """Each record is the one that the store gave that number."""
    found = list(records(directory))
    assert [entry.record.time_us for entry in found] == [entry.lsn for entry in found]
    return [entry.lsn for entry in found]


def opened(directory: Path, segment_bytes: int = 1 << 20) -> Journal:
    return Journal(directory, "PSC1", SERVER, segment_bytes=segment_bytes)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def journal(place: Path) -> Iterator[Journal]:
    with closing(opened(place)) as made:
        yield made


def test_records_move(store: Store, journal: Journal) -> None:
    appender = Appender(store, journal)
    append(store, 1, 2, 3)
    assert appender.copy() == 3
    assert waiting(store) == [1, 2, 3], "nothing goes before it is on disk"
    append(store, 4)
    assert appender.flush() == 1
    assert waiting(store) == []
    assert appender.flush() == 0
    append(store, 5)
    assert appender.copy() == 1
    assert held(journal.directory) == [1, 2, 3, 4, 5]


def test_more_than_a_batch(store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appender_module, "BATCH", 7)
    append(store, *range(1, 51))
    assert copy(store, journal) == 50
    assert held(journal.directory) == list(range(1, 51))
    assert waiting(store) == []


@pytest.mark.parametrize("segment_bytes", [600, 1 << 20])
def test_a_crash_before_the_trim(store: Store, place: Path, segment_bytes: int) -> None:
    """The journal has what the outbox still has; it is not added again."""
    append(store, *range(1, 11))
    with closing(opened(place, segment_bytes)) as journal:
        Appender(store, journal).copy()
    append(store, 11)
    with closing(opened(place, segment_bytes)) as journal:
        assert copy(store, journal) == 1
    assert waiting(store) == []
    assert held(place) == list(range(1, 12))


def test_a_crash_that_tore_the_end(store: Store, place: Path) -> None:
    append(store, 1, 2, 3)
    with closing(opened(place)) as journal:
        Appender(store, journal).copy()
    (path,) = segments(place).values()
    path.write_bytes(path.read_bytes()[:-5])
    with closing(opened(place)) as journal:
        assert copy(store, journal) == 1
    assert held(place) == [1, 2, 3]
    assert waiting(store) == []


def test_a_crash_that_left_a_hole(store: Store, place: Path) -> None:
    """A page in the middle of what was not flushed is missing, a later one is there."""
    append(store, 1)
    with closing(opened(place)) as journal:
        copy(store, journal)
        append(store, 2, 3, 4)
        Appender(store, journal).copy()
    (path,) = segments(place).values()
    data = bytearray(path.read_bytes())
    size = 126
    data[-size - 8 : -size] = bytes(8)
    path.write_bytes(data)
    assert [entry.lsn for entry in records(place)] == [1, 2, 4]
    with closing(opened(place)) as journal:
        assert copy(store, journal) == 2
    assert held(place) == [1, 2, 3, 4]
    assert waiting(store) == []
    assert [str(fault) for fault in check_journal(place).faults] == []


def test_older_damage_is_not_a_reason_to_cut_more(store: Store, place: Path) -> None:
    append(store, 1, 2, 3)
    with closing(opened(place)) as journal:
        copy(store, journal)
        append(store, 4, 5)
        Appender(store, journal).copy()
    (path,) = segments(place).values()
    data = bytearray(path.read_bytes())
    data[-4 * 126 + 122] ^= 1  # in record 2, which was trimmed
    data[-126 + 122] ^= 1  # in record 5, which was not flushed
    path.write_bytes(data)
    with closing(opened(place)) as journal:
        assert copy(store, journal) == 1
    assert held(place) == [1, 3, 4, 5]


def test_damage_in_a_sealed_segment_stops_before_anything_is_trimmed(
    store: Store, place: Path
) -> None:
    append(store, *range(1, 11))
    with closing(opened(place, 600)) as journal:
        Appender(store, journal).copy()
    path = next(iter(segments(place).values()))
    data = bytearray(path.read_bytes())
    data[read_index(bytes(data), len(data)).end - 1] ^= 1
    path.write_bytes(data)
    with (
        closing(opened(place, 600)) as journal,
        pytest.raises(StorageError, match="record 4 is damaged; nothing is copied"),
    ):
        copy(store, journal)
    assert waiting(store) == list(range(1, 11))


def test_a_segment_that_has_ended_goes_on_if_its_end_is_damaged(store: Store, place: Path) -> None:
    """A process that was killed had ended it, and had neither begun another nor trimmed."""
    append(store, 1, 2, 3)
    with closing(opened(place)) as journal:
        Appender(store, journal).copy()
        journal.seal()
    (path,) = segments(place).values()
    data = bytearray(path.read_bytes())
    end = read_index(bytes(data), len(data)).end
    data[end - 1] ^= 1  # in record 3
    path.write_bytes(data)
    with closing(opened(place)) as journal:
        assert copy(store, journal) == 1
        append(store, 4)
        copy(store, journal)
    assert held(place) == [1, 2, 3, 4]
    assert waiting(store) == []
    assert check_journal(place).faults == ()


def test_the_journal_of_another_history_is_refused(journal: Journal) -> None:
    """As where a store was restored: its numbers come again for other records."""
    first, second = MemoryStore(), MemoryStore()
    append(first, 1, 2, 3)
    copy(first, journal)
    appender = Appender(second, journal)
    assert appender.flush() == 0
    append(second, 100)
    for attempt in (appender.copy, appender.flush):
        with pytest.raises(StorageError, match="record 1 differs"):
            attempt()
    assert waiting(second) == [1]
    assert held(journal.directory) == [1, 2, 3]


def test_a_failed_flush_is_made_up_for(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender = Appender(store, journal)
    append(store, 1)
    appender.flush()
    append(store, 2, 3)
    appender.copy()

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "flush", fail)
        with pytest.raises(StorageError, match="no room left"):
            appender.flush()
    assert waiting(store) == [2, 3]
    assert held(journal.directory) == [1]
    append(store, 4)
    assert appender.flush() == 3
    assert held(journal.directory) == [1, 2, 3, 4]
    assert waiting(store) == []


def test_a_damaged_outbox_is_not_copied(database: Database, place: Path) -> None:
    with closing(database.open()) as store, closing(opened(place)) as journal:
        append(store, 1, 2)
        raw = bytearray(database.execute("SELECT records FROM outbox")[0][0])
        raw[-1] ^= 1
        database.execute("UPDATE outbox SET records=?", bytes(raw))
        with pytest.raises(StorageError, match="row 2 of the outbox is damaged"):
            copy(store, journal)
        assert list(records(place)) == []


# --- snapshots ------------------------------------------------------------------------------------


def exported(store: Store) -> bytes:
    out = io.BytesIO()
    export_store(store, out)
    return out.getvalue()


def test_a_snapshot_is_an_export_at_a_number(store: Store, journal: Journal) -> None:
    appender = Appender(store, journal)
    with store.write() as transaction:
        for obj in one_of_each():
            transaction.insert(obj)
        transaction.put_partition(partition())
        transaction.bury(tombstone(9))
    append(store, 1, 2)
    path = appender.snapshot()
    assert path.name == "snapshot-00000000000000000002.jsonl"
    assert path.read_bytes() == exported(store)
    assert waiting(store) == []
    with store.write() as transaction:
        transaction.insert(queue(77))
        transaction.append(replace(RECORD, time_us=3))
    appender.flush()
    assert path.read_bytes() != exported(store)
    before, after = (Segment.load(path).header for path in segments(journal.directory).values())
    assert (before.first_lsn, before.snapshot) == (1, "")
    assert (after.first_lsn, after.snapshot, after.snapshot_lsn) == (3, path.name, 2)
    assert held(journal.directory) == [1, 2, 3]


def test_a_snapshot_of_an_empty_store(journal: Journal) -> None:
    store = MemoryStore()
    path = Appender(store, journal).snapshot()
    assert path.read_bytes() == exported(store)
    append(store, 1)
    copy(store, journal)
    (header,) = (Segment.load(path).header for path in segments(journal.directory).values())
    assert (header.first_lsn, header.snapshot, header.snapshot_lsn) == (1, path.name, 0)


def test_a_snapshot_that_fails_leaves_nothing(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    append(store, 1)

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mqis.files.flush", fail)
    with pytest.raises(StorageError, match="no room left"):
        Appender(store, journal).snapshot()
    assert not list(journal.directory.glob("*snapshot*"))
    assert held(journal.directory) == [1]
