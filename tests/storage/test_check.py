"""``check()`` names what is wrong: every fault it knows, provoked behind the store's back."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqis.protocol.directory.indexing import index_keys
from mqis.protocol.ports import Store
from mqis.storage.sql_store import PAGE
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import encode_properties
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests import distinct
from tests.builders import (
    MACHINE,
    OTHER_SITE,
    SITE,
    guid,
    machine,
    one_of_each,
    partition,
    queue,
    tombstone,
    user,
)
from tests.plugins.stores import Database, SqliteFile

QUEUE = queue(0x1002, "machine\\orders", label="orders")
HEX = QUEUE.id.raw.hex()


def fill(store: Store) -> None:
    with store.write() as transaction:
        for obj in [*one_of_each(), QUEUE]:
            transaction.insert(obj)
        transaction.bury(tombstone(0x1003))
        for id_ in (Guid.NULL, SITE):
            transaction.put_partition(partition(id_))


@pytest.fixture
def filled(database: Database) -> Database:
    store = database.open()
    fill(store)
    assert store.check() == []
    store.close()
    return database


def faults(database: Database) -> list[str]:
    store = database.open()
    found = store.check()
    store.close()
    return found


def test_healthy(store: Store) -> None:
    assert store.check() == []
    fill(store)
    assert store.check() == []


def seq(number: int) -> bytes:
    return SequenceNumber(number).to_bytes()


# --- the content ----------------------------------------------------------------------------------


def test_unknown_partition(store: Store) -> None:
    fill(store)
    with store.write() as transaction:
        transaction.insert(queue(1, "lost", partition=OTHER_SITE))
    assert store.check() == [f"queue lost is in partition {OTHER_SITE}, which does not exist"]


def test_alive_and_buried(store: Store) -> None:
    fill(store)
    with store.write() as transaction:
        transaction.insert(queue(1, "undead"))
        transaction.bury(tombstone(1, seq=2))
    assert store.check() == ["queue undead exists and also has a tombstone"]


def test_alive_and_buried_in_another_partition(store: Store) -> None:
    """An authority may announce the deletion of an object that is not its own."""
    fill(store)
    with store.write() as transaction:
        transaction.put_partition(partition(OTHER_SITE))
        transaction.bury(tombstone(0x1002, partition=OTHER_SITE))
        transaction.bury(tombstone(0x1003, partition=OTHER_SITE, seq=2))
    assert store.check() == []


@pytest.mark.parametrize("buried", [False, True], ids=["two objects", "object and tombstone"])
def test_number_used_twice(store: Store, buried: bool) -> None:
    fill(store)
    with store.write() as transaction:
        transaction.insert(queue(1, seq=0x99))
        if buried:
            transaction.bury(tombstone(2, seq=0x99))
        else:
            transaction.insert(machine(2, seq=0x99))
    assert store.check() == [f"number {SequenceNumber(0x99)} of partition {SITE} is used twice"]


def test_number_behind_the_last(store: Store) -> None:
    fill(store)
    with store.write() as transaction:
        transaction.put_partition(partition(SITE, last_seq=0x1001))
        transaction.bury(tombstone(1, seq=0x5000))
    last, found = SequenceNumber(0x1001), SequenceNumber(0x5000)
    expected = f"partition {SITE} ends at {last}, but holds a change numbered {found}"
    assert store.check() == [expected]


def test_property_of_another_type(store: Store) -> None:
    fill(store)
    foreign: dict[int, PropVariant] = dict.fromkeys((77, 214), PropVariant(VarType.UI4, 1))
    with store.write() as transaction:
        transaction.insert(queue(1, "odd").with_properties(foreign, SequenceNumber(1)))
    assert store.check() == [
        f"queue odd has property {propid}, which its type does not have" for propid in (77, 214)
    ]


def test_property_with_another_variant_type(store: Store) -> None:
    fill(store)
    wrong: dict[int, PropVariant] = {PropId.U_SIGN_CERT: PropVariant(VarType.LPWSTR, "x")}
    with store.write() as transaction:
        transaction.insert(user(1).with_properties(wrong, SequenceNumber(1)))
    expected = f"user {guid(1)} has PROPID_U_SIGN_CERT as VT_LPWSTR, not VT_BLOB"
    assert store.check() == [expected]


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value"),
    [("path_key", b"other"), ("path_key", None), ("owner", OTHER_SITE.raw)],
)
def test_column_against_the_body(filled: Database, column: str, value: bytes | None) -> None:
    filled.execute(f"UPDATE objects SET {column}=? WHERE id=?", value, QUEUE.id.raw)
    expected = f"object {HEX} of type 1: column {column} differs from the object"
    assert faults(filled) == [expected]


def test_body_of_something_else(filled: Database) -> None:
    other = queue(1, "elsewhere", machine=guid(8), label="orders")
    body = encode_properties(other.properties)
    filled.execute("UPDATE objects SET body=? WHERE id=?", body, QUEUE.id.raw)
    *found, digest = faults(filled)
    assert found == [
        f"object {HEX} of type 1: column path_key differs from the object",
        f"object {HEX} of type 1: column owner differs from the object",
    ]
    assert digest.startswith(f"partition {SITE.raw.hex()}: its digest differs from its objects")


def test_a_value_that_nothing_else_depends_on(filled: Database) -> None:
    """A quota is in no index and no column: only the digest tells that it was edited."""
    edited = QUEUE.with_properties({PropId.Q_QUOTA: PropVariant(VarType.UI4, 7)}, QUEUE.seq)
    body = encode_properties(edited.properties)
    filled.execute("UPDATE objects SET body=? WHERE id=?", body, QUEUE.id.raw)
    (found,) = faults(filled)
    assert found.startswith(f"partition {SITE.raw.hex()}: its digest differs from its objects")


@pytest.mark.parametrize("digest", [None, b"short"])
def test_damaged_digest(filled: Database, digest: bytes | None) -> None:
    filled.execute("UPDATE partitions SET digest=? WHERE id=?", digest, SITE.raw)
    (found,) = faults(filled)
    assert found.startswith(f"partition {SITE.raw.hex()} is damaged: its digest is not one")


BODY = encode_properties(QUEUE.properties)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", b""),
        ("body", BODY[:-1]),
        ("body", BODY + b"\0"),
        ("body", b"\xff\xff" + BODY[2:]),
        ("body", BODY[:6] + b"\x77\x77" + BODY[8:]),
        ("seq", b"\1"),
        ("partition_id", b"short"),
    ],
)
def test_damaged_object(filled: Database, column: str, value: bytes) -> None:
    """Named once, and what lies behind it is checked all the same."""
    filled.execute(f"UPDATE objects SET {column}=? WHERE id=?", value, QUEUE.id.raw)
    filled.execute("UPDATE objects SET owner=? WHERE id=?", OTHER_SITE.raw, MACHINE.raw)
    found = faults(filled)
    assert len(found) == 2
    assert found[0].startswith(f"object {HEX} of type 1 is damaged: ")
    expected = f"object {MACHINE.raw.hex()} of type 2: column owner differs from the object"
    assert found[1] == expected


@pytest.mark.parametrize("kind", [0, 99, -5])
def test_unknown_object_type(filled: Database, kind: int) -> None:
    filled.execute("UPDATE objects SET object_type=? WHERE id=?", kind, QUEUE.id.raw)
    found = faults(filled)
    assert len(found) == 2
    assert found[0].startswith(f"object {HEX} of type {kind} is damaged: ")
    assert found[1] == "1 index entries belong to no object"  # the label


def test_text_where_bytes_belong(sqlite_file: SqliteFile) -> None:
    """SQLite keeps any type in any column."""
    fill(store := sqlite_file.open())
    store.close()
    sqlite_file.execute("UPDATE objects SET body='text' WHERE id=?", QUEUE.id.raw)
    sqlite_file.execute("UPDATE objects SET seq=5 WHERE id=?", MACHINE.raw)
    found = faults(sqlite_file)
    assert [fault.split(" is damaged")[0] for fault in found] == [
        f"object {HEX} of type 1",
        f"object {MACHINE.raw.hex()} of type 2",
    ]


def test_missing_index_entry(filled: Database) -> None:
    filled.execute("DELETE FROM lookup_keys WHERE propid=? AND id=?", 108, QUEUE.id.raw)
    assert faults(filled) == [f"object {HEX} of type 1: is not indexed by property 108"]


def test_stray_index_entries(filled: Database) -> None:
    insert = "INSERT INTO lookup_keys (object_type, propid, key, id) VALUES (1, 108, ?, ?)"
    filled.execute(insert, b"wrong", QUEUE.id.raw)
    filled.execute(insert, b"orders", guid(4).raw)
    assert faults(filled) == ["2 index entries belong to no object"]


def test_index_entry_under_the_wrong_key(filled: Database) -> None:
    """One is missing and one is too many: equal numbers must not hide it."""
    sql = "UPDATE lookup_keys SET key=? WHERE propid=? AND id=?"
    filled.execute(sql, b"wrong", 108, QUEUE.id.raw)
    assert faults(filled) == [
        f"object {HEX} of type 1: is not indexed by property 108",
        "1 index entries belong to no object",
    ]


def test_damaged_creators(filled: Database) -> None:
    """Rows of objects that are still to come are none."""
    insert = "INSERT INTO creators (object_type, id, account) VALUES (1, ?, ?)"
    filled.execute(insert, guid(4).raw, distinct.owner(1).to_bytes())
    assert faults(filled) == []
    filled.execute(insert, b"short", distinct.owner(1).to_bytes())
    filled.execute("UPDATE creators SET account=? WHERE id=?", b"x", QUEUE.id.raw)
    wrong, short = faults(filled)
    assert wrong.startswith(f"the creator of object {HEX} is no account: ")
    assert short == f"the creator of an object: {b'short'.hex()} is no identifier"


def test_damaged_tombstone(filled: Database) -> None:
    filled.execute("UPDATE tombstones SET scope=9")
    (found,) = faults(filled)
    assert found.startswith(f"tombstone {guid(0x1003).raw.hex()} is damaged: ")


def test_tombstone_in_an_unknown_partition(filled: Database) -> None:
    filled.execute("UPDATE tombstones SET partition_id=?", OTHER_SITE.raw)
    expected = f"tombstone {guid(0x1003).raw.hex()} is in a partition that does not exist"
    assert faults(filled) == [expected]


def test_damaged_partition(filled: Database) -> None:
    filled.execute("UPDATE partitions SET last_seq=? WHERE id=?", b"long" * 4, SITE.raw)
    found = faults(filled)
    assert found[0].startswith(f"partition {SITE.raw.hex()} is damaged: ")
    assert f"queue machine\\orders is in partition {SITE}, which does not exist" in found


def test_faults_behind_the_first_page(database: Database) -> None:
    store = database.open()
    with store.write() as transaction:
        for number in range(1, PAGE + 11):
            transaction.insert(queue(number))
            transaction.bury(tombstone(0x10000 + number))
        # The first page of tombstones ends between the two of one identifier.
        transaction.bury(tombstone(0x10000 + PAGE, partition=OTHER_SITE))
        for id_ in (SITE, OTHER_SITE):
            transaction.put_partition(partition(id_, last_seq=0x20000))
    store.close()
    late = PAGE + 5
    database.execute("UPDATE objects SET owner=? WHERE id=?", SITE.raw, guid(late).raw)
    buried = guid(0x10000 + PAGE).raw
    second = max(SITE.raw, OTHER_SITE.raw)
    spoil = "UPDATE tombstones SET scope=7 WHERE id=?"
    database.execute(f"{spoil} AND partition_id=?", buried, second)
    database.execute(spoil, guid(0x10000 + late).raw)
    found = faults(database)
    assert len(found) == 3
    assert guid(late).raw.hex() in found[0]
    assert buried.hex() in found[1]
    assert guid(0x10000 + late).raw.hex() in found[2]


def test_missing_table(filled: Database) -> None:
    store = filled.open()
    filled.execute("DROP TABLE tombstones")
    found = store.check()
    store.close()
    assert len(found) == 1
    assert "tombstones" in found[0]


# --- the file -------------------------------------------------------------------------------------


def scribble(path: Path, start: int, end: int) -> None:
    data = bytearray(path.read_bytes())
    data[start:end] = b"\xa5" * (end - start)
    path.write_bytes(data)


@pytest.mark.parametrize("which", [0.2, 0.5, 0.9])
def test_damaged_pages_are_named(sqlite_file: SqliteFile, which: float) -> None:
    store = sqlite_file.open()
    with store.write() as transaction:
        transaction.put_partition(partition())
        for number in range(1, 400):
            transaction.insert(queue(number, label=f"label {number}"))
    assert store.check() == []
    store.close()
    size = sqlite_file.path.stat().st_size
    middle = int(size * which) // 4096 * 4096
    scribble(sqlite_file.path, middle, middle + 8192)
    found = faults(sqlite_file)
    assert found
    assert any("page" in fault or "damaged" in fault for fault in found)


def test_every_index_key_is_checked() -> None:
    """The fixtures have some, else the tests of the index would prove nothing."""
    assert list(index_keys(QUEUE)) == [(PropId.Q_LABEL, b"orders")]
