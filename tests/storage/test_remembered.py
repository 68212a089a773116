"""Values that a transaction caches or writes late are never out of date."""

from __future__ import annotations

from contextlib import suppress

import pytest

from mqis.protocol.ports import Store
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber
from tests.builders import OTHER_SITE, SITE, machine, partition, queue

MACHINE = ObjectType.MACHINE


class UndoError(Exception):
    """Raised to undo a savepoint."""


def last_seq(store: Store) -> SequenceNumber | None:
    with store.read() as view:
        found = view.partition(SITE)
        return None if found is None else found.last_seq


def test_partitions_that_were_put_are_listed_at_once(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition(SITE, last_seq=1))
        transaction.put_partition(partition(OTHER_SITE, last_seq=2))
        assert transaction.partitions() == [
            partition(SITE, last_seq=1),
            partition(OTHER_SITE, last_seq=2),
        ]
        transaction.put_partition(partition(SITE, last_seq=3))
        assert transaction.partition(SITE) == partition(SITE, last_seq=3)
    assert last_seq(store) == SequenceNumber(3)


@pytest.mark.parametrize("listed", [False, True])
def test_an_undone_block_leaves_what_was_put_before_it(store: Store, listed: bool) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition(SITE, last_seq=1))
        with suppress(UndoError), transaction.savepoint():
            transaction.put_partition(partition(SITE, last_seq=2))
            if listed:
                assert transaction.partitions() == [partition(SITE, last_seq=2)]
            raise UndoError
        assert transaction.partition(SITE) == partition(SITE, last_seq=1)
    assert last_seq(store) == SequenceNumber(1)


def test_an_undone_block_does_not_hide_what_was_stored(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition(SITE, last_seq=1))
    with store.write() as transaction:
        with suppress(UndoError), transaction.savepoint():
            transaction.put_partition(partition(SITE, last_seq=2))
            raise UndoError
        transaction.insert(queue(1))
        assert transaction.partition(SITE) == partition(SITE, last_seq=1)
    assert last_seq(store) == SequenceNumber(1)


def test_a_transaction_that_fails_puts_nothing(store: Store) -> None:
    with suppress(UndoError), store.write() as transaction:
        transaction.put_partition(partition(SITE, last_seq=1))
        raise UndoError
    assert last_seq(store) is None


def test_a_machine_that_was_found_can_change_and_go(store: Store) -> None:
    first, renamed = machine(1, "HOST"), machine(1, "OTHER")
    with store.write() as transaction:
        assert transaction.find(MACHINE, "HOST") is None
        transaction.insert(first)
        assert transaction.find(MACHINE, "HOST") == first
        assert transaction.find(MACHINE, "host") == first
        transaction.update(first, renamed)
        assert transaction.find(MACHINE, "HOST") is None
        assert transaction.find(MACHINE, "OTHER") == renamed
        transaction.delete(renamed)
        assert transaction.find(MACHINE, "OTHER") is None


def test_a_machine_of_an_undone_block_is_not_found(store: Store) -> None:
    with store.write() as transaction:
        with suppress(UndoError), transaction.savepoint():
            transaction.insert(machine(1, "HOST"))
            assert transaction.find(MACHINE, "HOST") is not None
            raise UndoError
        assert transaction.find(MACHINE, "HOST") is None
