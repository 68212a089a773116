"""Restores journals from an archive, whose files are not trusted until they are checked.

Only files with the names of a journal are fetched, and none that is larger than a journal's files
are. They come into a directory aside. It gets its name after the whole chain was checked: the names
agree with the headers, one server wrote all segments, no record is damaged and no segment changed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqis.files import whole_directory, whole_file
from mqis.places import Place, listed, open_at
from mqis.protocol.errors import StorageError
from mqis.storage.journal.checking import JournalCheck, check_journal
from mqis.storage.journal.journal_files import explained, segments
from mqis.storage.journal.journal_reader import Segment
from mqis.texts import counted, joined, size
from mqis.wire.mqds.keys import RsaPublicKey

_FILE = re.compile(r"segment-\d{10}\.mqj|snapshot-\d{20}\.jsonl")
_BLOCK = 1 << 20
#: The largest files that are fetched. A server begins a new segment at 64 MiB.
MAX_SEGMENT, MAX_SNAPSHOT = 256 << 20, 64 << 30
#: Left free on the disk.
_SPARE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class ArchivedJournal:
    """A directory of an archive with the files of one journal."""

    place: Place
    #: (file, size), segments and snapshots.
    files: tuple[tuple[Place, int], ...]

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def total_bytes(self) -> int:
        return sum(number for _, number in self.files)


def archived_journals(place: Place) -> list[ArchivedJournal]:
    """The journals in an archive, by name; the place may also be one of them."""
    found: dict[Place, list[tuple[Place, int]]] = {}
    for file, number in listed(place, recursive=True):
        depth = str(file.parent) in (str(place), str(place / file.parent.name))
        if depth and _FILE.fullmatch(file.name):
            found.setdefault(file.parent, []).append((file, number))
    made = [ArchivedJournal(parent, tuple(files)) for parent, files in found.items()]
    return sorted(made, key=lambda journal: journal.name)


def restore_journal(
    journal: ArchivedJournal, directory: Path, keys: Sequence[RsaPublicKey] = ()
) -> JournalCheck:
    """Fetches a journal into a new directory; leaves nothing if a file is not what it should be."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise StorageError(f"{directory}: is not empty; give a new directory")
    with explained(directory), whole_directory(directory) as draft:
        fetch_journal(journal, draft)
        check = check_journal(draft, keys)
        if check.faults:
            raise StorageError(
                f"{journal.place}: {check.faults[0]} ({counted(len(check.faults), 'fault')}); "
                "nothing is restored: 'mqis journal check' lists all"
            )
    return check


def fetch_journal(journal: ArchivedJournal, directory: Path) -> None:
    """Fetches the files of a journal into an empty directory; refuses those that are not its own.

    The caller still has to check the records and the chain.
    """
    _refuse_too_large(journal, directory)
    for file, number in journal.files:
        _fetch(file, number, directory / file.name)
    _refuse_strangers(journal, directory)


def _refuse_too_large(journal: ArchivedJournal, directory: Path) -> None:
    for file, number in journal.files:
        limit = MAX_SEGMENT if file.name.startswith("segment-") else MAX_SNAPSHOT
        if number > limit:
            raise StorageError(
                f"{file}: has {size(number)}, but may have {size(limit)} at most; this is no file "
                "of a journal: remove it from the archive"
            )
    free = shutil.disk_usage(directory).free
    if journal.total_bytes + _SPARE_BYTES > free:
        raise StorageError(
            f"{journal.place}: has {size(journal.total_bytes)}, but {directory} has room for "
            f"{size(max(0, free - _SPARE_BYTES))}; free some, or choose another disk"
        )


def _fetch(file: Place, number: int, target: Path) -> None:
    left = number
    with open_at(file) as source, explained(target), whole_file(target) as out:
        while left and (data := source.read(min(left, _BLOCK))):
            out.write(data)
            left -= len(data)
        if left or source.read(1):
            raise StorageError(f"{file}: its size is not that of the listing; try again")


def _refuse_strangers(journal: ArchivedJournal, directory: Path) -> None:
    """Refuses segments under another name than their number, and those of other servers."""
    owner = journal.name.partition(".")[0]
    writers: set[str] = set()
    for number, path in segments(directory).items():
        try:
            header = Segment.load(path).header
        except StorageError:
            continue  # the check reports it
        if header.number != number:
            raise StorageError(
                f"{journal.place / path.name}: is segment {header.number}, under another name; "
                "the archive was changed: restore it from a copy"
            )
        writers.add(str(header.server_id))
    if len(writers) > 1 or (_is_guid(owner) and writers and owner not in writers):
        raise StorageError(
            f"{journal.place}: has segments of {joined(sorted(writers))}; the archive was "
            "changed: restore it from a copy"
        )


def _is_guid(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) is not None
