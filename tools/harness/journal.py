"""Kills a process that commits and journals, repeatedly; each record must exist exactly once.

To see it find something: python -m tools.harness journal --worker-option=--broken-early-trim

Each round starts a worker (this module as a command) whose tasks append records in transactions
while a thread copies them to tiny segments, and kills it with SIGKILL at a random instant. In half
of the rounds the end of the last segment is then damaged as a power failure could leave it: cut
off, or with zeros in the middle, but only after the last record that was trimmed from the outbox.
Then store and journal are opened again and compared: outbox and journal together must hold every
record up to the last that the store committed, each exactly once, with its content, and no other.

The segments are chained and signed. Right after the kill, before anything is repaired, the chain
must be whole: at most the end of the last segment may be torn.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rich.console import Console

from mqis.protocol.errors import StorageError
from mqis.protocol.journal import ChainState
from mqis.protocol.ports import Store, Transaction
from mqis.runtime.journal_thread import JournalThread
from mqis.runtime.node.signer import MachineKey
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.journal import Appender, Journal, copy
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.journal_reader import Segment, records
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, Whole
from tools.harness.processes import WorkerError, kill_worker, module, say
from tools.harness.scenario import Given, Scenario, Verdict, rounds

SERVER = Guid.parse("5e24e400-0000-4000-8000-000000000001")
SEGMENT_BYTES = 20_000
TASKS = 8


def record(lsn: int) -> JournalRecord:
    """The record with this number, the same in every round and process."""
    seed = hashlib.sha256(str(lsn).encode()).digest()
    body = hashlib.shake_128(seed).digest(1 + seed[0] * 3)
    return JournalRecord(lsn, RecordKind.CHANGE, RecordState.LOCAL, body=body)


def opened(directory: Path) -> tuple[SqliteStore, Journal]:
    key = MachineKey.open(directory / "signing.key")
    journal = Journal(directory / "journal", "CRASH", SERVER, segment_bytes=SEGMENT_BYTES, key=key)
    return SqliteStore(directory / "store.db"), journal


# --- the process that is killed -------------------------------------------------------------------


def last_of(store: Store) -> int:
    with store.read() as view:
        return int.from_bytes(view.state("crash", b"last") or b"", "big")


def append(transaction: Transaction) -> int:
    """Appends one record, whose content is its number, and stores that number."""
    last = int.from_bytes(transaction.state("crash", b"last") or b"", "big")
    lsn = transaction.append(record(last + 1))
    transaction.put_state("crash", b"last", lsn.to_bytes(8, "big"))
    return lsn


class EarlyTrim(Appender):
    """An appender with a fault: trims the outbox before copying."""

    def copy(self) -> int:
        with self._store.write() as transaction:
            transaction.trim_outbox(last_of(self._store))
        return 0

    flush = copy


def work(directory: Path, *, broken: bool) -> None:
    store, journal = opened(directory)
    say("opened")
    kind = EarlyTrim if broken else Appender
    thread = JournalThread(kind(store, journal), pause_s=0.002, flush_s=0.01)
    writer = GroupCommitWriter(store, thread.wake)

    async def task() -> None:
        while True:
            lsn = await writer.submit(append)
            say(f"ack {lsn}")

    async def tasks() -> None:
        await asyncio.gather(*(task() for _ in range(TASKS)))

    asyncio.run(tasks())


# --- after the kill -------------------------------------------------------------------------------


def damage(directory: Path, random: Random) -> None:
    """Damages the end of the last segment as a power failure could."""
    with closing(SqliteStore(directory / "store.db")) as store, store.read() as view:
        waiting = view.outbox(0, 1)
    paths = list(segments(directory / "journal").values())
    if not waiting or not paths:
        return
    try:
        segment = Segment.load(paths[-1])
    except StorageError:
        return
    behind = [e for e in segment.entries() if isinstance(e, Whole) and e.lsn >= waiting[0][0]]
    if not behind:
        return
    start, end = behind[0].offset, len(segment.data)
    at = random.randrange(start, end)
    if random.random() < 0.5:
        os.truncate(paths[-1], at)
    else:
        hole = min(end - at, random.choice([1, 10, 512]))
        data = bytearray(segment.data)
        data[at : at + hole] = bytes(hole)
        paths[-1].write_bytes(data)


def chain_faults(directory: Path) -> Iterator[str]:
    """Describes all findings, torn ends aside: unsigned segments, too, would be a fault."""
    key = MachineKey.open(directory / "signing.key").public
    for finding in check_journal(directory / "journal", [key]).findings:
        if finding.check != ChainState.TORN:
            yield f"{finding.check}: {finding}"


def examine(directory: Path, acknowledged: int) -> Iterator[str]:
    """Describes all faults, before and after the outbox is copied."""
    try:
        store, journal = opened(directory)
        with closing(store), closing(journal):
            last = last_of(store)
            if last < acknowledged:
                yield f"lost: {acknowledged} was acknowledged, the store ends at {last}"
            yield from _missing(directory, store, last)
            copy(store, journal)
            with store.read() as view:
                left = view.outbox(0, 1)
            if left:
                yield f"the outbox still holds {left[0][0]}"
            yield from (f"the store's own check: {fault}" for fault in store.check())
    except StorageError as error:
        yield f"cannot be opened or copied: {error}"
        return
    yield from chain_faults(directory)
    found = list(records(directory / "journal"))
    if [entry.lsn for entry in found] != list(range(1, last + 1)):
        yield f"the journal does not hold 1 to {last} once each"
    yield from (f"{e.lsn} is another record" for e in found if e.record != record(e.lsn))


def _missing(directory: Path, store: Store, last: int) -> Iterator[str]:
    held = {entry.lsn for entry in records(directory / "journal")}
    with store.read() as view:
        held |= {lsn for lsn, _ in view.outbox(0, last + 1)}
    if held != set(range(1, last + 1)):
        wrong = sorted(held ^ set(range(1, last + 1)))
        yield f"lost: neither outbox nor journal agree with the store about {wrong[:5]}"


@dataclass(slots=True)
class JournalCrasher:
    """Runs rounds on one store and its journal."""

    directory: Path
    seed: int
    worker_options: Sequence[str] = ()
    rounds: int = 0
    acknowledged: int = 0
    damaged: int = 0
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def run(self, count: int, console: Console) -> list[str]:
        """Runs so many rounds; stops at the first fault."""
        return rounds(console, count, self._round)

    def _round(self) -> list[str]:
        self.rounds += 1
        command = module("journal", self.directory)
        delay_s = self.random.uniform(0.0, 0.3)
        try:
            lines = kill_worker([*command, *self.worker_options], "ack", delay_s)
        except WorkerError as error:
            return [str(error)]
        numbers = [int(line.split()[1]) for line in lines if line.startswith("ack ")]
        self.acknowledged = max([self.acknowledged, *numbers])
        if broken := list(chain_faults(self.directory)):
            return [f"right after the kill: {fault}" for fault in broken]
        if self.random.random() < 0.5:
            self.damaged += 1
            damage(self.directory, self.random)
        return list(examine(self.directory, self.acknowledged))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--worker-option", action="append", default=[], help="pass this on")


def _run(given: Given) -> Verdict:
    crasher = JournalCrasher(given.directory, given.seed, given.options.worker_option)
    faults = crasher.run(given.options.rounds, given.console)
    summary = (
        f"{crasher.rounds} rounds, {crasher.acknowledged} acknowledged records, "
        f"{crasher.damaged} ends damaged"
    )
    return Verdict(summary, faults, "every record exists exactly once, and no other")


SCENARIO = Scenario("journal", "kills a journaling process, looks for losses", _run, _options)


def main() -> None:
    parser = argparse.ArgumentParser(description="commits and journals until it is killed")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--broken-early-trim", action="store_true")
    arguments = parser.parse_args()
    work(arguments.directory, broken=arguments.broken_early_trim)


if __name__ == "__main__":
    main()
