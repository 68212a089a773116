"""Every sentence of ``protocol.ports`` on every store."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqis.protocol.directory.indexing import MAX_KEY_BYTES, key_of
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DeletedObject,
    DirectoryObject,
    Partition,
    PartitionDigest,
    PurgeState,
    Scope,
)
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Change, Store, Transaction, View
from mqis.protocol.replication.digest import computed_digests
from mqis.storage.sql_store import PAGE
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.acl import Acl
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS, EVERYONE
from mqis.wire.seqnum import SequenceNumber
from tests.builders import (
    MACHINE,
    NETWORK,
    OTHER_SITE,
    SITE,
    guid,
    link,
    machine,
    one_of_each,
    partition,
    queue,
    site,
    tombstone,
    user,
)
from tests.plugins.stores import Database
from tests.strategies.directory import directory_objects, partition_states, tombstones, variants
from tests.waiting import DEADLINE_S

QUEUE, USER, SITES = ObjectType.QUEUE, ObjectType.USER, ObjectType.SITE

# One store serves all examples of a test, each in a transaction that is rolled back.
ON_ONE_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


class UndoError(Exception):
    """Raised to roll back."""


def insert(store: Store, *objects: DirectoryObject) -> None:
    with store.write() as transaction:
        for obj in objects:
            transaction.insert(obj)


@contextmanager
def rolled_back(store: Store) -> Iterator[Transaction]:
    with suppress(UndoError), store.write() as transaction:
        yield transaction
        raise UndoError


def numbers(changes: Iterator[Change] | Iterator[DirectoryObject]) -> list[int]:
    return [int.from_bytes(change.id.raw, "big") for change in changes]


# --- looking up -----------------------------------------------------------------------------------


def test_get_by_type_and_identifier(store: Store) -> None:
    insert(store, *one_of_each())
    with store.read() as view:
        for obj in one_of_each():
            assert view.get(obj.type, obj.id) == obj
        assert view.get(ObjectType.MACHINE, queue().id) is None
        assert view.get(QUEUE, guid(9)) is None


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("Server\\Orders", "sERVER\\oRDERS"),
        ("größe\\ÉTÉ\\Ωμέγα", "GRÖßE\\été\\ωΜΈΓΑ"),
        ("lone\ud800Ä\udfff", "LONE\ud800ä\udfff"),
        ("\U0001f4ec\\\u3042", "\U0001f4ec\\\u3042"),
    ],
)
def test_find_ignores_case(store: Store, name: str, asked: str) -> None:
    obj = queue(1, name)
    insert(store, obj, queue(2, f"{name}2"))
    with store.read() as view:
        assert view.find(QUEUE, asked) == obj
        assert view.find(QUEUE, name) == obj
        assert view.find(ObjectType.MACHINE, name) is None
        assert view.find(QUEUE, f"{name}3") is None


def test_the_same_name_under_two_types(store: Store) -> None:
    insert(store, machine(1, "same"), site(2, "Same"))
    with store.read() as view:
        assert view.find(ObjectType.MACHINE, "SAME") == machine(1, "same")
        assert view.find(SITES, "same") == site(2, "Same")


def test_names_and_labels_of_any_length(store: Store) -> None:
    """No database's bound on its keys shows; random letters, so that none compresses them."""
    letters = random.Random(1)
    long = "".join(letters.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(30_000))
    first, second = queue(1, long, label=long), queue(2, long[:-1], label=long[:-1])
    insert(store, first, second)
    key = key_of(long.upper())
    assert key is not None
    assert len(key) <= MAX_KEY_BYTES
    with store.read() as view:
        assert view.find(QUEUE, long.upper()) == first
        assert view.find(QUEUE, long[:-1]) == second
        assert list(view.having(QUEUE, PropId.Q_LABEL, key)) == [first]
    assert not [fault for fault in store.check() if "partition" not in fault]


