"""Measures what the digest of a partition costs a durable create.

Rates of durable writes move with the load by more than the few per cent that matter here. So the
aim compares processor times: that of adding one object to a digest, with that of a whole create by
the group commit writer. A flush takes time but no processor, so the share of the elapsed time is
smaller still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from statistics import median
from time import process_time_ns

from bench import backends
from bench.enterprise import create_machines, create_queue, create_queues
from bench.measure import Sample, contest
from bench.results import Aim, Results, Row
from bench.run import Bench, Run
from mqis.protocol.directory.objects import DirectoryObject, PartitionDigest
from mqis.protocol.ports import Store
from mqis.protocol.replication.digest import with_object
from mqis.runtime.writer import GroupCommitWriter
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propertybag import encode_properties

WRITERS = 16
_MOST = 0.03


def _run(run: Run) -> Results:
    backend = backends.sqlite(run, "digests")
    queues = run.scaled(10_000, quick=300)
    run.say(f"digest: {queues:,} queues to start with")
    create_machines(backend.store, run.scaled(100_000, quick=10_000))
    create_queues(backend.store, range(queues))
    numbers = count(queues)
    creates = run.scaled(2_000, quick=160)
    contenders: dict[str, Callable[[], Sample]] = {
        "create": lambda: _creates(backend.store, numbers, creates),
        "digest": lambda: _digests(backend.store, creates),
    }
    return _results(contest(run.rounds, contenders))


BENCH = Bench("digest", "the cost of a partition's digest in a durable create", _run)


def _creates(store: Store, numbers: Iterator[int], creates: int) -> Sample:
    """The processor time of creates by 16 writers."""
    writer = GroupCommitWriter(store)

    async def client() -> None:
        for _ in range(creates // WRITERS):
            await writer.submit(create_queue(next(numbers)))

    async def clients() -> int:
        start = process_time_ns()
        await asyncio.gather(*(client() for _ in range(WRITERS)))
        return process_time_ns() - start

    try:
        return Sample(creates // WRITERS * WRITERS, asyncio.run(clients()))
    finally:
        asyncio.run(writer.close())


def _digests(store: Store, creates: int) -> Sample:
    """The processor time of adding new objects to a digest, as an insert does."""
    with store.read() as view:
        found = [
            obj for obj, _ in zip(view.objects(ObjectType.QUEUE), range(creates), strict=False)
        ]
    new = [(_unpacked(obj), encode_properties(obj.properties)) for obj in found]
    total = PartitionDigest()
    start = process_time_ns()
    for obj, body in new:
        total = with_object(total, obj, body)
    return Sample(len(new), process_time_ns() - start)


def _unpacked(obj: DirectoryObject) -> DirectoryObject:
    """The object with its properties in a dictionary, as a create makes it."""
    return DirectoryObject(obj.type, obj.id, obj.partition, obj.seq, dict(obj.properties))


def _results(samples: dict[str, list[Sample]]) -> Results:
    pairs = list(zip(samples["digest"], samples["create"], strict=True))
    share = median(create.per_second / digest.per_second for digest, create in pairs)
    rows = [
        Row.of("processor time", f"create, {WRITERS} writers", samples["create"]),
        Row.of("processor time", "adding an object to a digest", samples["digest"]),
    ]
    goal = f"<= {_MOST:.0%} of the processor time of a durable create"
    return Results(rows, [Aim(goal, f"{share:.1%}", share <= _MOST)])
