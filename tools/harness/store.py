"""Kills a process that writes to a store, repeatedly, and looks for lost writes.

To see it find something: python -m tools.harness store --worker-option=--broken-early-ack

Each round starts ``storewriter`` on the store, kills it with SIGKILL at a random instant, opens the
store again, runs its own check, and compares all that it holds with all that was acknowledged in
this round and those before. The store lives on from round to round. In half of the rounds a copy is
examined, so that the next worker finds the files as the kill left them; opening and closing the
store would repair them. Some kills come while the store is being opened, and some while a new one
is being created.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from pathlib import Path
from random import Random

from rich.console import Console

from mqis.protocol.errors import StorageError
from mqis.storage.sqlite import SqliteStore
from tools.harness.history import Content, History
from tools.harness.processes import WorkerError, kill_worker, module
from tools.harness.scenario import Given, Scenario, Verdict, rounds


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
        return module("storewriter", path, *options, *self.worker_options)

    def run(self, count: int, console: Console) -> Summary:
        """Runs so many rounds; stops at the first fault."""
        self.summary.faults = rounds(console, count, self.round)
        return self.summary


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--writers", type=int, default=16, help="concurrent tasks per worker")
    parser.add_argument("--worker-option", action="append", default=[], help="pass this on")


def _run(given: Given) -> Verdict:
    options = given.options
    crasher = Crasher(given.directory, given.seed, options.writers, options.worker_option)
    summary = crasher.run(options.rounds, given.console)
    right = "the store holds everything that was acknowledged, and nothing else"
    return Verdict(str(summary), summary.faults, right)


SCENARIO = Scenario("store", "kills writers of a store, looks for lost writes", _run, _options)