def test_objects_ascend_by_the_bytes_of_their_identifiers(store: Store) -> None:
    """Not by their text, which orders the first three fields differently."""
    low, high = Guid(bytes.fromhex("01ff" + "00" * 14)), Guid(bytes.fromhex("02" + "00" * 15))
    assert high < low
    both = [
        DirectoryObject(QUEUE, id_, SITE, SequenceNumber(1), queue(1, str(id_)).properties)
        for id_ in (high, low)
    ]
    insert(store, *both, machine())
    with store.read() as view:
        assert list(view.objects(QUEUE)) == both[::-1]
        assert list(view.objects(SITES)) == []


def test_owned_by_machine_site_and_enterprise(store: Store) -> None:
    insert(
        store,
        queue(2, machine=MACHINE),
        queue(1, machine=MACHINE),
        queue(3, machine=guid(0x2002)),
        machine(4, sites=(OTHER_SITE, SITE)),
        machine(5, sites=(SITE,)),
        link(6),
        user(7),
    )
    with store.read() as view:
        assert numbers(view.owned_by(QUEUE, MACHINE)) == [1, 2]
        assert numbers(view.owned_by(QUEUE, guid(0x2002))) == [3]
        assert numbers(view.owned_by(QUEUE, guid(0x2003))) == []
        assert numbers(view.owned_by(ObjectType.MACHINE, OTHER_SITE)) == [4]
        assert numbers(view.owned_by(ObjectType.MACHINE, SITE)) == [5]
        assert numbers(view.owned_by(ObjectType.ROUTINGLINK, Guid.NULL)) == [6]
        assert numbers(view.owned_by(USER, Guid.NULL)) == [7]


def test_owner_follows_an_update(store: Store) -> None:
    insert(store, queue(1))
    with store.write() as transaction:
        transaction.update(queue(1), queue(1, machine=guid(0x2002)))
    with store.read() as view:
        assert numbers(view.owned_by(QUEUE, MACHINE)) == []
        assert numbers(view.owned_by(QUEUE, guid(0x2002))) == [1]


def test_having_finds_each_element_of_a_list_once(store: Store) -> None:
    twice = machine(1, sites=(SITE, OTHER_SITE, SITE), networks=(NETWORK,))
    insert(store, twice, machine(2, sites=(OTHER_SITE,), networks=()))
    with store.read() as view:
        kind = ObjectType.MACHINE
        assert list(view.having(kind, PropId.QM_SITE_IDS, SITE.raw)) == [twice]
        assert numbers(view.having(kind, PropId.QM_SITE_IDS, OTHER_SITE.raw)) == [1, 2]
        assert numbers(view.having(kind, PropId.QM_CNS, NETWORK.raw)) == [1]
        assert numbers(view.having(kind, PropId.QM_CNS, SITE.raw)) == []


def test_having_by_label_ignores_case(store: Store) -> None:
    insert(store, queue(1, label="Ünïcode\udc00"), queue(2, label="other"))
    with store.read() as view:
        key = "üNÏCODE\udc00".lower().encode("utf-8", "surrogatepass")
        assert numbers(view.having(QUEUE, PropId.Q_LABEL, key)) == [1]


def test_update_moves_the_keys(store: Store) -> None:
    old = queue(1, label="before", service_type=guid(5))
    new = queue(1, label="after", service_type=guid(5))
    insert(store, old)
    with store.write() as transaction:
        transaction.update(old, new)
    with store.read() as view:
        assert numbers(view.having(QUEUE, PropId.Q_LABEL, b"before")) == []
        assert list(view.having(QUEUE, PropId.Q_LABEL, b"after")) == [new]
        assert list(view.having(QUEUE, PropId.Q_TYPE, guid(5).raw)) == [new]


def test_delete_takes_the_keys_along(store: Store) -> None:
    insert(store, queue(1, label="x"))
    with store.write() as transaction:
        transaction.delete(queue(1, label="x"))
        transaction.insert(queue(1, label="y"))
    with store.read() as view:
        assert numbers(view.having(QUEUE, PropId.Q_LABEL, b"x")) == []
        assert numbers(view.having(QUEUE, PropId.Q_LABEL, b"y")) == [1]


