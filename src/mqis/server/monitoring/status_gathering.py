"""Gathers the status of a server, from the running server or from its store alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mqis import __version__
from mqis.config.sections import ConfiguredRole
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DirectoryObject,
    Partition,
    PurgeState,
    name_key,
)
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.types.machine_values import sites_of
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import View
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.replication.acknowledging import acks_of
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.convergence import comparable_digest
from mqis.protocol.replication.jumps import jumps_of
from mqis.protocol.replication.memory import Memory
from mqis.server.monitoring.content_watch import partition_name
from mqis.server.monitoring.health import lost_files, problems
from mqis.server.monitoring.resources import disk_free, memory_bytes
from mqis.server.monitoring.status import NeighbourStatus, PartitionStatus, ServerStatus
from mqis.server.monitoring.status_sources import Sources
from mqis.wire.mqds.objecttype import ObjectType

if TYPE_CHECKING:
    from mqis.server.replication import ReplicationService

_STATES = {
    PurgeState.NORMAL: "normal",
    PurgeState.STARTING_SYNC0: "start_sync0",
    PurgeState.IN_SYNC0: "sync0",
    PurgeState.COMPLETING_SYNC0: "complete_sync0",
}


def server_status(sources: Sources) -> ServerStatus:
    """Reads the status of a running server; raises ``StorageError`` if the store is unreadable."""
    with sources.store.read() as view:
        return status_in(view, sources)


def status_in(view: View, sources: Sources) -> ServerStatus:
    root = enterprise(view)
    return ServerStatus(
        server=sources.name,
        role=role_in(view, sources.name, sources.config.server.role.value),
        site=site_name(view, sources),
        enterprise=sources.config.enterprise.name if root is None else root.path or "",
        pid=os.getpid(),
        started=sources.started,
        partitions=partitions_of(view, sources),
        neighbours=neighbours_of(view, sources),
        counters=counters_of(sources),
        problems=tuple(problems(sources)),
        serving=sources.serving,
        version=__version__,
        memory_bytes=memory_bytes(),
        disk_free=disk_free(sources.config),
        lost_files=tuple(lost_files(sources)),
    )


def stored_status(view: View, name: str, role: str, site: str) -> ServerStatus:
    """Returns the status of a server that does not run, from its store."""
    root = enterprise(view)
    partitions = tuple(
        _partition(view, state, state.owner.lower() == name.lower(), name)
        for state in view.partitions()
    )
    found = "" if root is None else root.path or ""
    known = role_in(view, name, role)
    return ServerStatus(name, known, site, found, 0, 0.0, partitions, (), {})


def role_in(view: View, name: str, configured: str) -> str:
    """The role that the directory gives a server; the configured one if it gives none.

    A promotion changes the directory first, and the configuration of others never.
    """
    owned = {state.id for state in view.partitions() if name_key(state.owner) == name_key(name)}
    if configured == ConfiguredRole.NONE or view.find(ObjectType.MACHINE, name) is None:
        return configured
    if ENTERPRISE_PARTITION in owned:
        return ConfiguredRole.PEC.value
    return (ConfiguredRole.PSC if owned else ConfiguredRole.BSC).value


def site_name(view: View, sources: Sources) -> str:
    """The name of the own site in the directory, else in the configuration."""
    replication = sources.replication
    site: DirectoryObject | None
    if replication is not None:
        site = view.get(ObjectType.SITE, replication.me.site)
    else:
        machine = view.find(ObjectType.MACHINE, sources.name)
        first = None if machine is None else next(iter(sites_of(machine)), None)
        site = None if first is None else view.get(ObjectType.SITE, first)
    return (None if site is None else site.path) or sources.config.server.site


# --- partitions -----------------------------------------------------------------------------------


def partitions_of(view: View, sources: Sources) -> tuple[PartitionStatus, ...]:
    replication = sources.replication
    if replication is None:
        listed = view.partitions()
        return tuple(_partition(view, state, True, sources.name) for state in listed)
    me, memory = replication.me, replication.driver.node.replication.memory
    return tuple(
        _partition(view, state, owns(view, me, state.id), me.name, memory)
        for state in view.partitions()
    )


def _partition(
    view: View, state: Partition, authority: bool, server: str, memory: Memory | None = None
) -> PartitionStatus:
    machine = view.find(ObjectType.MACHINE, server)
    digest = comparable_digest(view, state)
    return PartitionStatus(
        id=str(state.id),
        name=partition_name(view, state.id),
        owner=state.owner,
        authority=authority,
        last_seq=str(state.last_seq),
        purged_seq=str(state.purged_seq),
        allowed_purge_seq=str(state.allowed_purge_seq),
        state=_state(state, memory),
        missing=missing(state, memory),
        own_site=machine is not None and machine.partition == state.id,
        digest="" if digest is None else f"{digest.shared:064x}",
        site_digest="" if digest is None else f"{digest.site:064x}",
        site_only=0 if digest is None else digest.site_only,
        jumps=tuple((str(before), str(after)) for before, after in jumps_of(view, state.id)),
    )


def _state(state: Partition, memory: Memory | None) -> str:
    """The state: ``sync`` during a request for changes, ``restoring`` during a recovery."""
    if memory is not None and state.purge_state is PurgeState.NORMAL:
        if state.id in memory.recoveries:
            return "restoring"
        progress = memory.partitions.get(state.id)
        if progress is not None and progress.asked is not None:
            return "sync"
    return _STATES[state.purge_state]


def missing(state: Partition, memory: Memory | None) -> int:
    """The number of known changes that are missing here, plus the quarantined objects."""
    progress = None if memory is None else memory.partitions.get(state.id)
    if progress is None:
        return 0
    kept = sum(seq > state.last_seq for seq in list(progress.pending))
    return max(0, progress.heard - state.last_seq.value - kept) + len(progress.quarantine)


# --- neighbours -----------------------------------------------------------------------------------


def neighbour_names(replication: ReplicationService) -> list[str]:
    """The names of the neighbours: other PSCs and own BSCs; for a BSC, its PSC."""
    memory = replication.driver.node.replication.memory
    if replication.me.is_bsc:
        return [memory.psc]
    return sorted(neighbor.name for neighbor in list(memory.neighbors.values()))


def neighbours_of(view: View, sources: Sources) -> tuple[NeighbourStatus, ...]:
    replication = sources.replication
    if replication is None:
        return ()
    connected = connected_names(sources)
    return tuple(
        NeighbourStatus(
            name,
            canonical(name) in connected,
            sources.traffic.queued(name),
            acknowledged(view, replication, name),
        )
        for name in neighbour_names(replication)
    )


def connected_names(sources: Sources) -> set[str]:
    """The names of machines with an open session, in canonical form."""
    if sources.replication is None:
        return set()
    name_of = sources.replication.driver.members.name_of
    names = (machine or name_of(peer) or "" for peer, machine in sources.traffic.sessions)
    return {canonical(name) for name in names}


def acknowledged(view: View, replication: ReplicationService, name: str) -> dict[str, str]:
    """The last number that a PSC acknowledged of each own partition; a BSC sends none."""
    memory, me = replication.driver.node.replication.memory, replication.me
    neighbor = memory.neighbor(name)
    if neighbor is None or not neighbor.intersite:
        return {}
    acks = acks_of(view, name)
    numbers = {ENTERPRISE_PARTITION: acks.enterprise, me.site: acks.site}
    return {str(id): str(seq) for id, seq in numbers.items() if owns(view, me, id)}  # noqa: A001


# --- lag ------------------------------------------------------------------------------------------


def has_lag(sources: Sources) -> bool:
    """Returns whether others can lag behind this server, because it may own partitions."""
    return sources.replication is not None and not sources.replication.me.is_bsc


def update_lag(sources: Sources, now: float) -> None:
    """Updates ``sources.lag``; ``now`` is not before the time of ``sources.traffic``."""
    replication = sources.replication
    if replication is None:
        return
    connected = connected_names(sources)
    neighbors = list(replication.driver.node.replication.memory.neighbors.values())
    idle = {
        canonical(n.name): canonical(n.name) in connected
        and not n.available
        and not sources.traffic.queued(n.name)
        for n in neighbors
    }
    try:
        with sources.store.read() as view:
            states = [s for s in view.partitions() if owns(view, replication.me, s.id)]
    except StorageError:
        return
    sources.lag.observe(now, {state.id: state.last_seq.value for state in states}, idle)


# --- The counters of a server since its start, by name --------------------------------------------


def counters_of(sources: Sources) -> dict[str, float]:
    """Reads all counters. Names may be added, never renamed: other programs read them."""
    counted: dict[str, float] = {
        "commits": sources.writer.commits,
        "operations": sources.writer.operations,
        "commit_failures": sources.writer.failures,
    }
    if sources.rpc is not None:
        calls = sources.rpc.endpoint.statistics
        counted |= {
            "connections": sources.rpc.connections,
            "calls": calls.calls_in,
            "faults": calls.faults,
            "refused_connections": calls.refused,
        }
    if sources.authenticator is not None:
        counted["logon_failures"] = sources.authenticator.failures
    if sources.directory is not None:
        counted["access_denied"] = sources.directory.denials
    if sources.replication is not None:
        counted["sessions"] = len(sources.traffic.sessions)
        counted |= _replication(sources.replication)
    if sources.discovery is not None:
        discovery = sources.discovery.statistics
        counted |= {
            "discovery_answered": discovery.answered,
            "discovery_limited": discovery.limited,
        }
    return counted


def _replication(service: ReplicationService) -> dict[str, float]:
    driver, replication = service.driver, service.driver.node.replication
    transport = driver.node.queue.statistics
    counted: dict[str, float] = {
        "sync_requests": replication.counters.sync_requests,
        "sync_rounds": replication.counters.sync_replies,
        "sync0_rounds": replication.counters.sync0_started,
        "changes_made": replication.counters.made,
        "changes_applied": replication.counters.applied,
        "sessions_opened": transport.sessions,
        "messages_sent": transport.sent,
        "messages_received": transport.received,
        "messages_refused": transport.refused - transport.duplicates,
        "messages_duplicate": transport.duplicates,
        "messages_undelivered": transport.undelivered,
        "messages_relayed": transport.relayed,
        "refusals": driver.statistics.refusals,
        "forwarded": driver.statistics.forwarded,
        "forward_timeouts": driver.statistics.forward_timeouts,
        "restarts": driver.statistics.restarts,
    }
    if service.journal is not None:
        counted |= {
            "journal_records": service.journal.thread.copied,
            "journal_lsn": service.journal.files.last_lsn,
        }
        if service.journal.archiver is not None:
            archive = service.journal.archiver.status()
            counted |= {
                "archive_files": archive.files,
                "archive_failures": archive.failures,
                "archive_waiting": archive.waiting,
                "archive_lag_s": round(archive.lag_s, 1),
            }
    return counted
