"""Stores of an older, a newer and an unfinished schema version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.directory.objects import DirectoryObject, PartitionDigest
from mqis.protocol.errors import DamagedStore, StorageError
from mqis.protocol.replication.digest import computed_digests
from mqis.storage import schema
from mqis.storage.database_session import DatabaseConnection
from mqis.storage.row_conversion import object_row, partition_row, tombstone_row
from mqis.storage.sql_store import PAGE
from mqis.storage.sqlite import APPLICATION_ID
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.acl import Acl
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS, EVERYONE
from mqis.wire.seqnum import SequenceNumber
from tests.builders import OTHER_SITE, SITE, machine, partition, queue, tombstone, user
from tests.plugins.stores import Database, PostgresSchema, SqliteFile

OLD = [queue(1, label="Old"), queue(2), machine(3), user(4)]


class Direct:
    """``session.DatabaseConnection`` without a store around it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        return self._database.execute(sql, *parameters)

    def change(self, sql: str, parameters: Sequence[object]) -> int:
        self._database.execute(sql, *parameters)
        return 1

    def run_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        for row in rows:
            self._database.execute(sql, *row)

    def report_damage(self, error: DamagedStore) -> None:
        raise error


def set_version(database: Database, version: int) -> None:
    if isinstance(database, SqliteFile):
        database.execute(f"PRAGMA application_id={APPLICATION_ID}")
        database.execute(f"PRAGMA user_version={version}")
    else:
        database.execute("CREATE TABLE IF NOT EXISTS mqis_schema (version INTEGER NOT NULL)")
        database.execute("DELETE FROM mqis_schema")
        database.execute("INSERT INTO mqis_schema (version) VALUES (?)", version)


def version_of(database: Database) -> int:
    if isinstance(database, SqliteFile):
        return int(database.execute("PRAGMA user_version")[0][0])
    return int(database.execute("SELECT version FROM mqis_schema")[0][0])


def tables_of(database: Database) -> set[str]:
    if isinstance(database, SqliteFile):
        rows = database.execute("SELECT name FROM sqlite_master WHERE type='table'")
    else:
        rows = database.execute("SELECT tablename FROM pg_tables WHERE schemaname=current_schema()")
    return {row[0] for row in rows} - {"mqis_schema"}


def make_version_1(database: Database, objects: Sequence[DirectoryObject] = OLD) -> None:
    blob = "BLOB" if isinstance(database, SqliteFile) else "BYTEA"
    schema.STEPS[0](Direct(database), blob)
    marks = "(?, ?, ?, ?, ?, ?, ?)"
    columns = "(object_type, id, path_key, owner, partition_id, seq, body)"
    for start in range(0, len(objects), 100):
        rows = [object_row(obj) for obj in objects[start : start + 100]]
        values = [value for row in rows for value in row]
        every = ", ".join([marks] * len(rows))
        database.execute(f"INSERT INTO objects {columns} VALUES {every}", *values)
    for id_ in {obj.partition for obj in objects}:
        row = partition_row(partition(id_))
        database.execute("INSERT INTO partitions VALUES (?, ?, ?, ?, ?, ?)", *row)
    set_version(database, 1)


def test_version_1_is_brought_up_to_date(database: Database) -> None:
    make_version_1(database)
    store = database.open()
    assert version_of(database) == schema.VERSION
    with store.read() as view:
        assert [view.get(obj.type, obj.id) for obj in OLD] == OLD
        assert list(view.having(ObjectType.QUEUE, PropId.Q_LABEL, b"old")) == [OLD[0]]
        assert list(view.having(ObjectType.MACHINE, PropId.QM_SITE_IDS, SITE.raw)) == [OLD[2]]
    assert store.check() == []
    store.close()


