"""A store's troubles: told once, and no call waits for one that is known."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing

import pytest

from mqis.protocol.errors import DamagedStore, StorageError, StoreUnavailable
from mqis.storage.condition import UNREACHABLE, StoreCondition
from mqis.storage.postgres import CLAIM_CLASS, PostgresStore
from tests.builders import partition, queue
from tests.plugins.stores import Database, PostgresSchema, SqliteFile
from tests.waiting import DEADLINE_S, wait_until


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def condition(told: list[str]) -> StoreCondition:
    made = StoreCondition()
    made.report = told.append
    return made


def test_nothing_is_wrong(condition: StoreCondition, told: list[str]) -> None:
    condition.admit_reader()
    condition.admit_writer()
    condition.report_recovery()
    assert (condition.trouble, condition.refused, told) == (None, 0, [])


def test_an_outage_is_told_once_and_fails_every_call(
    condition: StoreCondition, told: list[str]
) -> None:
    condition.report_outage("no answer", "db1: no answer")
    condition.report_outage("no answer", "db1: no answer")
    condition.report_outage(UNREACHABLE, "db1: cannot connect")
    for admit in (condition.admit_reader, condition.admit_writer):
        with pytest.raises(StoreUnavailable, match=r"does not answer since .* UTC: no answer$"):
            admit()
    condition.report_recovery()
    condition.admit_reader()
    assert [text.split(",")[0] for text in told] == [
        "the store does not answer",
        "the store answers again",
    ]
    assert "db1" in told[0]
    assert told[1].endswith("calls refused since the start: 2")


def test_another_reason_is_told(condition: StoreCondition, told: list[str]) -> None:
    condition.report_outage("no answer", "db1")
    condition.report_outage("another server uses it", "db1: taken")
    assert len(told) == 2
    assert "another server uses it" in str(condition.trouble)


def test_a_slow_answer_is_no_outage(condition: StoreCondition, told: list[str]) -> None:
    condition.suspect_outage("no answer within 1 s")
    condition.suspect_outage("again")
    with pytest.raises(StoreUnavailable, match="no answer within 1 s"):
        condition.admit_reader()
    condition.report_recovery()
    assert told == ["the store was slow: no answer within 1 s"]


def test_a_suspicion_that_proves_true_is_told(condition: StoreCondition, told: list[str]) -> None:
    condition.suspect_outage("no answer within 1 s")
    condition.report_outage(UNREACHABLE, "db1: cannot connect")
    assert len(told) == 1
    assert condition.outage is not None
    assert condition.outage.confirmed


def test_damage_ends_writing_and_not_reading(condition: StoreCondition, told: list[str]) -> None:
    condition.report_damage("object 1")
    condition.report_damage("object 2")
    condition.admit_reader()
    with pytest.raises(StoreUnavailable, match=r"the store is damaged \(found at"):
        condition.admit_writer()
    assert len(told) == 1
    assert "object 1" in told[0]


# --- in stores ------------------------------------------------------------------------------------


def test_an_altered_row_ends_writing(database: Database) -> None:
    """Also that of the group in which it was found."""
    with closing(database.open()) as store:
        with store.write() as transaction:
            transaction.put_partition(partition())
        database.execute("UPDATE partitions SET last_seq = owner")
        with pytest.raises(StoreUnavailable), store.write() as transaction:  # noqa: PT012
            transaction.insert(queue(1))
            with pytest.raises(DamagedStore, match=r"partition .* is damaged"):
                transaction.partitions()
        with pytest.raises(StoreUnavailable), store.write():
            pass
        with store.read() as view:
            assert view.count(queue(1).type) == 0


def test_an_altered_outbox_ends_writing(sqlite_file: SqliteFile) -> None:
    with closing(sqlite_file.open()) as store:
        sqlite_file.execute("INSERT INTO outbox (lsn, records) VALUES (1, x'00')")
        with pytest.raises(DamagedStore), store.read() as view:
            view.outbox(0, 10)
        assert store.condition.damage is not None


def test_the_claim_of_a_database_is_free_when_its_store_is_closed(
    postgres_schema: PostgresSchema,
) -> None:
    with closing(PostgresStore(postgres_schema.conninfo, claim=True)):
        postgres_schema.open().close()  # who only reads needs none
        with pytest.raises(StorageError, match="another server or command uses this store"):
            PostgresStore(postgres_schema.conninfo, claim=True)
    PostgresStore(postgres_schema.conninfo, claim=True).close()


def test_a_claim_that_was_lost_is_taken_again(postgres_schema: PostgresSchema) -> None:
    """Without a call of the store: nobody else may take it in the meantime."""
    held = (
        f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND "
        f"classid::bigint = {CLAIM_CLASS} AND objid::int = "
        "(SELECT oid::int FROM pg_namespace WHERE nspname = current_schema())"
    )
    with closing(PostgresStore(postgres_schema.conninfo, claim=True, timeout_s=DEADLINE_S)):
        postgres_schema.claim_by_force().close()
        wait_until(lambda: postgres_schema.execute(held), "the store has its claim again")
    # The database frees it when it has seen the end of the connection.
    wait_until(lambda: not postgres_schema.execute(held), "nobody has the claim")


def test_a_statement_in_an_event_loop_is_given_up(postgres_schema: PostgresSchema) -> None:
    """Elsewhere it may take its time, as long as the server answers others."""
    with closing(PostgresStore(postgres_schema.conninfo, timeout_s=1.0)) as store:
        with store.reading() as rows:
            assert rows.run("SELECT 1 FROM pg_sleep(1.2)") == [(1,)]

        async def hold() -> None:
            with store.reading() as rows:
                rows.run(f"SELECT 1 FROM pg_sleep({2 * DEADLINE_S:g})")

        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"no answer within 500 ms"):
            asyncio.run(hold())
        assert time.monotonic() - began < DEADLINE_S
