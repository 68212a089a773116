"""``mqis serve`` of a server that has lost its store: the way back that it prints works as printed.

The server is in no run directory; ``test_lost_servers.py`` has those that are.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqis.config.sections import ConfiguredRole
from mqis.server.loss import ways_back
from tests.cli.commands import process, run
from tests.cli.test_restore_places import contents
from tests.enterprise.test_loss import bare, foreign
from tests.server.enterprises import Site
from tests.waiting import DEADLINE_S


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The directory of a PEC, beside its backup and the directory of another server."""
    (tmp_path / "my servers").mkdir()
    site = Site(tmp_path / "my servers")
    site.found("psc2")
    made = site.found("pec1")
    taken = run("backup", tmp_path / "pec1.mqisbackup", "--config", made / "mqis.toml")
    assert taken.exit_code == 0, taken.exception
    return made


def as_told(command: str, directory: Path, env: dict[str, str]) -> None:
    """Has a shell carry out a command of a message as it is."""
    mqis = f'mqis() {{ {shlex.quote(sys.executable)} -m mqis.cli.main "$@"; }}'
    done = subprocess.run(
        ["/bin/sh", "-c", f"{mqis}; {command}"],
        cwd=directory,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("spoil", "named"),
    [(Path.unlink, "option"), (bare, "relative"), (foreign, "variable"), (Path.unlink, "here")],
)
def test_the_restore_that_is_printed_works_as_printed(
    home: Path, tmp_path: Path, spoil: Callable[[Path], object], named: str
) -> None:
    """It named no configuration, so that it was refused or restored into another directory."""
    spoil(home / "d.db")
    other = home.parent / "psc2"
    before = contents(other)
    directory = home if named == "here" else other
    env = {"MQIS_CONFIG": str(home / "mqis.toml")} if named == "variable" else {}
    options = {"option": str(home / "mqis.toml"), "relative": "../pec1/mqis.toml"}
    words = ["--config", options[named]] if named in options else []
    done = process("serve", *words, directory=directory, env=env)
    assert done.returncode == 1
    told = done.stderr.decode()
    command = told.partition("restore a backup of it: ")[2].partition("; or ")[0]
    as_told(command.replace("FILE", shlex.quote(str(tmp_path / "pec1.mqisbackup"))), directory, env)
    assert contents(other) == before
    checked = run("store", "check", "--config", home / "mqis.toml")
    assert checked.exit_code == 0, checked.output


def test_a_store_that_an_option_names_belongs_to_no_configuration(
    home: Path, tmp_path: Path
) -> None:
    done = process("serve", "--store", tmp_path / "gone.db", directory=home)
    assert b"gone.db: there is no store; restore a backup of it: mqis restore FILE " in done.stderr
    assert b"--config DIRECTORY/mqis.toml --force" in done.stderr


@pytest.mark.parametrize(
    ("role", "way"),
    [
        (ConfiguredRole.NONE, "make a new store: mqis import SOURCE --config '/my srv/mqis.toml'"),
        (ConfiguredRole.BSC, "name: mqis join --role bsc --config '/my srv/mqis.toml'"),
    ],
)
def test_the_other_ways_name_the_configuration_too(role: ConfiguredRole, way: str) -> None:
    assert ways_back(role, "srv", Path("/my srv/mqis.toml")).endswith(way)
