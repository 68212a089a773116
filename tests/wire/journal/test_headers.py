"""The fields of a header equal those of the decoded record."""

from __future__ import annotations

from mqis.wire.guid import Guid
from mqis.wire.journal.headers import end_of, lsn_at, matching
from mqis.wire.journal.layout import (
    encode_record,
    length_and_crc,
    length_of_parts,
)
from mqis.wire.journal.record import JournalRecord, RecordKind, RecordState
from mqis.wire.journal.segment import offsets
from mqis.wire.journal.segmentheader import is_unfinished_header

THING, OTHER = Guid(b"\x01" * 16), Guid(b"\x02" * 16)
RECORDS = (
    JournalRecord(7, RecordKind.CHANGE, RecordState.LOCAL, object_id=THING, body=b"body"),
    JournalRecord(8, RecordKind.MESSAGE, RecordState.QUEUED, peer="psc", reason="because"),
    JournalRecord(9, RecordKind.CHANGE, RecordState.APPLIED, peer="pec", object_id=THING),
    JournalRecord(9, RecordKind.CHANGE, RecordState.APPLIED, peer="pec", object_id=OTHER),
)
ENCODED = [encode_record(41 + number, record) for number, record in enumerate(RECORDS)]
DATA = b"".join(ENCODED)
STARTS = offsets(DATA, 0)


def test_numbers_and_ends() -> None:
    assert [lsn_at(DATA, at) for at in STARTS] == [41, 42, 43, 44]
    assert [end_of(DATA, at) for at in STARTS] == [*STARTS[1:], len(DATA)]


def test_lengths() -> None:
    lengths = [len(data) for data in ENCODED]
    assert [length_and_crc(DATA, at)[0] for at in STARTS] == lengths
    assert [length_of_parts(DATA, at) for at in STARTS] == lengths


def test_matching_records_come_last_first() -> None:
    first, second, third, fourth = STARTS
    assert list(matching(DATA, STARTS)) == [fourth, third, second, first]
    assert list(matching(DATA, STARTS, kind=RecordKind.MESSAGE)) == [second]
    assert list(matching(DATA, STARTS, state=RecordState.APPLIED)) == [fourth, third]
    assert list(matching(DATA, STARTS, object_id=THING)) == [third, first]
    chosen = matching(DATA, STARTS, RecordKind.CHANGE, RecordState.LOCAL, THING)
    assert list(chosen) == [first]
    assert list(matching(DATA, STARTS[:2], object_id=THING)) == [first]


def test_a_header_that_was_not_written_to_its_end() -> None:
    start = b"MQISJRNL\x01\x00" + (70).to_bytes(2, "little") + bytes(50)
    assert is_unfinished_header(start, len(start))
    assert is_unfinished_header(bytes(100), 100)
    assert is_unfinished_header(b"", 0)
    assert not is_unfinished_header(start + b"x" * 20, len(start) + 20)
