"""The archiver: it copies closed segments and snapshots, reads each copy back and compares it.

It keeps nothing in memory that a crash could lose. Killed before a copy is complete, it copies
again: an unfinished copy has no name. Killed after that, it finds the copy, compares it, and notes
it. It never replaces a file of the archive by another one, and deletes none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from time import time

from mqis.files import write_whole
from mqis.places import Place, listed, open_at, put_at, size_at
from mqis.protocol.errors import StorageError
from mqis.storage.journal.journal_files import explained, is_segment, segments, snapshots
from mqis.storage.journal.journal_reader import Segment, first_lsn
from mqis.wire.guid import Guid

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """The state of the archiving; no field ever has a credential."""

    place: str
    #: Files copied and verified by this process, and their bytes.
    files: int = 0
    archived_bytes: int = 0
    #: Failed attempts since the start, and the reason of the last one; "" after a success.
    failures: int = 0
    error: str = ""
    #: Files that are closed and not in the archive yet, and seconds since the oldest was closed.
    waiting: int = 0
    lag_s: float = 0.0


class Archiver:
    """Archives one journal; one thread calls ``step``, any thread may ask the others."""

    def __init__(self, directory: Path, place: Place, server_id: Guid) -> None:
        self._directory = directory
        self._place = place
        self._server_id = server_id
        self._ledger = ArchiveLedger.load(directory)
        self._lock = Lock()
        self._files = self._bytes = self._failures = 0
        self._error = ""
        self._waiting = 0
        #: The time at which the oldest waiting file was closed; 0: none waits.
        self._oldest = 0.0

    def step(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Copies what waits, oldest first, and returns the number of files; raises on failure."""
        done = 0
        try:
            for path in self.look():
                if stopped():
                    break
                self._archive(path)
                done += 1
            self.look()
        except (StorageError, OSError) as error:
            with self._lock:
                self._failures += 1
                self._error = str(error)
            raise StorageError(f"archive: {error}") from error
        with self._lock:
            self._error = ""
        return done

    def look(self) -> list[Path]:
        """Lists the files that are closed and not archived, and remembers that for the status."""
        waiting = [path for path in closed_files(self._directory) if not self.is_archived(path)]
        oldest = min((moment for path in waiting if (moment := _closed_at(path))), default=0.0)
        with self._lock:
            self._waiting, self._oldest = len(waiting), oldest
        return waiting

    def is_archived(self, path: Path) -> bool:
        """Returns whether a verified copy of the file is in the archive."""
        return self._target_is_ours() and path.name in self._ledger.files

    def status(self) -> ArchiveStatus:
        """The state as of the last look, a few seconds ago; it reads no file, so it never waits."""
        with self._lock:
            return ArchiveStatus(
                str(self._place),
                self._files,
                self._bytes,
                self._failures,
                self._error,
                self._waiting,
                max(0.0, time() - self._oldest) if self._oldest else 0.0,
            )

    def _target_is_ours(self) -> bool:
        return self._ledger.target.partition("#")[0] == str(self._place / str(self._server_id))

    def _archive(self, path: Path) -> None:
        if not self._target_is_ours():
            number = _journal_number(self._directory, self._place, self._server_id)
            self._ledger.begin(f"{self._place / str(self._server_id)}#{number}")
        number = int(self._ledger.target.partition("#")[2])
        digest, size = _copied(path, journal_place(self._place, self._server_id, number))
        self._ledger.add(path.name, digest)
        with self._lock:
            self._files += 1
            self._bytes += size
            self._waiting -= 1


def _journal_number(directory: Path, place: Place, server_id: Guid) -> int:
    """The journal of the archive that the files belong to: one with the same segments, or the one
    that they continue, or a new one."""
    own = list(segments(directory).values())[:-1]
    numbers = (n for n in count(1) if _may_hold(journal_place(place, server_id, n), own))
    return next(numbers)


def _may_hold(target: Place, own: Sequence[Path]) -> bool:
    there = {p.name: size for p, size in listed(target) if is_segment(p.name)}
    same = [path for path in own if path.name in there]
    if not there or (same and all(_is_copy(p, target, there[p.name]) for p in same)):
        return True
    return not same and bool(own) and _continues(own[0], target, there)


