"""Errors and lost connections of a PostgreSQL server; nothing has to be restarted after them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import pytest

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, Transaction
from mqis.storage.postgres import PostgresStore
from mqis.storage.schema import VERSION
from mqis.storage.sql_store import SqlTransaction
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from tests.builders import partition, queue, user
from tests.disks import small_disk
from tests.plugins.stores import PostgresSchema, PostgresServer

QUEUE = ObjectType.QUEUE


@pytest.fixture
def opened(postgres_schema: PostgresSchema) -> Iterator[PostgresStore]:
    with closing(postgres_schema.open()) as store:
        yield store


def insert(store: Store, number: int) -> None:
    with store.write() as transaction:
        transaction.insert(queue(number))


def count(store: Store) -> int:
    with store.read() as view:
        return view.count(QUEUE)


# --- connecting -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "conninfo",
    [
        "host=127.0.0.1 port=1 dbname=directory user=me password=hunter2",
        "postgresql://me:hunter2@127.0.0.1:1/directory",
    ],
)
def test_no_server(conninfo: str) -> None:
    with pytest.raises(StorageError) as caught:
        PostgresStore(conninfo)
    text = str(caught.value)
    expected = "PostgreSQL database directory at 127.0.0.1, port 1: cannot connect: "
    assert text.startswith(expected)
    assert "refused" in text
    assert text.count("127.0.0.1") == 1
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "conninfo",
    [
        "host=127.0.0.1 password=hunter2 secret dbname=x",
        "postgresql://me:hunt@er2secret@127.0.0.1/directory",
        "hunter2secret",
        "",
    ],
)
def test_a_connection_string_that_cannot_be_understood_is_not_quoted(conninfo: str) -> None:
    with pytest.raises(StorageError, match="cannot be parsed; write host=") as caught:
        PostgresStore(conninfo)
    assert "secret" not in str(caught.value)
    assert "hunt" not in repr(caught.value.__cause__)


def test_no_such_database(postgres_server: PostgresServer) -> None:
    conninfo = postgres_server.conninfo.replace("dbname=postgres", "dbname=nowhere")
    with pytest.raises(StorageError, match=r'database nowhere at .*"nowhere" does not exist'):
        PostgresStore(conninfo)


def test_no_such_schema(postgres_server: PostgresServer) -> None:
    conninfo = f"{postgres_server.conninfo} options='-c search_path=nowhere'"
    with pytest.raises(StorageError, match="no schema of its search_path exists"):
        PostgresStore(conninfo)


# --- what is there already ------------------------------------------------------------------------


def test_tables_of_something_else_are_left_alone(postgres_schema: PostgresSchema) -> None:
    postgres_schema.execute("CREATE TABLE partitions (disk TEXT)")
    with pytest.raises(StorageError, match=r"partitions belong to something else; name another"):
        postgres_schema.open()
    sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    assert postgres_schema.execute(sql) == [("partitions",)]


def test_tables_with_other_names_do_not_matter(postgres_schema: PostgresSchema) -> None:
    postgres_schema.execute("CREATE TABLE songs (title TEXT)")
    with closing(postgres_schema.open()) as store:
        assert store.check() == []


def test_stores_in_two_schemas_do_not_meet(postgres_server: PostgresServer) -> None:
    """Nor do they wait for each other."""
    places = postgres_server.new_schema(), postgres_server.new_schema()
    with closing(places[0].open()) as first, closing(places[1].open()) as second:
        with first.write() as transaction:
            transaction.insert(queue(1))
            insert(second, 1)
            insert(second, 2)
        assert (count(first), count(second)) == (1, 2)


def test_only_the_first_schema_of_the_search_path_counts(postgres_server: PostgresServer) -> None:
    behind, front = postgres_server.new_schema(), postgres_server.new_schema()
    with closing(behind.open()) as store:
        insert(store, 1)
    with closing(
        PostgresStore(front.conninfo_with(f"search_path={front.name},{behind.name}"))
    ) as store:
        assert count(store) == 0
        assert front.execute("SELECT version FROM mqis_schema") == [(VERSION,)]
        front.execute("DROP TABLE objects")
        with pytest.raises(StorageError, match="its tables are gone"):
            count(store)


def test_settings_of_the_session(postgres_server: PostgresServer) -> None:
    """Whatever the server's default is, a commit is flushed before it returns."""
    place = postgres_server.new_schema()
    careless = PostgresStore(place.conninfo_with("synchronous_commit=off"))
    with closing(careless), careless._writers.transaction() as session:
        assert session.run("SHOW synchronous_commit") == [("on",)]
        assert session.run("SHOW transaction_isolation") == [("read committed",)]
    with closing(place.open()) as store, store._readers.transaction() as session:
        assert session.run("SHOW transaction_isolation") == [("repeatable read",)]
        assert session.run("SHOW transaction_read_only") == [("on",)]


