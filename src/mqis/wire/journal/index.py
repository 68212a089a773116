"""The index at the end of a sealed segment, version 3 of the layout (docs/journal.md).

A reader that wants a part of a segment reads the index, some kilobytes for 64 MiB, and then only
the blocks that can have what it wants. The index has the form of a record, so that a reader that
walks over records passes it by its length, and it is covered by the segment's digest. It is the
last thing in its file: what looks like one elsewhere is damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from zlib import crc32

from mqis.wire.errors import WireError
from mqis.wire.journal.layout import COVERED_AT, HEADER_SIZE, MAX_RECORD, length_and_crc

#: What stands in place of the version and the kind of a record.
INDEX_VERSION = INDEX_KIND = 3
_VERSION_AT, _KIND_AT, _STATE_AT, _PARTITION_AT, _BODY_LENGTH_AT = 24, 25, 26, 40, 112
_MARK = bytes((INDEX_VERSION, INDEX_KIND))
#: Offset of the block, first and last lsn, records, kinds, first and last time, partitions.
_BLOCK = Struct("<QQQIIqq32s")
_LENGTH_CRC, _LSN_TIME, _LENGTH = Struct("<II"), Struct("<Qq"), Struct("<I")
#: At the end of the file: the length of the index, and a magic.
_TRAILER = Struct("<I4s")
_MAGIC = b"MQJX"
_SMALLEST = HEADER_SIZE + _TRAILER.size
#: A block ends behind so many records or bytes.
BLOCK_RECORDS, BLOCK_BYTES = 4096, 1 << 20
#: Enough bytes of a file's end for the index of nearly every segment.
TAIL_BYTES = 8 << 10
_STATES = 16


@dataclass(frozen=True, slots=True)
class IndexBlock:
    """Consecutive records of a segment: where they begin, and what is among them."""

    offset: int
    first_lsn: int
    last_lsn: int
    records: int
    #: One bit for each kind and state that a record has (``kind_bit``).
    kinds: int
    earliest_us: int
    latest_us: int
    #: 256 bits, one of them for each partition (``partition_bit``): a partition without its bit is
    #: in no record.
    partitions: int

    def encode(self) -> bytes:
        return _BLOCK.pack(
            *(self.offset, self.first_lsn, self.last_lsn, self.records, self.kinds),
            *(self.earliest_us, self.latest_us, self.partitions.to_bytes(32, "little")),
        )

    @classmethod
    def decode(cls, data: bytes, at: int) -> IndexBlock:
        offset, first, last, count, kinds, earliest, latest, bits = _BLOCK.unpack_from(data, at)
        partitions = int.from_bytes(bits, "little")
        return cls(offset, first, last, count, kinds, earliest, latest, partitions)


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """The blocks of a segment, in order, and the offset behind the last record."""

    blocks: tuple[IndexBlock, ...]
    end: int

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The offsets at which each block begins and ends."""
        return list(pairwise([*(block.offset for block in self.blocks), self.end]))


def kind_bit(kind: int, state: int) -> int:
    """The bit of a record's kind and state."""
    return 1 << ((kind - 1) * _STATES + state) % 32


def partition_bit(partition: bytes) -> int:
    """The bit of a partition, by the bytes of its identifier."""
    return 1 << (crc32(partition) & 0xFF)


def encode_index(blocks: Iterable[IndexBlock]) -> bytes:
    """The index as it stands behind the last record."""
    listed = b"".join(block.encode() for block in blocks)
    length = _SMALLEST + len(listed)
    if length > MAX_RECORD:
        raise ValueError(f"an index has at most {MAX_RECORD} bytes, not {length}")
    data = bytearray(HEADER_SIZE)
    data[_VERSION_AT : _KIND_AT + 1] = _MARK
    _LENGTH.pack_into(data, _BODY_LENGTH_AT, length - HEADER_SIZE)
    data += listed + _TRAILER.pack(length, _MAGIC)
    _LENGTH_CRC.pack_into(data, 0, length, crc32(memoryview(data)[COVERED_AT:]))
    return bytes(data)


