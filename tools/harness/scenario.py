"""A scenario, and the command that runs one: seed, working directory, faults, exit status."""

from __future__ import annotations

import argparse
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

#: More faults than this are counted, not printed.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a run: for people, and the faults."""

    summary: str
    faults: list[str]
    #: The sentence for a run without faults.
    right: str
    tables: list[Table] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Given:
    """The input of a run."""

    options: argparse.Namespace
    #: A new directory, which is kept if there are faults.
    directory: Path
    seed: int
    console: Console


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    what: str
    run: Callable[[Given], Verdict]
    #: The options besides ``--seed``, ``--directory`` and ``--keep``.
    options: Callable[[argparse.ArgumentParser], None]


def main(scenarios: Sequence[Scenario], arguments: Sequence[str] | None = None) -> int:
    """Runs the scenario that the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.harness")
    commands = parser.add_subparsers(dest="scenario", required=True)
    for each in scenarios:
        command = commands.add_parser(each.name, help=each.what, description=each.what)
        command.add_argument("--seed", type=int, help="default: a random one")
        command.add_argument(
            "--directory", type=Path, help="where to make the working directory (default: TMPDIR)"
        )
        command.add_argument("--keep", action="store_true", help="keep the working directory")
        each.options(command)
    options = parser.parse_args(arguments)
    (chosen,) = (each for each in scenarios if each.name == options.scenario)
    return _run(chosen, options)


def _run(scenario: Scenario, options: argparse.Namespace) -> int:
    # As Ctrl-C: what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(highlight=False, width=None if Console().is_terminal else 160)
    seed = SystemRandom().getrandbits(32) if options.seed is None else options.seed
    directory = Path(
        tempfile.mkdtemp(prefix=f"mqis-{scenario.name}-", dir=options.directory)
    ).resolve()
    console.print(f"seed {seed}")
    faults: Sequence[str] = ("it did not end",)
    try:
        verdict = scenario.run(Given(options, directory, seed, console))
        faults = verdict.faults
    finally:
        if not faults and not options.keep:
            shutil.rmtree(directory)
    for table in verdict.tables:
        console.print(table)
    console.print(verdict.summary, soft_wrap=True)
    for fault in faults[:SHOWN]:
        console.print(f"WRONG: {fault}", markup=False, soft_wrap=True)
    if faults:
        console.print(
            f"FAILED: {len(faults)} faults with seed {seed}; the files are in {directory}",
            soft_wrap=True,
        )
    else:
        console.print(verdict.right, soft_wrap=True)
    return 1 if faults else 0


@contextmanager
def bar(console: Console, total: float) -> Iterator[Callable[[float, str], None]]:
    """A bar for people; the function that it gives sets how much is done, and a text."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as shown:
        task = shown.add_task("", total=total)
        yield lambda done, text: shown.update(task, completed=done, description=text)


def rounds(console: Console, count: int, one: Callable[[], list[str]]) -> list[str]:
    """Runs so many rounds, and stops at the first with faults, which it returns."""
    with bar(console, count) as show:
        for number in range(count):
            if faults := one():
                return faults
            show(number + 1, f"{number + 1} of {count} rounds")
    return []
