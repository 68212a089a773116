"""The journal: a server's log of its replication, and its file format."""

from mqis.wire.journal.layout import decode_record, encode_record
from mqis.wire.journal.record import JournalRecord, RecordKind, RecordState
from mqis.wire.journal.segment import Corrupt, SegmentHeader, Torn, Whole, segment_header, walk

__all__ = [
    "Corrupt",
    "JournalRecord",
    "RecordKind",
    "RecordState",
    "SegmentHeader",
    "Torn",
    "Whole",
    "decode_record",
    "encode_record",
    "segment_header",
    "walk",
]
