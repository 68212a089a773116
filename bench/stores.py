"""Measures every store: durable creates, single and concurrent, and reads.

Writes go through the group commit writer. Their peer runs the same operations on the same store,
each in its own transaction. The peer of reads is the bare database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle
from statistics import median

from bench import backends, flushes
from bench.backends import Backend, Unavailable
from bench.between_commits import rows_between_commits
from bench.enterprise import create_machines, create_queue, create_queues, label, path
from bench.measure import Sample, contest, timed_alone, timed_tasks
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from mqis.protocol.directory.lookup_query import Query
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.ports import Store
from mqis.runtime.writer import GroupCommitWriter
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

WRITERS = 16
LOOKUP = "lookup, label = x"
_BARE = "bare SELECT by key"
#: The queues that are read again and again while others are created.
_OFTEN = 100


def _run(run: Run) -> Results:
    results = Results()
    for make in backends.ALL:
        try:
            backend = make(run, "stores")
        except Unavailable as reason:
            results.notes.append(str(reason))
            continue
        _measure(run, backend, results)
    return results


BENCH = Bench("stores", "durable creates and reads on every store", _run)


def _measure(run: Run, backend: Backend, results: Results) -> None:
    queues = run.scaled(10_000, quick=300)
    run.say(f"stores: {backend.name}, {queues:,} queues to start with")
    create_machines(backend.store, run.scaled(100_000, quick=10_000))
    ids = create_queues(backend.store, range(queues))
    numbers = count(queues)
    _writes(run, backend, numbers, results)
    _reads(run, backend, ids, numbers, results)
    _flushes(run, backend, next(numbers), results)


# --- writes ---------------------------------------------------------------------------------------


def _writes(run: Run, backend: Backend, numbers: Iterator[int], results: Results) -> None:
    run.say(f"stores: {backend.name}, writes")
    store, seconds = backend.store, run.sample_s
    one, many = "create, 1 writer", f"create, {WRITERS} writers"
    contenders: dict[str, Callable[[], Sample]] = {
        one: lambda: grouped(store, numbers, 1, seconds),
        many: lambda: grouped(store, numbers, WRITERS, seconds),
    }
    if backend.select is None:  # memory: group commit saves nothing, as a commit costs nothing
        samples = contest(run.rounds, contenders)
        results.rows += [Row.of(backend.name, name, samples[name]) for name in (one, many)]
        return
    for threads in (1, WRITERS):
        contenders[f"peer on {threads}"] = lambda threads=threads: one_commit_per_write(  # type: ignore[misc]
            store, numbers, threads, seconds
        )
    samples = contest(run.rounds, contenders)
    peer = faster(samples["peer on 1"], samples[f"peer on {WRITERS}"])
    results.rows += [
        Row.of(backend.name, one, samples[one]),
        Row.of(backend.name, many, samples[many], peer=("commit each", peer)),
        Row.of(backend.name, f"{WRITERS} writers, commit each", peer),
    ]
    times = ratio(samples[many], peer)
    goal = f">= 3x one commit per write, {WRITERS} writers, {backend.name}"
    results.aims.append(Aim(goal, f"{times:.1f}x", times >= 3))


def faster(first: list[Sample], second: list[Sample]) -> list[Sample]:
    """The faster of two ways to run the peer, which depends on the machine.

    Compares medians: choosing the better one of each round would choose noise.
    """
    return max(first, second, key=lambda rounds: median(s.per_second for s in rounds))


def grouped(store: Store, numbers: Iterator[int], writers: int, seconds: float) -> Sample:
    writer = GroupCommitWriter(store)

    async def create() -> DirectoryObject:
        return await writer.submit(create_queue(next(numbers)))

    try:
        return timed_tasks(create, writers, seconds)
    finally:
        asyncio.run(writer.close())


def one_commit_per_write(
    store: Store, numbers: Iterator[int], threads: int, seconds: float
) -> Sample:
    """Writes by the same number of tasks, each write in its own commit, on some threads.

    The store serialises threads, so one thread may be as fast as several.
    """

    def write(number: int) -> None:
        with store.write() as transaction:
            create_queue(number)(transaction)

    with ThreadPoolExecutor(threads) as pool:

        async def create() -> None:
            await asyncio.get_running_loop().run_in_executor(pool, write, next(numbers))

        return timed_tasks(create, WRITERS, seconds)


def _flushes(run: Run, backend: Backend, first: int, results: Results) -> None:
    writes = run.scaled(4_000, quick=320)
    count_flushes = flushes.COUNTERS.get(backend.name)
    if count_flushes is None:
        return
    run.say(f"stores: {backend.name}, flushes")
    counted = count_flushes(backend, writes, WRITERS, first)
    results.notes.append(
        f"{backend.name}: {counted.flushes} flushes for {counted.writes} writes by {WRITERS} "
        f"writers ({counted.how})"
    )
    goal = f"<= 1/8 flush per write, {WRITERS} writers, {backend.name}"
    measured = f"1/{counted.writes / counted.flushes:.1f}" if counted.flushes else "0"
    results.aims.append(Aim(goal, measured, counted.per_write <= 1 / 8))


# --- reads ----------------------------------------------------------------------------------------


def _reads(
    run: Run, backend: Backend, ids: list[Guid], numbers: Iterator[int], results: Results
) -> None:
    run.say(f"stores: {backend.name}, reads")
    table = f"{backend.name}, reads among {len(ids):,} queues and more"
    results.rows += read_rows(run, backend, ids, table)
    some = reads(backend.store, ids[:_OFTEN])
    results.rows += rows_between_commits(run, backend, table, some, numbers)


def read_rows(
    run: Run,
    backend: Backend,
    ids: list[Guid],
    table: str,
    more: Mapping[str, Callable[[], object]] | None = None,
) -> list[Row]:
    """Measures reads of the queues with these identifiers, and the operations in ``more``."""
    single = reads(backend.store, ids)
    operations = {**single, **(more or {})}
    select = backend.select
    if select is not None:
        wanted = cycle(scattered_numbers(len(ids)))
        operations[_BARE] = lambda: select(ids[next(wanted)])
    contenders: dict[str, Callable[[], Sample]] = {
        name: lambda operation=operation: timed_alone(operation, run.sample_s)  # type: ignore[misc]
        for name, operation in operations.items()
    }
    samples = contest(run.rounds, contenders)
    bare = samples.get(_BARE)
    peer = None if bare is None else ("bare SELECT", bare)
    return [
        Row.of(table, name, rounds, peer=peer if name in single else None)
        for name, rounds in samples.items()
    ]


def scattered_numbers(size: int) -> list[int]:
    """All numbers below ``size`` in a fixed scattered order."""
    step = next(s for s in (7919, 7907, 7901) if size % s)
    return [index * step % size for index in range(size)]


def reads(store: Store, ids: list[Guid]) -> dict[str, Callable[[], object]]:
    by_id, by_path, by_label = (cycle(scattered_numbers(len(ids))) for _ in range(3))

    def read_by_id() -> object:
        with store.read() as view:
            return _label_of(view.get(ObjectType.QUEUE, ids[next(by_id)]))

    def read_by_path() -> object:
        with store.read() as view:
            return _label_of(view.find(ObjectType.QUEUE, path(next(by_path))))

    def look_up_label() -> object:
        with store.read() as view:
            (row,) = label_query(next(by_label)).rows(view)
            return row

    return {
        "read by GUID": read_by_id,
        "read by path": read_by_path,
        LOOKUP: look_up_label,
    }


def label_query(number: int) -> Query:
    constant = label(number)
    return Query.make(
        [PropId.Q_INSTANCE, PropId.Q_PATHNAME],
        [Restriction(Relation.EQ, PropId.Q_LABEL, prop(PropId.Q_LABEL, constant))],
    )


def _label_of(queue: DirectoryObject | None) -> object:
    assert queue is not None
    return queue.value(PropId.Q_LABEL)
