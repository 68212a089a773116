"""One direction of a TCP connection: segments in any order, bytes in theirs.

Bytes are counted by position, 0 being the first; sequence numbers wrap, positions do not. What was
received twice counts once, and what came first counts where copies differ.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

from mqis.protocol.capture.row import Place

_MODULUS = 1 << 32
_HALF = 1 << 31
_position = attrgetter("position")
#: Bytes that come again and again, each time with more behind them: nobody sends so.
_MAX_COPIES = 16


class Chunk(NamedTuple):
    """Bytes from a position on, ``lost`` more that are not in the file, and who carried them."""

    position: int
    data: bytes
    lost: int
    #: The number that the segment acknowledges; None if it does not.
    ack: int | None
    place: Place

    @property
    def end(self) -> int:
        return self.position + len(self.data) + self.lost


class HalfStream:
    """Where a direction begins is known from its SYN, or is settled without one."""

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
        #: By position; none of them ends before ``next``.
        self.pending: list[Chunk] = []
        self.pending_bytes = 0
        #: Position of the FIN, which takes a number as a byte does.
        self.fin: int | None = None
        #: The highest position that the other side has acknowledged.
        self.acked = 0
        #: The beginning is that of the connection.
        self.synchronised = False

    @property
    def is_placed(self) -> bool:
        """It is known which number position 0 has."""
        return self._base is not None

    @property
    def ended(self) -> bool:
        """Everything up to its FIN is delivered."""
        return self.fin is not None and self.next > self.fin

    def position(self, seq: int) -> int:
        """The position nearest to where the stream is that has this number."""
        assert self._base is not None
        ahead = (seq - self._base - self.next) % _MODULUS
        return self.next + (ahead if ahead < _HALF else ahead - _MODULUS)

    def is_next(self, seq: int) -> bool:
        """Whether this is the number of the next byte, and nothing waits for an earlier one."""
        if self._base is None or self.pending:
            return False
        return (seq - self._base - self.next) % _MODULUS == 0

    def begins_at(self, seq: int) -> bool:
        """The SYN says where; False if that is not where this stream begins."""
        if self._base is None:
            self.synchronised = True
            self._place(seq)
            return True
        return self._base == seq

    def settle(self) -> None:
        """No SYN has come: the lowest number is where the stream begins for us."""
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
        """Bytes of a segment with this number; the chunk's position is set here."""
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
        """A FIN with this number."""
        if self._base is not None:
            self.fin = self.position(seq)
            self._pass_fin()

    def acknowledge(self, seq: int) -> None:
        """The other side has everything before this number."""
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
        """How many bytes lie before the first chunk that is there."""
        return max(0, self.pending[0].position - self.next) if self.pending else 0

    @property
    def unseen(self) -> int:
        """How many bytes behind the last one that came were acknowledged all the same."""
        end = self.acked if self.fin is None else min(self.acked, self.fin)
        return end - self.next

    def take(self) -> tuple[bytes, int]:
        """What of the ready chunk is new: its bytes, and how many more of it were lost."""
        chunk = self._pop()
        new = chunk.data[self.next - chunk.position :]
        lost = chunk.end - self.next - len(new)
        self.next = chunk.end
        if lost and self.pending and self.pending[0].position < self.next:
            # Somebody else has what was lost here.
            self.next = max(chunk.end - lost, self.pending[0].position)
            lost = self.next - (chunk.end - lost)
        self._pass_fin()
        return new, lost

    def skip(self, size: int) -> None:
        """Go on without so many bytes."""
        self.next += size
        self._pass_fin()

    def ungate(self) -> None:
        """Let the first chunk pass, whatever it acknowledges."""
        self.pending[0] = self.pending[0]._replace(ack=None)

    def _pop(self) -> Chunk:
        chunk = self.pending.pop(0)
        self.pending_bytes -= len(chunk.data)
        return chunk

    def _pass_fin(self) -> None:
        if self.fin is not None and self.next == self.fin:
            self.next += 1
