"""Whole answers that a store remembers: each is right, or it is not given."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.indexing import key_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import AnswerMemory, View
from mqis.storage import watching
from mqis.storage.memory_store import MemoryStore
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.builders import guid, queue

QUEUE = ObjectType.QUEUE
LABEL = PropId.Q_LABEL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as opened:
        with opened.write() as tx:
            for number in range(1, 4):
                tx.insert(queue(number, label=f"label {number}"))
        assert opened.recall("anything") is None  # a new connection makes the memory start over
        yield opened


def label_of(number: int, view: View) -> str | None:
    found = view.get(QUEUE, guid(number))
    return None if found is None else str(found.value(LABEL))


def labels(store: SqliteStore, number: int) -> str | None:
    """Asks for a label, remembers the answer, and looks whether it is told again."""
    with store.read() as view:
        watched = store.watch(view)
        answer = label_of(number, watched)
        watched.remember(("label", number), answer, 100)
    return answer


def relabel(store: SqliteStore, number: int, label: str) -> None:
    with store.write() as tx:
        old = tx.get(QUEUE, guid(number))
        assert old is not None
        tx.update(old, queue(number, label=label))


def having(view: View, label: str) -> list[DirectoryObject]:
    return list(view.having(QUEUE, LABEL, key_of(label) or b""))


def test_only_a_store_with_a_cache_has_a_memory(store: SqliteStore) -> None:
    assert isinstance(store, AnswerMemory)
    assert not isinstance(MemoryStore(), AnswerMemory)


def test_an_answer_is_told_until_a_commit_changes_it(store: SqliteStore) -> None:
    assert store.recall(("label", 1)) is None
    assert (labels(store, 1), labels(store, 2)) == ("label 1", "label 2")
    assert store.recall(("label", 1)) == "label 1"
    relabel(store, 1, "new")
    assert store.recall(("label", 1)) is None
    assert store.recall(("label", 2)) == "label 2"


@pytest.mark.req("SEC-16-02")
@pytest.mark.parametrize("counts", [True, False], ids=["a process of ours", "an editor"])
def test_a_commit_of_another_process(store: SqliteStore, path: Path, counts: bool) -> None:
    labels(store, 1)
    assert store.recall(("label", 1)) == "label 1"
    if counts:
        with closing(SqliteStore(path)) as other:
            relabel(other, 1, "new")
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as editor:
            editor.execute("DELETE FROM objects WHERE id=?", (guid(1).raw,))
    assert store.recall(("label", 1)) is None
    assert labels(store, 1) == ("new" if counts else None)


def test_a_commit_that_fails_changes_nothing(store: SqliteStore) -> None:
    labels(store, 1)
    with suppress(InterruptedError), store.write() as tx:
        old = tx.get(QUEUE, guid(1))
        assert old is not None
        tx.update(old, queue(1, label="new"))
        raise InterruptedError
    assert store.recall(("label", 1)) == "label 1"


def test_a_lookup_learns_of_new_objects(store: SqliteStore) -> None:
    with store.read() as view:
        watched = store.watch(view)
        watched.remember("one", len(having(watched, "label 1")), 0)
        watched = store.watch(view)
        watched.remember("none", len(having(watched, "no such label")), 0)
    assert (store.recall("one"), store.recall("none")) == (1, 0)
    with store.write() as tx:
        tx.insert(queue(4, label="label 1"))
        tx.insert(queue(5, label="no such label"))
    assert (store.recall("one"), store.recall("none")) == (None, None)


@pytest.mark.parametrize("most", [4, 100])
def test_a_long_lookup_depends_on_its_objects_or_on_all(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(watching, "MAX_ENTRIES", most)
    with store.write() as tx:
        for number in range(10, 30):
            tx.insert(queue(number, label="same"))
    with store.read() as view:
        watched = store.watch(view)
        watched.remember("same", len(having(watched, "same")), 0)
    assert store.recall("same") == 20
    relabel(store, 1, "not one of them")
    assert store.recall("same") == (20 if most == 100 else None)
    relabel(store, 29, "not one of them any more")
    assert store.recall("same") is None


@pytest.mark.parametrize("question", ["objects", "owned"])
def test_a_list_depends_on_every_object_of_its_type(store: SqliteStore, question: str) -> None:
    with store.read() as view:
        watched = store.watch(view)
        if question == "objects":
            answer = list(watched.objects(QUEUE))
        else:
            answer = list(watched.owned_by(QUEUE, guid(9)))
        watched.remember(question, answer, 0)
    assert store.recall(question) == answer
    with store.write() as tx:
        tx.insert(queue(4))
    assert store.recall(question) is None


def test_what_was_not_there_and_what_commits_do_not_tell_is_not_remembered(
    store: SqliteStore,
) -> None:
    with store.read() as view:
        asked: dict[str, Callable[[View], object]] = {
            "nobody": lambda seen: seen.get(QUEUE, guid(99)),
            "no name": lambda seen: seen.find(QUEUE, "nowhere\\x"),
            "partitions": lambda seen: seen.partitions(),
            "count": lambda seen: seen.count(QUEUE),
            "state": lambda seen: seen.state("family", b"key"),
        }
        for question, ask in asked.items():
            watched = store.watch(view)
            ask(watched)
            watched.remember(question, "answer", 0)
            assert store.recall(question) is None


def test_an_answer_of_an_older_view_is_not_remembered(store: SqliteStore) -> None:
    with store.read() as view:
        watched = store.watch(view)
        answer = label_of(1, watched)
        relabel(store, 1, "new")
        assert store.recall(("label", 1)) is None  # the memory is ahead of the view now
        watched.remember(("label", 1), answer, 0)
        assert store.recall(("label", 1)) is None
        assert label_of(1, view) == "label 1"
        assert store.recall(("label", 1), store.moment(view)) is None
    assert labels(store, 1) == "new"
    with store.read() as view:
        assert store.recall(("label", 1), store.moment(view)) == store.recall(("label", 1)) == "new"


def test_an_answer_too_large_for_the_memory(store: SqliteStore) -> None:
    store.cache_at_most(10)
    with store.read() as view:
        watched = store.watch(view)
        label_of(1, watched)
        watched.remember("large", "x", 100_000)
    assert store.recall("large") is None


@pytest.mark.req("SEC-17-06")
def test_answers_to_strangers_have_a_share_of_the_memory(store: SqliteStore) -> None:
    store.cache_at_most(64)  # 24 answers to users, eight to strangers
    labels(store, 1)
    for number in range(12):
        with store.read() as view:
            watched = store.watch(view, stranger=True)
            watched.remember(number, label_of(1, watched), 0)
    told = [store.recall(number, stranger=True) for number in range(12)]
    assert 1 <= sum(answer is not None for answer in told) <= 8
    assert store.recall(("label", 1)) == "label 1"
    assert store.recall(("label", 1), stranger=True) is None
    relabel(store, 1, "new")
    assert [store.recall(number, stranger=True) for number in range(12)] == [None] * 12


def test_a_closed_store_tells_nothing(path: Path) -> None:
    store = SqliteStore(path)
    assert store.recall("anything") is None
    store.close()
    with pytest.raises(StorageError, match="closed"):
        store.recall("anything")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["own", "own", "other", "failed", "held"]),
        st.integers(1, 3),
        st.integers(0, 3),
    ),
    max_size=20,
)


@pytest.mark.req("SEC-16-02")
@given(STEPS)
def test_what_is_told_is_always_what_the_tables_have(steps: list[tuple[str, int, int]]) -> None:
    """Two processes change the same few objects; a view may be held over a change."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "store.db")
        with closing(SqliteStore(path)) as own, closing(SqliteStore(path)) as other:
            with own.write() as tx:
                for number in range(1, 4):
                    tx.insert(queue(number, label="0"))
            for who, number, label in steps:
                with suppress(InterruptedError), own.read() as held:
                    watched = own.watch(held)
                    before = label_of(number, watched)
                    relabel(other if who == "other" else own, number, str(label))
                    if who == "held":
                        watched.remember(("label", number), before, 0)
                for asked in range(1, 4):
                    for store in (own, other):
                        with own.read_afresh() as afresh:
                            right = label_of(asked, afresh)
                        assert store.recall(("label", asked)) in (None, right)
                        assert labels(store, asked) == right
                        assert store.recall(("label", asked)) == right


def test_threads_never_get_a_stale_answer(store: SqliteStore) -> None:
    """A writer counts up; whoever asks after a commit gets its number or a later one."""
    done, stale = Event(), list[tuple[int, str]]()
    committed = [0]

    def ask() -> None:
        while not done.is_set():
            least = committed[0]
            told = store.recall(("label", 1)) or labels(store, 1)
            if told is not None and told.isdigit() and int(told) < least:
                stale.append((least, told))

    threads = [Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 200):
        relabel(store, 1, str(number))
        committed[0] = number
    done.set()
    for thread in threads:
        thread.join()
    assert stale == []
