"""The completion scripts in the shells themselves, at a terminal as somebody types."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.interop

#: How each shell starts without the user's own files, and what it runs before the script.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ""),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; "),
}
#: What is typed, and what the line becomes.
TYPED = [
    ("mqis disc\t", "mqis discover "),
    ("mqis lookup queue --colu\t", "mqis lookup queue --columns "),
    ("mqis lookup queue --where transact\t", "mqis lookup queue --where transaction="),
    ("mqis capture here.pc\t", "mqis capture here.pcap"),
]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x07\r]")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with ``mqis`` as a program, and a file to complete."""
    program = tmp_path / "bin" / "mqis"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mqis.cli.main "$@"\n')
    program.chmod(0o755)
    (tmp_path / "here.pcap").touch()
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "HOME": str(home), "TERM": "xterm", "PS1": "> "}


class Terminal:
    """A shell at a terminal."""

    def __init__(self, command: list[str], home: Path) -> None:
        self._ours, theirs = pty.openpty()
        self._shell = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=home,
            env=environment(home),
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def wait_for(self, wanted: str) -> None:
        seen = ""
        while wanted not in _CONTROL.sub("", seen):
            readable, _, _ = select.select([self._ours], [], [], DEADLINE_S)
            assert readable, f"no {wanted!r} in {seen!r}"
            seen += os.read(self._ours, 4096).decode("utf-8", "replace")

    def end(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._ours)


@pytest.mark.parametrize("name", SHELLS)
def test_a_line_is_completed(name: str, home: Path) -> None:
    command, before = SHELLS[name]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    shell = Terminal(command, home)
    try:
        shell.type(f"{before}source <(mqis completion {name}); echo rea''dy\n")
        shell.wait_for("ready\n")
        for typed, becomes in TYPED:
            shell.type(typed)
            shell.wait_for(becomes)
            shell.type("\x15")  # deletes the line
    finally:
        shell.end()


def test_fish_offers_words_with_explanations(home: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    lines = [typed.removesuffix("\t") for typed, _ in TYPED]
    script = "mqis completion fish | source\n" + "".join(
        f"echo '{line}:'; complete -C '{line}'\n" for line in lines
    )
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    assert done.stderr == ""
    offered = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    wanted = [(f"{typed.strip()}:", becomes.split()[-1]) for typed, becomes in TYPED]
    assert offered == [line for pair in wanted for line in pair]
    assert "Find directory servers by broadcast" in done.stdout
