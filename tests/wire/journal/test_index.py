"""The index at the end of a sealed segment: what it tells of the records, and what is none."""

from __future__ import annotations

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
    SegmentSeal,
    Torn,
    Whole,
    encode_record,
    index,
    walk,
)
from mqis.wire.journal.index import (
    IndexBlock,
    IndexBuilder,
    encode_index,
    index_length,
    is_index,
    kind_bit,
    partition_bit,
    read_index,
)
from mqis.wire.journal.segment import offsets

P, Q = Guid(b"p" * 16), Guid(b"q" * 16)
RECORDS = (
    JournalRecord(50, RecordKind.CHANGE, RecordState.LOCAL, partition=P, body=b"x" * 9),
    JournalRecord(-7, RecordKind.MESSAGE, RecordState.QUEUED, partition=Q),
    JournalRecord(60, RecordKind.MESSAGE, RecordState.QUEUED, partition=Q),
)


def written(*records: JournalRecord) -> bytes:
    """Records and their index, behind four other bytes."""
    data, builder = b"head", IndexBuilder()
    for lsn, record in enumerate(records, 1):
        octets = encode_record(lsn, record)
        builder.add(len(data), octets)
        data += octets
    return data + builder.encode()


def test_a_block_tells_what_is_in_it() -> None:
    data = written(*RECORDS)
    found = read_index(data, len(data))
    queued = kind_bit(RecordKind.MESSAGE, RecordState.QUEUED)
    kinds = kind_bit(RecordKind.CHANGE, RecordState.LOCAL) | queued
    partitions = partition_bit(P.raw) | partition_bit(Q.raw)
    assert found.blocks == (IndexBlock(4, 1, 3, 3, kinds, -7, 60, partitions),)
    assert found.end == 4 + 3 * 120 + 9
    assert found.spans == [(4, found.end)]


def test_a_block_ends_behind_so_many_records_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BLOCK_RECORDS", 2)
    data = written(*RECORDS)
    found = read_index(data, len(data))
    assert [(b.first_lsn, b.last_lsn, b.records) for b in found.blocks] == [(1, 2, 2), (3, 3, 1)]
    assert found.spans == [(4, 253), (253, 373)]
    queued = kind_bit(RecordKind.MESSAGE, RecordState.QUEUED)
    assert (found.blocks[1].kinds, found.blocks[1].partitions) == (queued, partition_bit(Q.raw))
    monkeypatch.setattr(index, "BLOCK_BYTES", 1)
    data = written(*RECORDS)
    assert len(read_index(data, len(data)).blocks) == 3


def test_kinds_and_states_have_bits_of_their_own() -> None:
    bits = {kind_bit(kind, state) for kind in RecordKind for state in RecordState}
    assert len(bits) == len(RecordKind) * len(RecordState)


def test_readers_of_records_pass_the_index() -> None:
    data = written(*RECORDS)
    assert [entry.length for entry in walk(data, 4)] == [129, 120, 120]
    assert offsets(data, 4) == [4, 133, 253]


def test_the_end_of_a_file_is_enough() -> None:
    data = written(*RECORDS)
    length = index_length(data)
    tail = data[-length:]
    assert read_index(tail, len(data)) == read_index(data, len(data))
    with pytest.raises(WireError, match="no intact index"):
        read_index(tail[1:], len(data))


@given(st.data())
def test_a_damaged_index_is_damage(data: st.DataObject) -> None:
    octets = bytearray(written(*RECORDS))
    at = data.draw(st.integers(373, len(octets) - 1))
    octets[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(WireError):
        read_index(bytes(octets), len(octets))
    assert [isinstance(entry, Whole) for entry in walk(bytes(octets), 4)][:4] == [
        *[True] * 3,
        False,
    ]


def test_what_follows_an_index_makes_it_damage() -> None:
    data = written(*RECORDS)
    entries = list(walk(data + encode_record(4, RECORDS[0]), 4))
    assert [type(entry) for entry in entries] == [Whole, Whole, Whole, Corrupt, Whole]
    assert isinstance(list(walk(data[:-1], 4))[-1], Torn)
    assert not is_index(data, 4)


def test_an_index_that_lies_about_its_blocks_is_refused() -> None:
    block = IndexBlock(4, 1, 3, 3, 0, 0, 0, 0)
    for blocks in ([], [block, block], [IndexBlock(4, 1, 2, 3, 0, 0, 0, 0)]):
        data = b"head" + bytes(400) + encode_index(blocks)
        assert is_index(data, 404)
        with pytest.raises(WireError, match="blocks"):
            read_index(data, len(data))


def test_no_records_have_no_index() -> None:
    assert IndexBuilder().encode() == b""
    assert index_length(b"") == index_length(bytes(8)) == 0
    with pytest.raises(ValueError, match="an index has at most"):
        encode_index([IndexBlock(4, 1, 1, 1, 0, 0, 0, 0)] * 220_000)
    with pytest.raises(ValueError, match="has a seal"):
        SegmentHeader("a", P, 1, 1, indexed=True)
    assert SegmentHeader("a", P, 1, 1, seal=SegmentSeal(), indexed=True).version == 3
