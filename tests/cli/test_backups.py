"""Backups of a whole enterprise in one directory: taken, listed, checked, kept and put back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.admin.backup.collection import backups_in
from mqis.config.nodes import load_nodes
from tests.cli.commands import process, run
from tests.cli.test_up import SERVERS, Acme, agreed, running_acme


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    with running_acme(tmp_path_factory.mktemp("backups")) as made:
        yield made


@pytest.fixture(scope="module")
def directory(acme: Acme) -> Path:
    """Two backups of each server."""
    place = acme.directory / "backups"
    for _ in range(2):
        told = acme.mqis("backup", f"{place}/", "--run", str(acme.run))
        assert [line.split(": ")[1].split()[0] for line in told.splitlines()[:3]] == SERVERS
    return place


def test_a_directory_is_wanted_for_several_servers(acme: Acme, tmp_path: Path) -> None:
    file = tmp_path / "all.mqisbackup"
    told = acme.mqis("backup", str(file), "--run", str(acme.run), status=2)
    assert "DIR/ makes it" in told.replace("\n", "").replace("│", "")
    assert not file.exists()


def test_the_directory_is_listed_by_server_and_the_newest_first(directory: Path) -> None:
    found = json.loads(run("backup", directory, "--list", "--json").stdout)
    assert [backup["server"] for backup in found] == [name for name in SERVERS for _ in range(2)]
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert (first["created"], first["file"]) > (second["created"], second["file"])
    shown = run("backup", directory, "--list").stdout
    assert "6 backups there" in shown
    assert "lei-dir1 (psc)\n" in shown


def test_no_file_name_is_broken_in_a_narrow_terminal(directory: Path) -> None:
    shown = process("backup", directory, "--list", env={"COLUMNS": "80"}).stdout.decode()
    for path in directory.iterdir():
        (line,) = (line for line in shown.splitlines() if path.name in line)
        assert len(line) <= 80


def test_a_damaged_file_is_found_and_never_deleted(directory: Path, tmp_path: Path) -> None:
    for path in directory.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "notes.txt").write_text("mine")
    assert run("backup", tmp_path, "--check").stdout.endswith("6 backups intact\n")
    newest = backups_in(tmp_path)[0].path
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 0xFF
    newest.write_bytes(data)
    checked = run("backup", tmp_path, "--check", "--json")
    assert checked.exit_code == 1
    (fault,) = (backup["fault"] for backup in json.loads(checked.stdout) if backup["fault"])
    assert fault.startswith("this backup is damaged or incomplete")
    cut = tmp_path / "cut.mqisbackup"
    cut.write_bytes(newest.read_bytes()[:100])
    listed = run("backup", tmp_path, "--list")
    assert listed.exit_code == 1
    assert "6 backups there, 1 damaged" in listed.stdout


def test_only_the_newest_of_each_server_are_kept(acme: Acme, tmp_path: Path) -> None:
    def take(*options: str) -> list[dict[str, str]]:
        acme.mqis("backup", f"{tmp_path}/", "--run", str(acme.run), *options)
        found: list[dict[str, str]] = json.loads(run("backup", tmp_path, "--list", "--json").stdout)
        return found

    stranger = tmp_path / "stranger.mqisbackup"
    stranger.write_bytes(b"not a backup")
    take()
    take()
    kept = [b for b in take("--keep", "2") if b["fault"] is None]
    assert [backup["server"] for backup in kept] == [name for name in SERVERS for _ in range(2)]
    newest = {backup["server"]: backup["file"] for backup in kept[::2]}
    home = Path(load_nodes(acme.run).named("del-dir1").config)
    acme.mqis("backup", str(tmp_path), "--keep", "1", "--config", str(home))
    after = [b["file"] for b in take() if b["fault"] is None]
    assert newest["lei-dir1"] in after
    assert newest["del-dir1"] not in after
    assert stranger.exists()


def test_a_server_of_the_run_directory_is_restored_from_its_file(
    acme: Acme, directory: Path
) -> None:
    backup = next(b.path for b in backups_in(directory) if b.path.name.startswith("lei-dir2"))
    both = run("restore", backup, "--run", acme.run, "--config", "x.toml")
    assert both.exit_code == 2
    acme.mqis("stop", "lei-dir2")
    planned = acme.mqis("restore", str(backup), "--run", str(acme.run), "--force", "--dry-run")
    assert "then: mqis start lei-dir2" in planned
    acme.mqis("restore", str(backup), "--run", str(acme.run), "--force")
    acme.mqis("start", "lei-dir2")
    acme.until(agreed)