def test_more_objects_than_a_page_are_brought_along(database: Database) -> None:
    """The page ends within a type, and the types do not end with a page."""
    many = [queue(n, label="q") for n in range(1, PAGE + 51)]
    many += [machine(n) for n in range(1, PAGE + 51)]
    make_version_1(database, many)
    store = database.open()
    with store.read() as view:
        assert len(list(view.having(ObjectType.QUEUE, PropId.Q_LABEL, b"q"))) == PAGE + 50
        found = view.having(ObjectType.MACHINE, PropId.QM_SITE_IDS, SITE.raw)
        assert len(list(found)) == PAGE + 50
    store.close()


def test_version_2_gets_states_and_an_outbox(database: Database) -> None:
    make_version_1(database)
    blob = "BLOB" if isinstance(database, SqliteFile) else "BYTEA"
    schema.STEPS[1](Direct(database), blob)
    set_version(database, 2)
    before = tables_of(database)

    store = database.open()

    assert version_of(database) == schema.VERSION
    new = {"states", "outbox", "outbox_last", "commits", "creators"}
    assert tables_of(database) - before == new
    record = JournalRecord(1, RecordKind.CHANGE, RecordState.LOCAL)
    with store.write() as transaction:
        assert [transaction.get(obj.type, obj.id) for obj in OLD] == OLD
        assert transaction.outbox(0, 10) == []
        assert transaction.append(record) == 1
        transaction.put_state("family", b"key", b"value")
    assert store.check() == []
    store.close()


def test_version_3_learns_who_owns_what(database: Database) -> None:
    """Owners were not indexed then, so nobody could be told how much of the directory he has."""
    owner = ADMINISTRATORS.to_bytes()
    descriptor = SecurityDescriptor(owner=ADMINISTRATORS, dacl=Acl(())).to_bytes()
    owned = [
        replace(obj, properties={**obj.properties, propid: PropVariant(VarType.BLOB, descriptor)})
        for obj, propid in ((queue(1), PropId.Q_SECURITY), (machine(3), PropId.QM_SECURITY))
    ]
    make_version_1(database, [*owned, queue(2)])
    blob = "BLOB" if isinstance(database, SqliteFile) else "BYTEA"
    for step in schema.STEPS[1:3]:
        step(Direct(database), blob)
    database.execute("DELETE FROM lookup_keys")
    set_version(database, 3)

    store = database.open()

    with store.read() as view:
        assert view.count_created(owner) == 2
        assert view.count_created(EVERYONE.to_bytes()) == 0
    assert store.check() == []
    store.close()


def test_version_4_gets_digests(database: Database) -> None:
    make_version_1(database)
    blob = "BLOB" if isinstance(database, SqliteFile) else "BYTEA"
    for step in schema.STEPS[1:4]:
        step(Direct(database), blob)
    set_version(database, 4)

    store = database.open()

    with store.write() as transaction:
        transaction.insert(queue(9))
    with store.read() as view:
        for id_, digest in computed_digests(view).items():
            assert view.digest(id_) == digest != PartitionDigest()
    assert store.check() == []
    store.close()


def test_version_5_gets_tombstones_by_partition(database: Database) -> None:
    """One that an authority wrongly announced took the place of the right one."""
    make_version_1(database)
    blob = "BLOB" if isinstance(database, SqliteFile) else "BYTEA"
    for step in schema.STEPS[1:5]:
        step(Direct(database), blob)
    old = [tombstone(number) for number in (0x51, 0x52)]
    for gone in old:
        marks = "INSERT INTO tombstones VALUES (?, ?, ?, ?, ?)"
        database.execute(marks, *tombstone_row(gone))
    set_version(database, 5)
    before = tables_of(database)

    store = database.open()

    assert version_of(database) == schema.VERSION
    assert tables_of(database) - before == {"commits", "creators"}
    other = tombstone(0x51, partition=OTHER_SITE)
    with store.write() as transaction:
        transaction.put_partition(partition(OTHER_SITE))
        transaction.bury(other)
    with store.read() as view:
        assert set(view.tombstones(other.id)) == {old[0], other}
        assert [c for c in view.changes(SITE, old[0].seq.decrement()) if c in old] == old
        assert list(view.changes(OTHER_SITE, SequenceNumber.MIN)) == [other]
    assert store.check() == []
    store.close()


