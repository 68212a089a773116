"""Targets for damaged journal segments and records."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from zlib import crc32

from mqis.wire.errors import WireError
from mqis.wire.journal import (
    Torn,
    Whole,
    decode_record,
    encode_record,
    segment_header,
    walk,
)
from mqis.wire.journal.layout import split_records
from mqis.wire.journal.record import decode_body
from mqis.wire.journal.segment import offsets


def segment(data: bytes) -> None:
    """Checks that a header is decoded or refused, and that entries cover all bytes after it."""
    _, start = segment_header(data)
    entries(data, start)


def entries(data: bytes, start: int = 0) -> None:
    end = start
    for entry in walk(data, start):
        assert entry.offset == end
        assert entry.length > 0
        end += entry.length
        if isinstance(entry, Whole):
            assert encode_record(entry.lsn, entry.record) == data[entry.offset : end]
            _body(entry)
        assert not isinstance(entry, Torn) or end == len(data), "something lies behind a torn end"
    assert end == max(start, len(data))
    found = offsets(data, start)
    assert found == sorted(found)


def _body(entry: Whole) -> None:
    with suppress(WireError):
        decode_body(entry.record)


def run_of_records(data: bytes) -> None:
    """Checks that a row of the outbox is decoded completely or refused."""
    assert b"".join(record for _, record in split_records(data)) == data


def sealed(data: bytes) -> None:
    """Corrects the checksum of the input first, as hardly any mutation would pass it."""
    length = (8 + len(data)).to_bytes(4, "little")
    record = length + crc32(data).to_bytes(4, "little") + data
    assert encode_record(*decode_record(record)) == record


#: Name, function, and the errors that it may raise.
JOURNAL_TARGETS: tuple[tuple[str, Callable[[bytes], None], tuple[type[Exception], ...]], ...] = (
    ("journal-segment", segment, (WireError,)),
    ("journal-entries", entries, ()),
    ("journal-records", run_of_records, (WireError,)),
    ("journal-sealed", sealed, (WireError,)),
)
