"""Checks the store and the journal: integrity, restore mark, free space and size."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from mqis.config.stores import file_of
from mqis.findings import Area, Finding
from mqis.protocol.directory.objects import PurgeState
from mqis.protocol.errors import StorageError
from mqis.protocol.journal import ChainState
from mqis.protocol.ports import Store
from mqis.runtime.node.members import Members
from mqis.server.restoremark import mark_of
from mqis.storage.journal.belonging import belonging_fault
from mqis.storage.journal.checking import StoreEnd, check_journal, server_id_of
from mqis.storage.journal.journal_files import segments, snapshots
from mqis.storage.schema import VERSION
from mqis.texts import counted, duration, size
from mqis.views.doctor.patient import Patient

_STORE, _JOURNAL, _CLOCK = Area("store"), Area("journal"), Area("clock")
_MB = 1 << 20
#: Free space below which there is a warning, and an error.
_LITTLE, _NONE = 1024 * _MB, 64 * _MB
#: Size of a write-ahead log that is suspect: an endless read prevents checkpoints.
_LARGE_WAL = 256 * _MB
#: Size of a journal above which retention should be configured.
_LARGE_JOURNAL = 4096 * _MB
_WAITING = 10_000
#: Seconds by which a file may be newer than now; beyond, the clock was changed.
_AHEAD_S = 5.0


def check(patient: Patient) -> Iterator[Finding]:
    store = patient.store
    if store is not None:
        yield from _content(store)
    path = file_of(patient.config.store.url)
    if path is not None and path.exists():
        yield _room(_STORE, path.parent)
        yield from _log(path)
        yield from _time(path)
    if patient.config.replication.journal:
        yield from _journal(patient, Path(patient.config.replication.journal))


def _content(store: Store) -> Iterator[Finding]:
    faults = store.check()
    if faults:
        todo = "stop the server and restore a backup: mqis restore"
        yield _STORE.error(f"damaged: {faults[0]} ({counted(len(faults), 'fault')})", todo)
        return
    yield _STORE.ok(f"intact, schema version {VERSION}")
    with store.read() as view:
        origin = mark_of(view)
        waiting = [s for s in view.partitions() if s.purge_state is not PurgeState.NORMAL]
    if origin is not None:
        todo = "start it while the others can be reached; it removes the mark itself"
        yield _STORE.note(f"was restored and has not asked all others yet: {origin}", todo)
    for state in waiting:
        todo = f"check that {state.owner} can be reached"
        yield _STORE.warning(f"partition {state.id} is in a full synchronisation", todo)


def _room(area: Area, directory: Path) -> Finding:
    free = shutil.disk_usage(directory).free
    what = f"{size(free)} free at {directory}"
    if free < _NONE:
        return area.error(what, "free some space: without it, no change can be made")
    if free < _LITTLE:
        return area.warning(what, "free some space soon")
    return area.ok(what)


def _log(path: Path) -> Iterator[Finding]:
    wal = path.with_name(f"{path.name}-wal")
    length = wal.stat().st_size if wal.exists() else 0
    if length > _LARGE_WAL:
        todo = "a process keeps a read transaction open; restart the server"
        yield _STORE.warning(f"{wal}: {size(length)} were never checkpointed into the store", todo)


def _time(path: Path) -> Iterator[Finding]:
    ahead = path.stat().st_mtime - time.time()
    if ahead > _AHEAD_S:
        todo = "set the clock (NTP); times of changes come from it"
        yield _CLOCK.error(f"{path} was written {duration(ahead)} from now", todo)


def _journal_faults(patient: Patient, directory: Path) -> tuple[Finding, ...]:
    """The faults of the journal, by the store and the keys that the directory has of its server."""
    server, store = server_id_of(directory), patient.store
    if server is None or store is None:
        return check_journal(directory).faults
    with store.read() as view:
        end = StoreEnd.of(view)
    return check_journal(directory, Members(store, {}).keys_of(server), end).faults


def _belonging(patient: Patient, directory: Path) -> Iterator[Finding]:
    """Checks that the store has written this journal; the server does not start otherwise."""
    if patient.store is None:
        return
    with patient.store.read() as view:
        fault = belonging_fault(view, directory)
    if fault is not None:
        what, _, todo = fault.partition("; ")
        yield _JOURNAL.error(what, todo)


def _journal(patient: Patient, directory: Path) -> Iterator[Finding]:
    if not directory.is_dir():
        yield _JOURNAL.note(f"{directory}: no journal yet", "the server makes it when it starts")
        return
    try:
        yield from _belonging(patient, directory)
        faults = _journal_faults(patient, directory)
        files = segments(directory).values()
        length = sum(path.stat().st_size for path in files)
        kept = len(snapshots(directory))
    except (StorageError, OSError) as error:
        yield _JOURNAL.error(str(error), "check owner and mode of the directory")
        return
    # The end of a growing segment is torn while it is being written.
    serious = [f for f in faults if not (patient.running and f.check == ChainState.TORN)]
    if serious:
        check = f"mqis journal check {directory} --config {patient.file}"
        todo = f"'{check}' lists all; what is damaged cannot be repaired"
        yield _JOURNAL.error(f"{directory}: {serious[0]} ({counted(len(serious), 'fault')})", todo)
    else:
        yield _JOURNAL.ok(f"{directory}: intact, {size(length)}, {counted(kept, 'snapshot')}")
    if length > _LARGE_JOURNAL:
        todo = "limit it with replication.keep_snapshots (docs/journal.md)"
        yield _JOURNAL.warning(f"{directory}: {size(length)}", todo)
    yield _room(_JOURNAL, directory)
    if patient.store is not None:
        with patient.store.read() as view:
            waiting = len(view.outbox(0, _WAITING))
        if waiting >= _WAITING:
            todo = "see the server's log for the reason why it does not write its journal"
            yield _JOURNAL.error(f"{counted(waiting, 'record')} or more wait in the store", todo)
