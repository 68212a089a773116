"""Completion in a shell of what somebody else wants to be typed: a name to copy and complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import run

#: Columns that a web page told the user to ask for.
TYPED = ("$(touch${IFS}owned),", "`touch${IFS}owned`,")
RUN = """source ./script
COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_mqis ./mqis
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.req("SEC-12-15")
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("typed", TYPED)
def test_nothing_that_was_typed_is_executed(tmp_path: Path, typed: str) -> None:
    program = tmp_path / "mqis"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mqis.cli.main "$@"\n')
    program.chmod(0o700)
    (tmp_path / "script").write_text(run("completion", "bash").stdout)
    line = f"mqis lookup queue --columns {typed}pat"
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", RUN, "bash", line],
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "path" in done.stdout, (done.stdout, done.stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mqis", "script"]