def test_defaults_are_not_indexed(store: Store) -> None:
    insert(store, queue(1, label="", service_type=Guid.NULL), machine(2, networks=(Guid.NULL,)))
    with store.read() as view:
        assert numbers(view.having(QUEUE, PropId.Q_LABEL, b"")) == []
        assert numbers(view.having(QUEUE, PropId.Q_TYPE, bytes(16))) == []
        assert numbers(view.having(ObjectType.MACHINE, PropId.QM_CNS, bytes(16))) == []


def test_objects_count_for_their_first_owner(store: Store) -> None:
    """By the descriptor, whatever the type; one that cannot be read has no owner."""

    def owned(obj: DirectoryObject, propid: PropId, descriptor: bytes) -> DirectoryObject:
        value = PropVariant(VarType.BLOB, descriptor)
        return replace(obj, properties={**obj.properties, propid: value})

    def count() -> tuple[int, int]:
        with store.read() as view:
            return view.count_created(admins), view.count_created(EVERYONE.to_bytes())

    admins = ADMINISTRATORS.to_bytes()
    theirs = SecurityDescriptor(owner=ADMINISTRATORS, dacl=Acl(())).to_bytes()
    everyones = SecurityDescriptor(owner=EVERYONE, dacl=Acl(())).to_bytes()
    host = owned(machine(3), PropId.QM_SECURITY, theirs)
    made = owned(queue(1), PropId.Q_SECURITY, theirs)
    with store.write() as tx:
        tx.insert(host)
        tx.insert(made)
        tx.insert(queue(2))
    assert count() == (2, 0)
    given = owned(made, PropId.Q_SECURITY, everyones)
    with store.write() as tx:
        tx.update(made, given)
    assert count() == (2, 0)  # given away, and yet theirs
    for number, damaged in enumerate((b"", theirs[:8], theirs[:24], theirs[:-1], bytes(20)), 10):
        with store.write() as tx:
            tx.insert(owned(queue(number), PropId.Q_SECURITY, damaged))
    assert count() == (2, 0)
    with store.write() as tx:
        tx.delete(given)
        tx.delete(host)
    assert count() == (0, 0)
    with store.write() as tx:
        tx.insert(given)
    assert count() == (0, 1)


@pytest.mark.req("SEC-20-01")
def test_a_creator_that_is_known_counts_instead_of_the_owner(store: Store) -> None:
    """Also if it is known before the object comes, as one that another server creates."""
    admins, everyone = ADMINISTRATORS.to_bytes(), EVERYONE.to_bytes()
    descriptor = SecurityDescriptor(owner=EVERYONE, dacl=Acl(())).to_bytes()

    def made(number: int) -> DirectoryObject:
        obj = queue(number, f"m\\{number}")
        value = PropVariant(VarType.BLOB, descriptor)
        return replace(obj, properties={**obj.properties, PropId.Q_SECURITY: value})

    with store.write() as tx:
        tx.insert(made(1))
        tx.put_creator(QUEUE, made(1).id, admins)
        tx.put_creator(QUEUE, made(2).id, admins)
        assert (tx.count_created(admins), tx.count_created(everyone)) == (2, 0)
    with store.write() as tx:
        tx.insert(made(2))
        tx.insert(made(3))
        assert (tx.count_created(admins), tx.count_created(everyone)) == (2, 1)
        with suppress(ZeroDivisionError), tx.savepoint():
            tx.put_creator(QUEUE, made(3).id, admins)
            tx.delete(made(1))
            raise ZeroDivisionError
    with store.read() as view:
        assert (view.count_created(admins), view.count_created(everyone)) == (2, 1)
    with store.write() as tx:
        tx.delete(made(1))
        tx.put_creator(QUEUE, made(3).id, admins)  # the answer comes after the object
    with store.read() as view:
        assert (view.count_created(admins), view.count_created(everyone)) == (2, 0)


def test_count(store: Store) -> None:
    insert(store, queue(1), queue(2), machine(3))
    with store.read() as view:
        assert view.count(QUEUE) == 2
        assert view.count(ObjectType.MACHINE) == 1
        assert view.count(SITES) == 0


# --- changes --------------------------------------------------------------------------------------


