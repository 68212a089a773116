"""A journal segment that anything may have happened to, and the records in it."""

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
from mqis.wire.journal.body import decode_body
from mqis.wire.journal.layout import split_records
from mqis.wire.journal.segment import offsets


def segment(data: bytes) -> None:
    """A header that is refused is an answer; behind it everything has to be accounted for."""
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
    """A row of the outbox: all of it, or refused."""
    assert b"".join(record for _, record in split_records(data)) == data


def sealed(data: bytes) -> None:
    """Past the checksum, which hardly any mutation gets by: it is made to agree."""
    length = (8 + len(data)).to_bytes(4, "little")
    record = length + crc32(data).to_bytes(4, "little") + data
    assert encode_record(*decode_record(record)) == record


#: Name, function, and the errors that are an answer.
JOURNAL_TARGETS: tuple[tuple[str, Callable[[bytes], None], tuple[type[Exception], ...]], ...] = (
    ("journal-segment", segment, (WireError,)),
    ("journal-entries", entries, ()),
    ("journal-records", run_of_records, (WireError,)),
    ("journal-sealed", sealed, (WireError,)),
)
