"""The documents: their code, their commands, and running what they show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import DEADLINE_S

ROOT = Path(__file__).parents[2]
#: Every document that people read, not the tables and the generated ones beside them.
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))


def text_of(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def blocks(text: str, language: str = "") -> list[str]:
    """The code between fences of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


def commands(text: str) -> Iterator[str]:
    """The commands that a reader would type, with continued lines joined.

    All lines of an ``sh`` block; in an unnamed block, lines with a prompt, ``mqis`` or ``make``.
    """
    for block in blocks(text, "sh"):
        yield from block.replace("\\\n", " ").splitlines()
    for block in blocks(text):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith(("$ ", "mqis ", "make ")):
                yield line.removeprefix("$ ")


def words(line: str) -> list[list[str]]:
    """The programs of a line, each with its arguments; redirections and comments left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    skip = False
    for word in lexer:
        if set(word) <= set("|&;()"):
            found.append([])
        elif set(word) <= set("<>"):
            skip = True
        elif skip:
            skip = False
        else:
            found[-1].append(word)
    return [part for part in found if part]


def run(
    script: str, directory: Path, timeout_s: float = 2 * DEADLINE_S
) -> subprocess.CompletedProcess[str]:
    """A script with the ``mqis`` of this Python first on its path."""
    command = Path(sys.executable).with_name("mqis")
    if not command.exists():
        pytest.skip("mqis is not installed beside this Python")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        env=kept | {"PATH": f"{command.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr
    return done