def test_changes_ascend_with_tombstones_among_them(store: Store) -> None:
    with store.write() as transaction:
        transaction.insert(queue(1, seq=5))
        transaction.insert(machine(2, seq=0x100))
        transaction.insert(queue(3, seq=2, partition=OTHER_SITE))
        transaction.bury(tombstone(4, seq=0xFF))
        transaction.bury(tombstone(5, seq=1))
        transaction.insert(queue(6, seq=(1 << 64) - 1))
    with store.read() as view:
        assert numbers(view.changes(SITE, SequenceNumber.MIN)) == [5, 1, 4, 2, 6]
        assert numbers(view.changes(SITE, SequenceNumber(5))) == [4, 2, 6]
        assert numbers(view.changes(SITE, SequenceNumber(4))) == [1, 4, 2, 6]
        assert numbers(view.changes(SITE, SequenceNumber.MAX)) == []
        assert numbers(view.changes(OTHER_SITE, SequenceNumber.MIN)) == [3]
        assert numbers(view.changes(ENTERPRISE_PARTITION, SequenceNumber.MIN)) == []


def test_changes_follow_an_update(store: Store) -> None:
    insert(store, queue(1, seq=1), queue(2, seq=2))
    with store.write() as transaction:
        transaction.update(queue(1, seq=1), queue(1, seq=3))
        transaction.update(queue(2, seq=2), queue(2, seq=4, partition=OTHER_SITE))
    with store.read() as view:
        assert list(view.changes(SITE, SequenceNumber.MIN)) == [queue(1, seq=3)]
        assert numbers(view.changes(OTHER_SITE, SequenceNumber.MIN)) == [2]


def test_results_longer_than_two_pages(store: Store) -> None:
    total = 2 * PAGE + 200
    order = list(range(1, total + 1))
    random.Random(2).shuffle(order)
    with store.write() as transaction:
        for number in order:
            if number % 2 == 0:
                transaction.bury(tombstone(number))
            transaction.insert(queue(number, label="same", seq=total + number))
    with store.read() as view:
        every = list(range(1, total + 1))
        assert numbers(view.objects(QUEUE)) == every
        assert numbers(view.owned_by(QUEUE, MACHINE)) == every
        assert numbers(view.having(QUEUE, PropId.Q_LABEL, b"same")) == every
        assert numbers(view.changes(SITE, SequenceNumber.MIN)) == every[1::2] + every
        assert numbers(view.changes(SITE, SequenceNumber(PAGE)))[:2] == [PAGE + 2, PAGE + 4]
        assert view.count(QUEUE) == total


# --- tombstones and partitions --------------------------------------------------------------------


def test_tombstones(store: Store) -> None:
    first = tombstone(1, seq=1)
    second = tombstone(1, seq=7, object_type=SITES, scope=Scope.SITE)
    with store.write() as transaction:
        transaction.unbury(SITE, first.id)  # there is none yet
        transaction.bury(first)
        transaction.bury(tombstone(2))
    with store.write() as transaction:
        assert transaction.tombstones(first.id) == [first]
        transaction.bury(second)
        assert transaction.tombstones(first.id) == [second]
    with store.read() as view:
        assert view.tombstones(first.id) == [second]
        assert list(view.changes(SITE, SequenceNumber.MIN)) == [tombstone(2), second]
    with store.write() as transaction:
        transaction.unbury(SITE, first.id)
    with store.read() as view:
        assert view.tombstones(first.id) == []
        assert view.tombstones(guid(2)) == [tombstone(2)]


def test_each_partition_has_its_own_tombstone_of_an_identifier(store: Store) -> None:
    here, there = tombstone(1, seq=1), tombstone(1, seq=7, partition=OTHER_SITE)
    with store.write() as transaction:
        transaction.bury(there)
        transaction.bury(here)
    with store.read() as view:
        assert view.tombstones(here.id) == sorted(
            [here, there], key=lambda gone: gone.partition.raw
        )
        assert list(view.changes(SITE, SequenceNumber.MIN)) == [here]
        assert list(view.changes(OTHER_SITE, SequenceNumber.MIN)) == [there]
    with store.write() as transaction:
        transaction.unbury(SITE, here.id)
        assert transaction.tombstones(here.id) == [there]
        transaction.bury(here)
        assert transaction.purge(OTHER_SITE, there.seq) == 1
    with store.read() as view:
        assert view.tombstones(here.id) == [here]


