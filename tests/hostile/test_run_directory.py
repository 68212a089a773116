"""A run directory that somebody else prepared, in a place that all users of a computer share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqis.enterprise.example import EXAMPLE
from tests.waiting import DEADLINE_S

REFUSED = b"others can write in this directory"


def up(run: Path) -> subprocess.CompletedProcess[bytes]:
    (run.parent / "enterprise.toml").write_text(EXAMPLE)
    return subprocess.run(
        [sys.executable, "-m", "mqis.cli.main", "up", "--run", str(run)],
        check=False,
        capture_output=True,
        timeout=DEADLINE_S,
        stdin=subprocess.DEVNULL,
        cwd=run.parent,
    )


@pytest.mark.req("SEC-10-07")
def test_an_enterprise_does_not_start_where_others_can_write(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    run.chmod(0o777)
    done = up(run)
    assert done.returncode == 1
    assert REFUSED in done.stderr.replace(b"\n", b" ")
    assert list(run.iterdir()) == []


@pytest.mark.req("SEC-10-07")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_an_enterprise_does_not_start_in_the_directory_of_another_user(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    os.chown(run, 65_534, 65_534)
    done = up(run)
    assert done.returncode == 1
    assert REFUSED in done.stderr.replace(b"\n", b" ")
    assert list(run.iterdir()) == []
