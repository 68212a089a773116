"""Reads in a directory that changes: a queue is created after every twenty of them.

The peer is the same store without knowledge of what its commits changed, so that each clears the
cache. Only the reads are timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns

from bench.backends import Backend
from bench.enterprise import create_queue
from bench.measure import Sample, contest
from bench.results import Row
from bench.run import Run
from mqis.storage.sqlite import SqliteStore

_READS = 20


def rows_between_commits(
    run: Run,
    backend: Backend,
    table: str,
    reads: dict[str, Callable[[], object]],
    numbers: Iterator[int],
) -> Iterator[Row]:
    store = backend.store
    if not isinstance(store, SqliteStore):  # the only one with a cache
        return
    for name, read in reads.items():
        samples = contest(
            run.rounds,
            {
                "ours": lambda read=read: _timed(run, store, read, numbers, cleared=False),  # type: ignore[misc]
                "cleared": lambda read=read: _timed(run, store, read, numbers, cleared=True),  # type: ignore[misc]
            },
        )
        peer = ("cache cleared by each", samples["cleared"])
        yield Row.of(table, f"{name}, between commits", samples["ours"], peer=peer)


def _timed(
    run: Run,
    store: SqliteStore,
    read: Callable[[], object],
    numbers: Iterator[int],
    *,
    cleared: bool,
) -> Sample:
    latencies: list[int] = []
    stop = perf_counter_ns() + int(run.sample_s * 1e9)
    while perf_counter_ns() < stop:
        with store.write() as transaction:
            create_queue(next(numbers))(transaction)
        if cleared:
            store._commits.changed.clear()
        for _ in range(_READS):
            before = perf_counter_ns()
            read()
            latencies.append(perf_counter_ns() - before)
    return Sample(len(latencies), sum(latencies), sorted(latencies))
