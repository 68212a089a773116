"""Segments: the header, and the walk over sound, corrupt and torn records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    Corrupt,
    JournalRecord,
    RecordKind,
    RecordState,
    SegmentHeader,
    Torn,
    Whole,
    encode_record,
    segment_header,
    walk,
)
from mqis.wire.journal.segment import Entry, offsets
from tests.strategies.journal import guids, records, texts

HEADER = SegmentHeader("PSC1", Guid(b"s" * 16), 7, 1001, "snapshot-1.jsonl", 1000)
VECTOR = (
    bytes.fromhex(
        "4d5149534a524e4c 0100 5400 c7780b70"
        "0700000000000000 e903000000000000" + "73" * 16 + "e803000000000000 0400 1000 00000000"
    )
    + b"PSC1snapshot-1.jsonl"
)
RECORD = JournalRecord(5, RecordKind.CHANGE, RecordState.LOCAL, body=b"what changed")
ENCODED = [encode_record(lsn, replace(RECORD, body=RECORD.body * lsn)) for lsn in range(1, 6)]
STARTS = [sum(map(len, ENCODED[:index])) for index in range(6)]
DATA = b"".join(ENCODED)


def shape(entries: list[Entry]) -> list[tuple[str, int]]:
    return [
        ("whole", entry.lsn)
        if isinstance(entry, Whole)
        else (type(entry).__name__.lower(), entry.offset)
        for entry in entries
    ]


def damaged(*places: tuple[int, bytes]) -> bytes:
    data = bytearray(DATA)
    for at, value in places:
        data[at : at + len(value)] = value
    return bytes(data)


def walked(data: bytes) -> list[tuple[str, int]]:
    entries = list(walk(data, 0))
    assert sum(entry.length for entry in entries) == len(data)
    return shape(entries)


# --- the header -----------------------------------------------------------------------------------


def test_header_vector_both_ways() -> None:
    assert HEADER.to_bytes() == VECTOR
    assert segment_header(VECTOR + DATA) == (HEADER, len(VECTOR))


numbers = st.integers(0, 2**64 - 1)


@given(st.builds(SegmentHeader, texts, guids, numbers, numbers, texts, numbers))
def test_header_round_trip(header: SegmentHeader) -> None:
    assert SegmentHeader.from_bytes(header.to_bytes()) == header


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK\3\4" + VECTOR[4:], "not a journal segment"),
        (VECTOR[:8] + b"\4" + VECTOR[9:], "format version 4, mqis reads 1 to 3"),
        (VECTOR[:10] + b"\x10" + VECTOR[11:], "is not a possible length"),
        (VECTOR[:-1], "needs"),
        (VECTOR[:-1] + b"x", "checksum"),
        (b"", "needs"),
    ],
)
def test_header_damage(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        segment_header(data)


@pytest.mark.parametrize(
    "header",
    [replace(HEADER, number=1 << 64), replace(HEADER, server="x" * 70_000)],
)
def test_header_that_does_not_fit(header: SegmentHeader) -> None:
    with pytest.raises(ValueError, match="fit"):
        header.to_bytes()


@given(st.binary(max_size=100), st.integers(0, len(VECTOR)))
def test_header_garbage_raises_only_wire_error(noise: bytes, at: int) -> None:
    for data in (noise, VECTOR[:at] + noise):
        try:
            segment_header(data)
        except WireError as error:
            offset = error.offset
        else:
            offset = 0
        assert 0 <= offset <= len(data)


# --- records --------------------------------------------------------------------------------------


def test_a_sound_segment() -> None:
    entries = list(walk(VECTOR + DATA, len(VECTOR)))
    assert [entry.offset for entry in entries] == [len(VECTOR) + start for start in STARTS[:-1]]
    assert shape(entries) == [("whole", lsn) for lsn in range(1, 6)]
    last = entries[-1]
    assert isinstance(last, Whole)
    assert last.record == replace(RECORD, body=RECORD.body * 5)


@pytest.mark.parametrize("at", [4, 8, 30, 119, 125])
def test_a_corrupt_record_is_stepped_over(at: int) -> None:
    """Wherever but in its lengths: checksum, number, header, body."""
    flipped = bytes([DATA[STARTS[1] + at] ^ 0x40])
    found = walked(damaged((STARTS[1] + at, flipped)))
    rest = [("whole", lsn) for lsn in range(3, 6)]
    assert found == [("whole", 1), ("corrupt", STARTS[1]), *rest]


@pytest.mark.parametrize("length", [0, 7, 121, 300, 70_000, 0xFFFFFFFF])
def test_a_corrupt_length_is_mended_by_the_parts(length: int) -> None:
    found = walked(damaged((STARTS[1], length.to_bytes(4, "little"))))
    rest = [("whole", lsn) for lsn in range(3, 6)]
    assert found == [("whole", 1), ("corrupt", STARTS[1]), *rest]


@pytest.mark.parametrize("at", [108, 110, 112, 114])
def test_corrupt_part_lengths_are_mended_by_the_length(at: int) -> None:
    found = walked(damaged((STARTS[1] + at, b"\xfe")))
    rest = [("whole", lsn) for lsn in range(3, 6)]
    assert found == [("whole", 1), ("corrupt", STARTS[1]), *rest]


def test_two_corrupt_records_in_a_row() -> None:
    found = walked(damaged((STARTS[1] + 20, b"?"), (STARTS[2] + 20, b"?")))
    assert found[:3] == [("whole", 1), ("corrupt", STARTS[1]), ("corrupt", STARTS[2])]
    assert found[3:] == [("whole", 4), ("whole", 5)]


def test_without_a_length_the_rest_is_lost() -> None:
    """A body may hold the bytes of a record: such bytes are not searched for."""
    found = walked(damaged((STARTS[1], b"\xff" * 4), (STARTS[1] + 108, b"\xff" * 8)))
    assert found == [("whole", 1), ("corrupt", STARTS[1])]
    inside = replace(RECORD, body=ENCODED[2])
    outer = bytearray(encode_record(1, inside))
    outer[0:4] = outer[112:116] = b"\xff" * 4
    assert walked(bytes(outer)) == [("corrupt", 0)]


def test_the_last_record_corrupt() -> None:
    found = walked(damaged((len(DATA) - 1, b"?")))
    assert found == [*(("whole", lsn) for lsn in range(1, 5)), ("corrupt", STARTS[4])]


@pytest.mark.parametrize("cut", range(1, len(ENCODED[4])))
def test_every_torn_end(cut: int) -> None:
    found = walked(DATA[:-cut])
    assert found == [*(("whole", lsn) for lsn in range(1, 5)), ("torn", STARTS[4])]


@pytest.mark.parametrize("zeros", [1, 7, 8, 119, 120, 5000])
def test_zeros_at_the_end_are_torn(zeros: int) -> None:
    found = walked(DATA + bytes(zeros))
    assert found == [*(("whole", lsn) for lsn in range(1, 6)), ("torn", len(DATA))]


def test_zeros_in_the_middle_are_corrupt() -> None:
    found = walked(damaged((STARTS[1] + 50, bytes(STARTS[3] + 50 - STARTS[1] - 50))))
    assert found[:2] == [("whole", 1), ("corrupt", STARTS[1])]
    assert ("torn", STARTS[1]) not in found


@given(st.lists(records(), max_size=4), st.binary(max_size=200), st.integers(0, 1500))
def test_any_bytes_can_be_walked(written: list[JournalRecord], noise: bytes, at: int) -> None:
    """Everything is accounted for, and what is whole was there."""
    data = b"".join(encode_record(lsn, record) for lsn, record in enumerate(written, 1))
    at = min(at, len(data))
    broken = data[:at] + noise + data[at + len(noise) :]
    end = 0
    for entry in walk(broken, 0):
        assert entry.offset == end
        assert entry.length > 0
        end += entry.length
        if isinstance(entry, Whole) and end <= at:
            assert entry.record == written[entry.lsn - 1]
        assert not isinstance(entry, Torn) or end == len(broken)
    assert end == len(broken)


def test_offsets_go_by_lengths() -> None:
    assert offsets(VECTOR + DATA, len(VECTOR)) == [len(VECTOR) + s for s in STARTS[:-1]]
    assert offsets(DATA[:-1], 0) == STARTS[:4]
    assert offsets(DATA + bytes(200), 0) == STARTS[:5]
    assert offsets(b"", 0) == []


def test_corrupt_tells_offset_and_reason() -> None:
    entries = list(walk(damaged((STARTS[1] + 20, b"?")), 0))
    assert entries[1] == Corrupt(
        STARTS[1], len(ENCODED[1]), "the checksum of the journal record does not match"
    )
