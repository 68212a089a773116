"""The cache of a connection to an SQLite store, and its invalidation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from mqis.protocol.directory.indexing import key_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import Store
from mqis.storage import cache
from mqis.storage.records import MAX_BODY_BYTES
from mqis.storage.sqlite import SqliteStore
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


# --- bounds ---------------------------------------------------------------------------------------


def kept(store: SqliteStore) -> int:
    (session,) = store._readers.idle
    return len(session.answers().found)  # type: ignore[attr-defined]


def test_full_it_starts_anew(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_OBJECTS", 3)
    insert(store, *(labelled(number, str(number)) for number in range(1, 9)))
    for number in range(1, 9):
        assert get(store, number) == labelled(number, str(number))
        assert having(store, str(number)) == [labelled(number, str(number))]
        assert 1 <= kept(store) <= 3
    assert get(store, 1) == labelled(1, "1")


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
