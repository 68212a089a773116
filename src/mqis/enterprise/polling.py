"""Polls the status of all servers at once; reads the store of a server that does not answer.

``mqis status``, the tour and the console poll with this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass

from mqis.config.stores import file_of, open_store
from mqis.enterprise.roster import RosterEntry
from mqis.enterprise.states import ProcessState
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import View
from mqis.server.monitoring.fetching import TIMEOUT_S, fetch
from mqis.server.monitoring.status import ServerStatus
from mqis.storage.schema import VERSION
from mqis.storage.sqlite import schema_version
from mqis.wire.errors import MqisError

__all__ = ["TIMEOUT_S", "Polled", "ReadStore", "fetch", "poll", "read_store"]

_MAX_THREADS = 16
#: The process may be making or repairing its store: do not open it.
_BUSY = (ProcessState.WAITING, ProcessState.STARTING)

#: Opens a view of the store at a URL; raises ``StorageError``.
ReadStore = Callable[[str], AbstractContextManager[View]]


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of polling one server."""

    entry: RosterEntry
    #: The server's answer, or the status from its store; None if neither is available.
    status: ServerStatus | None
    answered: bool
    #: The reason why it did not answer, or why its store cannot be read.
    problem: str = ""


@contextmanager
def read_store(url: str) -> Iterator[View]:
    """Opens a store for reading; refuses one of an earlier version, as opening would change it."""
    path = file_of(url)
    if path is not None and path.exists() and schema_version(path) != VERSION:
        raise StorageError(f"{path}: this is not a store of this version of mqis")
    with closing(open_store(url)) as store, store.read() as view:
        yield view


def poll(
    entries: Sequence[RosterEntry],
    read: ReadStore | None = read_store,
    *,
    timeout_s: float = TIMEOUT_S,
) -> list[Polled]:
    """Polls all servers at the same time. Without ``read`` no store is opened."""
    if not entries:
        return []
    with ThreadPoolExecutor(min(_MAX_THREADS, len(entries))) as threads:
        return list(threads.map(lambda entry: _poll(entry, read, timeout_s), entries))


def _poll(entry: RosterEntry, read: ReadStore | None, timeout_s: float) -> Polled:
    problem = ""
    if entry.monitor is not None:
        reply = fetch(entry.monitor, timeout_s)
        if isinstance(reply, ServerStatus):
            return Polled(entry, reply, True)
        problem = reply
    if entry.store is None or read is None or _is_busy(entry):
        return Polled(entry, None, False, problem)
    from mqis.server.monitoring.status_gathering import stored_status  # noqa: PLC0415 -- slow

    try:
        with read(entry.store) as view:
            found = stored_status(view, entry.name, entry.role, entry.site)
    except MqisError as error:
        return Polled(entry, None, False, problem or str(error))
    return Polled(entry, found, False, problem)


def _is_busy(entry: RosterEntry) -> bool:
    return entry.supervised is not None and entry.supervised.state in _BUSY