def index_length(tail: bytes) -> int:
    """The length of the index at the end of a file, of which ``tail`` is the end; 0: none."""
    if len(tail) < _TRAILER.size:
        return 0
    length, magic = _TRAILER.unpack_from(tail, len(tail) - _TRAILER.size)
    return length if magic == _MAGIC and _SMALLEST <= length <= MAX_RECORD else 0


def looks_like_index(header: bytes) -> bool:
    """Returns whether what begins with these bytes has the form of an index, not of a record."""
    return header[_VERSION_AT : _KIND_AT + 1] == _MARK


def is_index(data: bytes, offset: int) -> bool:
    """Returns whether an intact index, and nothing else, stands from ``offset`` to the end."""
    left = len(data) - offset
    if left < _SMALLEST or data[offset + _VERSION_AT : offset + _KIND_AT + 1] != _MARK:
        return False
    length, crc = length_and_crc(data, offset)
    if length != left or index_length(data[-_TRAILER.size :]) != length:
        return False
    return (left - _SMALLEST) % _BLOCK.size == 0 and crc32(data[offset + COVERED_AT :]) == crc


def read_index(tail: bytes, size: int) -> SegmentIndex:
    """Decodes the index of a file of ``size`` bytes from its end; raises ``WireError``.

    ``tail`` has ``index_length(tail)`` bytes of the end, or more.
    """
    length = index_length(tail)
    at, end = len(tail) - length, size - length
    if not length or at < 0 or not is_index(tail, at):
        raise WireError("the segment has no intact index", max(0, end))
    places = range(at + HEADER_SIZE, len(tail) - _TRAILER.size, _BLOCK.size)
    blocks = tuple(IndexBlock.decode(tail, place) for place in places)
    _check(blocks, end)
    return SegmentIndex(blocks, end)


def _check(blocks: Sequence[IndexBlock], end: int) -> None:
    """Blocks follow each other, each with room for its records."""
    if not blocks:
        raise WireError("the index of the segment has no blocks", end)
    offsets = [*(block.offset for block in blocks), end]
    for block, (start, behind) in zip(blocks, pairwise(offsets), strict=True):
        numbers = block.last_lsn - block.first_lsn + 1
        if behind - start < max(1, block.records) * HEADER_SIZE or numbers < block.records:
            raise WireError("the blocks in the index of the segment do not add up", end)


class IndexBuilder:
    """Notes the records of a segment while they are written."""

    def __init__(self) -> None:
        self._blocks: list[IndexBlock] = []
        self._offset = self._end = self._first = self._last = self._count = 0
        self._kinds = self._partitions = self._earliest = self._latest = 0
        #: The bits of partitions that were seen; they are few.
        self._bits: dict[bytes, int] = {}

    def add(self, offset: int, record: bytes) -> None:
        """Notes an encoded record at an offset of the file."""
        lsn, time_us = _LSN_TIME.unpack_from(record, COVERED_AT)
        if self._count >= BLOCK_RECORDS or self._end - self._offset >= BLOCK_BYTES:
            self._finish()
        if not self._count:
            self._offset, self._first = offset, lsn
            self._earliest = self._latest = time_us
        self._last = lsn
        self._end = offset + len(record)
        self._count += 1
        self._kinds |= kind_bit(record[_KIND_AT], record[_STATE_AT])
        self._earliest, self._latest = min(self._earliest, time_us), max(self._latest, time_us)
        partition = record[_PARTITION_AT : _PARTITION_AT + 16]
        bit = self._bits.get(partition)
        if bit is None:
            bit = self._bits[partition] = partition_bit(partition)
        self._partitions |= bit

    def encode(self) -> bytes:
        """The index of all records; empty if there are none."""
        if self._count:
            self._finish()
        return encode_index(self._blocks) if self._blocks else b""

    def _finish(self) -> None:
        self._blocks.append(
            IndexBlock(
                *(self._offset, self._first, self._last, self._count, self._kinds),
                *(self._earliest, self._latest, self._partitions),
            )
        )
        self._count = self._kinds = self._partitions = 0
