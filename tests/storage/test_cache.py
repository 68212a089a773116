"""The cache of a connection to an SQLite store, and its invalidation."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.indexing import key_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, View
from mqis.storage import cache, commits
from mqis.storage.copying import copy_rows
from mqis.storage.row_conversion import MAX_BODY_BYTES
from mqis.storage.sql_store import SqlView
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.builders import guid, queue

QUEUE = ObjectType.QUEUE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as opened:
        yield opened


class UndoError(Exception):
    """Raised to undo a transaction."""


def labelled(number: int, label: str) -> DirectoryObject:
    return queue(number, label=label)


def insert(store: Store, *objects: DirectoryObject) -> None:
    with store.write() as transaction:
        for obj in objects:
            transaction.insert(obj)


def get(store: Store, number: int) -> DirectoryObject | None:
    with store.read() as view:
        return view.get(QUEUE, guid(number))


def find(store: Store, obj: DirectoryObject) -> DirectoryObject | None:
    with store.read() as view:
        return view.find(QUEUE, obj.path or "")


def having(store: Store, label: str) -> list[DirectoryObject]:
    key = key_of(label)
    assert key is not None
    with store.read() as view:
        return list(view.having(QUEUE, PropId.Q_LABEL, key))


def test_the_same_object_again_while_nothing_changes(store: SqliteStore) -> None:
    obj = labelled(1, "one")
    insert(store, obj)
    assert get(store, 1) is get(store, 1) is not None
    assert find(store, obj) is find(store, obj) is not None
    assert having(store, "one")[0] is having(store, "one")[0]


def test_what_is_done_with_an_answer_does_not_change_the_next(store: SqliteStore) -> None:
    """Whoever gets the list of a lookup may do with it what it likes."""
    insert(store, labelled(1, "one"))
    having(store, "one").clear()
    assert having(store, "one") == [labelled(1, "one")]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["own writer", "another process's"])
def test_every_answer_is_new_after_a_commit(
    store: SqliteStore, path: Path, elsewhere: bool
) -> None:
    before, after = labelled(1, "one"), labelled(1, "two")
    insert(store, before)
    assert get(store, 1) == find(store, before) == having(store, "one")[0] == before
    with closing(SqliteStore(path)) as other, (other if elsewhere else store).write() as tx:
        tx.update(before, after)
    assert get(store, 1) == find(store, before) == having(store, "two")[0] == after
    assert having(store, "one") == []
    with closing(SqliteStore(path)) as other, (other if elsewhere else store).write() as tx:
        tx.delete(after)
    assert get(store, 1) is None
    assert find(store, before) is None
    assert having(store, "two") == []


def test_what_was_not_there_is_found_when_it_is(store: SqliteStore) -> None:
    obj = labelled(1, "one")
    assert (get(store, 1), find(store, obj), having(store, "one")) == (None, None, [])
    insert(store, obj)
    assert get(store, 1) == find(store, obj) == having(store, "one")[0] == obj


def test_a_view_keeps_its_picture_and_leaves_nothing_of_it_behind(store: SqliteStore) -> None:
    before, after = labelled(1, "one"), labelled(1, "two")
    insert(store, before)
    with store.read() as view:
        assert view.count(QUEUE) == 1  # the picture is taken
        with store.write() as transaction:
            transaction.update(before, after)
        assert view.get(QUEUE, guid(1)) == before
        assert view.find(QUEUE, before.path or "") == before
    assert get(store, 1) == find(store, before) == after


def test_an_undone_change_is_not_seen(store: SqliteStore) -> None:
    before = labelled(1, "one")
    insert(store, before)
    assert get(store, 1) == before
    with suppress(UndoError), store.write() as transaction:
        transaction.update(before, labelled(1, "two"))
        raise UndoError
    assert get(store, 1) == before
    assert having(store, "two") == []


def test_names_differ_in_case_alone(store: SqliteStore) -> None:
    obj = queue(1)
    insert(store, obj)
    path = obj.path or ""
    with store.read() as view:
        assert view.find(QUEUE, path.upper()) == view.find(QUEUE, path.lower()) == obj
        assert view.find(ObjectType.MACHINE, path) is None


# --- forgetting only what a commit changed -------------------------------------------------------


def put(store: Store, old: DirectoryObject, new: DirectoryObject) -> None:
    with store.write() as transaction:
        transaction.update(old, new)


@pytest.fixture
def pair(store: SqliteStore) -> tuple[DirectoryObject, DirectoryObject]:
    """Two objects in the store, both read in all three ways."""
    found = labelled(1, "one"), labelled(2, "two")
    insert(store, *found)
    for number, obj in enumerate(found, start=1):
        assert get(store, number) == find(store, obj) == obj
        assert having(store, str(obj.value(PropId.Q_LABEL))) == [obj]
    return found


Pair = tuple[DirectoryObject, DirectoryObject]


def test_a_commit_leaves_the_answers_that_it_does_not_concern(
    store: SqliteStore, pair: Pair
) -> None:
    other = get(store, 2)
    put(store, pair[0], labelled(1, "three"))
    assert kept(store) == 3  # those of the other object
    assert get(store, 2) is find(store, pair[1]) is having(store, "two")[0] is other
    assert get(store, 1) == labelled(1, "three")


def test_a_new_object_is_in_the_lookup_that_it_belongs_to(store: SqliteStore, pair: Pair) -> None:
    insert(store, labelled(3, "one"))
    assert having(store, "one") == [pair[0], labelled(3, "one")]
    put(store, pair[1], labelled(2, "one"))
    assert having(store, "one") == [pair[0], labelled(2, "one"), labelled(3, "one")]


def test_another_process_between_two_own_commits(
    store: SqliteStore, path: Path, pair: Pair
) -> None:
    with closing(SqliteStore(path)) as other:
        insert(store, labelled(3, "three"))
        put(other, pair[0], labelled(1, "four"))
        insert(store, labelled(5, "five"))
        assert get(store, 1) == labelled(1, "four")
        assert having(store, "one") == []


def test_a_commit_that_fails_gives_its_number_to_another_process(
    store: SqliteStore, path: Path, pair: Pair
) -> None:
    """Otherwise the other process's change would pass for the one that failed."""
    with suppress(UndoError), store.write() as transaction:
        transaction.insert(labelled(3, "three"))
        fail_at_commit(transaction)
    with closing(SqliteStore(path)) as other:
        put(other, pair[0], labelled(1, "four"))
    insert(store, labelled(5, "five"))
    assert get(store, 1) == labelled(1, "four")


