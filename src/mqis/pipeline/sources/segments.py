"""Scans many journal records at once: the fixed headers of a segment become one NumPy array.

The result is the same as that of ``wire.journal.walk``, which reads one record after the other:
every whole record, and every damaged place with its reason. The loop here only follows lengths and
compares checksums; ``walk`` diagnoses the damaged places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO
from zlib import crc32

import numpy as np
import numpy.typing as npt

from mqis.pipeline.decoding.octets import Ints, Mask
from mqis.wire.journal import Corrupt, RecordKind, RecordState, Torn, Whole, walk
from mqis.wire.journal.index import is_index
from mqis.wire.journal.layout import (
    COVERED_AT,
    FIELDS,
    HAS_MESSAGE,
    HEADER_SIZE,
    MAX_RECORD,
    VERSIONS,
    length_and_crc,
    length_of_parts,
)

HEADER = np.dtype(list(FIELDS))
assert HEADER.itemsize == HEADER_SIZE

Damage = Corrupt | Torn

_ASCII = 0x80
#: Records and bytes of a batch; Arrow's offsets have 32 bits.
BATCH = 20_000
BATCH_BYTES = 256 << 20
#: A task reads so many bytes of a file at a time, and no record is longer.
BLOCK_BYTES = 16 << 20
assert BLOCK_BYTES >= MAX_RECORD
#: So many bytes from damage on tell what it was: two records, and the header of a third.
WINDOW_BYTES = 2 * MAX_RECORD + HEADER_SIZE


@dataclass(frozen=True)
class Scan:
    """The records in some bytes of a segment; ``base`` is the offset of the bytes in their file."""

    data: bytes
    base: int
    #: The offsets of the records in ``data``, and the records' headers.
    starts: Ints
    headers: npt.NDArray[np.void]
    damage: list[Damage]

    def __len__(self) -> int:
        return len(self.starts)

    def only(self, mask: Mask) -> Scan:
        return Scan(self.data, self.base, self.starts[mask], self.headers[mask], self.damage)

    def batches(self, size: int = BATCH) -> list[Scan]:
        """Splits the records into smaller scans, without the damage."""
        lengths = self.headers["length"].astype(np.int64)
        parts = np.maximum(np.arange(len(self)) // size, np.cumsum(lengths) // BATCH_BYTES)
        cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(self)]
        return [
            Scan(self.data, self.base, self.starts[a:b], self.headers[a:b], [])
            for a, b in pairwise(cuts)
        ]

    # --- the parts behind the headers -------------------------------------------------------------

    @property
    def peer_at(self) -> Ints:
        return self.starts + HEADER_SIZE

    @property
    def peer_length(self) -> Ints:
        return self.headers["peer_length"].astype(np.int64)

    @property
    def reason_at(self) -> Ints:
        return self.peer_at + self.peer_length

    @property
    def reason_length(self) -> Ints:
        return self.headers["reason_length"].astype(np.int64)

    @property
    def body_at(self) -> Ints:
        return self.reason_at + self.reason_length

    @property
    def body_length(self) -> Ints:
        return self.headers["body_length"].astype(np.int64)


def _headers(data: bytes, starts: Ints) -> npt.NDArray[np.void]:
    """Copies the headers into one array; in ``data`` they are at irregular offsets."""
    if not len(starts):
        return np.zeros(0, HEADER)
    at_every_byte = np.ndarray(
        (len(data) - HEADER_SIZE + 1,), f"V{HEADER_SIZE}", data, strides=(1,)
    )
    return at_every_byte[starts].view(HEADER)


def scan(data: bytes, base: int = 0, *, last: bool = True) -> Scan:
    """Finds every record in ``data``.

    If ``data`` is not the ``last`` part of its segment, whole records follow and none can be torn.
    """
    return _scanned(data, base, *_leading(data), last=last)


def scans(file: BinaryIO, start: int, end: int, *, last: bool) -> Iterator[Scan]:
    """Finds every record between two offsets of a file, a block after the other.

    Memory is bounded, however long the file is. A block ends before damage, and begins again behind
    it: the two records behind damage tell where it ends.
    """
    file.seek(start)
    data = b""
    while start < end:
        more = file.read(min(BLOCK_BYTES, end - start - len(data)))
        data += more
        starts, until = _leading(data)
        ended = start + len(data) >= end or not more
        if not ended and not _is_cut(data, until):
            data += file.read(max(0, min(WINDOW_BYTES + until, end - start) - len(data)))
            ended = start + len(data) >= end
        if ended:
            yield scan(data, start, last=last)
            return
        found = _scanned(data[:until], start, starts, until, last=False)
        if not _is_cut(data, until):
            entry = _damage_inside(file, data, until, end - start, last=last)
            found.damage.append(entry)
            until += entry.length
        yield found
        start += until
        data = data[until:]


def _damage_inside(file: BinaryIO, data: bytes, offset: int, end: int, *, last: bool) -> Damage:
    """The damage at an offset of ``data``, which ``file`` continues; all of it ends at ``end``."""
    # One byte more than zeros: whether zeros reach the end is not known here.
    entry = next(walk(data + b"\1", offset))
    assert not isinstance(entry, Whole)
    if entry.offset + entry.length < len(data):
        return Corrupt(entry.offset, entry.length, entry.reason)
    zeros = not data[offset:].strip(b"\0")
    left = end - len(data)
    while zeros and left > 0 and (more := file.read(min(BLOCK_BYTES, left))):
        zeros, left = not more.strip(b"\0"), left - len(more)
    if zeros and last:
        return Torn(offset, end - offset, "zeros to the end")
    return Corrupt(offset, end - offset, "zeros to the end" if zeros else entry.reason)


def _leading(data: bytes) -> tuple[list[int], int]:
    """Returns the offsets of the records up to the first that is not whole, and its offset."""
    starts: list[int] = []
    view, end, offset = memoryview(data), len(data), 0
    while offset + HEADER_SIZE <= end:
        length, crc = length_and_crc(data, offset)
        behind = offset + length
        if length < HEADER_SIZE or behind > end:
            break
        if crc32(view[offset + COVERED_AT : behind]) != crc:
            break
        starts.append(offset)
        offset = behind
    return starts, offset


def _is_cut(data: bytes, offset: int) -> bool:
    """Returns whether the end of ``data`` may be the reason that no whole record is here."""
    left = len(data) - offset
    return left < HEADER_SIZE or left < length_and_crc(data, offset)[0] <= MAX_RECORD


def _scanned(data: bytes, base: int, starts: list[int], until: int, *, last: bool) -> Scan:
    """The records in ``data``; those at ``starts`` are known, up to ``until``."""
    damage: list[Damage] = []
    if until < len(data):
        more, damage = _scan_damaged(data, until, last)
        starts = starts + more
    if last and starts and is_index(data, starts[-1]):
        starts = starts[:-1]
    places = np.array(starts, dtype=np.int64)
    found = Scan(data, base, places, _headers(data, places), damage)
    sound = _valid(found)
    if sound.all():
        return found
    for start in found.starts[~sound].tolist():
        damage.append(_damage(data, start, last))
    damage.sort(key=lambda entry: entry.offset)
    return found.only(sound)


def _scan_damaged(data: bytes, offset: int, last: bool) -> tuple[list[int], list[Damage]]:
    """Returns the offsets of records with a right checksum, and the damage between them."""
    starts: list[int] = []
    damage: list[Damage] = []
    view, end = memoryview(data), len(data)
    while offset < end:
        left = end - offset
        if left >= HEADER_SIZE:
            length, crc = length_and_crc(data, offset)
            if (
                HEADER_SIZE <= length <= left
                and length == length_of_parts(data, offset)
                and crc32(view[offset + COVERED_AT : offset + length]) == crc
            ):
                starts.append(offset)
                offset += length
                continue
        found = _damage(data, offset, last)
        damage.append(found)
        offset += found.length
    return starts, damage


def _damage(data: bytes, offset: int, last: bool) -> Damage:
    entry = next(walk(data, offset))
    assert not isinstance(entry, Whole)
    if isinstance(entry, Torn) and not last:
        return Corrupt(entry.offset, entry.length, entry.reason)
    return entry


_KINDS = [int(kind) for kind in RecordKind]
#: The states of the records of each version.
_STATES = {
    version: [int(state) for state in RecordState if VERSIONS[state] == version]
    for version in sorted(set(VERSIONS.values()))
}
NO_GUID = np.zeros(1, "V16")[0]


def _valid(found: Scan) -> Mask:
    """A mask of the records that pass the checks of ``wire.journal.layout`` beside the checksum."""
    headers = found.headers
    unnamed = headers["flags"] == 0
    parts = HEADER_SIZE + found.peer_length + found.reason_length + found.body_length
    no_message = (headers["message_ordinal"] == 0) & (headers["message_source"] == NO_GUID)
    states = [
        (headers["version"] == version) & np.isin(headers["state"], known)
        for version, known in _STATES.items()
    ]
    sound: Mask = (
        np.logical_or.reduce(states)
        & ((headers["flags"] & ~np.uint8(HAS_MESSAGE)) == 0)
        & (headers["reserved"] == 0)
        & (~unnamed | no_message)
        & np.isin(headers["kind"], _KINDS)
        & (parts == headers["length"])
    )
    if not _is_ascii(found, sound):
        for index in np.flatnonzero(sound):  # a name may have a lone surrogate or invalid UTF-8
            sound[index] = isinstance(next(walk(found.data, int(found.starts[index]))), Whole)
    return sound


def _is_ascii(found: Scan, sound: Mask) -> bool:
    """Returns whether all peers and reasons are ASCII; if not, ``walk`` checks each record."""
    lengths = (found.peer_length + found.reason_length)[sound]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    at = np.repeat(found.starts[sound] + HEADER_SIZE - ends + lengths, lengths)
    octets = np.frombuffer(found.data, dtype=np.uint8)
    return not bool((octets[at + np.arange(total)] >= _ASCII).any())


def joined(data: bytes, starts: Ints, lengths: Ints) -> bytes:
    """Joins pieces of ``data``."""
    if not lengths.any():
        return b""
    ends = (starts + lengths).tolist()
    return b"".join([data[a:b] for a, b in zip(starts.tolist(), ends, strict=True)])
