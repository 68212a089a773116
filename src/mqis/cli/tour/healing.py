"""The step of the live tour about a server that was down longer than its PSC keeps changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from mqis.cli.tour.guide import Guide
from mqis.cli.tour.site import WAIT_S, Tour
from mqis.client.directory import DirectoryClient
from mqis.config.stores import open_store
from mqis.protocol.authentication import AuthLevel
from mqis.protocol.replication.settings import DEFAULTS
from mqis.server.monitoring.status import PartitionStatus
from mqis.storage.journal.journal_reader import records
from mqis.texts import counted, duration
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import AlreadyPurged
from mqis.wire.propvariant import PropVariant

QUEUE = ObjectType.QUEUE
_AWAY, _PSC, _SITE, _MACHINE = "ber-dir2", "ber-dir1", "Berlin", "ber-app1"
#: Queues to create and delete: their changes exceed the purge buffer and two purge steps.
QUEUES = (DEFAULTS.purge_buffer + 2 * DEFAULTS.purge_step) // 2 + 32
_CLIENTS = 8
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Episode:
    """The deleted queues, which the pipeline has to rebuild."""

    #: A time between the creates and the deletes.
    moment: datetime
    queues: int
    #: The server that was away, and the one from which it copied a partition.
    away: str
    source: str


async def healing(guide: Guide, tour: Tour) -> Episode:
    guide.step(
        "A server lost and healed",
        f"{_AWAY} is killed; meanwhile {QUEUES} queues are created and deleted, more changes than "
        "its PSC keeps",
    )
    supervisor = tour.enterprise.supervisor
    pid = await supervisor.kill(_AWAY, stay=True)
    last = _last_seq(tour)
    guide.confirm(
        f"kill -9 {pid}: {_AWAY} is gone, its copy ends at {last:x}",
        last > 0 and tour.node(_AWAY).pid is None,
        saw=f"number {last:x}, process {tour.node(_AWAY).pid}",
        expected="a number, and no process",
    )
    made = (await tour.status(_PSC)).counters["changes_made"]
    began = monotonic()
    moment = await _create_and_delete(guide, tour)
    seconds = monotonic() - began
    berlin = await _purged(tour, last)
    purged = int(berlin.purged_seq, 16)
    made = (await tour.status(_PSC)).counters["changes_made"] - made
    guide.confirm_equal(f"{2 * QUEUES} changes in {duration(seconds)}", made, 2 * QUEUES)
    guide.confirm(
        f"{_PSC} keeps the last {DEFAULTS.purge_buffer:,} and has purged everything up to "
        f"{purged:x}",
        last < purged <= int(berlin.last_seq, 16) - DEFAULTS.purge_buffer,
        saw=f"last number {berlin.last_seq}, purged number {purged:x}",
        expected=f"more than {last:x} is purged, and {DEFAULTS.purge_buffer:,} numbers are kept",
    )
    await _lose_messages(guide, tour)
    began = monotonic()
    with guide.waiting(f"{_AWAY} starts and requests missing changes"):
        supervisor.start(_AWAY)
        await supervisor.ready([_AWAY], WAIT_S)
        status = await tour.converged()
    healed = await tour.status(_AWAY)
    guide.confirm_equal(
        f"{_AWAY} is back and agrees with all others after {duration(monotonic() - began)}",
        status.findings,
        (),
    )
    rounds = int(healed.counters["sync0_rounds"])
    gone = _already_purged(Path(tour.node(_AWAY).journal))[_PSC]
    guide.confirm(
        f"it learned that the changes are purged ({counted(gone, 'message')} in its journal) "
        f"and synchronised the whole partition ({counted(rounds, 'sync0 round')})",
        gone > 0 and rounds == 1,
        saw=f"{gone} messages, {rounds} rounds",
        expected="at least one message, and one round",
    )
    return Episode(moment, QUEUES, _AWAY, _PSC)


async def _lose_messages(guide: Guide, tour: Tour) -> None:
    """Kills the PSC too: its queue manager would deliver the waiting messages, however old."""
    supervisor = tour.enterprise.supervisor
    restarts = tour.node(_PSC).restarts
    with guide.waiting(f"{_PSC} is restarted"):
        pid = await supervisor.kill(_PSC)
        await supervisor.ready([_PSC], WAIT_S)
    guide.confirm_equal(
        f"kill -9 {pid}: with {_PSC} the messages that waited for {_AWAY} are lost; the supervisor "
        "has restarted it",
        tour.node(_PSC).restarts,
        restarts + 1,
    )


def _last_seq(tour: Tour) -> int:
    """The last number of Berlin's partition in the stopped server's copy."""
    with closing(open_store(tour.node(_AWAY).store)) as store, store.read() as view:
        site = view.find(ObjectType.SITE, _SITE)
        partition = None if site is None else view.partition(site.id)
        return 0 if partition is None else partition.last_seq.value


async def _create_and_delete(guide: Guide, tour: Tour) -> datetime:
    """Creates all queues, then deletes them; returns a time between."""
    paths = [f"{_MACHINE}\\passing{number}" for number in range(QUEUES)]
    label: dict[int, PropVariant] = props({PropId.Q_LABEL: "Passing by"})
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(tour.client(_PSC, level=AuthLevel.INTEGRITY))
            for _ in range(_CLIENTS)
        ]
        with guide.waiting("creating and deleting queues", 2 * QUEUES) as bar:

            async def create(client: DirectoryClient, path: str) -> None:
                await client.create(QUEUE, path, label)

            async def delete(client: DirectoryClient, path: str) -> None:
                await client.delete(QUEUE, path=path)

            await _each(clients, paths, create, bar)
            await asyncio.sleep(0.1)
            moment = datetime.now(UTC)
            await asyncio.sleep(0.1)
            await _each(clients, paths, delete, lambda done: bar(QUEUES + done))
    return moment


async def _each(
    clients: list[DirectoryClient],
    paths: list[str],
    change: Callable[[DirectoryClient, str], Awaitable[None]],
    bar: Callable[[float], None],
) -> None:
    """Makes one change for each path, as many at a time as there are clients."""
    waiting = iter(paths)
    done = 0

    async def work(client: DirectoryClient) -> None:
        nonlocal done
        for path in waiting:
            await change(client, path)
            done += 1
            bar(done)

    await asyncio.gather(*(work(client) for client in clients))


async def _purged(tour: Tour, last: int) -> PartitionStatus:
    """Waits until Berlin's authority has purged the changes that ``_AWAY`` would need."""
    until = monotonic() + WAIT_S
    while True:
        status = await tour.status(_PSC)
        berlin = next(p for p in status.partitions if p.name == _SITE)
        if int(berlin.purged_seq, 16) > last or monotonic() > until:
            return berlin
        await asyncio.sleep(_LOOK_S)


def _already_purged(journal: Path) -> Counter[str]:
    """Counts the AlreadyPurged messages that this server got, by sender."""
    return Counter(
        entry.record.peer
        for entry in records(journal)
        if entry.record.kind is RecordKind.MESSAGE
        and entry.record.state is RecordState.RECEIVED
        and entry.record.operation == AlreadyPurged.OPERATION
    )
