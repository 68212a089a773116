"""The segment files of journals, their headers, and those of them that are there twice.

A record is one by its server and number. Copies of a segment are told by their headers and compared
byte by byte, so that ingesting reads each record once and nothing has to be sorted for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from mqis.pipeline import arrays
from mqis.pipeline.sources.files import (
    SourceFile,
    open_plain,
    paths_in,
    size_of,
    source_file,
    unreadable,
)
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import SegmentHeader, segment_header

#: Any name: a segment that somebody renamed is read, and its name is evidence.
PATTERN = "*.mqj"
#: The maximum length of a header: its length field has 16 bits.
_HEADER_BYTES = 1 << 16
#: A limit, because a task reads a damaged segment as a whole. Servers begin a new one at 64 MiB.
MAX_SEGMENT = 1 << 30
_BLOCK = 1 << 20


def segment_files(options: Mapping[str, str]) -> list[SourceFile]:
    """The files that ``path`` names, except those of ``without`` (a JSON list)."""
    without = frozenset(json.loads(options.get("without", "[]")))
    found = paths_in(options, "journal segments", PATTERN)
    return [path for path in found if str(path) not in without]


def open_segment(path: SourceFile) -> tuple[SegmentHeader | None, int, str]:
    """Returns (header, offset of the first record, ""); (None, 0, reason) if it cannot be read."""
    try:
        with open_plain(path) as file:
            header, start = segment_header(file.read(_HEADER_BYTES))
        if size_of(path) > MAX_SEGMENT:
            return None, 0, f"the file is too large: a segment has at most {MAX_SEGMENT:,} bytes"
    except OSError as error:
        return None, 0, unreadable(error)
    except WireError as error:
        return None, 0, str(error)
    return header, start, ""


def server_of_segment(path: SourceFile) -> str | None:
    """The name of the server that wrote the segment; None if its header cannot be read."""
    header, _, _ = open_segment(path)
    return None if header is None else header.server


# --- copies ---------------------------------------------------------------------------------------


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

    @property
    def is_misnamed(self) -> bool:
        """True if the file does not have the name that the server gave it."""
        return source_file(self.path).name != f"segment-{self.number:010}.mqj"


def journal_files(journals: str) -> list[SegmentFile]:
    """Reads the headers of all segments; those that cannot be read are left to the source."""
    paths = segment_files({"path": journals, "allow_empty": "true"})
    listed = filter(None, map(_segment_file, paths))
    found: list[SegmentFile] = []
    by_identity = sorted(listed, key=lambda s: (s.identity, -s.size, s.is_misnamed, s.path))
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
