"""Ctrl-C: one line and status 130, wherever a command is; and the end of those that it ends."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import sys
from asyncio import CancelledError
from importlib.abc import MetaPathFinder
from pathlib import Path
from subprocess import PIPE

import pytest

from mqis.cli import entry, failures
from mqis.protocol.errors import StorageError
from tests.cli.commands import process
from tests.processes import open_files
from tests.waiting import DEADLINE_S, wait_until

COMMAND = [sys.executable, "-m", "mqis.cli.main"]


@pytest.mark.parametrize("words", [("capture",), ("route", "a", "b", "--directory")])
def test_a_command_that_reads(words: tuple[str, ...], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    keep = os.open(pipe, os.O_RDWR)  # so that the reader waits for more
    with subprocess.Popen([*COMMAND, *words, pipe], stdout=PIPE, stderr=PIPE) as running:
        try:
            wait_until(lambda: str(pipe) in open_files(running.pid))
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=DEADLINE_S)
        finally:
            running.kill()
            os.close(keep)
    assert (running.returncode, errors) == (130, b"mqis: interrupted\n")


def test_a_command_that_is_still_loading(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(MetaPathFinder):
        def find_spec(self, fullname: str, path: object, target: object = None) -> None:
            if fullname == "mqis.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "mqis.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "mqis: interrupted\n"


def test_a_simulation_in_many_processes() -> None:
    """As a terminal does it: every process of the group gets the signal."""
    with subprocess.Popen(
        [*COMMAND, "sim", "--seeds", "500", "--jobs", "2"],
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    ) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        try:
            wait_until(lambda: len(children.read_text().split()) > 2)
            workers = [int(child) for child in children.read_text().split()[1:]]
            wait_until(lambda: all(map(ignores_interrupts, workers)))
            os.killpg(running.pid, signal.SIGINT)
            _, errors = running.communicate(timeout=DEADLINE_S)
        finally:
            running.kill()
    assert (running.returncode, errors) == (130, b"mqis: interrupted\n")


def ignores_interrupts(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(mask, 16) & 1 << (signal.SIGINT - 1))


def test_a_question_for_a_password() -> None:
    ours, theirs = pty.openpty()
    command = [*COMMAND, "get", "queue", "x", "--server", "127.0.0.1:1", "--user", "alice"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as asking:
        os.close(theirs)
        shown = b""
        while b"Password of alice" not in shown:
            shown += os.read(ours, 4096)
        asking.send_signal(signal.SIGINT)
        assert asking.wait(DEADLINE_S) == 130
    assert b"mqis: interrupted" in os.read(ours, 4096)
    os.close(ours)


# --- the words for errors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (StorageError("x.db: full"), 1, "mqis: x.db: full\n"),
        (PermissionError(13, "Permission denied", "x.db"), 1, "mqis: x.db: Permission denied\n"),
        (OSError(28, "No space left on device"), 1, "mqis: No space left on device\n"),
        (MemoryError(), 1, "mqis: out of memory\n"),
        (CancelledError(), 130, "mqis: interrupted\n"),
        (ExceptionGroup("tasks", [StorageError("a\nb")]), 1, "mqis: a\\nb\n"),
        (BaseExceptionGroup("tasks", [KeyboardInterrupt()]), 130, "mqis: interrupted\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_one_line(
    error: BaseException, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failures.report(error) == status
    assert capsys.readouterr().err == line


def test_a_fault_of_mqis_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.report(KeyError("x")) == 1
    told = capsys.readouterr().err
    assert told.startswith("mqis: internal error: KeyError: 'x'; this is a fault of mqis")
    assert told.count("\n") == 1


def test_an_output_that_is_full() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*COMMAND, "up", "--example"], stdout=full, stderr=PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"mqis: ")
    assert done.stderr.endswith(b"No space left on device\n")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("closed", ["1", "2", "1 2"])
def test_an_output_that_is_closed(closed: str) -> None:
    """``mqis ... >&-``: the command does its work, and says nothing there."""
    closing = " ".join(f"{number}>&-" for number in closed.split())
    words = shlex.join([*COMMAND, "up", "--example"])
    done = subprocess.run(f"{words} {closing}", shell=True, capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stderr == b""
    assert (done.stdout == b"") == ("1" in closed)


def test_a_traceback_for_those_who_ask(tmp_path: Path) -> None:
    done = process("store", "check", "-s", tmp_path / "no", env={failures.TRACEBACK: "1"})
    assert b"Traceback" in done.stderr