def test_partitions_come_with_the_enterprise_first(store: Store) -> None:
    texts = ("00000001-0000-0000-0000-00000000000f", "00000100-0000-0000-0000-000000000001")
    ids = [Guid.parse(text) for text in texts]
    with store.write() as transaction:
        for id_ in (ids[1], ENTERPRISE_PARTITION, ids[0]):
            transaction.put_partition(partition(id_))
    with store.read() as view:
        assert [p.id for p in view.partitions()] == [ENTERPRISE_PARTITION, *ids]
        assert view.partition(ids[1]) == partition(ids[1])
        assert view.partition(SITE) is None


@pytest.mark.req("MQDSRP-3.1.1.2.3-02")
def test_a_partition_takes_the_place_of_its_predecessor(store: Store) -> None:
    last, purged, allowed = (SequenceNumber(n) for n in (9, 5, 7))
    changed = Partition(SITE, "BSC\ud800é", last, purged, allowed, PurgeState.IN_SYNC0)
    with store.write() as transaction:
        transaction.put_partition(partition())
    with store.write() as transaction:
        transaction.put_partition(replace(changed, owner="PSC"))
        assert transaction.partitions() == [replace(changed, owner="PSC")]
        transaction.put_partition(changed)
        assert transaction.partitions() == [changed]
    with store.read() as view:
        assert view.partition(SITE) == changed
        assert view.partitions() == [changed]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "intruder",
    [queue(1, "other"), queue(3, "TAKEN")],
    ids=["identifier", "name"],
)
def test_a_taken_identifier_or_name_is_refused(store: Store, intruder: DirectoryObject) -> None:
    insert(store, queue(1, "taken"))
    with store.write() as transaction:
        with pytest.raises(StorageError), transaction.savepoint():
            transaction.insert(intruder)
        transaction.insert(queue(2))
    with store.read() as view:
        assert list(view.objects(QUEUE)) == [queue(1, "taken"), queue(2)]


def test_a_name_that_is_taken_cannot_be_updated_to(store: Store) -> None:
    insert(store, queue(1, "taken"), queue(2, "free"))
    with store.write() as transaction:
        with pytest.raises(StorageError), transaction.savepoint():
            transaction.update(queue(2, "free"), queue(2, "Taken"))
        transaction.update(queue(2, "free"), queue(2, "FREE"))  # its own name is not in the way
    with store.read() as view:
        assert list(view.objects(QUEUE)) == [queue(1, "taken"), queue(2, "FREE")]


def test_objects_without_a_name_do_not_collide(store: Store) -> None:
    insert(store, user(1), user(2), link(3), link(4))
    with store.read() as view:
        assert view.count(USER) == view.count(ObjectType.ROUTINGLINK) == 2


def test_what_is_missing_cannot_be_updated_or_deleted(store: Store) -> None:
    insert(store, queue(1))
    with store.write() as transaction:
        for missing in (queue(2), machine(1)):
            with pytest.raises(StorageError, match="not in the store"), transaction.savepoint():
                transaction.update(missing, missing)
            with pytest.raises(StorageError, match="not in the store"), transaction.savepoint():
                transaction.delete(missing)
    with store.read() as view:
        assert list(view.objects(QUEUE)) == [queue(1)]


def test_a_commit_that_returns_has_committed(store: Store) -> None:
    """A database may give up the transaction at an error that the caller passes over."""
    expected = 1
    try:
        with store.write() as transaction:
            transaction.insert(queue(1))
            with suppress(StorageError):
                transaction.insert(queue(1))
    except StorageError:
        expected = 0
    with store.read() as view:
        assert view.count(QUEUE) == expected


# --- transactions ---------------------------------------------------------------------------------


