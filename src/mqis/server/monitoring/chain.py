"""Watches the chain of a running server's journal: reads all of its files now and then.

A journal is only appended to, so damage of what was written earlier shows when somebody reads it
again, which may be too late. ``ChainWatch.check`` does what 'mqis journal check' does, slowly.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from mqis.findings import Finding
from mqis.protocol.journal import ChainState
from mqis.protocol.ports import Store
from mqis.storage.journal.checking import StoreEnd, check_journal

if TYPE_CHECKING:
    from mqis.server.replication import ReplicationService

log = logging.getLogger(__name__)

#: The pause behind each step as a multiple of its time: others have the processor for the rest.
_PAUSE = 4.0


class _Stopped(Exception):
    """The server is ending."""


@dataclass(slots=True)
class ChainWatch:
    """The faults of the journal's files. The thread that checks sets whole values only."""

    #: None until the first check is finished, and for a server without a journal.
    faults: tuple[Finding, ...] | None = None

    def check(self, service: ReplicationService, store: Store, stopped: Event) -> None:
        """Checks all files; raises ``StorageError`` if the store or a file cannot be read."""
        with suppress(_Stopped):
            found = _faults(service, store, stopped)
            if found:  # retention may have deleted files meanwhile
                found = _faults(service, store, stopped)
            known = {str(fault) for fault in self.faults or ()}
            for fault in found:
                if str(fault) not in known:
                    log.error("the journal is damaged: %s", fault)
            self.faults = found


def _faults(service: ReplicationService, store: Store, stopped: Event) -> tuple[Finding, ...]:
    if service.journal is None:
        return ()
    with store.read() as view:
        end = StoreEnd.of(view)
    # A new key signs before it is in the directory.
    own = () if service.key is None else (service.key.public,)
    keys = (*service.driver.members.keys_of(service.me.id), *own)
    found = check_journal(service.journal.files.directory, keys, end, _Pauses(stopped))
    # The end of a growing segment is torn while it is being written.
    return tuple(fault for fault in found.faults if fault.check != ChainState.TORN)


class _Pauses:
    """Waits four times as long as the work since the last pause took."""

    def __init__(self, stopped: Event) -> None:
        self._stopped = stopped
        self._began = time.monotonic()

    def __call__(self) -> None:
        if self._stopped.wait(_PAUSE * (time.monotonic() - self._began)):
            raise _Stopped
        self._began = time.monotonic()
