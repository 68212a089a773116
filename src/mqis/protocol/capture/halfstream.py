"""One direction of a TCP connection: takes segments in any order, delivers bytes in order.

Bytes are counted by position, 0 being the first; sequence numbers wrap, positions do not. Bytes
received twice are delivered once; where copies differ, the first is used.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

from mqis.protocol.capture.row import PacketPosition

_MODULUS = 1 << 32
_HALF = 1 << 31
_position = attrgetter("position")
#: Copies kept of one position, each longer than the last; no real sender makes more.
_MAX_COPIES = 16


class Chunk(NamedTuple):
    """Bytes at a position, ``lost`` more that are not in the file, and their packet."""

    position: int
    data: bytes
    lost: int
    #: The number that the segment acknowledges; None if it does not.
    ack: int | None
    place: PacketPosition

    @property
    def end(self) -> int:
        return self.position + len(self.data) + self.lost


class HalfStream:
    """One direction. Position 0 is known from the SYN, or assumed by ``settle`` without one."""

    __slots__ = (
        "_base",
        "_early",
        "acked",
        "fin",
        "next",
        "pending",
        "pending_bytes",
        "synchronised",
    )

    def __init__(self) -> None:
        self._base: int | None = None
        self._early: list[tuple[int, Chunk]] = []
        #: Position of the first byte that has not been delivered.
        self.next = 0
        #: Chunks that wait, by position.
        self.pending: list[Chunk] = []
        self.pending_bytes = 0
        #: Position of the FIN, which takes a sequence number as a byte does.
        self.fin: int | None = None
        #: The highest position that the other side has acknowledged.
        self.acked = 0
        #: True if the SYN was captured, so that position 0 is the connection's first byte.
        self.synchronised = False

    @property
    def is_placed(self) -> bool:
        """True once the sequence number of position 0 is known."""
        return self._base is not None

    @property
    def ended(self) -> bool:
        """True once everything up to the FIN is delivered."""
        return self.fin is not None and self.next > self.fin

    def position(self, seq: int) -> int:
        """The position with this sequence number that is nearest to ``next``."""
        assert self._base is not None
        ahead = (seq - self._base - self.next) % _MODULUS
        return self.next + (ahead if ahead < _HALF else ahead - _MODULUS)

    def is_next(self, seq: int) -> bool:
        """True if this is the number of the next byte and no chunk waits."""
        if self._base is None or self.pending:
            return False
        return (seq - self._base - self.next) % _MODULUS == 0

    def begins_at(self, seq: int) -> bool:
        """Sets position 0 from a SYN; returns False if the stream already begins elsewhere."""
        if self._base is None:
            self.synchronised = True
            self._place(seq)
            return True
        return self._base == seq

    def settle(self) -> None:
        """Lets a stream without a SYN begin at the lowest number seen."""
        if self._base is None and self._early:
            first = self._early[0][0]
            lowest = min(self._early, key=lambda each: (each[0] - first + _HALF) % _MODULUS)
            self._place(lowest[0])

    def _place(self, seq: int) -> None:
        self._base = seq
        for early_seq, chunk in self._early:
            self._insert(chunk._replace(position=self.position(early_seq)))
        self._early = []

    def add(self, seq: int, chunk: Chunk) -> None:
        """Adds the bytes of a segment with this number; sets the chunk's position."""
        if self._base is None:
            self._early.append((seq, chunk))
        else:
            self._insert(chunk._replace(position=self.position(seq)))

    def _insert(self, chunk: Chunk) -> None:
        if chunk.end <= self.next:
            return
        pending = self.pending
        first = at = bisect_left(pending, chunk.position, key=_position)
        while at < len(pending) and pending[at].position == chunk.position:
            if pending[at].end >= chunk.end and pending[at].lost <= chunk.lost:
                return
            at += 1
            if at - first == _MAX_COPIES:
                return
        pending.insert(at, chunk)
        self.pending_bytes += len(chunk.data)

    def end_at(self, seq: int) -> None:
        """Notes a FIN with this number."""
        if self._base is not None:
            self.fin = self.position(seq)
            self._pass_fin()

    def acknowledge(self, seq: int) -> None:
        """Notes that the other side has received everything before this number."""
        if self._base is not None:
            self.acked = max(self.acked, self.position(seq))

    @property
    def ready(self) -> Chunk | None:
        """The next chunk, if nothing is missing before it."""
        while self.pending:
            first = self.pending[0]
            if first.end > self.next:
                return first if first.position <= self.next else None
            self._pop()
        return None

    @property
    def missing(self) -> int:
        """Bytes missing before the first chunk that waits."""
        return max(0, self.pending[0].position - self.next) if self.pending else 0

    @property
    def unseen(self) -> int:
        """Bytes after the last captured one that the other side acknowledged all the same."""
        end = self.acked if self.fin is None else min(self.acked, self.fin)
        return end - self.next

    def take(self) -> tuple[bytes, int]:
        """Takes the ready chunk: its new bytes, and the number of further bytes lost."""
        chunk = self._pop()
        new = chunk.data[self.next - chunk.position :]
        lost = chunk.end - self.next - len(new)
        self.next = chunk.end
        if lost and self.pending and self.pending[0].position < self.next:
            # Another segment has what was lost here.
            self.next = max(chunk.end - lost, self.pending[0].position)
            lost = self.next - (chunk.end - lost)
        self._pass_fin()
        return new, lost

    def skip(self, size: int) -> None:
        """Skips ``size`` bytes."""
        self.next += size
        self._pass_fin()

    def ungate(self) -> None:
        """Delivers the first chunk without waiting for what it acknowledges."""
        self.pending[0] = self.pending[0]._replace(ack=None)

    def _pop(self) -> Chunk:
        chunk = self.pending.pop(0)
        self.pending_bytes -= len(chunk.data)
        return chunk

    def _pass_fin(self) -> None:
        if self.fin is not None and self.next == self.fin:
            self.next += 1