def test_an_exception_leaves_nothing(store: Store) -> None:
    insert(store, queue(1, label="x"), queue(2))
    with store.write() as transaction:
        transaction.bury(tombstone(9))
        transaction.put_partition(partition())
    with rolled_back(store) as transaction:
        transaction.insert(queue(3))
        transaction.update(queue(1, label="x"), queue(1, "moved", label="y", seq=77))
        transaction.delete(queue(2))
        transaction.unbury(SITE, guid(9))
        transaction.bury(tombstone(8))
        transaction.put_partition(partition(owner="other"))
        transaction.put_partition(partition(OTHER_SITE))
    with store.read() as view:
        assert list(view.objects(QUEUE)) == [queue(1, label="x"), queue(2)]
        assert numbers(view.having(QUEUE, PropId.Q_LABEL, b"x")) == [1]
        assert numbers(view.having(QUEUE, PropId.Q_LABEL, b"y")) == []
        assert numbers(view.changes(SITE, SequenceNumber.MIN)) == [1, 2, 9]
        assert view.partitions() == [partition()]


def test_a_transaction_sees_its_own_changes(store: Store) -> None:
    insert(store, queue(1, "old", label="x"), queue(2))
    with store.write() as transaction:
        new = queue(1, "new", label="y", machine=guid(7), seq=5)
        transaction.update(queue(1, "old", label="x"), new)
        transaction.delete(queue(2))
        assert transaction.get(QUEUE, guid(1)) == new
        assert transaction.find(QUEUE, "old") is None
        assert transaction.find(QUEUE, "NEW") == new
        assert numbers(transaction.objects(QUEUE)) == [1]
        assert numbers(transaction.owned_by(QUEUE, guid(7))) == [1]
        assert numbers(transaction.having(QUEUE, PropId.Q_LABEL, b"y")) == [1]
        assert numbers(transaction.having(QUEUE, PropId.Q_LABEL, b"x")) == []
        assert list(transaction.changes(SITE, SequenceNumber.MIN)) == [new]
        assert transaction.count(QUEUE) == 1


def test_write_passes_the_exception_on(store: Store) -> None:
    with pytest.raises(UndoError, match="why"), store.write():
        raise UndoError("why")


def test_nothing_is_visible_before_the_commit(store: Store) -> None:
    with store.write() as transaction:
        transaction.insert(queue(1))
        transaction.bury(tombstone(2))
        transaction.put_partition(partition())
        with store.read() as view:
            assert view.get(QUEUE, guid(1)) is None
            assert view.count(QUEUE) == 0
            assert view.tombstones(guid(2)) == []
            assert view.partitions() == []
    with store.read() as view:
        assert view.count(QUEUE) == 1


def test_a_view_does_not_change_under_its_reader(store: Store) -> None:
    insert(store, queue(1, "old"), queue(2))
    with store.read() as view:
        before = list(view.objects(QUEUE))
        with store.write() as transaction:
            transaction.update(queue(1, "old"), queue(1, "new", seq=9))
            transaction.delete(queue(2))
            transaction.bury(tombstone(2))
            transaction.insert(queue(3))
            transaction.put_partition(partition())
        assert list(view.objects(QUEUE)) == before
        assert view.find(QUEUE, "old") == queue(1, "old")
        assert view.find(QUEUE, "new") is None
        assert numbers(view.changes(SITE, SequenceNumber.MIN)) == [1, 2]
        assert view.tombstones(guid(2)) == []
        assert view.partitions() == []
        with store.read() as later:
            assert numbers(later.objects(QUEUE)) == [1, 3]
        assert list(view.objects(QUEUE)) == before


def test_a_long_result_is_of_one_moment(store: Store) -> None:
    """A read in pages does not include changes that are committed between two pages."""
    with store.write() as transaction:
        for number in range(1, 2 * PAGE, 2):
            transaction.insert(queue(number))
    with store.read() as view:
        rows = view.objects(QUEUE)
        first = next(rows)
        insert(store, queue(2 * PAGE + 100))
        assert numbers(iter([first, *rows])) == list(range(1, 2 * PAGE, 2))


