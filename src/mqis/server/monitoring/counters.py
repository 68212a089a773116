"""The counters of a server since its start, by name."""

from __future__ import annotations

from mqis.server.monitoring.sources import Sources
from mqis.server.replication import ReplicationService


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
