"""The segment files of journals by their headers, and those of them that are there twice.

A record is one by its server and number. Copies of a segment are told by their headers and compared
byte by byte, so that ingesting reads each record once and nothing has to be sorted for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from mqis.pipeline import arrays
from mqis.pipeline.sources.files import SourceFile, open_plain, paths_in, size_of
from mqis.pipeline.sources.journal import PATTERN, open_segment
from mqis.wire.guid import Guid
from mqis.wire.journal import SegmentHeader

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment file and what its header says; ``first_lsn`` is the number of its first record."""

    path: str
    size: int
    server: str
    server_id: Guid
    number: int
    first_lsn: int
    header: SegmentHeader | None = None
    #: The SHA-256 of the file; None until a task has read it.
    digest: bytes | None = None
    #: The SHA-256 of the snapshot that the segment begins at, if it is there.
    snapshot_digest: bytes | None = None
    #: The file that contains all of this one, which is not read then.
    kept: str | None = None

    @property
    def identity(self) -> tuple[str, bytes, int, int]:
        return self.server, self.server_id.raw, self.number, self.first_lsn


def journal_files(journals: str) -> list[SegmentFile]:
    """Reads the headers of all segments; those that cannot be read are left to the source."""
    paths = paths_in({"path": journals, "allow_empty": "true"}, PATTERN, "journal segments")
    listed = filter(None, map(_segment_file, paths))
    found: list[SegmentFile] = []
    by_identity = sorted(listed, key=lambda s: (s.identity, -s.size, s.path))
    for _, group in groupby(by_identity, key=lambda s: s.identity):
        whole: list[str] = []
        for segment in group:
            holder = next((path for path in whole if _contains(path, segment)), None)
            found.append(replace(segment, kept=holder))
            whole += [] if holder else [segment.path]
    return found


def _segment_file(path: SourceFile) -> SegmentFile | None:
    header, _, _ = open_segment(path)
    if header is None:
        return None
    server = arrays.text(header.server)
    about = header.server_id, header.number, header.first_lsn, header
    return SegmentFile(str(path), size_of(path), server, *about)


def _contains(longer: str, segment: SegmentFile) -> bool:
    """Returns whether ``longer`` begins with all bytes of the segment: the server added more."""
    try:
        with open_plain(longer) as first, open_plain(segment.path) as second:
            while block := second.read(_BLOCK):
                if first.read(len(block)) != block:
                    return False
    except OSError:
        return False
    return True
