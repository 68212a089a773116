"""Processes of the scenarios: killed at an instant, or run to their end; and their memory."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parents[2]
#: A worker without output for this long counts as hung.
SILENCE_S = 180.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


class WorkerError(Exception):
    """A worker ended or hung before it was killed."""


def module(name: str, *arguments: object) -> list[str]:
    """The command that runs a module of the harness in a process of its own."""
    return [sys.executable, "-m", f"tools.harness.{name}", *map(str, arguments)]


def kill_worker(command: Sequence[str], trigger: str, delay_s: float) -> list[str]:
    """Starts a worker and kills it ``delay_s`` after its first ``trigger`` line.

    Returns all its lines.
    """
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, bufsize=0, cwd=ROOT
        ) as process,
    ):
        assert process.stdout is not None
        try:
            output, killed = _listen(process, process.stdout.fileno(), trigger, delay_s)
        finally:
            process.kill()
        if not killed or process.wait() != -signal.SIGKILL:
            errors.seek(0)
            reason = errors.read().decode(errors="replace").strip() or "it said nothing"
            raise WorkerError(f"the worker was not killed but hung or ended by itself: {reason}")
    if output and not output.endswith(b"\n"):
        raise WorkerError(f"the worker's last line is cut off: {output[-80:]!r}")
    return output.decode("ascii").splitlines()


def _listen(
    process: subprocess.Popen[bytes], fd: int, trigger: str, delay_s: float
) -> tuple[bytes, bool]:
    """Returns the worker's output up to its end, and whether it was killed."""
    output, killed, kill_at = b"", False, None
    silent_at = monotonic() + SILENCE_S
    while True:
        wait_until = silent_at if kill_at is None or killed else kill_at
        if select.select([fd], [], [], max(0.0, wait_until - monotonic()))[0]:
            data = os.read(fd, 1 << 16)
            if not data:
                return output, killed
            output += data
            silent_at = monotonic() + SILENCE_S
            if kill_at is None and trigger in _verbs(output):
                kill_at = monotonic() + delay_s
        elif kill_at is None or killed:
            return output, False
        if kill_at is not None and not killed and monotonic() >= kill_at:
            process.kill()
            killed = True


def _verbs(output: bytes) -> set[str]:
    return {line.split()[0] for line in output.decode("ascii").splitlines()}


def say(line: str) -> None:
    """Writes a line of a worker by one call, so that a pipe carries all of it or nothing."""
    data = f"{line}\n".encode("ascii")
    if os.write(sys.stdout.fileno(), data) != len(data):
        raise OSError(f"{line!r} was written in part")


def mqis(*words: str) -> None:
    """Runs a command to its end; raises ``RuntimeError`` if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "mqis.cli.main", *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={k: v for k, v in os.environ.items() if not k.startswith("MQIS_")},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"mqis {words[0]}: {done.stdout}{done.stderr}")


def resident(pid: int) -> int | None:
    """The memory of a process in bytes; None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return None
    return int(fields[1]) * _PAGE
