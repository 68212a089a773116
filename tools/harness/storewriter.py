"""The process that the scenario ``store`` kills: many tasks change one store, and report on stdout.

Every line is written by one call, so that a pipe carries all of it or nothing:

    open                                about to open the store
    opened                              the store is open, migrated and read
    try TASK OPERATION ID LABEL         about to submit an operation
    ack TASK OPERATION ID NUMBER        it was acknowledged, with this sequence number

Usage: python -m tools.harness.storewriter STORE --seed N [--round N] [--writers N] [--groups N]

Without ``--groups`` it runs until it is killed. With it, every task runs one operation per group,
a group is one commit, and a group's lines are all written before the next group starts, so that a
trace of system calls shows which flush belongs to which acknowledgement (``flush``).

``--broken-early-ack`` and ``--synchronous-off`` introduce the faults that the two checks look for,
to show that they find them. mqis itself has no such switches.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event

from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Partition, Scope
from mqis.protocol.ports import Transaction
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.database_session import DatabaseSession
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber
from tools.harness.processes import say

SITE = Guid.parse("5175c4a5-0000-4000-8000-000000000001")
MACHINE = Guid.parse("3ac41e0a-0000-4000-8000-000000000001")
#: The number of queues of a task: enough to have a choice, few enough to delete often.
FEWEST, MOST = 4, 16
#: The time from an early acknowledgement to the next operation or the commit.
EARLY_S = 0.02

Operation = Callable[[Transaction], SequenceNumber]


def queue(id_: Guid, label: str, seq: SequenceNumber) -> DirectoryObject:
    """The queue that results from an operation; its label determines all its other values.

    Descriptors differ in size up to more than one database page, so that updates move rows around.
    """
    seed = hashlib.sha256(label.encode()).digest()
    descriptor = hashlib.shake_128(seed).digest(1 << (seed[0] % 13))
    return DirectoryObject(
        ObjectType.QUEUE,
        id_,
        SITE,
        seq,
        props(
            {
                PropId.Q_INSTANCE: id_,
                PropId.Q_PATHNAME: f"CRASH\\{id_}",
                PropId.Q_LABEL: label,
                PropId.Q_QMID: MACHINE,
                PropId.Q_SECURITY: descriptor,
            }
        ),
    )


def _next_number(transaction: Transaction) -> SequenceNumber:
    partition = transaction.partition(SITE) or Partition(SITE, "CRASH")
    seq = partition.last_seq.increment()
    transaction.put_partition(Partition(SITE, partition.owner, seq))
    return seq


def create(id_: Guid, label: str) -> Operation:
    def run(transaction: Transaction) -> SequenceNumber:
        seq = _next_number(transaction)
        transaction.insert(queue(id_, label, seq))
        return seq

    return run


def update(id_: Guid, label: str) -> Operation:
    def run(transaction: Transaction) -> SequenceNumber:
        seq = _next_number(transaction)
        transaction.update(_held(transaction, id_), queue(id_, label, seq))
        return seq

    return run


def delete(id_: Guid, _label: str) -> Operation:
    def run(transaction: Transaction) -> SequenceNumber:
        seq = _next_number(transaction)
        transaction.delete(_held(transaction, id_))
        transaction.bury(DeletedObject(id_, SITE, seq, ObjectType.QUEUE, Scope.ENTERPRISE))
        return seq

    return run


def _held(transaction: Transaction, id_: Guid) -> DirectoryObject:
    found = transaction.get(ObjectType.QUEUE, id_)
    if found is None:
        raise LookupError(f"queue {id_}, which this task owns, is not in the store")
    return found


OPERATIONS: dict[str, Callable[[Guid, str], Operation]] = {
    "create": create,
    "update": update,
    "delete": delete,
}


class UnflushedStore(SqliteStore):
    """A store with a fault: commits return without a flush."""

    def _connect(self) -> DatabaseSession:
        session = super()._connect()
        session.run("PRAGMA synchronous=OFF")
        return session


@dataclass(slots=True)
class Client:
    """A task that changes its own queues, one operation after the other."""

    number: int
    writer: GroupCommitWriter
    random: Random
    round: int
    early_ack: bool
    mine: list[Guid] = field(default_factory=list)
    steps: int = 0

    async def step(self) -> None:
        name, id_ = self._choose()
        label = f"{self.round}.{self.number}.{self.steps}"
        self.steps += 1
        operation = OPERATIONS[name](id_, label)
        say(f"try {self.number} {name} {id_} {label}")
        if self.early_ack:
            await self.writer.submit(
                lambda transaction: self._ack(name, id_, operation, transaction)
            )
        else:
            seq = await self.writer.submit(operation)
            say(f"ack {self.number} {name} {id_} {seq.value}")

    def _ack(self, name: str, id_: Guid, operation: Operation, transaction: Transaction) -> None:
        """The fault: acknowledges inside the transaction, and a while before the commit.

        The while makes it likely on every machine that a kill comes in between.
        """
        seq = operation(transaction)
        say(f"ack {self.number} {name} {id_} {seq.value}")
        time.sleep(EARLY_S)

    def _choose(self) -> tuple[str, Guid]:
        names = ["create", "update", "update", "delete"]
        if len(self.mine) <= FEWEST:
            names.remove("delete")
        elif len(self.mine) >= MOST:
            names.remove("create")
        if not self.mine:
            names = ["create"]
        name = self.random.choice(names)
        if name == "create":
            self.mine.append(Guid(self.random.randbytes(16)))
            return name, self.mine[-1]
        place = self.random.randrange(len(self.mine))
        return name, self.mine.pop(place) if name == "delete" else self.mine[place]

    async def run(self) -> None:
        while True:
            await self.step()


async def run_group(writer: GroupCommitWriter, clients: Sequence[Client]) -> None:
    """Runs one operation of each client, all in one commit.

    An operation that changes nothing holds the writer up until all the others wait behind it.
    """
    loop = asyncio.get_running_loop()
    entered, release = asyncio.Event(), Event()

    def gate(_transaction: Transaction) -> None:
        loop.call_soon_threadsafe(entered.set)
        release.wait()

    commits = writer.commits
    held_up = asyncio.create_task(writer.submit(gate))
    await entered.wait()
    steps = [asyncio.create_task(client.step()) for client in clients]
    await asyncio.sleep(0)  # each runs up to its submit
    release.set()
    await asyncio.gather(held_up, *steps)
    if writer.commits != commits + 2:
        raise RuntimeError(f"a group took {writer.commits - commits - 1} commits instead of one")


async def work(store: SqliteStore, arguments: argparse.Namespace) -> None:
    writer = GroupCommitWriter(store)
    early_ack: bool = arguments.broken_early_ack
    clients = [
        Client(number, writer, Random(f"{arguments.seed}/{number}"), arguments.round, early_ack)
        for number in range(arguments.writers)
    ]
    with store.read() as view:
        for index, obj in enumerate(view.objects(ObjectType.QUEUE)):
            clients[index % len(clients)].mine.append(obj.id)
    say("opened")
    if arguments.groups is None:
        await asyncio.gather(*(client.run() for client in clients))
    for _ in range(arguments.groups):
        await run_group(writer, clients)
    await writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="changes a store until it is killed")
    parser.add_argument("store", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--round", type=int, default=0)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--groups", type=int)
    parser.add_argument("--broken-early-ack", action="store_true")
    parser.add_argument("--synchronous-off", action="store_true")
    arguments = parser.parse_args()
    say("open")
    store = (UnflushedStore if arguments.synchronous_off else SqliteStore)(arguments.store)
    asyncio.run(work(store, arguments))
    store.close()


if __name__ == "__main__":
    main()
