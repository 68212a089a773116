"""Segment files as ingesting knows them: what tasks read of them, and which of them are copies."""

from __future__ import annotations

from typing import Any

from mqis.pipeline.sources.checks import checked_segment
from mqis.pipeline.sources.inventory import SegmentFile, copies_among, segment_files
from mqis.wire.guid import Guid
from mqis.wire.journal import segment_header


def journal_files(journals: str) -> list[SegmentFile]:
    """The segments with readable headers, in any order; copies of others have ``kept``."""
    rows = map(checked_segment, segment_files({"path": journals}))
    listed = [_segment(row) for row in rows if "header" in row]
    copies = {copy.path: copy for copy in copies_among(listed)}
    return [copies.get(segment.path, segment) for segment in listed]


def _segment(row: dict[str, Any]) -> SegmentFile:
    header, _ = segment_header(row["header"])
    return SegmentFile(
        row["file"],
        row["size"],
        row["server"],
        Guid(row["server_id"]),
        row["number"],
        row["first_lsn"],
        header,
        row["digest"],
        row["snapshot_digest"],
    )
