"""The health of a server: the problems that keep it from serving, and the verdict about it."""

from __future__ import annotations

import logging
from typing import Any

from mqis.findings import Gravity
from mqis.protocol.errors import REPORTED, StorageError
from mqis.protocol.ports import Store
from mqis.server.monitoring.content_watch import ComparedServer
from mqis.server.monitoring.replica_comparison import Comparison
from mqis.server.monitoring.status import ServerStatus
from mqis.server.monitoring.status_sources import Sources
from mqis.server.monitoring.verdict import Absence, FindingKind, HealthVerdict, judge
from mqis.storage.database import DatabaseStore

log = logging.getLogger(__name__)

#: The reason is only in the log: an error may name things that not everybody should read.
UNREADABLE = "the store cannot be read; the log says why"
#: Monitoring answers before clients are served, while a server gets its directory.
NOT_SERVING = Absence(" does not serve clients yet", " do not serve clients yet", Gravity.WARNING)


def trouble_of(store: Store) -> str | None:
    """The known trouble of a store, without accessing it; None if there is none."""
    return store.trouble() if isinstance(store, DatabaseStore) else None


def _store_problems(store: Store) -> list[str]:
    trouble = trouble_of(store)
    if trouble is None:
        try:
            with store.read() as view:
                view.partitions()
        except REPORTED:
            trouble = trouble_of(store) or UNREADABLE
        except StorageError as error:
            log.warning("the store cannot be read: %s", error)
            trouble = UNREADABLE
    return [] if trouble is None else [trouble]


def problems(sources: Sources) -> list[str]:
    """The problems of a server as texts; empty if it has none."""
    found = _store_problems(sources.store)
    if sources.writer.failing:
        found.append("the last commit failed")
    journal = None if sources.replication is None else sources.replication.journal
    if journal is not None and journal.thread.failed:
        found.append("the journal is not written; the log says why")
    return found + sources.contents.problems


def lost_files(sources: Sources) -> list[str]:
    """The files that are gone and without which the server cannot start again, in words."""
    found = []
    file, replication = sources.config_file, sources.replication
    if file is not None and not file.exists():
        found.append(f"its configuration {file.name} is gone")
    key = None if replication is None or replication.key is None else replication.key.path
    if key is not None and not key.exists():
        found.append(f"its signing key {key.name} is gone")
    return found


def own_verdict(sources: Sources, status: ServerStatus | None) -> HealthVerdict:
    """The verdict about this server; ``status`` is None if its store cannot be read."""
    absence = None if sources.serving else NOT_SERVING
    replicas, neighbours = None, 0
    if status is not None:
        neighbours = len(status.neighbours)
        comparison = Comparison({}, 0.0)
        comparison.add(sources.name, status)
        replicas = comparison.replicas(sources.name, status)
    found = tuple(problems(sources))
    server = ComparedServer(
        sources.name,
        replicas,
        absence,
        found,
        neighbours=neighbours,
        lost_files=tuple(lost_files(sources)),
    )
    verdict = judge([server]).about(sources.name)
    return HealthVerdict((*sources.contents.findings, *verdict.findings), verdict.good)


def health_json(sources: Sources, verdict: HealthVerdict) -> tuple[bool, dict[str, Any]]:
    """Returns whether the server is healthy, and the document that ``/health`` answers."""
    found = ["clients are not served yet"] if not sources.serving else []
    found += problems(sources)
    reported = FindingKind.PROBLEM, FindingKind.SERVER
    found += [f.what for f in verdict.findings if f.is_fault and f.check not in reported]
    return not found, {"healthy": not found, "problems": found, "verdict": verdict.to_json()}
