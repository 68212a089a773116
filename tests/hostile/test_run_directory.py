"""A run directory that somebody else prepared, in a place that all users of a computer share."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqis.enterprise.example import EXAMPLE
from tests.waiting import DEADLINE_S, until

REFUSED = "others can write in this directory"


def up(run: Path) -> tuple[int, str]:
    """Starts ``mqis up``; returns its status and errors. Stops it once it writes anything."""
    (run.parent / "enterprise.toml").write_text(EXAMPLE)
    with subprocess.Popen(
        [sys.executable, "-m", "mqis.cli.main", "up", "--run", str(run)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=run.parent,
        text=True,
    ) as process:
        asyncio.run(until(lambda: process.poll() is not None or any(run.iterdir())))
        process.terminate()
        _, errors = process.communicate(timeout=DEADLINE_S)
    return process.returncode, errors.replace("\n", " ")


@pytest.mark.req("SEC-10-07")
def test_an_enterprise_does_not_start_where_others_can_write(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    run.chmod(0o777)
    status, errors = up(run)
    assert status == 1
    assert REFUSED in errors
    assert list(run.iterdir()) == []


@pytest.mark.req("SEC-10-07")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_an_enterprise_does_not_start_in_the_directory_of_another_user(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    os.chown(run, 65_534, 65_534)
    status, errors = up(run)
    assert status == 1
    assert REFUSED in errors
    assert list(run.iterdir()) == []
