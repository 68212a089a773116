"""The header scan says what ``walk`` says, of whole records and of damage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.pipeline.sources.segments import scan, scans
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    Corrupt,
    JournalRecord,
    RecordKind,
    RecordState,
    Torn,
    Whole,
    encode_record,
    layout,
    segment,
    walk,
)
from mqis.wire.journal.index import IndexBuilder
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

GUIDS = st.binary(min_size=16, max_size=16).map(Guid)
NUMBERS = st.integers(0, (1 << 64) - 1).map(SequenceNumber)
MESSAGES = st.none() | st.builds(MessageIdentifier, GUIDS, st.integers(0, (1 << 32) - 1))
RECORDS = st.builds(
    JournalRecord,
    st.integers(-(1 << 50), 1 << 50),
    st.sampled_from(RecordKind),
    st.sampled_from(RecordState),
    peer=st.text(max_size=8),
    message=MESSAGES,
    session=st.integers(0, 1 << 40),
    operation=st.integers(0, 7),
    partition=GUIDS,
    seq=NUMBERS,
    previous_seq=NUMBERS,
    object_type=st.integers(0, 9),
    object_id=GUIDS,
    reason=st.text(max_size=8),
    body=st.binary(max_size=40),
)


def encoded(records: list[JournalRecord]) -> bytes:
    return b"".join(encode_record(lsn, record) for lsn, record in enumerate(records, 1))


def agrees(data: bytes, *, last: bool = True) -> None:
    entries = list(walk(data, 0))
    found = scan(data, last=last)
    whole = [entry for entry in entries if isinstance(entry, Whole)]
    assert found.starts.tolist() == [entry.offset for entry in whole]
    assert found.headers["lsn"].tolist() == [entry.lsn for entry in whole]
    assert found.headers["seq"].tolist() == [entry.record.seq.value for entry in whole]
    bodies = zip(found.body_at.tolist(), found.body_length.tolist(), strict=True)
    assert [data[at : at + n] for at, n in bodies] == [entry.record.body for entry in whole]
    damage = [entry for entry in entries if not isinstance(entry, Whole)]
    if not last:
        damage = [Corrupt(e.offset, e.length, e.reason) for e in damage]
    assert found.damage == damage


@given(st.lists(RECORDS, max_size=6))
def test_whole_records(records: list[JournalRecord]) -> None:
    agrees(encoded(records))


@given(st.lists(RECORDS, min_size=1, max_size=5), st.data())
def test_flipped_bytes_are_the_same_damage(
    records: list[JournalRecord], data: st.DataObject
) -> None:
    octets = bytearray(encoded(records))
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] ^= data.draw(st.integers(1, 255))
    agrees(bytes(octets))
    agrees(bytes(octets), last=False)


@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_cut_off_is_the_same_damage(records: list[JournalRecord], data: st.DataObject) -> None:
    octets = encoded(records)
    agrees(octets[: data.draw(st.integers(0, len(octets)))])
    agrees(octets + bytes(data.draw(st.integers(0, 200))))


@given(st.binary(max_size=400))
def test_garbage_is_the_same_damage(octets: bytes) -> None:
    agrees(octets)


def sound(**changes: object) -> bytes:
    """A record whose checksum is right although a field is not."""
    from zlib import crc32

    data = bytearray(encode_record(1, JournalRecord(0, RecordKind.CHANGE, RecordState.LOCAL)))
    for at, value in changes.items():
        data[int(at.removeprefix("at"))] = value  # type: ignore[call-overload]
    data[4:8] = crc32(bytes(data[8:])).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(sound(at24=2), id="state of version 1 in version 2"),
        pytest.param(sound(at24=3), id="version"),
        pytest.param(sound(at26=9), id="state of version 2 in version 1"),
        pytest.param(sound(at25=9), id="kind"),
        pytest.param(sound(at26=0), id="state"),
        pytest.param(sound(at27=2), id="flags"),
        pytest.param(sound(at88=1), id="unnamed message"),
        pytest.param(sound(at104=1), id="unnamed ordinal"),
        pytest.param(sound(at112=1), id="parts"),
        pytest.param(sound(at116=1), id="reserved"),
    ],
)
def test_fields_that_the_layout_refuses(octets: bytes) -> None:
    whole = encode_record(2, JournalRecord(0, RecordKind.CHANGE, RecordState.LOCAL))
    assert any(isinstance(entry, Corrupt) for entry in walk(octets + whole, 0))
    agrees(octets + whole)


def test_names_that_are_no_text_are_damage() -> None:
    from zlib import crc32

    record = JournalRecord(0, RecordKind.CHANGE, RecordState.LOCAL, peer="ab")
    data = bytearray(encode_record(1, record))
    data[120] = 0xFF
    data[4:8] = crc32(bytes(data[8:])).to_bytes(4, "little")
    agrees(bytes(data))
    assert len(scan(bytes(data)).damage) == 1


def test_lone_surrogates_are_text() -> None:
    record = JournalRecord(0, RecordKind.CHANGE, RecordState.LOCAL, peer="a\ud800b")
    data = encode_record(1, record)
    agrees(data)
    assert len(scan(data)) == 1


# --- a block after the other ----------------------------------------------------------------------

BLOCK = 400
#: The package has a function of the module's name.
segments = import_module("mqis.pipeline.sources.segments")


@pytest.fixture(scope="module")
def small_blocks() -> Iterator[None]:
    """Records, and so blocks and what is looked at behind damage, have a small maximum."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (layout, segment, segments):
            patch.setattr(module, "MAX_RECORD", BLOCK)
        patch.setattr(segments, "BLOCK_BYTES", BLOCK)
        patch.setattr(segments, "WINDOW_BYTES", 2 * BLOCK + layout.HEADER_SIZE)
        yield


