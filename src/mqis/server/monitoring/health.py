"""The health of a server: the problems that keep it from serving."""

from __future__ import annotations

import logging

from mqis.protocol.errors import REPORTED, StorageError
from mqis.protocol.ports import Store
from mqis.server.monitoring.sources import Sources
from mqis.storage.database import DatabaseStore

log = logging.getLogger(__name__)

#: The reason is only in the log: an error may name things that not everybody should read.
UNREADABLE = "the store cannot be read; the log says why"


def trouble_of(store: Store) -> str | None:
    """The known trouble of a store, without accessing it; None if there is none."""
    return store.condition.trouble if isinstance(store, DatabaseStore) else None


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
    """The problems of a server as texts; empty if it is healthy."""
    found = []
    if not sources.serving:
        found.append("clients are not served yet")
    found += _store_problems(sources.store)
    if sources.writer.failing:
        found.append("the last commit failed")
    journal = None if sources.replication is None else sources.replication.journal
    if journal is not None and journal.thread.failed:
        found.append("the journal is not written; the log says why")
    return found
