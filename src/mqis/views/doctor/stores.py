"""The store: whole, in step, and with room to grow; and the journal beside it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from mqis.config.stores import file_of
from mqis.protocol.directory.objects import PurgeState
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store
from mqis.server.restoremark import mark_of
from mqis.storage.journal.files import segments, snapshots
from mqis.storage.journal.reader import journal_faults
from mqis.storage.schema import VERSION
from mqis.views.doctor.findings import Area, Finding, Patient

_STORE, _JOURNAL, _CLOCK = Area("store"), Area("journal"), Area("clock")
_MB = 1 << 20
#: Room below which a warning is in order, and an error.
_LITTLE, _NONE = 1024 * _MB, 64 * _MB
#: A log that was never folded into the file: somebody reads without an end.
_LARGE_WAL = 256 * _MB
#: Journals grow; above this somebody should have thought of retention.
_LARGE_JOURNAL = 4096 * _MB
_WAITING = 10_000
#: Files that are newer than now by more than this were written under another clock.
_AHEAD_S = 5.0


def look(patient: Patient) -> Iterator[Finding]:
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
        todo = "stop the server and put a backup back: mqis restore"
        yield _STORE.error(f"damaged: {faults[0]} ({len(faults)} faults)", todo)
        return
    yield _STORE.ok(f"whole, schema version {VERSION}")
    with store.read() as view:
        origin = mark_of(view)
        waiting = [s for s in view.partitions() if s.purge_state is not PurgeState.NORMAL]
    if origin is not None:
        todo = "start it, and let the others be reachable; it takes the mark away itself"
        yield _STORE.note(f"was put back and has not asked all others yet: {origin}", todo)
    for state in waiting:
        todo = f"see that {state.owner} is reachable"
        yield _STORE.warning(f"partition {state.id} is being synchronised as a whole", todo)


def _room(area: Area, directory: Path) -> Finding:
    free = shutil.disk_usage(directory).free
    what = f"{free // _MB:,} MB free at {directory}"
    if free < _NONE:
        return area.error(what, "make room: without it no change is made")
    if free < _LITTLE:
        return area.warning(what, "make room before it is needed")
    return area.ok(what)


def _log(path: Path) -> Iterator[Finding]:
    wal = path.with_name(f"{path.name}-wal")
    size = wal.stat().st_size if wal.exists() else 0
    if size > _LARGE_WAL:
        todo = "something reads the store without an end; restart the server"
        yield _STORE.warning(f"{wal}: {size // _MB:,} MB were never folded into the store", todo)


def _time(path: Path) -> Iterator[Finding]:
    ahead = path.stat().st_mtime - time.time()
    if ahead > _AHEAD_S:
        todo = "set the clock (NTP); times of changes come from it"
        yield _CLOCK.error(f"{path} was written {ahead:.0f} s from now", todo)


def _journal(patient: Patient, directory: Path) -> Iterator[Finding]:
    if not directory.is_dir():
        yield _JOURNAL.note(f"{directory}: there is none yet", "the server makes it at its start")
        return
    try:
        faults = journal_faults(directory)
        files = segments(directory).values()
        size = sum(path.stat().st_size for path in files)
        kept = len(snapshots(directory))
    except (StorageError, OSError) as error:
        yield _JOURNAL.error(str(error), "check owner and mode of the directory")
        return
    # The end of a segment that grows is torn for as long as it is being written.
    serious = [f for f in faults if not (patient.running and ": torn:" in f)]
    if serious:
        todo = f"'mqis journal check {directory}' lists all; what is damaged stays so"
        yield _JOURNAL.error(f"{directory}: {serious[0]} ({len(serious)} faults)", todo)
    else:
        yield _JOURNAL.ok(f"{directory}: whole, {size // _MB:,} MB, {kept} snapshots")
    if size > _LARGE_JOURNAL:
        todo = "let replication.keep_snapshots say how much of it is to stay (docs/journal.md)"
        yield _JOURNAL.warning(f"{directory}: {size // _MB:,} MB", todo)
    yield _room(_JOURNAL, directory)
    if patient.store is not None:
        with patient.store.read() as view:
            waiting = len(view.outbox(0, _WAITING))
        if waiting >= _WAITING:
            todo = "the log of the server says why it does not write its journal"
            yield _JOURNAL.error(f"{waiting:,} records or more wait in the store", todo)
