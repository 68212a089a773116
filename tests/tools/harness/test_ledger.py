"""The judges of the harness: they find what servers lost or made up, and replicas that differ."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.errors import StorageError
from mqis.runtime.entropy import SystemEntropy
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tools.harness.directory import examine
from tools.harness.ledger import (
    Ledger,
    State,
    copy_of,
    differences,
    labelled,
    lost,
    own_faults,
    queue_path,
)

MACHINE = "ams-app1"
A, B, C, D = (queue_path(MACHINE, 1, number) for number in range(4))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One machine, and three queues: as they should be, half-written, and nobody's."""
    path = tmp_path / "soak.db"
    opened = SqliteStore(path)
    with opened.write() as tx:
        site = DirectoryEvents(tx, 0, SystemEntropy()).create(ObjectType.SITE, "Alpha", {})
        stored = DirectoryEvents(tx, 0, SystemEntropy(), own_site=site.id)
        stored.create(ObjectType.MACHINE, MACHINE, {})
        for queue, label, other in ((A, "1", "1"), (B, "2", "3"), (C, "4", "4")):
            properties = dict(labelled(label))
            properties[PropId.Q_QUOTA] = labelled(other)[PropId.Q_QUOTA]
            stored.create(ObjectType.QUEUE, queue, properties)
    opened.close()
    return path


def ledger(states: dict[str, State | set[State]]) -> Ledger:
    found = Ledger()
    for path, state in states.items():
        found.expected[path] = state if isinstance(state, set) else {state}
    return found


def test_what_is_wrong_is_found(store: Path) -> None:
    """Lost, half-written, come back, and out of nowhere."""
    right: dict[str, State | set[State]] = {A: "1", C: "4"}
    (half,) = examine(store, ledger({**right, B: "2"}))
    assert half.startswith(f"{B} is half-written: label '2', quota ")
    unknown = examine(store, ledger(right))
    assert unknown == [f"{B} exists, but no client made it"]
    wrong: list[tuple[State | set[State], str]] = [
        ("5", "'5'"),
        (None, "None"),
        ({"6", "7"}, "'6', '7'"),
    ]
    for state, possible in wrong:
        fault = examine(store, ledger({**right, A: state}))[0]
        assert fault == f"{A} has label '1', possible are {possible}"
    assert f"{D} has label None, possible are '8'" in examine(store, ledger({**right, D: "8"}))
    assert examine(store, ledger({**right, A: {"0", "1"}, D: {None, "8"}})) == unknown


def test_an_answer_decides_what_is_possible() -> None:
    found = Ledger()
    found.attempt(A, "1")
    assert found.expected == {A: {None, "1"}}
    found.done(A, "1")
    found.attempt(A, "2")
    assert lost(found, {}) == [f"{A} has label None, possible are '1', '2'"]
    found.refuse(A, "2")
    assert found.expected == {A: {"1"}}
    found.attempt(A, None)
    assert lost(found, {}) == []
    assert (found.acknowledged, found.refused) == (1, 1)


def test_replicas_that_differ_are_found(store: Path, tmp_path: Path) -> None:
    with closing(SqliteStore(store)) as ours, closing(SqliteStore(tmp_path / "b")) as empty:
        first = copy_of(ours)
        changed = {key: value for key, value in first.items() if "machine" not in key}
        changed["queue more"] = changed[next(key for key in changed if key.startswith("site"))] = 0
        (tmp_path / "journal").mkdir()
        assert own_faults("ams", ours, tmp_path / "journal") == []
        (nothing,) = differences({"ams": first, "ber": first, "chi": copy_of(empty)})
    assert nothing.startswith(f"chi and ams differ: {len(first)} missing, 0 too many, 0 different")
    (some,) = differences({"ams": first, "ber": changed})
    assert some.startswith("ber and ams differ: 1 missing, 1 too many, 1 different: machine ")


def test_a_store_that_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "soak.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StorageError):
        examine(tmp_path / "soak.db", Ledger())
