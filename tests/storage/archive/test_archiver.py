"""Archiving: verified copies, resumed after a kill at any step, and nothing deleted before."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from mqis import places
from mqis.places import parse_place
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.errors import StorageError
from mqis.storage.archive import Archiver, archived_journals, archiver, restore_journal
from mqis.storage.archive.archiver import NAME
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import segments, snapshots
from mqis.storage.journal.journal_reader import first_lsn, records
from mqis.storage.journal.keeping import Keeper
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from tests.s3server import s3_server

SERVER = Guid(b"s" * 16)


def happen(store: MemoryStore, times: int) -> None:
    with store.write() as tx:
        for number in range(times):
            tx.append(JournalRecord(number, RecordKind.CHANGE, RecordState.LOCAL))


def write_journal(
    directory: Path, snapshots_taken: int = 3, store: MemoryStore | None = None
) -> None:
    """A journal with a snapshot before each of its segments; the last segment is open."""
    store = store or MemoryStore()
    with closing(Journal(directory, "PSC1", SERVER)) as journal:
        appender = Appender(store, journal)
        for _ in range(snapshots_taken):
            appender.snapshot()
            happen(store, 5)
            appender.flush()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_journal(tmp_path / "journal")
    return tmp_path / "journal"


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def closed_names(directory: Path) -> list[str]:
    return sorted(path.name for path in archiver.closed_files(directory))


def test_closed_files_are_copied_and_the_open_segment_is_not(
    directory: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    made = Archiver(directory, archive, SERVER)
    made.look()
    assert made.status().waiting == 5
    assert made.status().lag_s > 0
    assert made.step() == 5
    assert names(archive / str(SERVER)) == closed_names(directory)
    assert "segment-0000000003.mqj" not in names(archive / str(SERVER))
    for name in closed_names(directory):
        assert (archive / str(SERVER) / name).read_bytes() == (directory / name).read_bytes()
    assert made.step() == 0
    assert made.status().waiting == 0
    assert made.status().lag_s == 0
    assert Archiver(directory, archive, SERVER).step() == 0


def test_a_snapshot_comes_before_the_segment_that_names_it(directory: Path) -> None:
    kinds = [path.name.partition("-")[0] for path in archiver.closed_files(directory)]
    assert kinds == ["snapshot", "segment", "snapshot", "segment", "snapshot"]


def test_a_segment_that_retention_deletes_during_a_look_is_no_failure(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Archiver(directory, tmp_path / "archive", SERVER)
    assert made.step() > 0
    gone, *rest = [path for path in archiver.closed_files(directory) if path.suffix == ".mqj"]

    def delete_and_look(path: Path) -> int:
        if path == gone:
            path.unlink()
        return first_lsn(path)

    monkeypatch.setattr(archiver, "first_lsn", delete_and_look)
    assert made.step() == 0
    assert made.status().failures == 0
    assert set(rest) <= set(archiver.closed_files(directory))


def test_a_segment_that_cannot_be_read_is_a_failure(directory: Path, tmp_path: Path) -> None:
    path = next(path for path in archiver.closed_files(directory) if path.suffix == ".mqj")
    data = path.read_bytes()
    path.write_bytes(b"not a segment")
    made = Archiver(directory, tmp_path / "archive", SERVER)
    with pytest.raises(StorageError, match=path.name):
        made.step()
    assert made.status().failures == 1
    assert path.name in made.status().error
    path.write_bytes(data)
    assert made.step() > 0
    assert (made.status().failures, made.status().error) == (1, ""), "the last step succeeded"


@pytest.mark.interop
def test_a_real_s3_server_is_an_archive(directory: Path, tmp_path: Path) -> None:
    with s3_server(tmp_path / "s3", "bucket") as server:
        place = parse_place(server.uri_with_credential("bucket/archive"))
        assert Archiver(directory, place, SERVER).step() == 5
        assert Archiver(directory, place, SERVER).step() == 0
        (directory / NAME).unlink()
        assert Archiver(directory, place, SERVER).step() == 5  # compared, not copied
        (journal,) = archived_journals(place)
        assert restore_journal(journal, tmp_path / "restored").records == 10
        assert "loopback-secret" not in (directory / NAME).read_text()
    assert names(tmp_path / "restored") == closed_names(directory)


# --- crashes --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


STEPS: list[tuple[object, str]] = [
    (os, "fsync"),
    (os, "rename"),
    (Path, "rename"),
    (Path, "replace"),
    (archiver, "put_at"),
    (archiver, "size_at"),
]


@pytest.mark.parametrize("at", [0, 1, 4, 7])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step[1]))
def test_a_kill_at_any_step_loses_nothing(
    step: tuple[object, str],
    at: int,
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the kill leaves: the files that are noted as archived are there, and right."""
    owner, name = step
    calls = 0
    real: Callable[..., object] = getattr(owner, name)

    def dying(*args: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls > at:
            raise Killed
        return real(*args, **named)

    archive = tmp_path / "archive"
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying)
        with suppress(Killed):
            Archiver(directory, archive, SERVER).step()
    again = Archiver(directory, archive, SERVER)
    for path in archiver.closed_files(directory):
        if again.is_archived(path):
            assert (archive / str(SERVER) / path.name).read_bytes() == path.read_bytes()
    again.step()
    assert [n for n in names(archive / str(SERVER)) if not n.endswith(".part")] == closed_names(
        directory
    )


