"""What each table of a pipeline's run costs, and whether that grows with the input or faster.

``make proof GROWTH=1`` runs the proof in three sizes and prints this. A table is linear if its
processor time grows at most ``MOST`` times as much as the records and objects that were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event, Thread
from time import thread_time

from pyspark.sql import SparkSession
from rich.table import Table

from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.watching import computed_now
from mqis.places.pipeline_tables import current_version
from tools.memory import cpu_seconds, memory_mib

MOST = 1.3
#: Less time than this, in seconds, is that of Spark's planning, whatever the input.
_PLANNING_S = 10.0
_SAMPLE_S = 1.0
#: Adding up memory takes long, so it is done at one of so many samples.
_MEMORY_EVERY = 5
_OTHER = "counting"


@dataclass(slots=True)
class TableCost:
    """What a table costs, with the steps that were made for it."""

    cpu_s: float = 0.0
    peak_mib: int = 0
    rows: int = 0
    size: int = 0


@dataclass(slots=True)
class RunCost:
    """The costs of a run by table, and how much it read."""

    servers: int
    tables: dict[str, TableCost] = field(default_factory=dict)
    #: Records and objects.
    read: int = 0

    def sized(self, tables: TableDirectory) -> None:
        """Adds the rows and bytes of the tables."""
        for name in tables.names():
            version = current_version(tables.directory, name)
            assert version is not None
            cost = self.tables.setdefault(name, TableCost())
            cost.rows = tables.count(name)
            cost.size = sum(file.stat().st_size for file in version.rglob("*.parquet"))


@contextmanager
def costed(session: SparkSession, run: RunCost) -> Iterator[None]:
    """Samples processor time and memory while the block runs, by what the session computes."""
    over = Event()

    def sample() -> None:
        before, number = cpu_seconds() - thread_time(), 0
        while not over.wait(_SAMPLE_S):
            name = computed_now(session).removeprefix("table ") or _OTHER
            # Without the time that sampling itself takes.
            cost, now = run.tables.setdefault(name, TableCost()), cpu_seconds() - thread_time()
            cost.cpu_s += max(0.0, now - before)  # an ended process is its parent's a moment later
            before, number = now, number + 1
            if number % _MEMORY_EVERY == 1 or not cost.peak_mib:
                cost.peak_mib = max(cost.peak_mib, memory_mib())

    thread = Thread(target=sample, name="costs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def growth(runs: Sequence[RunCost]) -> dict[str, float]:
    """By table: how many times as much as the input its time grew, from one size to the next."""
    found: dict[str, float] = {}
    for name in runs[-1].tables:
        for small, large in pairwise(runs):
            before = small.tables.get(name, TableCost()).cpu_s
            time = large.tables[name].cpu_s / max(before, _PLANNING_S)
            found[name] = max(found.get(name, 0.0), time / (large.read / small.read))
    return found


def growth_table(runs: Sequence[RunCost]) -> Table:
    """Rows, bytes, processor time and peak memory of each table in each size.

    A row with the time of ``counting`` is that of the numbers that the runs return.
    """
    sizes = [f" x{run.read / runs[0].read:.1f}" for run in runs] if len(runs) > 1 else [""]
    heads = [f"{what}{size}" for what in ("rows", "MB", "CPU s", "MiB") for size in sizes]
    table = Table("table", *heads, *(["growth"] * (len(runs) > 1)), box=None)
    times = growth(runs)
    for name in sorted(runs[-1].tables, key=lambda name: -runs[-1].tables[name].cpu_s):
        costs = [run.tables.get(name, TableCost()) for run in runs]
        cells = [f"{cost.rows:,}" for cost in costs]
        cells += [f"{cost.size / 1e6:,.1f}" for cost in costs]
        cells += [f"{cost.cpu_s:,.1f}" for cost in costs]
        cells += [f"{cost.peak_mib:,}" for cost in costs]
        table.add_row(name, *cells, *([f"{times[name]:.2f}"] if len(runs) > 1 else []))
    return table
