"""Many journal records at once: the fixed headers of a segment as one NumPy array.

Says the same as ``wire.journal.walk``, which looks at one record after the other: every record
whole, every damage with its place and reason. The loop here only steps by lengths and compares
checksums; what is wrong anyhow is asked of ``walk``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
import numpy.typing as npt

from mqis.wire.journal import Corrupt, RecordKind, RecordState, Torn, Whole, walk
from mqis.wire.journal.layout import (
    COVERED_AT,
    FIELDS,
    HAS_MESSAGE,
    HEADER_SIZE,
    VERSION,
    length_and_crc,
    length_of_parts,
)
from mqis.wire.journal.segment import offsets

HEADER = np.dtype(list(FIELDS))
assert HEADER.itemsize == HEADER_SIZE

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Damage = Corrupt | Torn

_ASCII = 0x80
#: Records and bytes of a batch; Arrow's offsets have 32 bits.
BATCH = 20_000
BATCH_BYTES = 256 << 20


@dataclass(frozen=True)
class Scan:
    """The records of some bytes; ``base`` is where these begin in their file."""

    data: bytes
    base: int
    #: Where records begin in ``data``, and their headers.
    starts: Ints
    headers: npt.NDArray[np.void]
    damage: list[Damage]

    def __len__(self) -> int:
        return len(self.starts)

    def only(self, mask: Mask) -> Scan:
        return Scan(self.data, self.base, self.starts[mask], self.headers[mask], self.damage)

    def batches(self, size: int = BATCH) -> list[Scan]:
        """The records in smaller parts, without the damage."""
        lengths = self.headers["length"].astype(np.int64)
        parts = np.maximum(np.arange(len(self)) // size, np.cumsum(lengths) // BATCH_BYTES)
        cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(self)]
        return [
            Scan(self.data, self.base, self.starts[a:b], self.headers[a:b], [])
            for a, b in pairwise(cuts)
        ]

    # --- what stands behind the headers -----------------------------------------------------------

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


def _headers(data: bytes, starts: list[int]) -> npt.NDArray[np.void]:
    """A copy: records have any length, so their headers lie anywhere."""
    whole = b"".join([data[at : at + HEADER_SIZE] for at in starts])
    return np.frombuffer(whole, dtype=HEADER)


def scan(data: bytes, base: int = 0, *, last: bool = True) -> Scan:
    """Every record of ``data``. Not ``last``: whole records follow, so nothing can be torn."""
    starts = offsets(data, 0)
    headers = _headers(data, starts)
    damage: list[Damage] = []
    if not _intact(data, starts, headers):
        starts, damage = _step(data, last)
        headers = _headers(data, starts)
    found = Scan(data, base, np.array(starts, dtype=np.int64), headers, damage)
    sound = _sound(found)
    if sound.all():
        return found
    for start in found.starts[~sound].tolist():
        damage.append(_damage(data, start, last))
    damage.sort(key=lambda entry: entry.offset)
    return found.only(sound)


def _intact(data: bytes, starts: list[int], headers: npt.NDArray[np.void]) -> bool:
    """Whether records fill the bytes to their end and all checksums are right: mostly they are."""
    ends = [*starts[1:], len(data)] if starts else []
    if starts and starts[-1] + int(headers["length"][-1]) != len(data):
        return False
    if not starts and data:
        return False
    found = [crc32(data[at + COVERED_AT : end]) for at, end in zip(starts, ends, strict=True)]
    return bool((np.array(found, dtype=np.uint32) == headers["crc"]).all())


def _step(data: bytes, last: bool) -> tuple[list[int], list[Damage]]:
    """Where records begin whose checksums are right, and everything else."""
    starts: list[int] = []
    damage: list[Damage] = []
    view, end, offset = memoryview(data), len(data), 0
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
_STATES = [int(state) for state in RecordState]
_NO_GUID = np.zeros(1, "V16")[0]


def _sound(found: Scan) -> Mask:
    """What ``wire.journal.layout`` asks of a record beyond its checksum."""
    headers = found.headers
    unnamed = headers["flags"] == 0
    parts = HEADER_SIZE + found.peer_length + found.reason_length + found.body_length
    no_message = (headers["message_ordinal"] == 0) & (headers["message_source"] == _NO_GUID)
    sound: Mask = (
        (headers["version"] == VERSION)
        & ((headers["flags"] & ~np.uint8(HAS_MESSAGE)) == 0)
        & (headers["reserved"] == 0)
        & (~unnamed | no_message)
        & np.isin(headers["kind"], _KINDS)
        & np.isin(headers["state"], _STATES)
        & (parts == headers["length"])
    )
    if not _is_ascii(found, sound):
        for index in np.flatnonzero(sound):  # somebody's name has a lone surrogate, or worse
            sound[index] = isinstance(next(walk(found.data, int(found.starts[index]))), Whole)
    return sound


def _is_ascii(found: Scan, sound: Mask) -> bool:
    """Whether all names are; others are looked at one by one."""
    lengths = (found.peer_length + found.reason_length)[sound]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    at = np.repeat(found.starts[sound] + HEADER_SIZE - ends + lengths, lengths)
    octets = np.frombuffer(found.data, dtype=np.uint8)
    return not bool((octets[at + np.arange(total)] >= _ASCII).any())


def joined(data: bytes, starts: Ints, lengths: Ints) -> bytes:
    """Pieces of ``data``, one behind the other."""
    if not lengths.any():
        return b""
    ends = (starts + lengths).tolist()
    return b"".join([data[a:b] for a, b in zip(starts.tolist(), ends, strict=True)])


def shares(data: bytes, start: int, size: int) -> Sequence[tuple[int, int]]:
    """A segment's records in shares of about ``size`` bytes, each beginning with a whole record.

    ``data`` may be mapped: only lengths are read, and the records at the cuts.
    """
    end = len(data)
    cuts = [start]
    if end - start > size:
        found = np.array(offsets(data, start), dtype=np.int64)
        for target in range(start + size, end - size // 2, size):
            index = int(np.searchsorted(found, target))
            if index < len(found) and found[index] > cuts[-1] and _whole(data, int(found[index])):
                cuts.append(int(found[index]))
    return list(pairwise([*cuts, end]))


def _whole(data: bytes, offset: int) -> bool:
    length, crc = length_and_crc(data, offset)
    return crc32(data[offset + COVERED_AT : offset + length]) == int(crc)
