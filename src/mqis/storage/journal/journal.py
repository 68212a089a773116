"""The one writer of a journal's directory.

A segment is flushed before the next one is begun, so whatever a crash can leave unfinished is the
end of the last one. Opening cuts that back to the last whole record; the outbox has the rest.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from mqis.protocol.errors import StorageError
from mqis.storage.journal.files import (
    explained,
    flush,
    flush_directory,
    segment_name,
    segments,
    snapshots,
)
from mqis.storage.journal.reader import Segment
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal.segment import (
    SegmentHeader,
    Torn,
    Whole,
    is_unfinished_header,
    segment_header,
)

SEGMENT_BYTES = 64 << 20
#: How much is handed to the system at once.
_WRITE_BYTES = 1 << 20


class Journal:
    """Appends encoded records to segment files; any thread, but one at a time."""

    def __init__(
        self,
        directory: str | Path,
        server: str,
        server_id: Guid,
        *,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.directory = Path(directory)
        self._server = server
        self._server_id = server_id
        self._segment_bytes = segment_bytes
        #: The number of the newest record in the files, and of the newest that is on disk.
        self.last_lsn = self.durable_lsn = 0
        #: Bytes written since it was opened.
        self.written = 0
        #: What opening found to mend, in words.
        self.mended: list[str] = []
        self._number = 0
        self._file = -1
        self._end = self._durable_end = 0
        with explained(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._take_lock()
            self._recover()
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StorageError(
                f"journal {self.directory}: another process writes to it; stop that one first"
            ) from error

    # --- opening ----------------------------------------------------------------------------------

    def _recover(self) -> None:
        for path in self.directory.glob("*.part"):  # a snapshot that was not finished
            with explained(path):
                path.unlink()
        found = segments(self.directory)
        while found:
            self._number, path = found.popitem()
            if self._never_begun(path):
                with explained(path):
                    path.unlink()
                self.mended.append(f"{path.name}: was not begun, removed")
                self._number -= 1
                continue
            self._resume(Segment.load(path))
            return

    def _never_begun(self, path: Path) -> bool:
        """A segment whose header did not get to the disk has no records, which come after it."""
        with explained(path), path.open("rb") as file:
            start = file.read(1 << 16)
            size = path.stat().st_size
        try:
            segment_header(start)
        except WireError:
            return is_unfinished_header(start, size)
        return False

    def _resume(self, segment: Segment) -> None:
        if segment.header.server_id != self._server_id:
            raise StorageError(
                f"journal {self.directory}: belongs to {segment.header.server} "
                f"({segment.header.server_id}), not to {self._server} ({self._server_id})"
            )
        self.last_lsn, end = segment.header.first_lsn - 1, segment.records_at
        rest = None
        for entry in segment.entries():
            if isinstance(entry, Whole):
                self.last_lsn, end, rest = entry.lsn, entry.offset + entry.length, None
            else:
                rest = rest or entry
        with explained(segment.path):
            self._file = os.open(segment.path, os.O_RDWR)
            if rest is not None:
                os.ftruncate(self._file, end)
                kind = "torn" if isinstance(rest, Torn) else "corrupt"
                lost = len(segment.data) - end
                self.mended.append(
                    f"{segment.path.name}: {lost} bytes at offset {end} cut off, {kind}: "
                    f"{rest.reason}"
                )
            flush(self._file)
        self._end = self._durable_end = end
        self.durable_lsn = self.last_lsn
        if (
            self.last_lsn >= segment.header.first_lsn
            and self._newest_snapshot()[0] >= self.last_lsn
        ):
            self._drop_file()  # the next record begins a segment, from that snapshot

    # --- writing ----------------------------------------------------------------------------------

    def append(self, records: Sequence[tuple[int, bytes]]) -> None:
        """Encoded records with their numbers, which ascend; in the files, not yet on the disk."""
        if not records:
            return
        lsns = [self.last_lsn, *(lsn for lsn, _ in records)]
        if any(before >= lsn for before, lsn in pairwise(lsns)):
            raise ValueError(f"numbers {lsns[1]} to {lsns[-1]} do not ascend from {lsns[0]}")
        start = size = 0
        for index, (lsn, data) in enumerate(records):
            if self._file < 0 or self._end + size >= self._segment_bytes:
                self._write(records[start:index])
                self._begin(lsn)
                start, size = index, 0
            elif size >= _WRITE_BYTES:
                self._write(records[start:index])
                start, size = index, 0
            size += len(data)
        self._write(records[start:])

    def _write(self, records: Sequence[tuple[int, bytes]]) -> None:
        if records:
            self._write_bytes(b"".join(data for _, data in records))
            self.last_lsn = records[-1][0]

    def _write_bytes(self, data: bytes) -> None:
        """All of it or, where there is no room, nothing."""
        written = 0
        with explained(self.directory):
            try:
                while written < len(data):
                    written += os.pwrite(self._file, data[written:], self._end + written)
            except OSError:
                os.ftruncate(self._file, self._end)
                raise
        self._end += written
        self.written += written

    def _begin(self, first_lsn: int) -> None:
        """A new segment, on the disk before anything is written behind its header."""
        self.seal()
        lsn, snapshot = self._newest_snapshot()
        number = self._number + 1
        header = SegmentHeader(
            self._server, self._server_id, number, first_lsn, snapshot, max(0, lsn)
        )
        path = self.directory / segment_name(header.number)
        with explained(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._end = 0
        try:
            self._write_bytes(header.to_bytes())
            with explained(path):
                flush(self._file)
                flush_directory(self.directory)
        except BaseException:
            self._drop_file()
            path.unlink()
            raise
        self._number = header.number
        self._durable_end = self._end

    def _newest_snapshot(self) -> tuple[int, str]:
        """Its number and name; -1 and nothing where there is none."""
        taken = snapshots(self.directory)
        return max(((lsn, path.name) for lsn, path in taken.items()), default=(-1, ""))

    def seal(self) -> None:
        """End this segment; the next record begins another one."""
        if self._file >= 0:
            self.sync()
            self._drop_file()

    def sync(self) -> None:
        """Put what was appended on the disk.

        Where that fails nobody knows what is there, and asking again would say that all is well:
        so the file goes back to what was on disk before, and the rest has to be appended again.
        """
        if self._file < 0 or self._end == self._durable_end:
            return
        with explained(self.directory):
            try:
                flush(self._file)
            except OSError:
                self._cut(self._durable_end, self.durable_lsn)
                raise
        self.durable_lsn, self._durable_end = self.last_lsn, self._end

    def cut(self, lsn: int) -> bool:
        """Forget this record and all behind it, if they are in the last segment."""
        if self._file < 0:
            return False
        segment = Segment.load(self.directory / segment_name(self._number))
        if lsn < segment.header.first_lsn:
            return False
        end, last = segment.records_at, segment.header.first_lsn - 1
        for entry in segment.entries():  # past older damage, which is no reason to lose more
            if isinstance(entry, Whole) and entry.lsn < lsn:
                end, last = entry.offset + entry.length, entry.lsn
        with explained(segment.path):
            self._cut(end, last)
        self._durable_end, self.durable_lsn = end, last
        return True

    def _cut(self, end: int, last_lsn: int) -> None:
        os.ftruncate(self._file, end)
        self._end, self.last_lsn = end, last_lsn

    def _drop_file(self) -> None:
        descriptor, self._file = self._file, -1
        os.close(descriptor)

    def close(self) -> None:
        """Without flushing: who wants that calls ``sync`` before."""
        if self._file >= 0:
            self._drop_file()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
