"""Index rows that wait in a transaction: readers find them, savepoints undo their own."""

from __future__ import annotations

import pytest

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, Transaction, View
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.builders import SITE, partition, queue, tombstone

QUEUE = ObjectType.QUEUE
KEY = b"orders"


def labelled(view: View) -> list[int]:
    return [obj.seq.value for obj in view.having(QUEUE, PropId.Q_LABEL, KEY)]


def test_a_transaction_finds_what_it_has_added(store: Store) -> None:
    one, two = queue(1, "one", seq=1, label="Orders"), queue(2, "two", seq=2, label="Orders")
    with store.write() as tx:
        tx.put_partition(partition())
        tx.insert(one)
        assert labelled(tx) == [1]
        assert tx.insert_if_free(two)
        assert labelled(tx) == [1, 2]
        tx.update(two, queue(2, "two", seq=3, label="Other"))
        tx.delete(one)
        assert labelled(tx) == []
    with store.read() as view:
        assert labelled(view) == []
    assert store.check() == []


class Undone(Exception):
    pass


def test_a_savepoint_undoes_its_own_rows_alone(store: Store) -> None:
    def add_and_fail(tx: Transaction) -> None:
        with tx.savepoint():
            tx.insert(queue(2, "two", seq=2, label="Orders"))
            with tx.savepoint():
                tx.insert(queue(3, "three", seq=3, label="Orders"))
            raise Undone

    with store.write() as tx:
        tx.put_partition(partition())
        tx.insert(queue(1, "one", seq=1, label="Orders"))
        with pytest.raises(Undone):
            add_and_fail(tx)
        tx.insert(queue(4, "four", seq=4, label="Orders"))
    with store.read() as view:
        assert labelled(view) == [1, 4]
    assert store.check() == []


def test_an_object_is_added_if_identifier_and_name_are_free(store: Store) -> None:
    with store.write() as tx:
        tx.put_partition(partition())
        assert tx.insert_if_free(queue(1, "one", seq=1))
        assert not tx.insert_if_free(queue(1, "other", seq=2))
        assert not tx.insert_if_free(queue(2, "ONE", seq=3))
        with pytest.raises(StorageError), tx.savepoint():
            tx.insert(queue(2, "one", seq=4))
    with store.read() as view:
        assert [obj.seq.value for obj in view.objects(QUEUE)] == [1]
    assert store.check() == []


def test_a_tombstone_goes_although_there_was_none_before(store: Store) -> None:
    """A transaction remembers that a partition has no tombstones, until it has one."""
    buried = tombstone(5, seq=5)

    def purge_and_fail(tx: Transaction) -> None:
        with tx.savepoint():
            assert tx.purge(SITE, buried.seq) == 1
            tx.unbury(SITE, buried.id)
            raise Undone

    with store.write() as tx:
        tx.put_partition(partition())
        tx.unbury(SITE, buried.id)
        tx.bury(buried)
        tx.unbury(SITE, buried.id)
        assert tx.tombstones(buried.id) == []
        tx.bury(buried)
    with store.write() as tx:
        with pytest.raises(Undone):
            purge_and_fail(tx)
        assert tx.tombstones(buried.id) == [buried]
        tx.unbury(SITE, buried.id)
        assert tx.tombstones(buried.id) == []