def _is_copy(path: Path, place: Place, size: int) -> bool:
    """Returns whether the archive has the file, or the beginning of it."""
    return size <= path.stat().st_size and _digest(place / path.name, size) == _digest(path, size)


def _continues(path: Path, place: Place, there: dict[str, int]) -> bool:
    """Returns whether the segment follows the archive's last one, by the seal in its header."""
    seal = Segment.load(path).header.seal
    last = max(there)
    return seal is not None and _digest(place / last, there[last]) == seal.previous_digest.hex()


def journal_place(place: Place, server_id: Guid, number: int) -> Place:
    """The directory of the server's first, second, ... journal in an archive."""
    return place / (str(server_id) if number == 1 else f"{server_id}.{number}")


def closed_files(directory: Path) -> list[Path]:
    """The files that never change again, in the order of their records.

    A segment is closed when the next one exists. A snapshot comes before the segment that names it.
    """
    closed = list(segments(directory).values())[:-1]
    if not closed:  # nothing tells yet whether the journal is another one than the archive has
        return []
    ordered = [((lsn, 0), path) for lsn, path in snapshots(directory).items()]
    for path in closed:
        try:
            ordered.append(((first_lsn(path) - 1, 1), path))
        except StorageError:
            if path.exists():  # otherwise retention has deleted it since: it is archived
                raise
    return [path for _, path in sorted(ordered)]


def _copied(path: Path, place: Place) -> tuple[str, int]:
    """Sees to a verified copy; returns its SHA-256 and size."""
    with explained(path):
        size = path.stat().st_size
        own = _digest(path, size)
    target = place / path.name
    there = size_at(target)
    if there is not None and (there, _digest(target, there)) == (size, own):
        return own, size  # an earlier process was killed before it could note that
    if there is not None and (there >= size or _digest(target, there) != _digest(path, there)):
        raise StorageError(
            f"{path.name} is there already, with another content; it is not replaced: find out "
            "who wrote it, or give this server another archive"
        )
    put_at(path, target)
    if size_at(target) != size or _digest(target, size) != own:
        raise StorageError(f"{path.name}: the copy differs from the file; it is tried again")
    return own, size


def _digest(place: Place, size: int) -> str:
    """The SHA-256 of the first ``size`` bytes."""
    digest = sha256()
    with open_at(place) as file:
        while size and (data := file.read(min(size, _BLOCK))):
            digest.update(data)
            size -= len(data)
    return digest.hexdigest()


def _closed_at(path: Path) -> float:
    """The time of the last write, which closed it; 0 if retention has deleted it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


# --- The list of the files that are in the archive ------------------------------------------------
# Verified: ``archived.json`` beside the journal.
#
# Retention trusts only this list, because it is written after a copy was read back and compared.
# Without it (a disk was replaced) the archiver compares the files again, and copies none twice.

NAME = "archived.json"
_VERSION = 1


@dataclass(slots=True)
class ArchiveLedger:
    """The verified files of one journal in one archive."""

    directory: Path
    #: The directory of the archive that they are in, without credentials.
    target: str = ""
    #: Name -> SHA-256 in hexadecimal digits.
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, directory: Path) -> ArchiveLedger:
        """Reads the list; an unreadable one counts as empty, because it can be made again."""
        try:
            read = json.loads((directory / NAME).read_text(encoding="utf-8"))
            if read["version"] == _VERSION:
                files = {str(name): str(digest) for name, digest in read["files"].items()}
                return cls(directory, str(read["target"]), files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return cls(directory)

    def begin(self, target: str) -> None:
        """Starts over, if the archive is another one than before."""
        if self.target != target:
            self.target = target
            self.files = {}

    def add(self, name: str, digest: str) -> None:
        """Notes a verified file, durably; forgets those that retention has deleted."""
        kept = {n: d for n, d in self.files.items() if (self.directory / n).exists()}
        self.files = kept | {name: digest}
        self._save()

    def _save(self) -> None:
        content = {"version": _VERSION, "target": self.target, "files": self.files}
        path = self.directory / NAME
        with explained(path):
            write_whole(path, json.dumps(content, indent=1))