# --- while it runs --------------------------------------------------------------------------------


def kill_all(place: PostgresSchema) -> None:
    place.execute(
        "SELECT pg_terminate_backend(pid, 300000) FROM pg_stat_activity "
        "WHERE application_name = 'mqis'"
    )


def test_idle_connections_that_died_are_replaced(
    postgres_schema: PostgresSchema, opened: PostgresStore
) -> None:
    insert(opened, 1)
    with opened.read(), opened.read(), opened.read():
        pass
    kill_all(postgres_schema)
    insert(opened, 2)
    assert count(opened) == 2


def test_server_restart(postgres_server: PostgresServer, opened: PostgresStore) -> None:
    insert(opened, 1)
    assert count(opened) == 1
    postgres_server.stop()
    try:
        with pytest.raises(StorageError, match="cannot connect"), opened.read():
            pass
        with pytest.raises(StorageError, match="cannot connect"), opened.write():
            pass
        (fault,) = opened.check()
        assert "cannot connect" in fault
    finally:
        postgres_server.start()
    assert count(opened) == 1
    insert(opened, 2)
    assert count(opened) == 2


def test_connection_lost_in_a_transaction(
    postgres_schema: PostgresSchema, opened: PostgresStore
) -> None:
    """Later operations of the group fail too, and the commit does not pretend."""
    failures = []
    with pytest.raises(StorageError, match="the server went away"), opened.write() as transaction:  # noqa: PT012
        transaction.insert(queue(1))
        kill_all(postgres_schema)
        for number in (2, 3):
            try:
                with transaction.savepoint():
                    transaction.insert(queue(number))
            except StorageError as error:
                failures.append(str(error))
    assert len(failures) == 2
    assert all("the server went away, nothing was written" in text for text in failures)
    assert count(opened) == 0
    insert(opened, 1)


def test_connection_lost_before_the_commit(
    postgres_schema: PostgresSchema, opened: PostgresStore
) -> None:
    expected = "the server went away during the commit; it is unknown whether"
    with pytest.raises(StorageError, match=expected), opened.write() as transaction:  # noqa: PT012
        transaction.insert(queue(1))
        assert isinstance(transaction, SqlTransaction)
        transaction.finish()  # nothing is left to do but the commit
        kill_all(postgres_schema)
    assert count(opened) == 0


def test_connection_lost_before_deferred_writes(
    postgres_schema: PostgresSchema, opened: PostgresStore
) -> None:
    expected = "the server went away, nothing was written"
    with pytest.raises(StorageError, match=expected), opened.write() as transaction:  # noqa: PT012
        transaction.insert(queue(1))
        kill_all(postgres_schema)
    assert count(opened) == 0


def test_connection_lost_under_a_reader(
    postgres_schema: PostgresSchema, opened: PostgresStore
) -> None:
    with pytest.raises(StorageError, match="went away"), opened.read() as view:  # noqa: PT012
        view.count(QUEUE)
        kill_all(postgres_schema)
        view.count(QUEUE)
    assert count(opened) == 0


