"""Kills a process that writes to a store, repeatedly, and looks for lost writes.

Usage: python tools/crash.py [--rounds 200] [--seed N] [--writers 16] [--directory DIR]

To see it find something: python tools/crash.py --worker-option=--broken-early-ack

Each round starts ``tools/crash_worker.py`` on the store, kills it with SIGKILL at a random
instant, opens the store again, runs its own check, and compares all that it holds with all that
was acknowledged in this round and those before. The store lives on from round to round. In half
of the rounds a copy is examined, so that the next worker finds the files as the kill left them;
opening and closing the store would repair them. Some kills come while the store is being opened,
and some while a new one is being created.

A killed process loses its memory, but not what it has handed to the kernel. So this shows that
an acknowledged write was committed, that half a commit is undone, and that recovery works, also
when it is killed itself. It does not show that anything reached the disk: see
``tools/flushcheck.py``.

The seed determines the workers' operations and the time of the kills, but not how far they get
until then: the same seed does not give the same run.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from pathlib import Path
from random import Random, SystemRandom
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mqis.protocol.errors import StorageError
from mqis.storage.sqlite import SqliteStore
from tools.crash_history import Content, History

WORKER = Path(__file__).resolve().with_name("crash_worker.py")
#: A worker without output for this long counts as hung.
SILENCE_S = 180.0


@unique
class Kill(Enum):
    """The time of a kill: the line that triggers it, the least and the longest delay after it.

    And the store: the one of all rounds, or a new one.
    """

    BUSY = ("ack", 0.005, 0.400, "old")
    OPENING = ("open", 0.0, 0.012, "old")
    MAKING = ("open", 0.0, 0.012, "new")

    @classmethod
    def of_round(cls, number: int) -> Kill:
        return {3: cls.MAKING, 7: cls.OPENING}.get(number % 10, cls.BUSY)


@dataclass(slots=True)
class Summary:
    rounds: int = 0
    acknowledged: int = 0
    killed_busy: int = 0
    killed_opening: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.acknowledged} acknowledged operations, "
            f"{self.killed_busy} kills while busy, {self.killed_opening} while opening the store"
        )


class WorkerError(Exception):
    """The worker ended or hung before it was killed."""


def kill_worker(command: Sequence[str], trigger: str, delay_s: float) -> list[str]:
    """Starts a worker and kills it ``delay_s`` after its first ``trigger`` line.

    Returns all its lines.
    """
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, bufsize=0) as process,
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


def examine(path: Path, history: History) -> list[str]:
    """Opens the store again; describes all its faults, by its own check and by its history."""
    try:
        store = SqliteStore(path)
    except StorageError as error:
        return [f"the store cannot be opened: {error}"]
    try:
        faults = [f"the store's own check: {fault}" for fault in store.check()]
        with store.read() as view:
            content = Content.of(view)
    except StorageError as error:
        return [f"the store cannot be read: {error}"]
    finally:
        store.close()
    return [*faults, *history.settle(content)]


def examine_copy(path: Path, history: History) -> list[str]:
    """Examines a copy, which leaves the store as the kill left it."""
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, directory)
        return examine(Path(directory) / path.name, history)


@dataclass(slots=True)
class Crasher:
    """Runs rounds on one store, and on a new store for each round that needs one."""

    directory: Path
    seed: int
    writers: int = 16
    worker_options: Sequence[str] = ()
    summary: Summary = field(default_factory=Summary)
    history: History = field(default_factory=History)
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def round(self) -> list[str]:
        """Starts and kills one worker and examines the store; returns the faults."""
        self.summary.rounds += 1
        number, kill = self.summary.rounds, Kill.of_round(self.summary.rounds)
        trigger, at_least_s, at_most_s, store = kill.value
        path, history = self.directory / "store.db", self.history
        if store == "new":
            path, history = self.directory / f"new-{number}" / "store.db", History()
            path.parent.mkdir()
        delay_s = self.random.uniform(at_least_s, at_most_s)
        command = self._command(path, number)
        in_place = self.random.random() < 0.5
        before = history.acknowledged
        try:
            lines = kill_worker(command, trigger, delay_s)
        except WorkerError as error:
            return [str(error)]
        for line in lines:
            history.hear(line)
        self.summary.acknowledged += history.acknowledged - before
        self.summary.killed_busy += bool(history.pending)
        self.summary.killed_opening += "opened" not in lines
        faults = examine(path, history) if in_place else examine_copy(path, history)
        if store == "new" and not faults:
            shutil.rmtree(path.parent)
        return faults

    def _command(self, path: Path, number: int) -> list[str]:
        seed = self.random.getrandbits(32)
        numbers = {"seed": seed, "round": number, "writers": self.writers}
        options = [f"--{name}={value}" for name, value in numbers.items()]
        return [sys.executable, str(WORKER), str(path), *options, *self.worker_options]

    def run(self, rounds: int, progress: Callable[[Summary], None] | None = None) -> Summary:
        """Runs so many rounds; stops at the first fault."""
        for _ in range(rounds):
            self.summary.faults = self.round()
            if progress is not None:
                progress(self.summary)
            if self.summary.faults:
                break
        return self.summary


def run_with_bar(crasher: Crasher, rounds: int, console: Console) -> Summary:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[acknowledged]} acknowledged"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("kill and examine", total=rounds, acknowledged=0)
        return crasher.run(
            rounds,
            lambda summary: bar.update(
                task, completed=summary.rounds, acknowledged=summary.acknowledged
            ),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="kills writers of a store, looks for lost writes")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--writers", type=int, default=16, help="concurrent tasks per worker")
    parser.add_argument("--directory", type=Path, help="where to make the store (default: TMPDIR)")
    parser.add_argument("--worker-option", action="append", default=[], help="pass this on")
    arguments = parser.parse_args()
    seed = SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed
    console = Console(highlight=False)
    directory = Path(tempfile.mkdtemp(prefix="mqis-crash-", dir=arguments.directory))
    console.print(f"seed {seed}")
    crasher = Crasher(directory, seed, arguments.writers, arguments.worker_option)
    summary = run_with_bar(crasher, arguments.rounds, console)
    console.print(str(summary), soft_wrap=True)
    if summary.faults:
        for fault in summary.faults:
            console.print(fault, markup=False, soft_wrap=True)
        console.print(
            f"FAILED in round {summary.rounds}, seed {seed}; the files are in {directory}"
        )
        return 1
    shutil.rmtree(directory)
    console.print("the store holds everything that was acknowledged, and nothing else")
    return 0


if __name__ == "__main__":
    sys.exit(main())