def test_version_7_counts_objects_for_their_owners(database: Database) -> None:
    """Owners were keys of the index then, and objects that were given away counted no more."""
    descriptor = SecurityDescriptor(owner=ADMINISTRATORS, dacl=Acl(())).to_bytes()
    given = SecurityDescriptor(owner=EVERYONE, dacl=Acl(())).to_bytes()
    value = PropVariant(VarType.BLOB, descriptor)
    old = replace(queue(1), properties={**queue(1).properties, PropId.Q_SECURITY: value})
    make_version_1(database, [old, queue(2)])
    blob = "BLOB" if isinstance(database, SqliteFile) else "BYTEA"
    for step in schema.STEPS[1:7]:
        step(Direct(database), blob)
    insert = "INSERT INTO lookup_keys (object_type, propid, key, id) VALUES (?, ?, ?, ?)"
    database.execute(insert, 1, int(PropId.Q_SECURITY), ADMINISTRATORS.to_bytes(), old.id.raw)
    set_version(database, 7)

    store = database.open()

    with store.write() as transaction:
        change: dict[int, PropVariant] = {PropId.Q_SECURITY: PropVariant(VarType.BLOB, given)}
        transaction.update(old, old.with_properties(change, old.seq))
    with store.read() as view:
        assert view.count_created(ADMINISTRATORS.to_bytes()) == 1
        assert view.count_created(EVERYONE.to_bytes()) == 0
    assert store.check() == []
    store.close()


def test_a_second_opening_migrates_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.open().close()

    def never(_connection: DatabaseConnection, _blob: str) -> None:
        raise AssertionError("migrated again")

    monkeypatch.setattr(schema, "STEPS", (never,) * schema.VERSION)
    database.open().close()


def test_an_interrupted_migration_leaves_the_old_version(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_version_1(database)
    before = tables_of(database)

    def interrupted(connection: DatabaseConnection, blob: str) -> None:
        schema._lookup_keys(connection, blob)
        raise RuntimeError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", (schema.STEPS[0], interrupted))
        with pytest.raises(RuntimeError, match="the power went"):
            database.open()
    assert version_of(database) == 1
    assert tables_of(database) == before
    store = database.open()
    with store.read() as view:
        assert list(view.having(ObjectType.QUEUE, PropId.Q_LABEL, b"old")) == [OLD[0]]
    store.close()


def test_an_interrupted_creation_leaves_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_connection: DatabaseConnection, _blob: str) -> None:
        raise RuntimeError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", (schema.STEPS[0], interrupted))
        with pytest.raises(RuntimeError, match="the power went"):
            database.open()
    assert tables_of(database) == set()
    store = database.open()
    assert store.check() == []
    store.close()


def test_a_version_from_the_future_is_refused(database: Database) -> None:
    database.open().close()
    set_version(database, schema.VERSION + 1)
    with pytest.raises(StorageError, match=f"version {schema.VERSION + 1}.*newer mqis"):
        database.open()
    assert version_of(database) == schema.VERSION + 1


def test_a_damaged_old_object_is_named_and_nothing_is_changed(database: Database) -> None:
    make_version_1(database)
    database.execute("UPDATE objects SET body=? WHERE id=?", b"\xff\xff", OLD[0].id.raw)
    with pytest.raises(StorageError, match=f"object {OLD[0].id.raw.hex()} of type 1 is damaged"):
        database.open()
    assert version_of(database) == 1


def test_several_version_rows_are_refused(postgres_schema: PostgresSchema) -> None:
    postgres_schema.open().close()
    postgres_schema.execute("INSERT INTO mqis_schema (version) VALUES (1)")
    with pytest.raises(StorageError, match="2 rows instead of one"):
        postgres_schema.open()