def test_read_only_server(postgres_schema: PostgresSchema) -> None:
    with closing(postgres_schema.open()) as store:
        insert(store, 1)
    conninfo = postgres_schema.conninfo_with("default_transaction_read_only=on")
    with closing(PostgresStore(conninfo)) as store:
        expected = "the server is read-only, nothing was written"
        with pytest.raises(StorageError, match=expected):
            insert(store, 2)
        assert count(store) == 1


def test_another_writer(postgres_schema: PostgresSchema, opened: PostgresStore) -> None:
    impatient = postgres_schema.open()
    with closing(impatient):
        (writer,) = impatient._writers.idle
        writer.run("SET lock_timeout TO '50ms'")
        with opened.write():
            with pytest.raises(StorageError, match="another process is writing"):
                insert(impatient, 1)
            assert count(impatient) == 0
        insert(impatient, 1)
        assert impatient._writers.idle == [writer]


def test_taken_name_says_so(opened: PostgresStore) -> None:
    insert(opened, 1)
    with pytest.raises(StorageError, match="the identifier or name is already in the store"):
        insert(opened, 1)
    assert count(opened) == 1


def test_a_failure_outside_a_savepoint_fails_the_commit(opened: PostgresStore) -> None:
    insert(opened, 1)
    expected = "an earlier statement failed outside a savepoint, nothing was written"
    with pytest.raises(StorageError, match=expected), opened.write() as transaction:  # noqa: PT012
        transaction.put_partition(partition())
        with suppress(StorageError):
            transaction.insert(queue(1))
    with opened.read() as view:
        assert view.partitions() == []


def test_a_user_without_the_right(postgres_schema: PostgresSchema) -> None:
    with closing(postgres_schema.open()) as store:
        insert(store, 1)
    name, role = postgres_schema.name, f"reader_of_{postgres_schema.name}"
    postgres_schema.execute(f"CREATE ROLE {role} LOGIN")
    postgres_schema.execute(f"GRANT USAGE ON SCHEMA {name} TO {role}")
    postgres_schema.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}")
    conninfo = postgres_schema.conninfo.replace("user=mqis", f"user={role}")
    with closing(PostgresStore(conninfo)) as store:
        assert count(store) == 1
        with pytest.raises(StorageError, match="this user has no permission for that"):
            insert(store, 2)


def test_many_readers_leave_few_connections(
    postgres_schema: PostgresSchema, opened: PostgresStore
) -> None:
    def look() -> None:
        for _ in range(5):
            assert count(opened) == 0

    threads = [Thread(target=look) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mqis'"
    ((connections,),) = postgres_schema.execute(sql)
    assert connections <= 17


def fill_up(transaction: Transaction) -> None:
    for number in range(1, 1000):
        noise = random.Random(number).randbytes(20_000)  # the server compresses what it can
        transaction.insert(user(number, certificate=noise))


def test_full_disk(open_directory: Path) -> None:
    """On a server of its own, which takes the broken tablespace with it."""
    disk = open_directory / "disk"
    disk.mkdir()
    server = PostgresServer(open_directory / "server")
    with closing(server), small_disk(disk, "3m"):
        shutil.chown(disk, *server.owner)
        place = server.new_schema()
        place.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        with closing(PostgresStore(place.conninfo_with("default_tablespace=small"))) as store:
            insert(store, 1)
            with store.write() as transaction:
                transaction.put_partition(partition())
                transaction.put_partition(partition(Guid.NULL))
            expected = "no room left on the server, nothing was written; free some space"
            with pytest.raises(StorageError, match=expected), store.write() as transaction:
                fill_up(transaction)
            assert count(store) == 1
            assert store.check() == []
            with store.write() as transaction:
                transaction.put_partition(partition(owner="BSC"))  # fits where the old one was
            assert store.check() == []
