"""The transaction for many creations does what the one under it would do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from io import BytesIO

import pytest

from mqis.admin.bulk import BulkTransaction
from mqis.admin.transfer import export_store
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.directory.events import DirectoryEvents
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Store, Transaction
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType


def _text(value: str) -> PropVariant:
    return PropVariant(VarType.LPWSTR, value)


def _work(tx: Transaction) -> None:
    """Creations, a machine that changes its name, a deletion, and the same names again."""
    for operation in demo.operations():
        operation(tx)
    events = DirectoryEvents(tx, demo.NOW, demo.SeededEntropy(2))
    machine = tx.find(ObjectType.MACHINE, "ams-app1")
    assert machine is not None
    events.update_directory_object(machine, {PropId.QM_PATHNAME: _text("renamed")})
    assert tx.find(ObjectType.MACHINE, "AMS-APP1") is None
    assert tx.find(ObjectType.MACHINE, "Renamed") is not None
    with pytest.raises(DirectoryError, match="no machine 'ams-app1'"):
        events.create(ObjectType.QUEUE, "ams-app1\\late", {})
    queue = events.create(ObjectType.QUEUE, "renamed\\late", {})
    with pytest.raises(DirectoryError, match="is in the directory already"):
        events.create(ObjectType.QUEUE, "RENAMED\\LATE", {})
    events.delete_directory_object(queue)
    assert tx.tombstone(queue.id) is not None
    identified = {PropId.Q_INSTANCE: PropVariant(VarType.CLSID, queue.id), **queue.properties}
    events.create_directory_object(ObjectType.QUEUE, identified)
    assert tx.tombstone(queue.id) is None


def _exported(store: Store) -> bytes:
    out = BytesIO()
    export_store(store, out)
    return out.getvalue()


def _bulk(tx: Transaction) -> None:
    bulk = BulkTransaction(tx)
    _work(bulk)
    bulk.flush()


@pytest.mark.parametrize("again", [False, True], ids=["new", "filled"])
def test_both_ways_give_the_same_store(again: bool) -> None:
    """In a new store, and in one that has had objects before."""

    def first(tx: Transaction) -> None:
        if again:
            name = _text("Before")
            events = DirectoryEvents(tx, 0, demo.SeededEntropy(3))
            for kind, propid in (
                (ObjectType.SITE, PropId.S_PATHNAME),
                (ObjectType.CN, PropId.CN_NAME),
            ):
                events.delete_directory_object(events.create_directory_object(kind, {propid: name}))
                events.create_directory_object(kind, {propid: name})

    results: list[bytes] = []
    ways: tuple[Callable[[Transaction], None], ...] = (_work, _bulk)
    for way in ways:
        with closing(open_store("memory:")) as store:
            with store.write() as tx:
                first(tx)
            with store.write() as tx:
                way(tx)
            results.append(_exported(store))
            assert store.check() == []
    assert results[0] == results[1]


def test_a_savepoint_is_refused() -> None:
    """It could not undo what is kept beside the transaction."""
    with (
        closing(open_store("memory:")) as store,
        store.write() as tx,
        pytest.raises(NotImplementedError),
    ):
        BulkTransaction(tx).savepoint()
