"""Checks the archive of the journal: can it be reached, and how far is it behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mqis.findings import Area, Finding
from mqis.places import PlaceError, listed, parse_place
from mqis.protocol.errors import StorageError
from mqis.storage.archive import Archiver
from mqis.storage.journal.checking import server_id_of
from mqis.texts import counted, duration
from mqis.views.doctor.patient import Patient

_ARCHIVE = Area("archive")
#: Seconds after which a closed file should be in the archive.
_LATE_S = 3600


def check(patient: Patient) -> Iterator[Finding]:
    section = patient.config.replication
    if not section.archive:
        return
    if not section.journal:
        yield _ARCHIVE.error(
            "replication.archive is set, but no journal", "set replication.journal"
        )
        return
    place, directory = parse_place(section.archive), Path(section.journal)
    try:
        listed(place)
    except PlaceError as error:
        yield _ARCHIVE.error(str(error), "the journal keeps what is not archived until then")
        return
    server = server_id_of(directory) if directory.is_dir() else None
    if server is None:
        yield _ARCHIVE.ok(f"{place}: can be reached; there is nothing to archive yet")
        return
    try:
        archiver = Archiver(directory, place, server)
        archiver.look()
    except (StorageError, OSError) as error:
        yield _ARCHIVE.error(str(error), "check owner and mode of the journal's directory")
        return
    status = archiver.status()
    waiting = counted(status.waiting, "file waits", "files wait")
    if status.lag_s > _LATE_S:
        todo = "see the server's log; 'mqis journal archive' archives at once"
        late = f"{waiting}, the oldest for {duration(status.lag_s)}"
        yield _ARCHIVE.warning(f"{place}: {late}", todo)
    else:
        yield _ARCHIVE.ok(f"{place}: can be reached, {waiting}")
