"""Measures the cost of journaling for durable creates, and the speed of reading segments.

Both contenders create queues with 16 writers on a SQLite store. One of them also appends a record
with a body of 400 bytes to the outbox in the same transaction, while a thread copies the outbox to
the files, flushes them and trims it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from bench import backends
from bench.enterprise import create_machines, create_queue, create_queues
from bench.measure import Sample, contest, timed_tasks, timed_together
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import Store, Transaction
from mqis.runtime.journal_thread import JournalThread
from mqis.runtime.node.signer import MachineKey
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.journal import Appender, Journal
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record, walk
from mqis.wire.journal.layout import FIELDS, HEADER_SIZE
from mqis.wire.journal.segment import offsets

WRITERS = 16
RECORD = JournalRecord(
    946_684_800_000_000, RecordKind.CHANGE, RecordState.LOCAL, object_type=1, body=b"x" * 400
)
HEADERS = np.dtype(list(FIELDS))


def _run(run: Run) -> Results:
    results = Results()
    _creates(run, results)
    _reads(run, results)
    return results


BENCH = Bench("journal", "what journaling costs creates, reading segments", _run)


def _journaled(number: int) -> Callable[[Transaction], DirectoryObject]:
    create = create_queue(number)

    def operation(transaction: Transaction) -> DirectoryObject:
        made = create(transaction)
        transaction.append(
            JournalRecord(
                RECORD.time_us,
                RecordKind.CHANGE,
                RecordState.LOCAL,
                partition=made.partition,
                seq=made.seq,
                object_type=1,
                object_id=made.id,
                body=RECORD.body,
            )
        )
        return made

    return operation


def _creates(run: Run, results: Results) -> None:
    run.say("journal: creates")
    plain, journaled = backends.sqlite(run, "plain"), backends.sqlite(run, "journaled")
    numbers = count(run.scaled(10_000, quick=300))
    for backend in (plain, journaled):
        create_machines(backend.store, run.scaled(100_000, quick=10_000))
        create_queues(backend.store, range(next(numbers)))
    key = MachineKey.generate()  # a server signs its journal
    journal = Journal(run.directory / "journal", "SERVER", Guid.NULL, key=key)
    run.resources.callback(journal.close)
    appender = Appender(journaled.store, journal)
    without, with_it = "create, 16 writers", "create + journal record, 16 writers"
    samples = contest(
        run.rounds * (1 if run.quick else 2),
        {
            without: lambda: _grouped(plain.store, numbers, run.sample_s),
            with_it: lambda: _grouped(journaled.store, numbers, run.sample_s, appender),
        },
    )
    table = "SQLite"
    results.rows += [
        Row.of(table, without, samples[without]),
        Row.of(table, with_it, samples[with_it], peer=("no journal", samples[without])),
    ]
    share = ratio(samples[with_it], samples[without])
    goal = ">= 0.9x of creates without a journal, 16 writers, SQLite"
    results.aims.append(Aim(goal, f"{share:.3f}x", share >= 0.9))
    results.notes.append(f"{journal.durable_lsn:,} records in the journal at the end")


def _grouped(
    store: Store, numbers: Iterator[int], seconds: float, appender: Appender | None = None
) -> Sample:
    thread = None if appender is None else JournalThread(appender)
    writer = GroupCommitWriter(store, None if thread is None else thread.wake)
    make = create_queue if appender is None else _journaled

    async def create() -> DirectoryObject:
        return await writer.submit(make(next(numbers)))

    try:
        return timed_tasks(create, WRITERS, seconds)
    finally:
        asyncio.run(writer.close())
        if thread is not None:
            thread.close()


# --- reading --------------------------------------------------------------------------------------


def headers(data: bytes, offset: int) -> np.ndarray:
    """The headers of all records as one array, as in docs/journal.md."""
    starts = np.array(offsets(data, offset), dtype=np.int64)
    raw = np.frombuffer(data, dtype=np.uint8)
    found: np.ndarray = raw[starts[:, None] + np.arange(HEADER_SIZE)].view(HEADERS)[:, 0]
    return found


def _reads(run: Run, results: Results) -> None:
    run.say("journal: reading")
    total = run.scaled(50_000, quick=500)
    data = b"".join(encode_record(lsn, RECORD) for lsn in range(1, total + 1))

    def decode() -> int:
        return sum(1 for _ in walk(data, 0))

    def scan() -> int:
        found = headers(data, 0)
        assert int(found["lsn"][-1]) == total
        return len(found)

    samples = contest(
        run.rounds,
        {
            "decode records": lambda: timed_together(decode, run.sample_s),
            "scan headers with NumPy": lambda: timed_together(scan, run.sample_s),
        },
    )
    size = len(data) / total
    rows = [Row.of("segment", name, rounds, size=size) for name, rounds in samples.items()]
    results.rows += rows
    rate = rows[-1].per_second
    results.aims.append(Aim(">= 500,000 headers/s", f"{rate:,.0f}/s", rate >= 500_000))
