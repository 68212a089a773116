"""tools/postgres.sh where it cannot do its work. That it can, the storage tests show."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.stores import SCRIPT, PostgresServer
from tests.waiting import DEADLINE_S


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)


@pytest.mark.parametrize("arguments", [(), ("start",), ("restart", "x"), ("start", "x", "y")])
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stderr == "postgres.sh: usage: tools/postgres.sh start|stop DIR\n"


@pytest.fixture
def installed(postgres_server: PostgresServer) -> PostgresServer:
    """Skips where there is no PostgreSQL."""
    return postgres_server


@pytest.mark.usefixtures("installed")
def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()
    result = run("start", str(tmp_path))
    assert result.returncode == 1
    assert result.stderr == f"postgres.sh: {tmp_path}: is not empty\n"
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


@pytest.fixture
def closed_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="mqis-"))
    yield directory
    shutil.rmtree(directory)


@pytest.mark.usefixtures("installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed just for root")
def test_a_directory_that_the_server_cannot_reach(closed_directory: Path) -> None:
    result = run("start", str(closed_directory / "below"))
    assert result.returncode == 1
    assert "cannot reach it; take a directory below one that everyone may enter" in result.stderr


@pytest.mark.usefixtures("installed")
def test_a_path_that_is_too_long(tmp_path: Path) -> None:
    result = run("start", str(tmp_path / ("x" * 90)))
    assert result.returncode == 1
    assert "too long for a socket" in result.stderr


@pytest.mark.usefixtures("installed")
def test_stopping_what_does_not_run(tmp_path: Path) -> None:
    assert run("stop", str(tmp_path)).returncode == 0


def test_starting_what_runs_prints_the_same(installed: PostgresServer) -> None:
    result = run("start", str(installed.directory))
    assert result.returncode == 0
    assert result.stdout.strip() == installed.conninfo
