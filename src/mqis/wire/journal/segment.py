"""The records of a journal segment, behind its header and to the end (docs/journal.md).

An unfinished write is told from damage. *Torn*: the bytes end before the record does, or only zeros
follow, where the file system allocated space and the data was not written. *Corrupt*: anything else
that is not a record. A reader skips a corrupt record by its length field, or by the sum of its
parts. It never searches for bytes that look like a record, since a body may contain anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from mqis.wire.errors import WireError
from mqis.wire.journal.index import is_index
from mqis.wire.journal.layout import (
    COVERED_AT,
    HEADER_SIZE,
    MAX_RECORD,
    length_and_crc,
    length_of_parts,
    read_record,
)
from mqis.wire.journal.record import JournalRecord
from mqis.wire.reader import Reader

_NOT_ZERO = re.compile(rb"[^\0]")


@dataclass(frozen=True, slots=True)
class Whole:
    """An intact record."""

    offset: int
    length: int
    lsn: int
    record: JournalRecord


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A damaged record, or several; intact records may follow."""

    offset: int
    length: int
    reason: str


@dataclass(frozen=True, slots=True)
class Torn:
    """The start of a record whose write did not finish; nothing follows it."""

    offset: int
    length: int
    reason: str


Entry = Whole | Corrupt | Torn


def walk(data: bytes, offset: int) -> Iterator[Entry]:
    """Yields the records and the damaged parts from ``offset`` to the end, in order.

    The index of a sealed segment, behind its last record, is neither.
    """
    while offset < len(data) and not is_index(data, offset):
        entry = _next(data, offset)
        yield entry
        offset += entry.length


def offsets(data: bytes, offset: int) -> list[int]:
    """The offsets of records from ``offset`` on, by their lengths, up to an impossible length.

    It checks no checksum: it serves readers of headers.
    """
    found = []
    unpack, end = Struct("<I").unpack_from, len(data)
    while offset + HEADER_SIZE <= end:
        length: int = unpack(data, offset)[0]
        if not HEADER_SIZE <= length <= end - offset:
            break
        found.append(offset)
        offset += length
    if found and is_index(data, found[-1]):
        found.pop()
    return found


def _next(data: bytes, offset: int) -> Entry:
    reader = Reader(data, offset)
    try:
        lsn, record = read_record(reader)
    except WireError as error:
        return _damage(data, offset, error.reason)
    return Whole(offset, reader.offset - offset, lsn, record)


def _damage(data: bytes, offset: int, reason: str) -> Entry:
    left = len(data) - offset
    by_field, by_parts = _lengths(data, offset)
    possible = [step for step in (by_field, by_parts) if step]
    if left < COVERED_AT or (possible and min(possible) > left):
        return Torn(offset, left, reason)
    if _NOT_ZERO.search(data, offset) is None:
        return Torn(offset, left, "zeros to the end")
    for step in sorted(possible):  # the shorter one leaves more records that may be intact
        if step == left or (step < left and _begins(data, offset + step)):
            return Corrupt(offset, step, reason)
    # Neither leads to a record. If both agree they are right, and the next record is damaged too.
    agreed = by_field == by_parts and 0 < by_field < left
    return Corrupt(offset, by_field if agreed else left, reason)


def _lengths(data: bytes, offset: int) -> tuple[int, int]:
    """A record's length by its first field and by its parts; 0 if that length is impossible."""
    left = len(data) - offset
    by_field = length_and_crc(data, offset)[0] if left >= COVERED_AT else 0
    by_parts = 0
    if left >= HEADER_SIZE:
        by_parts = length_of_parts(data, offset)
    by_field, by_parts = (
        step if HEADER_SIZE <= step <= MAX_RECORD else 0 for step in (by_field, by_parts)
    )
    return by_field, by_parts


def _begins(data: bytes, offset: int) -> bool:
    """Returns whether an intact record begins at ``offset``."""
    try:
        read_record(Reader(data, offset))
    except WireError:
        return False
    return True
