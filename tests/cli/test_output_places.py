"""The files that ``mqis backup`` and other commands write: no slip of the name replaces another."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from mqis.admin.backup import backup_file, taking_backup
from mqis.admin.backup.backup_file import Archive
from mqis.admin.backup.manifest import Manifest
from mqis.config.stores import open_store
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
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


def test_a_backup_that_exists_is_replaced_by_force_alone(home: Path, tmp_path: Path) -> None:
    other = founded(tmp_path / "two", "psc2")
    earlier = backup(other, tmp_path / "earlier")
    before = earlier.read_bytes()
    with pytest.raises(MqisError, match=r"earlier: this backup exists already.* --force"):
        backup(home, earlier)
    assert earlier.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["earlier", "pec1", "two"]
    assert backup(home, earlier, "--force") == earlier
    assert Archive(earlier).manifest.server == "pec1"


@pytest.mark.parametrize("name", ["d.db", "d.db-wal", "d.db-shm", "mqis.toml", "signing.key"])
@pytest.mark.parametrize("options", [(), ("--force",)])
def test_no_backup_replaces_a_file_of_the_server(
    home: Path, name: str, options: tuple[str, ...]
) -> None:
    """``mqis backup d.db --force`` put the backup in the place of the live store."""
    with closing(open_store(str(home / "d.db"), claim=True)) as live:
        with live.read() as view:
            assert view.find(ObjectType.MACHINE, "pec1") is not None
        before = {path.name: path.read_bytes() for path in home.iterdir()}
        with pytest.raises(MqisError, match="not an intact backup") as refused:
            backup(home, home / name, *options)
        assert "--force" not in str(refused.value)
        assert "name another file or a directory" in str(refused.value)
        assert {path.name: path.read_bytes() for path in home.iterdir()} == before


def test_half_a_backup_and_a_link_to_a_store_are_not_replaced(home: Path, tmp_path: Path) -> None:
    whole = backup(home, tmp_path / "b").read_bytes()
    (tmp_path / "b").write_bytes(whole[:100])
    (tmp_path / "link").symlink_to(home / "d.db")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    for name in ("b", "link", "nowhere"):
        with pytest.raises(MqisError, match="not an intact backup"):
            backup(home, tmp_path / name, "--force")
    assert (tmp_path / "b").read_bytes() == whole[:100]
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "nowhere").is_symlink()


def test_a_backup_replaces_no_earlier_backup(home: Path, tmp_path: Path) -> None:
    first = backup(home, tmp_path / "b").read_bytes()
    other = founded(tmp_path / "two", "psc2")
    with pytest.raises(MqisError, match="exists already"):
        backup(other, tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == first


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("options", [(), ("--force",)])
def test_a_file_that_appears_meanwhile_is_not_replaced(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    links: bool,
    options: tuple[str, ...],
) -> None:
    """With hard links the last step itself refuses; without them, a look just before it."""
    target = tmp_path / "b"
    write = backup_file.write_archive

    def slowly(path: Path, manifest: Manifest, files: dict[str, Path]) -> None:
        write(path, manifest, files)
        target.write_text("mine")

    monkeypatch.setattr(taking_backup, "write_archive", slowly)
    if not links:

        def refused(*_args: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refused)
    with pytest.raises(MqisError, match="exists already"):
        backup(home, target, *options)
    assert target.read_text() == "mine"
    monkeypatch.setattr(taking_backup, "write_archive", write)
    target.unlink()
    assert Archive(backup(home, target)).manifest.server == "pec1"


def test_a_pipe_or_device_is_no_place_for_a_backup(home: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for options in ([], ["--force"]):
        with pytest.raises(MqisError, match="neither a file nor a directory"):
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
