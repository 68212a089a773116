"""Measures lookups in a directory of 100,000 queues, and their creation in bulk."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

from bench.backends import Backend, Unavailable
from bench.large import Large, copy_to_memory, copy_to_postgres, large_sqlite
from bench.measure import once
from bench.results import Aim, Results, Row
from bench.run import Bench, Run
from bench.stores import LOOKUP, read_rows, scattered_numbers
from mqis.protocol.directory.lookup_query import Query
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.ports import Store
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.propid import PropId


def _run(run: Run) -> Results:
    large = large_sqlite(run)
    results = Results([_created(large)])
    scans: list[Row] = []
    copies: tuple[Callable[[], Backend], ...] = (
        lambda: copy_to_memory(large),
        lambda: large.backend,
        lambda: copy_to_postgres(run, large),
    )
    for copy in copies:
        run.say("lookup100k: copying to the next store")
        try:
            backend = copy()
        except Unavailable as reason:
            results.notes.append(str(reason))
            continue
        run.say(f"lookup100k: {backend.name}")
        _measure(run, backend, large, results)
        scans.append(_scan(backend, len(large.queues)))
    results.rows += scans
    return results


BENCH = Bench("lookup100k", "lookups among 100,000 queues", _run)


def _created(large: Large) -> Row:
    seconds, rate = large.created.elapsed_ns / 1e9, large.created.per_second
    title = "SQLite, bulk"
    name = f"create {large.created.operations:,} queues in one transaction"
    return Row(title, name, rate, seconds=seconds)


def _measure(run: Run, backend: Backend, large: Large, results: Results) -> None:
    count = len(large.queues)
    table = f"{backend.name}, {count:,} queues"
    machine = f"machine = x, {count // len(large.machines)} rows"
    more = {machine: queues_of_machine(backend.store, large)}
    rows = read_rows(run, backend, large.queues, table, more)
    results.rows += rows
    (lookup,) = (row for row in rows if row.name == LOOKUP)
    p50, p99 = lookup.p50_ms, lookup.p99_ms
    assert p50 is not None
    goal = f"indexed lookup among {count:,} queues < 1 ms (p50), {backend.name}"
    results.aims.append(Aim(goal, f"{p50:.3f} ms (p99 {p99:.3f})", p50 < 1))


def queues_of_machine(store: Store, large: Large) -> Callable[[], object]:
    wanted = cycle(scattered_numbers(len(large.machines)))

    def look_up() -> object:
        machine = large.machines[next(wanted)]
        query = Query.make(
            [PropId.Q_INSTANCE, PropId.Q_PATHNAME],
            [Restriction(Relation.EQ, PropId.Q_QMID, prop(PropId.Q_QMID, machine))],
        )
        with store.read() as view:
            return list(query.rows(view))

    return look_up


def _scan(backend: Backend, count: int) -> Row:
    scan = once(lambda: scan_queues(backend.store, count))
    title = f"no index, all {count:,} queues"
    return Row(title, backend.name, scan.per_second, seconds=scan.elapsed_ns / 1e9)


def scan_queues(store: Store, count: int) -> int:
    """Runs a lookup without an index, which reads every queue and finds none."""
    quota = 7
    query = Query.make(
        [PropId.Q_INSTANCE], [Restriction(Relation.EQ, PropId.Q_QUOTA, prop(PropId.Q_QUOTA, quota))]
    )
    with store.read() as view:
        assert not query.objects(view)
    return count