@pytest.mark.req("SEC-13-03")
def test_a_copy_that_differs_is_not_noted(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that accepts bytes and keeps others."""

    def put_badly(source: Path, place: Path) -> None:
        places.put_at(source, place)
        data = bytearray(place.read_bytes())
        data[-1] ^= 1
        place.write_bytes(data)

    monkeypatch.setattr(archiver, "put_at", put_badly)
    made = Archiver(directory, tmp_path / "archive", SERVER)
    with pytest.raises(StorageError, match="the copy differs from the file"):
        made.step()
    assert not any(made.is_archived(path) for path in directory.iterdir())
    assert made.status().failures == 1
    assert "the copy differs" in made.status().error


def test_unfinished_copies_of_a_killed_process_are_no_journal(
    directory: Path, tmp_path: Path
) -> None:
    target = tmp_path / "archive" / str(SERVER)
    target.mkdir(parents=True)
    (target / "segment-0000000001.mqj.part").write_bytes(b"unfinished")
    Archiver(directory, tmp_path / "archive", SERVER).step()
    assert names(tmp_path / "archive") == [str(SERVER)]


def test_the_beginning_of_a_file_is_replaced(directory: Path, tmp_path: Path) -> None:
    """A store without atomic uploads was left with a part of a file."""
    target = tmp_path / "archive" / str(SERVER)
    target.mkdir(parents=True)
    data = (directory / "segment-0000000001.mqj").read_bytes()
    (target / "segment-0000000001.mqj").write_bytes(data[:-7])
    Archiver(directory, tmp_path / "archive", SERVER).step()
    assert (target / "segment-0000000001.mqj").read_bytes() == data


def test_another_file_of_the_archive_is_never_replaced(tmp_path: Path) -> None:
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    store = MemoryStore()
    write_journal(directory, 3, store)
    Archiver(directory, archive, SERVER).step()
    changed = archive / str(SERVER) / "segment-0000000003.mqj"
    changed.write_bytes(b"of somebody else")
    write_journal(directory, 1, store)
    made = Archiver(directory, archive, SERVER)
    with pytest.raises(StorageError, match="with another content; it is not replaced"):
        made.step()
    assert changed.read_bytes() == b"of somebody else"


def test_a_journal_that_begins_anew_gets_a_directory_of_its_own(
    directory: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    Archiver(directory, archive, SERVER).step()
    store = MemoryStore()
    with store.write() as tx:
        tx.put_partition(Partition(ENTERPRISE_PARTITION, "PSC1"))
    write_journal(tmp_path / "second", store=store)
    Archiver(tmp_path / "second", archive, SERVER).step()
    assert names(archive) == [str(SERVER), f"{SERVER}.2"]
    (tmp_path / "second" / NAME).unlink()
    assert Archiver(tmp_path / "second", archive, SERVER).step() == 5
    assert names(archive) == [str(SERVER), f"{SERVER}.2"]


def test_another_archive_gets_all_files(directory: Path, tmp_path: Path) -> None:
    Archiver(directory, tmp_path / "first", SERVER).step()
    second = Archiver(directory, tmp_path / "second", SERVER)
    assert not any(second.is_archived(path) for path in directory.iterdir())
    assert second.step() == 5


def test_a_spoilt_list_is_made_again(directory: Path, tmp_path: Path) -> None:
    Archiver(directory, tmp_path / "archive", SERVER).step()
    for text in ("", "[]", '{"version": 1, "target": 3, "files": []}'):
        (directory / NAME).write_text(text)
        assert Archiver(directory, tmp_path / "archive", SERVER).step() == 5
    assert len(json.loads((directory / NAME).read_text())["files"]) == 5


# --- retention ------------------------------------------------------------------------------------


@pytest.mark.req("SEC-13-03")
def test_a_segment_is_deleted_only_after_it_is_archived(tmp_path: Path) -> None:
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    store = MemoryStore()
    with store.write() as tx:
        tx.put_partition(Partition(ENTERPRISE_PARTITION, "PSC1"))
    with closing(Journal(directory, "PSC1", SERVER)) as journal:
        made = Archiver(directory, archive, SERVER)
        keeper = Keeper(store, journal, every=5, keep=1, is_archived=made.is_archived)
        for _ in range(4):
            happen(store, 5)
            keeper.flush()
        assert list(segments(directory)) == [1, 2, 3, 4]
        assert len(snapshots(directory)) == 4
        made.step()
        keeper.prune()
        assert list(segments(directory)) == [4]
        assert list(snapshots(directory)) == [15, 20], "no segment begins at 20 yet"
        happen(store, 5)
        keeper.flush()
        made.step()
    (kept,) = archived_journals(archive)
    restore_journal(kept, tmp_path / "restored")
    assert [entry.lsn for entry in records(tmp_path / "restored")] == list(range(1, 21))
    assert check_journal(tmp_path / "restored").faults == ()


def test_the_archive_is_continued_without_its_list(tmp_path: Path) -> None:
    """The list is lost, and retention has deleted what the archive has."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    store = MemoryStore()
    write_journal(directory, 4, store)
    Archiver(directory, archive, SERVER).step()
    for number in (1, 2, 3):
        (directory / f"segment-000000000{number}.mqj").unlink()
    (directory / NAME).unlink()
    write_journal(directory, 1, store)
    Archiver(directory, archive, SERVER).step()
    assert names(archive) == [str(SERVER)]
    assert "segment-0000000004.mqj" in names(archive / str(SERVER))