def test_savepoints_nest(store: Store) -> None:
    with store.write() as transaction:
        transaction.insert(queue(1))
        with transaction.savepoint():
            transaction.insert(queue(2))
            with suppress(UndoError), transaction.savepoint():
                transaction.insert(queue(3))
                with transaction.savepoint():
                    transaction.delete(queue(1))
                raise UndoError
            with transaction.savepoint():
                transaction.insert(queue(4))
        with suppress(UndoError), transaction.savepoint():
            with transaction.savepoint():
                transaction.delete(queue(2))
            transaction.bury(tombstone(2))
            transaction.put_partition(partition())
            assert transaction.get(QUEUE, guid(2)) is None
            raise UndoError
        assert numbers(transaction.objects(QUEUE)) == [1, 2, 4]
    with store.read() as view:
        assert numbers(view.objects(QUEUE)) == [1, 2, 4]
        assert view.tombstones(guid(2)) == []
        assert view.partitions() == []


def test_a_savepoint_passes_the_exception_on(store: Store) -> None:
    with (
        store.write() as transaction,
        pytest.raises(UndoError, match="why"),
        transaction.savepoint(),
    ):
        raise UndoError("why")


def count_up(store: Store, times: int) -> None:
    for _ in range(times):
        with store.write() as transaction:
            found = transaction.partition(SITE) or partition(last_seq=0)
            transaction.put_partition(partition(last_seq=found.last_seq.value + 1))


def run_together(*threads: Thread) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def test_writers_of_two_threads_take_turns(store: Store) -> None:
    run_together(*(Thread(target=count_up, args=(store, 25)) for _ in range(2)))
    with store.read() as view:
        assert view.partition(SITE) == partition(last_seq=50)


def test_writers_of_two_stores_on_one_database_take_turns(database: Database) -> None:
    """As two processes would: nothing is shared but the database."""
    stores = database.open(), database.open()
    run_together(*(Thread(target=count_up, args=(store, 25)) for store in stores))
    with stores[0].read() as view:
        assert view.partition(SITE) == partition(last_seq=50)
    for store in stores:
        store.close()


def test_readers_of_several_threads(store: Store) -> None:
    """Each sees as many queues as its partition's number says, while both grow."""
    torn: list[tuple[int, int]] = []
    done = False

    def look() -> None:
        while not done:
            with store.read() as view:
                found = view.partition(SITE)
                counted = view.count(QUEUE)
                if counted != (0 if found is None else found.last_seq.value):
                    torn.append((counted, 0 if found is None else found.last_seq.value))

    def grow() -> None:
        nonlocal done
        try:
            for number in range(1, 31):
                with store.write() as transaction:
                    transaction.insert(queue(number))
                    transaction.put_partition(partition(last_seq=number))
        finally:
            done = True

    run_together(Thread(target=look), Thread(target=look), Thread(target=grow))
    assert torn == []
    with store.read() as view:
        assert view.count(QUEUE) == 30


# --- values ---------------------------------------------------------------------------------------


@ON_ONE_STORE
@given(st.fixed_dictionaries({int(vt): variants(vt) for vt in VarType}))
def test_values_of_every_type_come_back(store: Store, values: dict[int, PropVariant]) -> None:
    obj = queue(1).with_properties(values, SequenceNumber(1))
    with rolled_back(store) as transaction:
        transaction.insert(obj)
        found = transaction.get(QUEUE, obj.id)
        assert found is not None
        assert {vt: found.properties[vt] for vt in values} == values
        assert found == obj


@ON_ONE_STORE
@given(directory_objects(), tombstones(), partition_states())
def test_objects_tombstones_and_partitions_come_back(
    store: Store, obj: DirectoryObject, deleted: DeletedObject, state: Partition
) -> None:
    with rolled_back(store) as transaction:
        transaction.insert(obj)
        transaction.bury(deleted)
        transaction.put_partition(state)
        assert transaction.get(obj.type, obj.id) == obj
        assert transaction.tombstones(deleted.id) == [deleted]
        assert transaction.partition(state.id) == state
        if obj.path is not None:
            assert transaction.find(obj.type, obj.path) == obj


# --- the end --------------------------------------------------------------------------------------


def test_reopening_shows_all_data(database: Database) -> None:
    first = database.open()
    insert(first, *one_of_each())
    with first.write() as transaction:
        transaction.bury(tombstone(9))
        transaction.put_partition(partition())
    first.close()
    first.close()
    second = database.open()
    with second.read() as view:
        for obj in one_of_each():
            assert view.get(obj.type, obj.id) == obj
        assert view.tombstones(guid(9)) == [tombstone(9)]
        assert view.partitions() == [partition()]
    second.close()


