"""The journal: a server's log of its replication, and its file format."""

from mqis.wire.journal.layout import decode_record, encode_record
from mqis.wire.journal.record import JournalRecord, RecordKind, RecordState
from mqis.wire.journal.segment import Corrupt, Torn, Whole, walk
from mqis.wire.journal.segmentheader import SegmentHeader, SegmentSeal, segment_header

__all__ = [
    "Corrupt",
    "JournalRecord",
    "RecordKind",
    "RecordState",
    "SegmentHeader",
    "SegmentSeal",
    "Torn",
    "Whole",
    "decode_record",
    "encode_record",
    "segment_header",
    "walk",
]
