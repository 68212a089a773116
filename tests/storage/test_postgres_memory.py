"""What a store in PostgreSQL remembers while nobody else can write: never what is not so."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from mqis.protocol.directory.indexing import key_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError, StoreUnavailable
from mqis.protocol.ports import View
from mqis.storage import postgres
from mqis.storage.postgres import CLAIM_CLASS, PostgresStore
from mqis.storage.postgres_session import PostgresSession
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.builders import guid, queue
from tests.plugins.stores import PostgresSchema
from tests.waiting import wait_until

QUEUE, LABEL = ObjectType.QUEUE, PropId.Q_LABEL
CLAIMANT = (
    f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted "
    f"AND classid::bigint = {CLAIM_CLASS} AND objid::int = "
    "(SELECT oid::int FROM pg_namespace WHERE nspname = current_schema())"
)


@pytest.fixture
def store(postgres_schema: PostgresSchema) -> Iterator[PostgresStore]:
    """A server's store, with two queues, whose claim has been seen."""
    with closing(PostgresStore(postgres_schema.conninfo, claim=True, timeout_s=60)) as opened:
        with opened.write() as tx:
            for number in (1, 2):
                tx.insert(queue(number, label=f"label {number}"))
        wait_until(lambda: opened.moment() >= 0, "the claim is seen")
        yield opened


def label_of(view: View, number: int) -> object:
    found = view.get(QUEUE, guid(number))
    return None if found is None else found.value(LABEL)


def labelled(view: View, label: str) -> list[int]:
    key = key_of(label)
    assert key is not None
    return [int.from_bytes(found.id.raw[-2:], "big") for found in view.having(QUEUE, LABEL, key)]


def remembered(store: PostgresStore, number: int) -> object:
    """What is in memory of a queue; None: nothing."""
    with store.remembered() as view:
        try:
            return label_of(view, number)
        except StoreUnavailable:
            return None


def relabelled(old: DirectoryObject | None, label: str) -> DirectoryObject:
    assert old is not None
    new = queue(1, label=label)
    return old.with_properties({LABEL: new.properties[LABEL]}, old.seq)


def relabel(store: PostgresStore, number: int, label: str) -> None:
    with store.write() as tx:
        old = tx.get(QUEUE, guid(number))
        assert old is not None
        tx.update(old, relabelled(old, label))


def read(store: PostgresStore, number: int) -> object:
    with store.read() as view:
        return label_of(view, number)


def test_what_was_read_is_remembered_until_it_changes(store: PostgresStore) -> None:
    assert remembered(store, 1) is None
    assert [read(store, number) for number in (1, 2)] == ["label 1", "label 2"]
    assert [remembered(store, number) for number in (1, 2)] == ["label 1", "label 2"]
    relabel(store, 1, "new")
    assert [remembered(store, number) for number in (1, 2)] == [None, "label 2"]
    assert read(store, 1) == "new"
    assert remembered(store, 1) == "new"


def test_a_transaction_of_a_reader_shows_its_own_moment(store: PostgresStore) -> None:
    """It takes nothing from memory, and puts nothing there that has changed since."""
    with store.read() as view:
        assert label_of(view, 2) == "label 2"  # the first statement makes the snapshot
        relabel(store, 1, "new")
        assert read(store, 1) == "new"
        assert label_of(view, 1) == "label 1"
    assert remembered(store, 1) == "new"


def test_a_new_object_is_in_the_result_of_its_key(store: PostgresStore) -> None:
    with store.read() as view:
        assert labelled(view, "label 1") == [guid(1).raw[-2] << 8 | guid(1).raw[-1]]
    with store.remembered() as view:
        assert len(labelled(view, "label 1")) == 1
    with store.write() as tx:
        tx.insert(queue(3, label="label 1"))
    with store.remembered() as view, pytest.raises(StoreUnavailable):
        labelled(view, "label 1")


@pytest.mark.parametrize(
    "ask",
    [
        lambda view: view.find(QUEUE, "m\\q"),
        lambda view: list(view.objects(QUEUE)),
        lambda view: view.count(QUEUE),
        lambda view: view.partitions(),
    ],
)
def test_memory_never_asks_the_database(store: PostgresStore, ask: object) -> None:
    assert callable(ask)
    with store.remembered() as view, pytest.raises(StoreUnavailable):
        ask(view)