def test_a_closed_store_is_not_used(database: Database) -> None:
    store = database.open()
    with store.read() as view:
        assert view.count(QUEUE) == 0
    store.close()
    with pytest.raises(StorageError, match="closed"), store.read():
        pass
    with pytest.raises(StorageError, match="closed"), store.write():
        pass
    with pytest.raises(StorageError, match="closed"):
        store.check()


def test_a_reader_may_finish_after_the_store_was_closed(database: Database) -> None:
    store = database.open()
    insert(store, queue(1))
    with store.read() as view:
        store.close()
        assert view.count(QUEUE) == 1


# --- digests --------------------------------------------------------------------------------------


def assert_digests_are_right(view: View) -> None:
    expected = computed_digests(view)
    for state in view.partitions():
        assert view.digest(state.id) == expected[state.id]


def test_digest_of_no_partition(store: Store) -> None:
    with store.read() as view:
        assert view.digest(SITE) is None
    with store.write() as transaction:
        transaction.put_partition(partition())
        assert transaction.digest(SITE) == PartitionDigest()


def test_every_change_counts_in_the_digest(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition())
        transaction.insert(queue(1))
    seen = set()
    of_site = queue(2, others={PropId.Q_SCOPE: Scope.SITE})
    changes: list[Callable[[Transaction], object]] = [
        lambda tx: tx.insert(of_site),
        lambda tx: tx.update(queue(1), queue(1, label="x", seq=9)),
        lambda tx: tx.update(of_site, queue(2, label="y", seq=10)),
        lambda tx: tx.delete(queue(1, label="x", seq=9)),
    ]
    for change in changes:
        with store.write() as transaction:
            change(transaction)
        with store.read() as view:
            assert_digests_are_right(view)
            seen.add(view.digest(SITE))
    assert len(seen) == 4


def test_a_mark_and_a_tombstone_do_not(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition())
        transaction.insert(queue(1))
        before = transaction.digest(SITE)
        held = transaction.get(QUEUE, guid(1))
        assert held is not None
        transaction.update(held, replace(held, seq=SequenceNumber.MIN))
        transaction.bury(tombstone(7))
        assert transaction.digest(SITE) == before
        assert_digests_are_right(transaction)


def test_what_is_rolled_back_is_not_in_the_digest(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_partition(partition())
        transaction.insert(queue(1))
        before = transaction.digest(SITE)
        with suppress(UndoError), transaction.savepoint():
            transaction.insert(queue(2))
            assert transaction.digest(SITE) != before
            transaction.drop_partition(SITE)
            raise UndoError
        assert transaction.digest(SITE) == before
        with transaction.savepoint():
            transaction.insert(queue(3))
        assert_digests_are_right(transaction)
    with rolled_back(store) as transaction:
        transaction.delete(queue(1))
    with store.read() as view:
        assert_digests_are_right(view)


def test_a_partition_that_comes_after_its_objects(store: Store) -> None:
    insert(store, queue(1), machine(2))
    with store.read() as view:
        assert view.digest(SITE) is None
    with store.write() as transaction:
        transaction.insert(queue(3))
        transaction.put_partition(partition())
        assert_digests_are_right(transaction)
    with store.write() as transaction:
        transaction.drop_partition(SITE)
        transaction.delete(queue(1))
        transaction.put_partition(partition())
    with store.read() as view:
        assert_digests_are_right(view)
        assert view.digest(SITE) != PartitionDigest()


def test_an_object_that_moves_to_another_partition(store: Store) -> None:
    with store.write() as transaction:
        for id_ in (SITE, OTHER_SITE):
            transaction.put_partition(partition(id_))
        transaction.insert(queue(1))
        held = transaction.get(QUEUE, guid(1))
        assert held is not None
        transaction.update(held, replace(held, partition=OTHER_SITE))
    with store.read() as view:
        assert_digests_are_right(view)
        assert view.digest(SITE) == PartitionDigest()
