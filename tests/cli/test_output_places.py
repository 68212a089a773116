"""The files that ``mqis backup`` and other commands write: no slip of the name replaces another."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mqis.admin.backup import archive, taking
from mqis.admin.backup.archive import Archive
from mqis.admin.backup.manifest import BackupError, Manifest
from tests.cli.commands import process, run
from tests.server.enterprises import Site


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Site(tmp_path).found("pec1")


def founded(place: Path, name: str) -> Path:
    place.mkdir()
    return Site(place).found(name)


def backup(home: Path, target: str | Path, *options: str) -> Path:
    done = run("backup", target, "--config", home / "mqis.toml", "--json", *options)
    if done.exception is not None:
        raise done.exception
    return Path(json.loads(done.stdout)["file"])


@pytest.mark.parametrize("end", ["/", "/.", "//"])
def test_a_name_that_ends_in_a_slash_is_a_directory(home: Path, tmp_path: Path, end: str) -> None:
    """It did not exist, and the backup was a file of that name."""
    backups = tmp_path / "deep" / "backups"
    made = backup(home, f"{backups}{end}")
    assert made.parent == backups
    assert Archive(made).manifest.server == "pec1"
    assert backups.stat().st_mode & 0o777 == 0o700


def test_backups_of_several_servers_get_names_of_their_own(home: Path, tmp_path: Path) -> None:
    """Also two servers of one name, of which each may be backed up within one second."""
    other, namesake = founded(tmp_path / "two", "psc2"), founded(tmp_path / "three", "pec1")
    for server in (home, other, namesake, home):
        backup(server, f"{tmp_path / 'backups'}/")
    found = [Archive(path) for path in (tmp_path / "backups").iterdir()]
    assert sorted(each.manifest.server for each in found) == ["pec1"] * 3 + ["psc2"]
    ids = {each.manifest.id for each in found}
    assert len(ids) == 3


def test_a_file_that_exists_is_replaced_by_force_alone(home: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    with pytest.raises(BackupError, match=r"notes\.txt: this file exists already.* --force"):
        backup(home, notes)
    assert notes.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "pec1"]
    assert backup(home, notes, "--force") == notes
    assert Archive(notes).manifest.server == "pec1"


def test_a_backup_replaces_no_earlier_backup(home: Path, tmp_path: Path) -> None:
    first = backup(home, tmp_path / "b").read_bytes()
    other = founded(tmp_path / "two", "psc2")
    with pytest.raises(BackupError, match="exists already"):
        backup(other, tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == first


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_replaced(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """With hard links the last step itself refuses; without them, a look just before it."""
    target = tmp_path / "b"
    write = archive.write_archive

    def slowly(path: Path, manifest: Manifest, files: dict[str, Path]) -> None:
        write(path, manifest, files)
        target.write_text("mine")

    monkeypatch.setattr(taking, "write_archive", slowly)
    if not links:

        def refused(*_args: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refused)
    with pytest.raises(BackupError, match="exists already"):
        backup(home, target)
    assert target.read_text() == "mine"
    monkeypatch.setattr(taking, "write_archive", write)
    target.unlink()
    assert Archive(backup(home, target)).manifest.server == "pec1"


def test_a_pipe_or_device_is_no_place_for_a_backup(home: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for options in ([], ["--force"]):
        with pytest.raises(BackupError, match="neither a file nor a directory"):
            backup(home, tmp_path / "pipe", *options)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("arguments", [("export",), ("map", "--svg"), ("export", "--ldif")])
def test_no_output_replaces_a_store(home: Path, arguments: tuple[str, ...]) -> None:
    """``mqis export directory.db`` made a file of lines of the server's own store."""
    store = home / "d.db"
    before = store.read_bytes()
    done = process(*arguments, store, directory=home)
    assert done.returncode == 1
    assert b"d.db: cannot be written: a store or another database is there" in done.stderr
    assert store.read_bytes() == before