class Counting(BytesIO):
    """A file that knows how many of its bytes were asked for at once, at most."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.most = max(self.most, size or 0)
        return super().read(size)


def blocks_agree(data: bytes, *, last: bool) -> None:
    """The blocks together are what one scan of everything finds."""
    file = Counting(b"header" + data)
    whole = scan(data, 6, last=last)
    found = list(scans(file, 6, 6 + len(data), last=last))
    starts = [part.base + start for part in found for start in part.starts.tolist()]
    assert starts == [6 + start for start in whole.starts.tolist()]
    damage = [replace(e, offset=e.offset + part.base) for part in found for e in part.damage]
    assert damage == [replace(entry, offset=entry.offset + 6) for entry in whole.damage]
    assert file.most <= 3 * BLOCK + layout.HEADER_SIZE
    assert all(len(part.data) <= 5 * BLOCK for part in found)


@given(st.lists(RECORDS, max_size=12), st.data(), st.booleans())
def test_blocks_find_what_one_scan_finds(
    small_blocks: None, records: list[JournalRecord], data: st.DataObject, last: bool
) -> None:
    """Whole, damaged in some places, cut off, and with zeros behind."""
    octets = bytearray(encoded(records))
    for _ in range(data.draw(st.integers(0, 3)) if octets else 0):
        at = data.draw(st.integers(0, len(octets) - 1))
        span = data.draw(st.integers(1, 900))
        octets[at : at + span] = bytes(len(octets[at : at + span]))
    del octets[data.draw(st.integers(0, len(octets))) :]
    octets += bytes(data.draw(st.sampled_from((0, 0, 7, 500, 3000))))
    blocks_agree(bytes(octets), last=last)


def test_torn_is_told_only_at_the_end() -> None:
    data = encode_record(1, JournalRecord(0, RecordKind.CHANGE, RecordState.LOCAL))[:-10]
    assert isinstance(scan(data).damage[0], Torn)
    assert isinstance(scan(data, last=False).damage[0], Corrupt)


@given(st.lists(RECORDS, min_size=1, max_size=6))
def test_the_index_behind_the_records_is_no_record(records: list[JournalRecord]) -> None:
    builder, data = IndexBuilder(), b""
    for lsn, record in enumerate(records, 1):
        octets = encode_record(lsn, record)
        builder.add(len(data), octets)
        data += octets
    agrees(data + builder.encode())
    assert len(scan(data + builder.encode())) == len(records)
    assert scan(data + builder.encode()).damage == []