def test_a_reader_between_a_failure_and_its_number(
    store: SqliteStore, path: Path, pair: Pair
) -> None:
    """The file is free again before this store has noted that its commit failed."""
    seen: list[DirectoryObject | None] = []
    with closing(SqliteStore(path)) as other, suppress(UndoError), store.write() as transaction:
        transaction.insert(labelled(3, "three"))
        session = transaction._connection  # type: ignore[attr-defined]
        roll_back = session._roll_back

        def rolled_back() -> None:
            del session._roll_back
            roll_back()
            put(other, pair[0], labelled(1, "four"))
            seen.append(get(store, 1))

        session._roll_back = rolled_back
        fail_at_commit(transaction)
    assert seen == [labelled(1, "four")]


def fail_at_commit(transaction: object) -> None:
    """Lets the transaction's COMMIT fail, after the commit has got its number."""
    session = transaction._connection  # type: ignore[attr-defined]

    def failing() -> None:
        del session._commit
        raise UndoError

    session._commit = failing


def test_an_editor_that_knows_nothing_of_commits(
    store: SqliteStore, path: Path, pair: Pair
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as editor:
        editor.execute("DELETE FROM objects WHERE id=?", (guid(1).raw,))
    assert get(store, 1) is None
    assert get(store, 2) == pair[1]


def test_a_part_of_a_group_that_is_undone(store: SqliteStore, pair: Pair) -> None:
    with store.write() as transaction:
        with suppress(UndoError), transaction.savepoint():
            transaction.update(pair[0], labelled(1, "three"))
            raise UndoError
        transaction.update(pair[1], labelled(2, "four"))
    assert (get(store, 1), get(store, 2)) == (pair[0], labelled(2, "four"))


def test_a_commit_without_objects_leaves_the_cache(store: SqliteStore, pair: Pair) -> None:
    with store.write() as transaction:
        transaction.put_state("family", b"key", b"value")
    assert kept(store) == 6
    assert (get(store, 1), get(store, 2)) == pair


def test_an_empty_commit_writes_nothing(store: SqliteStore, path: Path) -> None:
    insert(store, labelled(1, "one"))
    log = path.with_name(f"{path.name}-wal")
    before = log.stat().st_size
    with store.write() as transaction:
        assert transaction.get(QUEUE, guid(1)) is not None
    assert log.stat().st_size == before


def test_rows_that_are_copied_into_the_store(store: SqliteStore, tmp_path: Path) -> None:
    insert(store, labelled(1, "one"))
    assert get(store, 1) == labelled(1, "one")
    with closing(SqliteStore(tmp_path / "source.db")) as source:
        insert(source, labelled(1, "copied"))
        copy_rows(source, store, replace=True)
    assert get(store, 1) == labelled(1, "copied")


@pytest.mark.parametrize(("limit", "value"), [("KEPT", 3), ("MAX_CHANGED", 3)])
def test_changes_beyond_the_limits_clear_the_cache(
    store: SqliteStore, pair: Pair, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(commits, limit, value)
    if limit == "KEPT":
        for number in range(10, 15):
            insert(store, labelled(number, str(number)))
        assert len(store._commits.changed) <= value + 1
    else:
        insert(store, *(labelled(number, str(number)) for number in range(10, 15)))
    put(store, pair[0], labelled(1, "three"))
    assert kept(store) == 0
    assert get(store, 1) == labelled(1, "three")


@pytest.mark.parametrize("count", [0, 2])
def test_one_counter_of_commits_it_has_to_be(store: SqliteStore, path: Path, count: int) -> None:
    insert(store, labelled(1, "one"))
    with closing(sqlite3.connect(path, isolation_level=None)) as editor:
        change = "DELETE FROM commits" if count == 0 else "INSERT INTO commits VALUES (9, x'')"
        editor.execute(change)
    complaint = f"the store has {count} counters of commits instead of one"
    assert complaint in store.check()
    assert get(store, 1) == labelled(1, "one")
    with pytest.raises(StorageError, match=complaint):
        insert(store, labelled(2, "two"))


STEPS = st.lists(
    st.tuples(st.sampled_from(["own", "other", "failed"]), st.integers(1, 4), st.integers(0, 3)),
    max_size=25,
)


@given(STEPS)
def test_cached_answers_are_always_those_of_the_tables(steps: list[tuple[str, int, int]]) -> None:
    """Two processes change the same few objects; label 0 deletes one."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "store.db")
        with closing(SqliteStore(path)) as own, closing(SqliteStore(path)) as other:
            for who, number, label in steps:
                change(other if who == "other" else own, number, label, failed=who == "failed")
                for found in (answers(own), answers(other)):
                    assert found == afresh(own)


def change(store: SqliteStore, number: int, label: int, *, failed: bool) -> None:
    with suppress(UndoError), store.write() as transaction:
        old = transaction.get(QUEUE, guid(number))
        new = labelled(number, str(label))
        if old is None:
            transaction.insert(new)
        elif label:
            transaction.update(old, new)
        else:
            transaction.delete(old)
        if failed:
            fail_at_commit(transaction)


def answers(store: SqliteStore) -> list[object]:
    with store.read() as view:
        return all_answers(view)


def afresh(store: SqliteStore) -> list[object]:
    with store.read_afresh() as view:
        return all_answers(view)


def all_answers(view: View) -> list[object]:
    paths = [labelled(number, "").path or "" for number in range(1, 5)]
    keys = [key_of(str(label)) or b"" for label in range(4)]
    return [
        [view.get(QUEUE, guid(number)) for number in range(1, 5)],
        [view.find(QUEUE, path) for path in paths],
        [list(view.having(QUEUE, PropId.Q_LABEL, key)) for key in keys],
    ]


# --- bounds ---------------------------------------------------------------------------------------


def kept(store: SqliteStore) -> int:
    with store.read():
        return len(store._cache.objects)


def test_full_it_drops_what_was_asked_for_once(store: SqliteStore) -> None:
    store.cache_at_most(32)  # 16 of them objects
    insert(store, *(labelled(number, str(number)) for number in range(1, 41)))
    for number in range(1, 41):
        assert get(store, number) == labelled(number, str(number))
        assert having(store, str(number)) == [labelled(number, str(number))]
        assert 1 <= kept(store) <= 16
    assert get(store, 1) == labelled(1, "1")


@contextmanager
def read_through() -> Iterator[list[Guid]]:
    """The identifiers of objects that are read from the file."""
    found: list[Guid] = []

    def noted(view: SqlView, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        found.append(id)
        return real(view, object_type, id)

    real = SqlView.get
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqlView, "get", noted)
        yield found


def test_reading_everything_once_displaces_nothing_that_is_asked_for_again(
    store: SqliteStore,
) -> None:
    store.cache_at_most(32)
    insert(store, *(queue(number) for number in range(1, 41)))
    for _ in range(2):
        assert get(store, 1) == queue(1)
    with read_through() as read:
        for number in range(2, 41):
            get(store, number)
        read.clear()
        get(store, 1)
        assert read == []
        get(store, 2)
        assert read == [guid(2)]


def test_what_is_asked_for_no_more_goes_in_the_end(store: SqliteStore) -> None:
    store.cache_at_most(32)
    insert(store, *(queue(number) for number in range(1, 41)))
    with read_through() as read:
        for number in range(1, 41):
            for _ in range(2):
                get(store, number)
        read.clear()
        get(store, 40)
        get(store, 1)
        assert read == [guid(1)]


def test_large_objects_are_not_kept(store: SqliteStore) -> None:
    large = labelled(1, "x" * MAX_BODY_BYTES)
    insert(store, large)
    assert get(store, 1) == get(store, 1) == large
    assert kept(store) == 0


@pytest.mark.parametrize("more", [0, 1])
def test_long_answers_are_whole_and_not_kept(store: SqliteStore, more: int) -> None:
    size = cache.MAX_ANSWER + more
    insert(store, *(labelled(number, "same") for number in range(1, size + 1)))
    assert len(having(store, "same")) == len(having(store, "same")) == size
    assert kept(store) == 1 - more


def test_nothing_is_kept_of_what_is_not_there(store: SqliteStore) -> None:
    """A stranger who asks for anything does not drive out what is there."""
    insert(store, queue(1))
    for number in range(2, 50):
        assert get(store, number) is None
        assert having(store, str(number)) == []
    assert kept(store) == 0


def test_connections_answer_for_themselves(store: SqliteStore) -> None:
    before = labelled(1, "one")
    insert(store, before)
    with store.read() as first, store.read() as second:
        assert first.get(QUEUE, guid(1)) == second.get(QUEUE, guid(1)) == before
    after = labelled(1, "two")
    with store.write() as transaction:
        transaction.update(before, after)
    with store.read() as first, store.read() as second:
        assert first.get(QUEUE, guid(1)) == second.get(QUEUE, guid(1)) == after
