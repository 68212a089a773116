"""Commands without the libraries of the extras: they work, or say which extra they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mqis.cli.registry import COMMANDS
from tests.cli.commands import run
from tests.waiting import DEADLINE_S

#: The libraries that only extras install.
_LEFT_OUT = "networkx", "numpy", "scipy", "psycopg", "pyspark", "pyarrow", "pandas", "dns", "gssapi"
#: Runs the command in a process in which these cannot be imported.
_PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({_LEFT_OUT!r}))
from mqis.cli.main import main
sys.argv[0] = "mqis"
main()
"""


def light(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("light") / "demo.db"
    done = light("tour", "--store", path)
    assert done.returncode == 0, done.stderr
    return path


def test_every_command_explains_itself(tmp_path: Path) -> None:
    """The manual pages load the module of every command."""
    done = light("man", tmp_path)
    assert done.returncode == 0, done.stderr
    assert {f"mqis-{name}.1" for name in COMMANDS} <= {path.name for path in tmp_path.iterdir()}


def test_a_small_map_is_the_same_picture(store: Path, tmp_path: Path) -> None:
    done = light("map", "--store", store, "--svg", tmp_path / "light.svg")
    assert done.returncode == 0, done.stderr
    assert run("map", "--store", store, "--svg", tmp_path / "full.svg").exit_code == 0
    drawn = (tmp_path / "light.svg").read_bytes()
    assert drawn == (tmp_path / "full.svg").read_bytes()
    assert b"Berlin" in drawn


def test_a_check_needs_no_extra(store: Path) -> None:
    done = light("check", store, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == run("check", store, "--json").stdout


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("graphs", ("routes",)),
        ("graphs", ("routes", "--stuck")),
        ("postgres", ("lookup", "queue", "--store", "postgresql://127.0.0.1:1/none")),
        ("pipeline", ("pipeline", "audit", "--tables", "tables")),
    ],
)
def test_the_error_names_the_extra(extra: str, command: tuple[str, ...], store: Path) -> None:
    place = () if "--store" in command or "pipeline" in command else ("--store", store)
    done = light(*command, *place)
    assert done.returncode != 0
    assert f"pip install 'mqis[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
