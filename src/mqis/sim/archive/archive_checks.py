"""Checks of a journal and its archive: the files are compared with what the store has committed.

A journal's *past* is every record that the store gave to it, by number. A server that begins anew
has several of them, and each has a directory of its own in the archive.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from mqis.protocol.errors import StorageError
from mqis.sim.run_trace import Violation
from mqis.storage.archive.archiver import NAME
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import is_segment, segments, snapshots
from mqis.storage.journal.journal_reader import Segment
from mqis.wire.journal import Whole


@dataclass(slots=True)
class JournalPast:
    """The records of one journal."""

    records: dict[int, bytes] = field(default_factory=dict)
    #: Records that retention deleted before there was an archive.
    deleted: set[int] = field(default_factory=set)
    #: The first snapshot; records before it have none.
    first_snapshot: int | None = None


def records_in(directory: Path) -> dict[int, bytes]:
    """The intact records of all segments in a directory, by number."""
    found: dict[int, bytes] = {}
    for path in segments(directory).values() if directory.is_dir() else ():
        try:
            segment = Segment.load(path)
        except StorageError:
            continue  # a copy of which only the beginning is there
        for entry in segment.entries():
            if isinstance(entry, Whole):
                found[entry.lsn] = segment.bytes_of(entry)
    return found


def check_local(directory: Path, past: JournalPast) -> None:
    """The journal's files have no gap, and say what the store said."""
    faults = check_journal(directory).faults
    if faults:
        raise Violation("a journal without gaps", str(faults[0]))
    for lsn, data in records_in(directory).items():
        if past.records.get(lsn) != data:
            raise Violation("a journal says what happened", f"record {lsn} is another one")
    taken = snapshots(directory)
    if past.first_snapshot is None:
        past.first_snapshot = min(taken, default=None)
    _check_beginning(directory, min(taken, default=-1), past)


def _check_beginning(directory: Path, oldest: int, past: JournalPast) -> None:
    """Retention deletes the segments before a snapshot first, then the snapshot before that."""
    for path in segments(directory).values():
        lsns = [e.lsn for e in Segment.load(path).entries() if isinstance(e, Whole)]
        if lsns and lsns[-1] <= oldest and oldest != past.first_snapshot:
            raise Violation(
                "history begins at a snapshot",
                f"{path.name} ends at {lsns[-1]}, and the oldest snapshot is {oldest}",
            )


def check_nothing_lost(
    past: JournalPast,
    waiting: set[int],
    directory: Path,
    archived: dict[int, bytes] | None,
    keep: int,
) -> None:
    """Every record waits in the store, or is in the journal or in the archive.

    ``archived`` is None if there is no archive: retention deletes what is before the ``keep``
    newest snapshots then.
    """
    held = waiting | records_in(directory).keys()
    missing = past.records.keys() - held - past.deleted
    if archived is None:
        kept = list(snapshots(directory))[-keep:]
        oldest = kept[0] if len(kept) == keep else -1
        past.deleted |= {lsn for lsn in missing if lsn <= oldest}
        missing -= past.deleted
    else:
        missing = {lsn for lsn in missing if archived.get(lsn) != past.records[lsn]}
    if missing:
        raise Violation("nothing is lost", f"record {min(missing)} is nowhere")


def check_list(directory: Path, archive: Path) -> None:
    """What the list of archived files names is in the archive, byte for byte."""
    try:
        read = json.loads((directory / NAME).read_text("utf-8"))
        target, files = read["target"], read["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return  # it is made anew
    place, _, number = str(target).partition("#")
    copies = Path(place if number == "1" else f"{place}.{number}")
    for name, digest in files.items():
        copy, own = copies / name, directory / name
        if not copy.is_file() or sha256(copy.read_bytes()).hexdigest() != digest:
            raise Violation("archived files are in the archive", f"{copies.name}/{name} is not")
        if own.is_file() and own.read_bytes() != copy.read_bytes():
            raise Violation("archived files are in the archive", f"{name} is another file there")


class ArchiveHistory:
    """The files of the archive as they were seen: none of them goes or becomes another one."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._seen: dict[Path, bytes] = {}

    def check(self, torn: Path | None) -> None:
        """Compares the files; that of a torn copy may be torn again."""
        now = {
            path: path.read_bytes()
            for path in sorted(self._archive.rglob("*"))
            if path != torn and (is_segment(path.name) or path.suffix == ".jsonl")
        }
        for path, data in self._seen.items():
            if path == torn:
                continue
            if path not in now:
                raise Violation("the archive keeps its files", f"{path.name} is gone")
            if not now[path].startswith(data):
                raise Violation("the archive keeps its files", f"{path.name} was replaced")
        self._seen = now


def check_directories(archive: Path, pasts: list[JournalPast]) -> None:
    """Each directory of the archive is a sound journal, and no two are of one past."""
    owners: dict[int, str] = {}
    for directory in sorted(path for path in archive.iterdir() if path.is_dir()):
        faults = check_journal(directory).faults
        if faults:
            raise Violation("an archived journal is sound", f"{directory.name}: {faults[0]}")
        found = records_in(directory).items()
        if not found:
            continue
        fits = [n for n, past in enumerate(pasts) if found <= past.records.items()]
        if not fits:
            raise Violation("one journal, one directory", f"{directory.name} is of no journal")
        free = [n for n in fits if n not in owners]
        if not free:
            raise Violation(
                "one journal, one directory", f"{directory.name} is also in {owners[fits[0]]}"
            )
        owners[free[0]] = directory.name
