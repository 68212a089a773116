"""Whether a server does what it is there for."""

from __future__ import annotations

import logging

from mqis.protocol.errors import StorageError
from mqis.services.monitoring.sources import Sources

log = logging.getLogger(__name__)

#: Why is in the log alone: an error can name more than everybody should read.
UNREADABLE = "the store cannot be read; the log says why"


def problems(sources: Sources) -> list[str]:
    """What keeps it from that, in words; an empty list if nothing does."""
    found = []
    if not sources.serving:
        found.append("clients are not served yet")
    try:
        with sources.store.read() as view:
            view.partitions()
    except StorageError as error:
        log.warning("the store cannot be read: %s", error)
        found.append(UNREADABLE)
    if sources.writer.failing:
        found.append("the last commit failed")
    journal = None if sources.replication is None else sources.replication.journal
    if journal is not None and journal.thread.failed:
        found.append("the journal is not written; the log says why")
    return found
