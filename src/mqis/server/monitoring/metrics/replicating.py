"""The metrics of a server that replicates: partitions, neighbours, queues and journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from mqis.protocol.ports import View
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.replication.effects import RefusalReason
from mqis.server.monitoring.metrics import all_metrics as c
from mqis.server.monitoring.status import ServerStatus
from mqis.server.monitoring.status_sources import Sources
from mqis.server.replication import ReplicationService
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

Family = tuple[c.Metric, c.Samples]

#: Records that are counted at most, in a store that does not number them.
_MAX_COUNTED = 10_000
#: The label for all peers that are not neighbours: there may be any number of them.
_OTHER = "other"


def replication(sources: Sources, view: View, status: ServerStatus) -> Iterator[Family]:
    service = sources.replication
    assert service is not None
    yield from _partitions(sources, status)
    yield from _lag(sources, status)
    memory = service.driver.node.replication.memory
    yield (
        c.NEIGHBOUR_CONNECTED,
        [((neighbour.name,), neighbour.connected) for neighbour in status.neighbours],
    )
    yield (
        c.WAITING_CHANGES,
        [((n.name,), len(n.available)) for n in list(memory.neighbors.values())],
    )
    yield from _counted(service)


def _partitions(sources: Sources, status: ServerStatus) -> Iterator[Family]:
    partitions = status.partitions
    numbers = {p.name: (p.last_seq, p.purged_seq) for p in partitions}
    yield c.PARTITION_LAST, [((name,), int(last, 16)) for name, (last, _) in numbers.items()]
    yield c.PARTITION_PURGED, [((name,), int(purged, 16)) for name, (_, purged) in numbers.items()]
    yield c.PARTITION_AUTHORITY, [((p.name,), p.authority) for p in partitions]
    different, changed = sources.contents.different, sources.contents.changed
    yield c.PARTITION_DIFFERENT, [((p.name,), p.id in different) for p in partitions]
    yield c.PARTITION_CHANGED, [((p.name,), p.name in changed) for p in partitions]
    yield c.PARTITION_MISSING, [((p.name,), p.missing) for p in partitions]
    yield c.PARTITION_SYNCHRONIZING, [((p.name,), p.state != "normal") for p in partitions]


def _lag(sources: Sources, status: ServerStatus) -> Iterator[Family]:
    """The lag of neighbours in own partitions; other partitions' lag their authority knows."""
    changes: c.Samples = []
    seconds: c.Samples = []
    now = sources.traffic.at
    for partition in status.partitions:
        if not partition.authority:
            continue
        last = SequenceNumber.parse(partition.last_seq).value
        for neighbour in status.neighbours:
            acknowledged = int(neighbour.acknowledged.get(partition.id, "0"), 16)
            key = canonical(neighbour.name), Guid.parse(partition.id)
            behind, age = sources.lag.of(*key, last, acknowledged, now)
            changes.append(((partition.name, neighbour.name), behind))
            seconds.append(((partition.name, neighbour.name), age))
    yield c.LAG_CHANGES, changes
    yield c.LAG_SECONDS, seconds


def _counted(service: ReplicationService) -> Iterator[Family]:
    counted, driven = service.driver.node.replication.counters, service.driver.statistics
    origins = {
        "own": counted.made - counted.decided,
        "requested": counted.decided,
        "applied": counted.applied,
    }
    yield c.CHANGES, [((origin,), number) for origin, number in origins.items()]
    yield (
        c.REFUSALS,
        [((reason.value,), driven.refusals_by_reason[reason]) for reason in RefusalReason],
    )
    yield c.FORWARD_DURATION, [((), driven.forward_seconds)]


# --- transport ------------------------------------------------------------------------------------


def transport(sources: Sources, status: ServerStatus) -> Iterator[Family]:
    service = sources.replication
    assert service is not None
    yield c.SESSIONS, c.alone(len(sources.traffic.sessions))
    yield from _queues(sources, status)
    yield from _routing(service)


def _queues(sources: Sources, status: ServerStatus) -> Iterator[Family]:
    names = {canonical(n.name): n.name for n in status.neighbours}
    totals = dict.fromkeys((*names.values(), _OTHER), (0, 0, 0.0))
    for depth in sources.traffic.depths:
        name = names.get(canonical(depth.machine), _OTHER)
        messages, size, age = totals[name]
        since = sources.traffic.at if depth.oldest is None else depth.oldest
        age = max(age, sources.traffic.at - since)
        totals[name] = messages + depth.messages, size + depth.bytes, age
    rows = [((name,), total) for name, total in totals.items()]
    yield c.QUEUE_MESSAGES, [(label, total[0]) for label, total in rows]
    yield c.QUEUE_BYTES, [(label, total[1]) for label, total in rows]
    yield c.QUEUE_OLDEST, [(label, total[2]) for label, total in rows]


def _routing(service: ReplicationService) -> Iterator[Family]:
    if service.routing is None:
        return
    keeper, counted = service.routing.keeper, service.driver.node.queue.statistics
    yield c.TABLE_BUILDS, c.alone(keeper.builds)
    yield c.TABLE_SITES, c.alone(len(keeper.table))
    yield c.ROUTING_FAILURES, c.alone(keeper.failures)
    yield c.RELAYED, c.alone(counted.relayed)
    yield c.EXHAUSTED, c.alone(counted.exhausted)


# --- journal --------------------------------------------------------------------------------------


@runtime_checkable
class _Numbered(Protocol):
    """A view that knows the number of the newest record."""

    def last_lsn(self) -> int: ...


def journal(sources: Sources, view: View) -> Iterator[Family]:
    running = None if sources.replication is None else sources.replication.journal
    if running is None:
        return
    files = running.files
    yield c.JOURNAL_LSN, c.alone(files.last_lsn)
    yield c.JOURNAL_DURABLE, c.alone(files.durable_lsn)
    yield c.JOURNAL_BYTES, c.alone(files.written)
    yield c.JOURNAL_FAILED, c.alone(running.thread.failed)
    faults = sources.chain.faults
    yield c.JOURNAL_FAULTS, [] if faults is None else c.alone(len(faults))
    yield c.OUTBOX, c.alone(outbox_depth(view, files.durable_lsn))
    if running.archiver is not None:
        status = running.archiver.status()
        yield c.ARCHIVE_FILES, c.alone(status.files)
        yield c.ARCHIVE_BYTES, c.alone(status.archived_bytes)
        yield c.ARCHIVE_FAILURES, c.alone(status.failures)
        yield c.ARCHIVE_WAITING, c.alone(status.waiting)
        yield c.ARCHIVE_LAG, c.alone(status.lag_s)


def outbox_depth(view: View, durable_lsn: int) -> int:
    """The number of records that are not yet durable in journal files."""
    if isinstance(view, _Numbered):
        return max(0, view.last_lsn() - durable_lsn)
    return len(view.outbox(durable_lsn, _MAX_COUNTED))
