"""The single writer of a journal's directory.

A segment is flushed before the next one is begun, and a new one gets its name when its header is
on the disk, so a crash can leave only the end of the last segment unfinished. Opening truncates
that to the last intact record; the outbox has the rest.

The header of a new segment seals the one before. That is the only place of the seal, so there is no
moment at which a segment is finished and its seal is half written. What ends a segment is its
index, for which there need not be room: a segment without one is whole, too.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from mqis.files import PART, flush, flush_directory, make_private_directory
from mqis.protocol.errors import StorageError
from mqis.storage.journal.journal_files import (
    explained,
    segment_name,
    segments,
    snapshots,
)
from mqis.storage.journal.journal_reader import Segment
from mqis.storage.journal.sealing import Sealer, SealingKey
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal.index import IndexBuilder
from mqis.wire.journal.segment import Torn, Whole
from mqis.wire.journal.segmentheader import (
    SegmentHeader,
    SegmentSeal,
    is_unfinished_header,
    segment_header,
)

SEGMENT_BYTES = 64 << 20
#: The number of bytes written in one system call.
_WRITE_BYTES = 1 << 20


class Journal:
    """The writer of segment files; any thread may use it, but one at a time.

    ``key`` signs the headers; without one, segments are chained but not signed.
    """

    def __init__(
        self,
        directory: str | Path,
        server: str,
        server_id: Guid,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        key: SealingKey | None = None,
    ) -> None:
        self.directory = Path(directory)
        self._server = server
        self._server_id = server_id
        self._segment_bytes = segment_bytes
        self._sealer = Sealer(key)
        #: The number of the newest record in the files, and of the newest flushed one.
        self.last_lsn = self.durable_lsn = 0
        #: Bytes written since the journal was opened.
        self.written = 0
        #: Descriptions of the repairs made when the journal was opened.
        self.mended: list[str] = []
        self._number = 0
        self._file = -1
        #: The key that sealed the header of the open segment; None for an older version.
        self._sealed_by: bytes | None = self._sealer.key_id
        #: The index of the open segment; None if it gets none.
        self._index: IndexBuilder | None = None
        self._end = self._durable_end = 0
        #: A segment that could not be begun; its file may still be there.
        self._left: Path | None = None
        with explained(self.directory):
            make_private_directory(self.directory)
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
                f"journal {self.directory}: another process is writing to it; stop it first"
            ) from error

    # --- opening ----------------------------------------------------------------------------------

    def _recover(self) -> None:
        for path in self.directory.glob(f"*{PART}"):  # a snapshot or header that was not finished
            with explained(path):
                path.unlink()
        found = segments(self.directory)
        while found:
            self._number, path = found.popitem()
            if self._never_begun(path):
                with explained(path):
                    path.unlink()
                self.mended.append(f"{path.name}: removed, because its header was never written")
                self._number -= 1
                continue
            self._continue_segment(Segment.load(path))
            return

    def _never_begun(self, path: Path) -> bool:
        """Returns whether the header is missing; then there are no records, which come after it."""
        with explained(path), path.open("rb") as file:
            start = file.read(1 << 16)
            size = path.stat().st_size
        try:
            segment_header(start)
        except WireError:
            return is_unfinished_header(start, size)
        return False

    def _continue_segment(self, segment: Segment) -> None:
        if segment.header.server_id != self._server_id:
            raise StorageError(
                f"journal {self.directory}: belongs to {segment.header.server} "
                f"({segment.header.server_id}), not to {self._server} ({self._server_id})"
            )
        self.last_lsn, end = segment.header.first_lsn - 1, segment.records_at
        rest = None
        self._index = IndexBuilder() if segment.header.indexed else None
        for entry in segment.entries():
            if isinstance(entry, Whole):
                self.last_lsn, end, rest = entry.lsn, entry.offset + entry.length, None
                if self._index is not None:
                    self._index.add(entry.offset, segment.bytes_of(entry))
            else:
                rest = rest or entry
        has_index = rest is None and end < len(segment.data)
        end = len(segment.data) if has_index else end
        with explained(segment.path):
            self._file = os.open(segment.path, os.O_RDWR)
            if rest is not None:
                os.ftruncate(self._file, end)
                kind = "torn" if isinstance(rest, Torn) else "corrupt"
                lost = len(segment.data) - end
                self.mended.append(
                    f"{segment.path.name}: {lost} bytes at offset {end} removed, {kind}: "
                    f"{rest.reason}"
                )
            flush(self._file)
        self._end = self._durable_end = end
        self._sealer.restart(segment.data[:end])
        self.durable_lsn = self.last_lsn
        has_records = self.last_lsn >= segment.header.first_lsn
        if has_index:
            self._index = None
            self.seal()
        elif has_records and self._newest_snapshot()[0] >= self.last_lsn:
            self.seal()  # the next record begins a segment that starts from that snapshot
        if has_records:
            seal = segment.header.seal if segment.header.indexed else None
            self._sealed_by = None if seal is None else seal.key_id

    # --- writing ----------------------------------------------------------------------------------

    def use_key(self, key: SealingKey) -> None:
        """Seals with another key from the next record on, which begins a segment; thread-safe."""
        self._sealer.use(key)

    @property
    def _outdated(self) -> bool:
        """True if the open segment has an older version or another key."""
        return self._sealed_by != self._sealer.key_id

    def append(self, records: Sequence[tuple[int, bytes]]) -> None:
        """Appends encoded records with ascending numbers; does not flush them."""
        if not records:
            return
        lsns = [self.last_lsn, *(lsn for lsn, _ in records)]
        if any(before >= lsn for before, lsn in pairwise(lsns)):
            raise ValueError(f"record numbers {lsns[1]} to {lsns[-1]} do not ascend from {lsns[0]}")
        start = size = 0
        for index, (lsn, data) in enumerate(records):
            if self._outdated or self._file < 0 or self._end + size >= self._segment_bytes:
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
            offset = self._end
            self._write_bytes(b"".join(data for _, data in records))
            self.last_lsn = records[-1][0]
            if self._index is not None:
                for _, data in records:
                    self._index.add(offset, data)
                    offset += len(data)

    def _write_bytes(self, data: bytes) -> None:
        """Writes all of it or, if there is no room, nothing."""
        written = 0
        with explained(self.directory):
            try:
                while written < len(data):
                    written += os.pwrite(self._file, data[written:], self._end + written)
            except OSError:
                os.ftruncate(self._file, self._end)
                raise
        self._sealer.add(data)
        self._end += written
        self.written += written

    def _begin(self, first_lsn: int) -> None:
        """Begins a new segment, whose header is flushed before records follow it."""
        self.seal()
        lsn, snapshot = self._newest_snapshot()
        number = self._number + 1
        header = SegmentHeader(
            *(self._server, self._server_id, number, first_lsn, snapshot, max(0, lsn)),
            seal=SegmentSeal(),
            indexed=True,
        )
        sealed = self._sealer.sealed(header, self.directory)
        self._create(header.number, sealed.to_bytes())
        self._number, self._index = number, IndexBuilder()
        self._sealed_by = None if sealed.seal is None else sealed.seal.key_id
        self._durable_end = self._end
        self._sealer.mark()

    def _create(self, number: int, header: bytes) -> None:
        """Creates the file; it gets its name when the header is on the disk."""
        path = self.directory / segment_name(number)
        aside = path.with_name(f"{path.name}{PART}")
        with explained(path):
            if path == self._left:
                path.unlink(missing_ok=True)
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            self._file = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._end = 0
        try:
            self._sealer.restart()
            self._write_bytes(header)
            with explained(path):
                flush(self._file)
                aside.rename(path)
                flush_directory(self.directory)
        except BaseException:
            self._drop_file()
            self._left = path
            with suppress(OSError):  # a broken disk may refuse this too
                aside.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            raise

    def _newest_snapshot(self) -> tuple[int, str]:
        """The lsn and name of the newest snapshot; -1 and "" if there is none."""
        taken = snapshots(self.directory)
        return max(((lsn, path.name) for lsn, path in taken.items()), default=(-1, ""))

    def seal(self) -> None:
        """Ends this segment; the next record begins another one, whose header seals this one."""
        if self._file >= 0:
            self.sync()
            self._write_index()
            self._sealer.finish(self._end)
            self._drop_file()

    def _write_index(self) -> None:
        """Ends the segment with its index, if there is room for it."""
        index, self._index = self._index, None
        data = b"" if index is None else index.encode()
        if data:
            with suppress(StorageError):  # what was written of it is cut off again
                self._write_bytes(data)
                self.sync()

    def sync(self) -> None:
        """Flushes the appended records.

        After a failed flush nobody knows what is on disk, and a second flush would report success.
        So the file is truncated to its flushed part, and the rest has to be appended again.
        """
        if self._file < 0 or self._end == self._durable_end:
            return
        with explained(self.directory):
            try:
                flush(self._file)
            except OSError:
                self._cut(self._durable_end, self.durable_lsn)
                self._sealer.back()
                raise
        self.durable_lsn, self._durable_end = self.last_lsn, self._end
        self._sealer.mark()

    def cut(self, lsn: int) -> bool:
        """Removes this record and all later ones, if they are in the last segment.

        That segment may have ended. Nothing has sealed it before the next one begins: it goes on.
        """
        path = self.directory / segment_name(self._number)
        if not path.exists():
            return False
        segment = Segment.load(path)
        if lsn < segment.header.first_lsn:
            return False
        end, last = segment.records_at, segment.header.first_lsn - 1
        for entry in segment.entries():  # past older damage, which must not cost more records
            if isinstance(entry, Whole) and entry.lsn < lsn:
                end, last = entry.offset + entry.length, entry.lsn
        with explained(path):
            if self._file < 0:
                self._file = os.open(path, os.O_RDWR)
            self._cut(end, last)
        self._sealer.restart(segment.data[:end])
        self._durable_end, self.durable_lsn = end, last
        return True

    def _cut(self, end: int, last_lsn: int) -> None:
        self._index = None  # it has records that are gone
        os.ftruncate(self._file, end)
        self._end, self.last_lsn = end, last_lsn

    def _drop_file(self) -> None:
        descriptor, self._file = self._file, -1
        os.close(descriptor)

    def close(self) -> None:
        """Closes the files without flushing them; call ``sync`` first if that is needed."""
        if self._file >= 0:
            self._drop_file()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
