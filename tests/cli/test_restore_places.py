"""``mqis restore`` into the place of another server, with and without a run directory."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from mqis.config.file import load
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.wire.errors import MqisError
from tests.cli.commands import run
from tests.server.enterprises import Site


def place(directory: Path, name: str) -> NodePlace:
    home = directory / "servers" / name
    return NodePlace(
        *(name, "pec", "Delft", "127.77.1.1", 2879, 135, 1801, 1801, 9364),
        *(str(home), str(home / "mqis.toml"), str(home / "d.db")),
        *(str(home / "journal"), str(home / "log")),
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A run directory with two servers that are stopped, beside the backups of both."""
    made = tmp_path / "my run"
    (made / "servers").mkdir(parents=True)
    site = Site(made / "servers")
    for name in ("pec1", "psc2"):
        home = site.found(name)
        taken = run("backup", tmp_path / f"{name}.mqisbackup", "--config", home / "mqis.toml")
        assert taken.exit_code == 0, taken.exception
    save_nodes(made, Nodes("Acme", tuple(place(made, name) for name in ("pec1", "psc2"))))
    return made


def contents(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir()}


def refusal(*arguments: str | Path) -> str:
    done = run("restore", *arguments)
    assert isinstance(done.exception, MqisError), done.output
    return str(done.exception)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("options", [(), ("--force",)])
def test_a_place_of_a_run_directory_is_for_its_own_server(
    directory: Path, tmp_path: Path, lost: bool, options: tuple[str, ...]
) -> None:
    """The configuration of pec1 then was that of psc2, and 'mqis up' started nothing."""
    home, backup = directory / "servers" / "pec1", tmp_path / "psc2.mqisbackup"
    if lost:
        (home / "mqis.toml").unlink()
    before = contents(home)
    told = refusal(backup, "--config", home / "mqis.toml", *options)
    assert f"this backup is of psc2, but {home / 'mqis.toml'} is the place of pec1; run: " in told
    assert "\n" not in told
    assert contents(home) == before
    command = shlex.split(told.partition("; run: mqis ")[2])
    assert command == ["restore", str(backup), "--run", str(directory), *options]
    done = run(*command, "--force")
    assert done.exit_code == 0, done.exception
    assert f"wrote {directory / 'servers' / 'psc2' / 'mqis.toml'}" in done.stdout.replace("\n", "")


def test_a_server_gets_its_place_back_from_another_one(directory: Path, tmp_path: Path) -> None:
    """As the command left it before: the name of the place counts, not the file in it."""
    home = directory / "servers" / "pec1"
    (home / "mqis.toml").write_bytes((directory / "servers" / "psc2" / "mqis.toml").read_bytes())
    done = run("restore", tmp_path / "pec1.mqisbackup", "--config", home / "mqis.toml", "--force")
    assert done.exit_code == 0, done.exception
    assert load(home / "mqis.toml").server.name == "pec1"


def test_a_server_that_is_in_no_run_directory_is_told_apart_by_its_configuration(
    directory: Path, tmp_path: Path
) -> None:
    (directory / "nodes.json").unlink()
    home, backup = directory / "servers" / "pec1", tmp_path / "psc2.mqisbackup"
    before = contents(home)
    told = refusal(backup, "--config", home / "mqis.toml", "--force")
    assert f"{home / 'mqis.toml'} is the place of pec1; run: mqis restore" in told
    assert contents(home) == before
    (home / "mqis.toml").write_text("[server]\nname = [")
    done = run("restore", backup, "--config", home / "mqis.toml", "--force")
    assert done.exit_code == 0, done.exception