def test_answers_of_a_reader_are_remembered(store: PostgresStore) -> None:
    with store.read() as view:
        watched = store.watch(view)
        watched.remember("question", label_of(watched, 1), 100)
    assert store.recall("question") == "label 1"
    relabel(store, 2, "other")
    assert store.recall("question") == "label 1"
    relabel(store, 1, "new")
    assert store.recall("question") is None


def test_a_change_that_is_being_committed_is_not_kept(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its number and its end, a reader may see the object before it or after it."""
    committed, kept = PostgresStore._committed, []

    def look(opened: PostgresStore, commit: object) -> None:
        assert read(opened, 1) == "new"  # the database shows it already
        kept.append(remembered(opened, 1))
        committed(opened, commit)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresStore, "_committed", look)
    relabel(store, 1, "new")
    assert kept == [None]


def test_without_a_claim_nothing_is_remembered(postgres_schema: PostgresSchema) -> None:
    with closing(PostgresStore(postgres_schema.conninfo, timeout_s=60)) as opened:
        with opened.write() as tx:
            tx.insert(queue(1, label="label"))
        assert [read(opened, 1), read(opened, 1)] == ["label"] * 2
        assert opened.moment() == -1
        assert remembered(opened, 1) is None


def end_watch(store: PostgresStore) -> None:
    """Nobody looks for the claim any more."""
    assert store._watch is not None
    store._watch.close()


def test_a_claim_is_believed_for_a_short_time(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "ALONE_S", 0.05)
    end_watch(store)
    assert read(store, 1) == "label 1"
    wait_until(lambda: store.moment() == -1, "the claim is not believed any more")
    assert remembered(store, 1) is None
    assert read(store, 1) == "label 1"


def test_a_lost_claim_makes_everything_forgotten(
    store: PostgresStore, postgres_schema: PostgresSchema
) -> None:
    """Another server has the claim, writes, and gives it back."""
    assert read(store, 1) == "label 1"
    end_watch(store)
    [[claimant]] = postgres_schema.execute(CLAIMANT)
    postgres_schema.execute(f"SELECT pg_terminate_backend({claimant})")
    with closing(PostgresStore(postgres_schema.conninfo, claim=True)) as other:
        relabel(other, 1, "theirs")
    relabel(store, 2, "ours")  # takes the claim again
    store._alone_until = time.monotonic() + 60
    assert remembered(store, 1) is None
    assert read(store, 1) == "theirs"
    assert remembered(store, 1) == "theirs"


def test_a_commit_of_unknown_outcome_makes_everything_forgotten(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(store, 2) == "label 2"

    def lose(*_given: object) -> None:
        raise StorageError("the server went away during the commit")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresSession, "_commit", lose)
        with pytest.raises(StorageError):
            relabel(store, 1, "new")
    assert remembered(store, 2) is None
    assert [read(store, 1), read(store, 2)] == ["label 1", "label 2"]
    assert remembered(store, 2) == "label 2"


def both(view: View) -> list[object]:
    return [label_of(view, number) for number in (1, 2)]


def test_one_statement_needs_no_transaction(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several see one moment; what was found is remembered either way."""
    sent: list[str] = []
    execute = PostgresSession._execute

    def noted(session: PostgresSession, sql: str, parameters: Sequence[object]) -> list[Any]:
        if "pg_locks" not in sql:
            sent.append(sql.split(maxsplit=1)[0])
        return execute(session, sql, parameters)

    assert read(store, 1) == "label 1"  # a session is idle
    monkeypatch.setattr(PostgresSession, "_execute", noted)
    assert store.ask(lambda view: label_of(view, 1)) == "label 1"
    assert sent == ["SELECT"]
    sent.clear()
    assert store.ask(both) == ["label 1", "label 2"]
    assert sent == ["SELECT", "BEGIN", "SELECT", "SELECT", "COMMIT"]
    assert [remembered(store, number) for number in (1, 2)] == ["label 1", "label 2"]


def test_a_question_is_asked_again_over_another_session(
    store: PostgresStore, postgres_schema: PostgresSchema
) -> None:
    [[claimant]] = postgres_schema.execute(CLAIMANT)
    postgres_schema.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mqis' "
        f"AND pid <> pg_backend_pid() AND pid <> {claimant}"
    )
    assert store.ask(lambda view: label_of(view, 1)) == "label 1"


def test_an_error_of_a_question_is_its_own(store: PostgresStore) -> None:
    def fail(view: View) -> None:
        assert label_of(view, 1)
        raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        store.ask(fail)
