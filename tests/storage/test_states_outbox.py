"""Replication state, purging and the outbox on every store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, settings

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, Transaction
from mqis.storage.database import DatabaseStore
from mqis.storage.outbox import ROW_BYTES
from mqis.storage.sql_store import SqlView
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record
from mqis.wire.seqnum import SequenceNumber
from tests.builders import OTHER_SITE, SITE, guid, partition, queue, tombstone
from tests.plugins.stores import Database
from tests.strategies.journal import records

RECORD = JournalRecord(1_000_000, RecordKind.CHANGE, RecordState.LOCAL, body=b"change")
ALL = 1000


class UndoError(Exception):
    """Raised to roll back."""


@contextmanager
def undone(transaction: Transaction) -> Iterator[None]:
    with suppress(UndoError), transaction.savepoint():
        yield
        raise UndoError


def record(number: int) -> JournalRecord:
    return replace(RECORD, time_us=number)


def append(store: Store, *numbers: int) -> list[int]:
    with store.write() as transaction:
        return [transaction.append(record(number)) for number in numbers]


def waiting(store: Store, after: int = 0, limit: int = ALL) -> list[tuple[int, int]]:
    with store.read() as view:
        return [(lsn, found.time_us) for lsn, found in view.outbox(after, limit)]


# --- states ---------------------------------------------------------------------------------------


def test_states_are_put_replaced_and_dropped(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_state("acks", b"\x02", b"two")
        transaction.put_state("acks", b"\x01\xff", b"")
        transaction.put_state("acks", b"", b"none")
        transaction.put_state("replies", b"\x02", b"other family")
    with store.write() as transaction:
        transaction.put_state("acks", b"\x02", b"again")
        transaction.drop_state("acks", b"")
        transaction.drop_state("acks", b"never there")
        assert transaction.state("acks", b"\x02") == b"again"
        assert transaction.state("acks", b"") is None
        assert transaction.states("acks") == [(b"\x01\xff", b""), (b"\x02", b"again")]
    with store.read() as view:
        assert view.states("acks") == [(b"\x01\xff", b""), (b"\x02", b"again")]
        assert view.states("replies") == [(b"\x02", b"other family")]
        assert view.states("nothing") == []
        assert view.state("acks", b"\x01\xff") == b""
        assert view.state("acks", b"") is None
        assert view.state("Acks", b"\x02") is None


def test_states_of_a_savepoint_are_undone(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_state("f", b"kept", b"1")
        transaction.put_state("f", b"dropped", b"1")
        with undone(transaction):
            transaction.put_state("f", b"kept", b"2")
            transaction.drop_state("f", b"dropped")
            transaction.put_state("f", b"new", b"2")
            assert transaction.states("f") == [(b"kept", b"2"), (b"new", b"2")]
        assert transaction.state("f", b"kept") == b"1"
        assert transaction.state("f", b"new") is None
    with store.read() as view:
        assert view.states("f") == [(b"dropped", b"1"), (b"kept", b"1")]


def test_a_view_keeps_states_and_outbox(store: Store) -> None:
    append(store, 1, 2)
    with store.write() as transaction:
        transaction.put_state("f", b"k", b"old")
    with store.read() as view:
        assert view.state("f", b"k") == b"old"
        with store.write() as transaction:
            transaction.put_state("f", b"k", b"new")
            transaction.trim_outbox(1)
            transaction.append(record(3))
            with store.read() as other:
                assert other.state("f", b"k") == b"old"
        assert view.states("f") == [(b"k", b"old")]
        assert [lsn for lsn, _ in view.outbox(0, ALL)] == [1, 2]
    assert waiting(store) == [(2, 2), (3, 3)]


# --- partitions and tombstones --------------------------------------------------------------------


def test_a_dropped_partition_is_gone(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition(SITE))
        transaction.put_partition(partition(OTHER_SITE))
        transaction.insert(queue(1))
    with store.write() as transaction:
        transaction.drop_partition(SITE)
        transaction.drop_partition(guid(77))  # never there
        assert transaction.partition(SITE) is None
        assert transaction.partitions() == [partition(OTHER_SITE)]
    with store.read() as view:
        assert view.partitions() == [partition(OTHER_SITE)]
        assert view.get(queue(1).type, queue(1).id) == queue(1)


def test_a_partition_put_and_dropped_in_one_transaction(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition(SITE))
        transaction.drop_partition(SITE)
        transaction.put_partition(partition(OTHER_SITE, owner="first"))
        transaction.drop_partition(OTHER_SITE)
        transaction.put_partition(partition(OTHER_SITE, owner="second"))
    with store.read() as view:
        assert view.partitions() == [partition(OTHER_SITE, owner="second")]


def test_dropping_a_partition_is_undone(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition(SITE))
    with store.write() as transaction:
        transaction.put_partition(partition(OTHER_SITE))
        with undone(transaction):
            transaction.drop_partition(SITE)
            transaction.drop_partition(OTHER_SITE)
            assert transaction.partitions() == []
        assert transaction.partition(SITE) == partition(SITE)
    with store.read() as view:
        assert view.partitions() == [partition(SITE), partition(OTHER_SITE)]


def test_purge_takes_the_tombstones_up_to_a_number(store: Store) -> None:
    with store.write() as transaction:
        for number in (0, 1, 5, 6, 0x100):
            transaction.bury(tombstone(10 + number, seq=number))
        transaction.bury(tombstone(5, seq=3, partition=OTHER_SITE))
        transaction.insert(queue(1, seq=2))
    with store.write() as transaction:
        assert transaction.purge(SITE, SequenceNumber(5)) == 3
        assert transaction.purge(SITE, SequenceNumber(5)) == 0
        assert transaction.purge(guid(77), SequenceNumber.MAX) == 0
        assert transaction.tombstones(guid(15)) == []
    with store.read() as view:
        left = [change.seq.value for change in view.changes(SITE, SequenceNumber.MIN)]
        assert left == [2, 6, 0x100]
        assert view.tombstones(guid(10)) == []
        assert view.tombstones(guid(5)) == [tombstone(5, seq=3, partition=OTHER_SITE)]


def test_purge_within_the_transaction_that_buried(store: Store) -> None:
    with store.write() as transaction:
        transaction.bury(tombstone(1, seq=1))
        with undone(transaction):
            transaction.bury(tombstone(2, seq=2))
            assert transaction.purge(SITE, SequenceNumber.MAX) == 2
            assert transaction.tombstones(guid(1)) == []
        assert transaction.tombstones(guid(1)) == [tombstone(1, seq=1)]
        assert transaction.tombstones(guid(2)) == []


# --- the outbox -----------------------------------------------------------------------------------


def test_numbers_ascend_over_transactions(store: Store) -> None:
    assert append(store, 10, 11) == [1, 2]
    assert append(store, 12) == [3]
    assert waiting(store) == [(1, 10), (2, 11), (3, 12)]


def test_the_outbox_is_read_in_pieces(store: Store) -> None:
    append(store, *range(10))
    append(store, *range(10, 20))
    assert waiting(store, after=5, limit=8) == [(lsn, lsn - 1) for lsn in range(6, 14)]
    assert waiting(store, after=18) == [(19, 18), (20, 19)]
    assert waiting(store, after=20) == []
    assert waiting(store, limit=0) == []


def test_a_transaction_sees_what_it_appended(store: Store) -> None:
    append(store, 1, 2)
    with store.write() as transaction:
        assert transaction.append(record(3)) == 3
        assert [lsn for lsn, _ in transaction.outbox(1, ALL)] == [2, 3]
        assert transaction.append(record(4)) == 4
        with transaction.savepoint():
            assert transaction.append(record(5)) == 5
            assert [lsn for lsn, _ in transaction.outbox(0, 4)] == [1, 2, 3, 4]
            assert [lsn for lsn, _ in transaction.outbox(3, ALL)] == [4, 5]
    assert waiting(store, after=2) == [(3, 3), (4, 4), (5, 5)]


@pytest.mark.parametrize("looked", [False, True], ids=["waiting", "written"])
def test_a_savepoint_gives_its_numbers_back(store: Store, looked: bool) -> None:
    """It does so whether or not the records were already written to the database."""
    with store.write() as transaction:
        assert transaction.append(record(1)) == 1
        with undone(transaction):
            assert transaction.append(record(2)) == 2
            if looked:
                assert len(transaction.outbox(0, ALL)) == 2
            assert transaction.append(record(3)) == 3
        if looked:
            assert [lsn for lsn, _ in transaction.outbox(0, ALL)] == [1]
        with transaction.savepoint():
            assert transaction.append(record(4)) == 2
        assert transaction.append(record(5)) == 3
    assert waiting(store) == [(1, 1), (2, 4), (3, 5)]
    assert append(store, 6) == [4]


def test_a_first_append_that_is_undone(store: Store) -> None:
    append(store, 1)
    with store.write() as transaction:
        with undone(transaction):
            transaction.append(record(2))
        assert transaction.append(record(3)) == 2
    with store.write() as transaction, undone(transaction):
        transaction.append(record(4))
    assert waiting(store) == [(1, 1), (2, 3)]
    assert append(store, 5) == [3]


def test_a_transaction_that_fails_gives_its_numbers_back(store: Store) -> None:
    append(store, 1)
    with suppress(UndoError), store.write() as transaction:
        transaction.append(record(2))
        assert len(transaction.outbox(0, ALL)) == 2
        transaction.trim_outbox(1)
        raise UndoError
    assert waiting(store) == [(1, 1)]
    assert append(store, 3) == [2]


def test_trimming(store: Store) -> None:
    append(store, 1, 2, 3)
    with store.write() as transaction:
        transaction.append(record(4))
        transaction.trim_outbox(2)
        assert [lsn for lsn, _ in transaction.outbox(0, ALL)] == [3, 4]
        with undone(transaction):
            transaction.trim_outbox(4)
            assert transaction.outbox(0, ALL) == []
            assert transaction.append(record(5)) == 5
        assert [lsn for lsn, _ in transaction.outbox(0, ALL)] == [3, 4]
    with store.write() as transaction:
        transaction.trim_outbox(1)
    assert waiting(store) == [(3, 3), (4, 4)]


def test_numbers_go_on_behind_what_was_trimmed(store: Store) -> None:
    append(store, 1, 2)
    with store.write() as transaction:
        transaction.trim_outbox(ALL)
    assert waiting(store) == []
    assert append(store, 3) == [3]
    with store.write() as transaction:
        transaction.trim_outbox(ALL)
        assert transaction.append(record(4)) == 4
        transaction.trim_outbox(4)
    assert append(store, 5) == [5]
    assert waiting(store) == [(5, 5)]


def test_more_records_than_a_row_holds(database: Database) -> None:
    """Written as several rows, read in pieces, trimmed in the middle of one."""
    big = replace(RECORD, body=b"x" * (ROW_BYTES // 5))
    with closing(database.open()) as store:
        with store.write() as transaction:
            assert [transaction.append(big) for _ in range(333)] == list(range(1, 334))
        assert len(database.execute("SELECT lsn FROM outbox")) > 64
        with store.read() as view:
            assert view.outbox(0, ALL) == [(lsn, big) for lsn in range(1, 334)]
            assert [lsn for lsn, _ in view.outbox(7, 300)] == list(range(8, 308))
        with store.write() as transaction:
            transaction.trim_outbox(7)
            assert [lsn for lsn, _ in transaction.outbox(0, 3)] == [8, 9, 10]
            with undone(transaction):
                transaction.trim_outbox(333)
            transaction.trim_outbox(3)
        with store.read() as view:
            assert [lsn for lsn, _ in view.outbox(0, ALL)] == list(range(8, 334))
        assert store.check() == []
        assert append(store, 1) == [334]


def test_numbers_do_not_come_again_after_reopening(database: Database) -> None:
    with closing(database.open()) as store:
        append(store, 1, 2)
        with store.write() as transaction:
            transaction.put_state("f", b"k", b"v")
            transaction.trim_outbox(2)
    with closing(database.open()) as store:
        assert waiting(store) == []
        assert append(store, 3) == [3]
        with store.read() as view:
            assert view.states("f") == [(b"k", b"v")]
    with closing(database.open()) as store:
        assert waiting(store) == [(3, 3)]


def test_two_stores_on_one_database_share_the_numbers(database: Database) -> None:
    with closing(database.open()) as one, closing(database.open()) as two:
        assert [append(one, 1), append(two, 2), append(one, 3)] == [[1], [2], [3]]


def test_a_record_that_cannot_be_written_takes_no_number(store: Store) -> None:
    with store.write() as transaction:
        with pytest.raises(ValueError, match="does not fit"):
            transaction.append(replace(RECORD, session=1 << 64))
        assert transaction.append(RECORD) == 1


# One store serves all examples, each in a transaction that is rolled back.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(records())
def test_records_come_back(store: Store, found: JournalRecord) -> None:
    with suppress(UndoError), store.write() as transaction:
        lsn = transaction.append(found)
        assert transaction.outbox(0, ALL) == [(lsn, found)]
        raise UndoError


# --- damage ---------------------------------------------------------------------------------------


@pytest.fixture
def filled(database: Database) -> Database:
    with closing(database.open()) as store:
        append(store, 1, 2, 3)
        with store.write() as transaction:
            transaction.put_state("f", b"k", b"v")
        assert store.check() == []
    return database


def faults(database: Database) -> list[str]:
    with closing(database.open()) as store:
        return store.check()


def test_a_damaged_record_is_named_and_not_read(filled: Database) -> None:
    raw = bytearray(filled.execute("SELECT records FROM outbox WHERE lsn=3")[0][0])
    raw[-1] ^= 1
    filled.execute("UPDATE outbox SET records=? WHERE lsn=3", bytes(raw))
    (fault,) = faults(filled)
    assert fault.startswith("row 3 of the outbox is damaged: ")
    assert "checksum" in fault
    with (
        closing(filled.open()) as store,
        store.read() as view,
        pytest.raises(StorageError, match="row 3 of the outbox is damaged"),
    ):
        view.outbox(0, ALL)


def test_a_record_under_another_number(filled: Database) -> None:
    filled.execute("UPDATE outbox SET lsn=2 WHERE lsn=3")
    fault = "row 2 of the outbox is damaged: it does not end with record 2"
    assert faults(filled) == [fault]


def test_an_empty_row(filled: Database) -> None:
    filled.execute("UPDATE outbox SET records=? WHERE lsn=3", b"")
    fault = "row 3 of the outbox is damaged: it does not end with record 3"
    assert faults(filled) == [fault]


def test_a_record_that_says_nothing_known(filled: Database) -> None:
    """Whole by its checksum, but of a kind that there is not."""
    raw = bytearray(encode_record(3, RECORD))
    raw[25] = 99
    raw[4:8] = crc32(raw[8:]).to_bytes(4, "little")
    filled.execute("UPDATE outbox SET records=? WHERE lsn=3", bytes(raw))
    (fault,) = faults(filled)
    assert fault.startswith("record 3 of the outbox is damaged: 99 is not a kind")


def test_a_record_behind_the_counter(filled: Database) -> None:
    filled.execute("UPDATE outbox_last SET lsn=2")
    assert faults(filled) == ["the outbox holds record 3, but its counter is 2"]


@pytest.mark.parametrize("count", [0, 2])
def test_one_counter_it_has_to_be(filled: Database, count: int) -> None:
    filled.execute("DELETE FROM outbox_last" if count == 0 else "INSERT INTO outbox_last VALUES(3)")
    assert faults(filled) == [f"the outbox has {count} counters instead of one"]
    with closing(filled.open()) as store, pytest.raises(StorageError, match=f"{count} counters"):
        append(store, 4)


def test_a_state_that_is_not_bytes(sqlite_file: Database) -> None:
    """SQLite keeps any type in any column."""
    sqlite_file.open().close()
    sqlite_file.execute("INSERT INTO states VALUES ('f', ?, 'text')", b"k")
    assert faults(sqlite_file) == ["state 6b is damaged: key and value have to be bytes"]


@pytest.mark.parametrize("table", ["states", "outbox", "outbox_last", "commits"])
def test_a_missing_table(filled: Database, table: str) -> None:
    with closing(filled.open()) as store:
        filled.execute(f"DROP TABLE {table}")
        (fault,) = store.check()
        assert table in fault


def test_the_newest_number_outlives_its_record(database: Database) -> None:
    with closing(database.open()) as store:
        assert isinstance(store, DatabaseStore)
        with store.write() as tx:
            for n in range(3):
                tx.append(record(n))
        with store.write() as tx:
            tx.trim_outbox(3)
        with store.read() as view:
            assert isinstance(view, SqlView)
            assert (view.last_lsn(), view.outbox(0, ALL)) == (3, [])
