"""Readers of a journal's directory, at rest or while it grows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from mqis.protocol.errors import StorageError
from mqis.storage.journal.journal_files import explained, segments
from mqis.wire.errors import WireError
from mqis.wire.journal.segment import Corrupt, Entry, Whole, walk
from mqis.wire.journal.segmentheader import FIXED_SIZE, SegmentHeader, segment_header


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file in memory."""

    path: Path
    data: bytes
    header: SegmentHeader
    records_at: int

    @classmethod
    def load(cls, path: Path) -> Segment:
        with explained(path):
            data = path.read_bytes()
        try:
            header, records_at = segment_header(data)
        except WireError as error:
            raise StorageError(f"journal {path}: {error}") from error
        return cls(path, data, header, records_at)

    def entries(self) -> Iterator[Entry]:
        return walk(self.data, self.records_at)

    def bytes_of(self, entry: Entry) -> bytes:
        return self.data[entry.offset : entry.offset + entry.length]


def load_behind(directory: Path, after: int) -> Iterator[Segment]:
    """The segments that can hold records with numbers greater than ``after``, in order."""
    paths = list(segments(directory).values())
    if paths and paths[-1].stat().st_size < FIXED_SIZE:  # it is being created
        paths.pop()
    for path, following in zip_longest(paths, paths[1:]):
        if following is None or first_lsn(following) - 1 > after:
            yield Segment.load(path)


def first_lsn(path: Path) -> int:
    """The first lsn of a segment, from its header alone."""
    with explained(path), path.open("rb") as file:
        start = file.read(1 << 16)
    try:
        return segment_header(start)[0].first_lsn
    except WireError as error:
        raise StorageError(f"journal {path}: {error}") from error


def records(directory: Path, after: int = 0) -> Iterator[Whole]:
    """Yields the intact records with greater numbers, each once."""
    for segment in load_behind(directory, after):
        for entry in segment.entries():
            if isinstance(entry, Whole) and entry.lsn > after:
                after = entry.lsn
                yield entry


class Follower:
    """A reader of the new records of a journal, from ``after`` on, each once."""

    def __init__(self, directory: Path, after: int = 0) -> None:
        self._directory = directory
        self._after = after
        self._number: int | None = None
        self._offset = 0
        self._reported: set[tuple[int, int]] = set()

    def poll(self) -> list[Whole | Corrupt]:
        """The new entries. A damaged end is left for the next call: it may still be growing."""
        found: list[Whole | Corrupt] = []
        available = segments(self._directory)
        numbers = [n for n in available if self._number is None or n >= self._number]
        for number in numbers:
            last = number == numbers[-1]
            found += self._read(number, available[number], last=last)
        return found

    def _read(self, number: int, path: Path, *, last: bool) -> list[Whole | Corrupt]:
        if number != self._number:
            self._number, self._offset = number, 0
        with explained(path), path.open("rb") as file:
            if path.stat().st_size < self._offset:  # truncated: the same records come again
                self._offset = 0
            file.seek(self._offset)
            data = file.read()
        start = 0
        if self._offset == 0:
            try:
                start = segment_header(data)[1]
            except WireError as error:
                if last:  # it is being created
                    return []
                return [Corrupt(0, len(data), error.reason)]
        return self._entries(number, data, start, last=last)

    def _entries(
        self, number: int, data: bytes, start: int, *, last: bool
    ) -> list[Whole | Corrupt]:
        found: list[Whole | Corrupt] = []
        base, end = self._offset, start
        for entry in walk(data, start):
            at_end = entry.offset + entry.length == len(data)
            if not isinstance(entry, Whole) and at_end and last:
                break
            end = entry.offset + entry.length
            place = replace(entry, offset=base + entry.offset)
            if isinstance(place, Whole):
                if place.lsn > self._after:
                    self._after = place.lsn
                    found.append(place)
            elif (number, place.offset) not in self._reported:
                self._reported.add((number, place.offset))
                found.append(Corrupt(place.offset, place.length, place.reason))
        self._offset = base + end
        return found
