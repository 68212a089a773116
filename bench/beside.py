"""Measures reads while another client's lookup goes over the whole directory.

One client reads properties by path, one call after the other; alone, and during a lookup of all
queues. The lookup has 128 columns, the maximum. The result is the ratio of the p99s within a run:
if a lookup blocked the server, every concurrent read would wait for seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from threading import Thread
from time import perf_counter_ns

from bench import calls, serving
from bench.calls import RpcPeer
from bench.enterprise import label, path
from bench.large import large_sqlite
from bench.load import Line, Target
from bench.measure import Sample
from bench.processes import Cores, kept_to
from bench.results import Aim, Results, Row
from bench.run import Bench, Run
from bench.stores import scattered_numbers
from mqis.protocol.directory.read_mapping import is_readable
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import MAX_ENTRIES

#: The aim: a read during a lookup takes at most so many times as long as one alone (p99).
MOST = 20.0
#: The number of rounds; each lasts as long as a lookup.
ROUNDS = 3
#: Longer than a lookup takes on a busy machine.
LOOKUP_TIMEOUT_S = 300.0
_SHOWN = (PropId.Q_INSTANCE, PropId.Q_LABEL, PropId.Q_QUOTA)
_READABLE = [
    propid
    for propid, entry in PROPERTIES.items()
    if entry.object_type is ObjectType.QUEUE and is_readable(propid)
]
COLUMNS = tuple(islice(cycle(_READABLE), MAX_ENTRIES))


def _run(run: Run) -> Results:
    if not hasattr(os, "sched_setaffinity"):
        return Results(notes=["beside: skipped: processes cannot be kept to a core here"])
    large = large_sqlite(run)
    cores = Cores.available()
    with kept_to(cores.server):
        served = serving.start(Path(large.backend.place), run.resources)
    target = Target(served.pid, served.port, RpcPeer)
    with kept_to(cores.clients):
        return _measure(run, target, len(large.queues))


BENCH = Bench("beside", "a read beside a lookup of everything", _run)


def _measure(run: Run, target: Target[RpcPeer], queues: int) -> Results:
    reads = cycle([calls.get_props(path(n), _SHOWN, label(n)) for n in scattered_numbers(queues)])
    table = f"{queues:,} queues, {len(COLUMNS)} columns"
    results = Results()
    with closing(Line(target)) as line:

        def read() -> None:
            line.run(line.peer.call(next(reads)))

        for name, sort in (("lookup", ()), ("sorted lookup", (PropId.Q_LABEL,))):
            begin = calls.lookup_of_all(COLUMNS, sort)
            alone, beside, seconds = [], [], []
            for _ in range(min(run.rounds, ROUNDS)):
                run.say(f"beside: reads alone, then beside a {name}")
                alone.append(_timed(read, _until(run.sample_s)))
                with closing(Line(target, LOOKUP_TIMEOUT_S)) as other:
                    lookup = _Lookup(other, begin)
                    beside.append(_timed(read, lookup.is_over))
                    seconds.append(lookup.seconds())
            results.rows += _rows(table, name, alone, beside, seconds)
            results.aims.append(_aim(queues, name, alone, beside))
    return results


class _Lookup:
    """A lookup in a thread of its own."""

    def __init__(self, line: Line[RpcPeer], begin: calls.Call) -> None:
        self._failure: Exception | None = None
        self._elapsed_ns = 0
        self._thread = Thread(target=self._work, args=(line, begin))
        self._thread.start()

    def _work(self, line: Line[RpcPeer], begin: calls.Call) -> None:
        start = perf_counter_ns()
        try:
            line.run(line.peer.call(begin))
        except Exception as error:  # ``seconds`` raises it
            self._failure = error
        self._elapsed_ns = perf_counter_ns() - start

    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def seconds(self) -> float:
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._elapsed_ns / 1e9


def _until(seconds: float) -> Callable[[], bool]:
    stop = perf_counter_ns() + int(seconds * 1e9)
    return lambda: perf_counter_ns() >= stop


def _timed(operation: Callable[[], object], is_over: Callable[[], bool]) -> Sample:
    """Times each operation, one after the other, at least one."""
    latencies: list[int] = []
    start = now = perf_counter_ns()
    while not latencies or not is_over():
        operation()
        before, now = now, perf_counter_ns()
        latencies.append(now - before)
    return Sample(len(latencies), now - start, sorted(latencies))


def _rows(
    table: str,
    name: str,
    alone: Sequence[Sample],
    beside: Sequence[Sample],
    seconds: Sequence[float],
) -> list[Row]:
    return [
        Row.of(table, f"read alone ({name})", alone),
        Row.of(table, f"read beside a {name}", beside),
        Row(table, name, 1 / median(seconds), seconds=median(seconds)),
    ]


def _aim(queues: int, name: str, alone: Sequence[Sample], beside: Sequence[Sample]) -> Aim:
    p99_alone = median(sample.percentile_ms(99) for sample in alone)
    p99_beside = median(sample.percentile_ms(99) for sample in beside)
    ratio = p99_beside / p99_alone
    return Aim(
        f"p99 of a read beside a {name} of {queues:,} queues < {MOST:g}x its p99 alone",
        f"{ratio:.1f}x ({p99_alone:.3f} ms alone, {p99_beside:.3f} ms beside)",
        ratio < MOST,
    )
