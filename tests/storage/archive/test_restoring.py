"""Restoring: an archive that somebody changed is refused, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mqis.protocol.errors import StorageError
from mqis.storage.archive import Archiver, archived_journals, restore_journal, restoring_journals
from tests.storage.archive.test_archiver import SERVER, names, write_journal


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    write_journal(tmp_path / "journal", 5)
    Archiver(tmp_path / "journal", tmp_path / "archive", SERVER).step()
    return tmp_path / "archive"


def restored(archive: Path, directory: Path) -> int:
    (journal,) = archived_journals(archive)
    return restore_journal(journal, directory).records


def test_a_journal_comes_back_byte_for_byte(archive: Path, tmp_path: Path) -> None:
    assert restored(archive, tmp_path / "new") == 20
    inside = archive / str(SERVER)
    assert names(tmp_path / "new") == names(inside)
    for name in names(inside):
        assert (tmp_path / "new" / name).read_bytes() == (inside / name).read_bytes()
        assert (tmp_path / "new" / name).stat().st_mode & 0o777 == 0o600


def test_one_journal_of_an_archive_may_be_named(archive: Path, tmp_path: Path) -> None:
    assert restored(archive / str(SERVER), tmp_path / "new") == 20


def alter(inside: Path) -> None:
    path = inside / "segment-0000000002.mqj"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def rename(inside: Path) -> None:
    (inside / "segment-0000000004.mqj").rename(inside / "segment-0000000009.mqj")


def swap(inside: Path) -> None:
    second, third = inside / "segment-0000000002.mqj", inside / "segment-0000000003.mqj"
    data = second.read_bytes()
    second.write_bytes(third.read_bytes())
    third.write_bytes(data)


def remove(inside: Path) -> None:
    (inside / "segment-0000000002.mqj").unlink()


def change_snapshot(inside: Path) -> None:
    path = sorted(inside.glob("snapshot-*"))[1]
    path.write_bytes(path.read_bytes() + b"\n")


def enlarge(inside: Path) -> None:
    with (inside / "segment-0000000003.mqj").open("r+b") as file:
        file.truncate(restoring_journals.MAX_SEGMENT + 1)  # a hole; it takes no room


def move_to_another_server(inside: Path) -> None:
    inside.rename(inside.parent / "11111111-2222-3333-4444-555555555555")


@pytest.mark.req("SEC-13-01")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (alter, "faults"),
        (rename, "under another name"),
        (swap, "under another name"),
        (remove, "record 11 is where 6 belongs"),
        (change_snapshot, "SHA-256"),
        (enlarge, "no file of a journal"),
        (move_to_another_server, "the archive was changed"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_changed_archive_is_refused(
    change: Callable[[Path], None], reason: str, archive: Path, tmp_path: Path
) -> None:
    change(archive / str(SERVER))
    with pytest.raises(StorageError, match=reason):
        restored(archive, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.req("SEC-13-01")
def test_other_files_of_an_archive_are_not_fetched(archive: Path, tmp_path: Path) -> None:
    inside = archive / str(SERVER)
    own = names(inside)
    for stranger in (
        "lock",
        "segment-0000000001.mqj.part",
        "old-segment-0000000001.mqj",
        "segment-1.mqj",
        "segment-00000000011.mqj",
        "snapshot-00000000000000000001.jsonl~",
        "a-snapshot-00000000000000000001.jsonl",
    ):
        (inside / stranger).write_text("x")
    (inside / "deep").mkdir()
    (inside / "deep" / "segment-0000000009.mqj").write_text("x")
    (inside / "snapshot-00000000000000000009.jsonl").symlink_to("/etc/passwd")
    assert restored(archive, tmp_path / "new") == 20
    assert names(tmp_path / "new") == own


def test_a_full_disk_is_noticed_before_anything_is_fetched(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring_journals, "_SPARE_BYTES", 1 << 60)
    with pytest.raises(StorageError, match="has room for"):
        restored(archive, tmp_path / "new")


def test_a_directory_with_files_is_left_alone(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").touch()
    with pytest.raises(StorageError, match="is not empty"):
        restored(archive, tmp_path / "new")
    assert names(tmp_path / "new") == ["mine"]
