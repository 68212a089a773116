"""A store and a journal that do not belong together are noticed, and a journal made around."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfile

import pytest

from mqis.admin.transfer import export_file, import_file
from mqis.lab import demo
from mqis.protocol.directory.export_format import ExportError
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.ports import Store
from mqis.protocol.replication.outgoing_changes import unsent_record
from mqis.runtime.entropy import SystemEntropy
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal.belonging import belonging_fault
from mqis.storage.journal.checking import StoreEnd, check_journal
from mqis.storage.journal.journal_files import snapshots
from mqis.storage.journal.past import PastMoment, past_directory
from mqis.storage.sqlite import SqliteStore
from mqis.views.comparison.side import objects_in_order
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

SERVER = "ams-dir1"


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of an authority; its journal is not begun yet."""
    path = tmp_path_factory.mktemp("founded") / "demo.db"
    with closing(SqliteStore(path)) as store:
        demo.build(store)
        with store.write() as tx:
            for state in tx.partitions():
                tx.put_state("authority", state.id.raw, b"serving")
            for state in tx.partitions():
                if state.owner != SERVER:
                    tx.drop_state("authority", state.id.raw)
    return path


@pytest.fixture
def store(founded: Path, tmp_path: Path) -> Iterator[SqliteStore]:
    copyfile(founded, tmp_path / "d.db")
    with closing(SqliteStore(tmp_path / "d.db", create=False)) as opened:
        yield opened


@pytest.fixture
def journal(store: SqliteStore, tmp_path: Path) -> Path:
    place = tmp_path / "journal"
    flush(store, place, snapshot=True)
    add_network(store, "One")
    flush(store, place)
    return place


def flush(store: Store, place: Path, *, snapshot: bool = False) -> None:
    with closing(Journal(place, SERVER, Guid(b"m" * 16))) as files:
        appender = Appender(store, files)
        appender.flush()
        if snapshot:
            appender.snapshot()


def add_network(store: Store, name: str, *, journaled: bool = True) -> None:
    with store.write() as tx:

        def record(change: OwnChange) -> None:
            tx.append(unsent_record(change, 1))

        events = DirectoryEvents(tx, 1, SystemEntropy(), observe=record if journaled else None)
        events.create_directory_object(ObjectType.CN, props({PropId.CN_NAME: name}))


def fault(store: Store, place: Path) -> str | None:
    with store.read() as view:
        return belonging_fault(view, place)


def check(store: Store, place: Path) -> list[str]:
    with store.read() as view:
        return [str(found) for found in check_journal(place, (), StoreEnd.of(view)).faults]


def test_a_store_belongs_to_its_journal(store: SqliteStore, journal: Path) -> None:
    assert fault(store, journal) is None
    assert fault(store, journal / "absent") is None
    add_network(store, "Two")  # waits in the store
    assert fault(store, journal) is None
    assert check(store, journal) == []


def test_an_older_copy_is_noticed(store: SqliteStore, journal: Path, tmp_path: Path) -> None:
    store.copy_to(tmp_path / "old.db")
    add_network(store, "Two")
    flush(store, journal)
    with closing(SqliteStore(tmp_path / "old.db", create=False)) as old:
        text = fault(old, journal)
    assert text is not None
    assert "it has records up to 2, but the store has made only 1" in text
    assert "mqis restore" in text


def test_another_store_with_more_records_is_noticed(
    store: SqliteStore, journal: Path, tmp_path: Path, founded: Path
) -> None:
    copyfile(founded, tmp_path / "other.db")
    with closing(SqliteStore(tmp_path / "other.db", create=False)) as other:
        for name in ("Eins", "Zwei", "Drei"):
            add_network(other, name)
            flush(other, tmp_path / "elsewhere")
        text = fault(other, journal)
    assert text is not None
    assert "its record 1 is not the one that the store wrote" in text


def test_a_journal_that_was_moved_away_begins_at_a_snapshot(
    store: SqliteStore, journal: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    flush(store, again, snapshot=True)
    assert list(snapshots(again)) == [1]
    add_network(store, "Two")
    flush(store, again)
    assert check(store, again) == []
    assert fault(store, again) is None, "it has not the store's first record, nor another one"
    _, last = past_directory(again, PastMoment())
    assert last == 2


def test_changes_around_the_journal_are_missing(store: SqliteStore, journal: Path) -> None:
    add_network(store, "Two", journaled=False)
    (end,) = check(store, journal)
    assert "the store is ahead: change" in end
    add_network(store, "Three")
    flush(store, journal)
    (gap,) = check(store, journal)
    assert "record 2: change" in gap
    assert "is in no record: the directory was changed without its journal" in gap


def test_an_import_into_the_store_of_a_server_is_in_its_journal(
    store: SqliteStore, journal: Path, tmp_path: Path
) -> None:
    """And the journal tells the directory before it and after it."""
    file = tmp_path / "more.jsonl"
    with closing(SqliteStore(tmp_path / "more.db")) as more:
        demo.build(more)
        add_network(more, "Added", journaled=False)
        export_file(more, file)
    lines = file.read_text("ascii").splitlines()
    added = [line for line in lines if '"Added"' in line]
    file.write_text("\n".join([lines[0].rpartition(',"lines"')[0] + "}", *added, ""]), "ascii")
    assert import_file(store, file).objects == {ObjectType.CN: 1}
    flush(store, journal)
    assert check(store, journal) == []
    past, last = past_directory(journal, PastMoment.parse("1"))
    now, _ = past_directory(journal, PastMoment())
    assert last == 1
    with past.read() as before, now.read() as after, store.read() as held:
        assert before.find(ObjectType.CN, "Added") is None
        assert list(objects_in_order(after)) == list(objects_in_order(held))


def test_an_import_into_another_partition_is_refused(
    store: SqliteStore, journal: Path, tmp_path: Path
) -> None:
    file = tmp_path / "all.jsonl"
    with closing(SqliteStore(tmp_path / "more.db")) as more:
        demo.build(more)
        with more.write() as tx:
            site = next(s for s in tx.partitions() if s.id != ENTERPRISE_PARTITION)
            away = next(s for s in tx.partitions() if s.owner not in (SERVER, site.owner))
            events = DirectoryEvents(tx, 1, SystemEntropy())
            events.create_directory_object(
                ObjectType.MACHINE,
                props({PropId.QM_PATHNAME: "new1", PropId.QM_SITE_IDS: (away.id,)}),
            )
        export_file(more, file)
    lines = file.read_text("ascii").splitlines()
    added = [line for line in lines if '"new1"' in line]
    file.write_text("\n".join([lines[0].rpartition(',"lines"')[0] + "}", *added, ""]), "ascii")
    with pytest.raises(ExportError, match="decides about partition"):
        import_file(store, file)
    with store.read() as view:
        assert view.find(ObjectType.MACHINE, "new1") is None
