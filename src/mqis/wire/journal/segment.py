"""A journal segment: its header, then records to the end (docs/journal.md).

Damage is told from an unfinished write. *Torn*: the bytes end before the record does, or there is
nothing but zeros where a file system made room and the data did not follow. *Corrupt*: everything
else that is not a record. A corrupt record is stepped over by its length, or by what its parts add
up to; bytes that only look like a record are never searched for, since a body may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error
from typing import ClassVar, Self
from zlib import crc32

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
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
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

MAGIC = b"MQISJRNL"
VERSION = 1

#: Number, first lsn, server, snapshot lsn, lengths of both names, reserved: what the CRC covers.
_COVERED = Struct("<QQ16sQHHI")
_COVERED_AT = 16
FIXED_SIZE = _COVERED_AT + _COVERED.size
_LENGTH_AT, _LENGTH_SIZE = 10, 2
_NOT_ZERO = re.compile(rb"[^\0]")


@dataclass(frozen=True, slots=True)
class SegmentHeader(Structure):
    """Whose records these are, where they begin, and the snapshot that history starts from."""

    server: str
    server_id: Guid
    number: int
    first_lsn: int
    #: Name of a snapshot file beside the segment, empty if there is none; records up to its lsn
    #: are in it.
    snapshot: str = ""
    snapshot_lsn: int = 0

    NAME: ClassVar[str] = "the segment header"

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        at = reader.offset
        if reader.bytes(8, "the segment's magic") != MAGIC:
            raise WireError("this is not a journal segment", at)
        version, length, crc = reader.u16(), reader.u16(), reader.u32()
        if version != VERSION:
            reason = f"journal segment of format version {version}, this mqis reads {VERSION}"
            raise WireError(reason, at + 8)
        if length < FIXED_SIZE:
            raise WireError(f"{length} cannot be the length of a segment header", at + 10)
        covered = reader.bytes(length - _COVERED_AT, "the segment header")
        if crc32(covered) != crc:
            raise WireError("the segment header does not agree with its checksum", at)
        number, first, server_id, snapshot_lsn, name, snapshot, reserved = _COVERED.unpack_from(
            covered
        )
        if _COVERED.size + name + snapshot != len(covered) or reserved:
            raise WireError("the parts of the segment header do not add up", at)
        names = covered[_COVERED.size :]
        return cls(
            _text(names[:name], at),
            Guid(server_id),
            number,
            first,
            _text(names[name:], at),
            snapshot_lsn,
        )

    def encode(self, writer: Writer) -> None:
        names = [n.encode("utf-8", "surrogatepass") for n in (self.server, self.snapshot)]
        try:
            fixed = _COVERED.pack(
                self.number,
                self.first_lsn,
                self.server_id.raw,
                self.snapshot_lsn,
                *map(len, names),
                0,
            )
        except struct_error as error:
            raise ValueError(f"a field of {self!r} does not fit: {error}") from None
        covered = fixed + b"".join(names)
        writer.bytes(MAGIC)
        writer.u16(VERSION)
        writer.u16(_COVERED_AT + len(covered))
        writer.u32(crc32(covered))
        writer.bytes(covered)


def _text(raw: bytes, at: int) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise WireError("a name in the segment header is not UTF-8", at) from None


@dataclass(frozen=True, slots=True)
class Whole:
    """A record as it was written."""

    offset: int
    length: int
    lsn: int
    record: JournalRecord


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Bytes that were a record, or several; what lies behind them may be whole."""

    offset: int
    length: int
    reason: str


@dataclass(frozen=True, slots=True)
class Torn:
    """The end of a write that did not finish; nothing lies behind it."""

    offset: int
    length: int
    reason: str


Entry = Whole | Corrupt | Torn


def segment_header(data: bytes) -> tuple[SegmentHeader, int]:
    """The header at the start of a segment, and where its records begin."""
    reader = Reader(data)
    return SegmentHeader.decode(reader), reader.offset


def is_unfinished_header(start: bytes, size: int) -> bool:
    """Returns whether a file of ``size`` bytes ends within its header, or has only zeros."""
    length = int.from_bytes(start[_LENGTH_AT : _LENGTH_AT + _LENGTH_SIZE], "little")
    return not start.strip(b"\0") or size < max(FIXED_SIZE, length)


def walk(data: bytes, offset: int) -> Iterator[Entry]:
    """Every record from ``offset`` to the end, and everything that is none, in order."""
    while offset < len(data):
        entry = _next(data, offset)
        yield entry
        offset += entry.length


def offsets(data: bytes, offset: int) -> list[int]:
    """Where records begin from ``offset`` on, by their lengths alone, as far as these make sense.

    For readers of headers: no checksum is looked at.
    """
    found = []
    unpack, end = Struct("<I").unpack_from, len(data)
    while offset + HEADER_SIZE <= end:
        length: int = unpack(data, offset)[0]
        if not HEADER_SIZE <= length <= end - offset:
            break
        found.append(offset)
        offset += length
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
    for step in sorted(possible):  # the shorter leaves more behind it that may be whole
        if step == left or (step < left and _begins(data, offset + step)):
            return Corrupt(offset, step, reason)
    # Neither leads on. Where both agree they are right, and what lies behind is damaged as well.
    agreed = by_field == by_parts and 0 < by_field < left
    return Corrupt(offset, by_field if agreed else left, reason)


def _lengths(data: bytes, offset: int) -> tuple[int, int]:
    """A record's length as its first field has it and as its parts add up; 0 for an impossible."""
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
    """Whether a whole record stands here."""
    try:
        read_record(Reader(data, offset))
    except WireError:
        return False
    return True
