"""Databases count every write of a transaction: the group commit relies on it to leave out
savepoints. A write that is not counted would survive the failure of its operation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from mqis.protocol.ports import Transaction, View
from mqis.storage.memory_store import MemoryStore
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber
from tests.builders import SITE, partition, queue, tombstone
from tests.plugins.stores import Database
from tests.storage.test_states_outbox import record

OLD, NEW = queue(1, "one", seq=1), queue(1, "one", seq=2)

WRITES: dict[str, Callable[[Transaction], object]] = {
    "insert": lambda tx: tx.insert(queue(2, "two", seq=3)),
    "insert_if_free": lambda tx: tx.insert_if_free(queue(2, "two", seq=3)),
    "update": lambda tx: tx.update(OLD, NEW),
    "delete": lambda tx: tx.delete(OLD),
    "put_creator": lambda tx: tx.put_creator(ObjectType.QUEUE, OLD.id, b"account"),
    "bury": lambda tx: tx.bury(tombstone(5, seq=5)),
    "unbury": lambda tx: tx.unbury(SITE, tombstone(4, seq=4).id),
    "put_partition": lambda tx: tx.put_partition(partition(last_seq=9)),
    "drop_partition": lambda tx: tx.drop_partition(SITE),
    "purge": lambda tx: tx.purge(SITE, SequenceNumber(9)),
    "put_state": lambda tx: tx.put_state("family", b"key", b"value"),
    "drop_state": lambda tx: tx.drop_state("family", b"key"),
    "append": lambda tx: tx.append(record(1)),
    "trim_outbox": lambda tx: tx.trim_outbox(1),
}


def methods(port: Any) -> set[str]:
    return {name for name in dir(port) if not name.startswith("_")}


def test_all_that_write_are_here() -> None:
    assert methods(Transaction) - methods(View) == {*WRITES, "savepoint", "writes"}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_counts(database: Database, name: str) -> None:
    with closing(database.open()) as store, store.write() as transaction:
        assert transaction.writes == 0
        transaction.put_partition(partition(last_seq=4))
        transaction.insert(OLD)
        transaction.bury(tombstone(4, seq=4))
        before = transaction.writes
        assert before is not None
        WRITES[name](transaction)
        assert transaction.writes > before


def test_reading_does_not_count(database: Database) -> None:
    with closing(database.open()) as store:
        with store.write() as transaction:
            transaction.put_partition(partition(last_seq=4))
            transaction.insert(OLD)
        with store.write() as transaction:
            assert transaction.find(ObjectType.QUEUE, OLD.path or "") == OLD
            assert transaction.get(ObjectType.QUEUE, OLD.id) == OLD
            assert transaction.partition(SITE) is not None
            assert transaction.count(ObjectType.QUEUE) == 1
            assert list(transaction.changes(SITE, SequenceNumber.MIN)) == [OLD]
            assert transaction.outbox(0, 9) == []
            assert transaction.state("family", b"key") is None
            assert transaction.count_created(b"nobody") == 0
            assert transaction.writes == 0


def test_memory_does_not_count() -> None:
    with MemoryStore().write() as transaction:
        transaction.insert(OLD)
        assert transaction.writes is None
