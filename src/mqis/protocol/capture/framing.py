"""Framing of messages that carry their lengths, and resynchronisation after a loss.

A dissector gets the bytes of both directions, each in order. If bytes are missing inside a
message of known length, the next message begins where that one ends. Otherwise the dissector is
out of sync and searches for the next message, as in a stream whose beginning was not captured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.row import Meaning, PacketPosition
from mqis.wire.errors import WireError

#: Reports a message: its side, the packet that completed it, its length, its meaning.
Tell = Callable[[int, PacketPosition, int, Meaning], None]


def _ignore(_side: int) -> None:
    return


class _Side:
    """The bytes of one side that are no whole message yet."""

    __slots__ = ("buffer", "marks", "out_of_sync", "searched", "skip", "taken")

    def __init__(self) -> None:
        self.buffer = bytearray()
        #: Bytes consumed before the buffer, and the packets of its bytes, by end offset.
        self.taken = 0
        self.marks: deque[tuple[int, PacketPosition]] = deque()
        #: Bytes of a broken message that are still to come.
        self.skip = 0
        #: True while the next message is searched for; ``searched`` bytes were skipped so far.
        self.out_of_sync = False
        self.searched = 0

    def add(self, data: bytes, place: PacketPosition) -> None:
        self.buffer += data
        self.marks.append((self.taken + len(self.buffer), place))

    def drop(self, size: int) -> None:
        del self.buffer[:size]
        self.taken += size
        while self.marks and self.marks[0][0] <= self.taken:
            self.marks.popleft()

    def place(self, at: int) -> PacketPosition:
        """The packet that the byte before ``at`` came from; ``at`` must not decrease."""
        end = self.taken + at
        while self.marks[0][0] < end:
            self.marks.popleft()
        return self.marks[0][1]


class Dissector(ABC):
    """Base class of the dissectors, one for each protocol; one object per connection."""

    NAME: ClassVar[str]
    #: Bytes from which ``length`` knows a message's length.
    HEAD: ClassVar[int]

    def __init__(self, tell: Tell, limits: CaptureLimits) -> None:
        self.tell = tell
        self.limits = limits
        #: Called with the side that a message shows to be the client.
        self.opened_by: Callable[[int], None] = _ignore
        self._sides = (_Side(), _Side())

    # --- defined by each protocol -------------------------------------------------------------

    @classmethod
    @abstractmethod
    def length(cls, head: bytes) -> int:
        """The length of the message with this head; ``WireError`` if it is none."""

    @classmethod
    @abstractmethod
    def find(cls, data: bytes | bytearray, at: int) -> int:
        """The first offset from ``at`` on at which a message may begin; -1 if there is none."""

    @abstractmethod
    def message(self, side: int, data: bytes, place: PacketPosition) -> None:
        """Handles one whole message."""

    def lost(self, side: int) -> None:
        """Notes that an unknown number of messages of a side is missing; by default ignored."""
        return

    # --- called by the connection ---------------------------------------------------------------

    def data(self, side: int, data: bytes, place: PacketPosition) -> None:
        state = self._sides[side]
        if state.skip:
            passed = min(state.skip, len(data))
            state.skip -= passed
            data = data[passed:]
        if data:
            state.add(data, place)
            self._cut(side, state, place)

    def gap(self, side: int, size: int, place: PacketPosition, reason: str) -> None:
        """Handles a gap of ``size`` bytes."""
        state = self._sides[side]
        inside = self._still_missing(state)
        broken = ""
        if state.buffer or state.skip:
            broken = ", within a message" if size <= inside else ", from within a message on"
        state.drop(len(state.buffer))
        if size <= inside:
            state.skip = inside - size
        else:
            state.skip = 0
            state.out_of_sync = True
        self.lost(side)
        self._damaged(side, place, f"{size} bytes are missing{broken}: {reason}")

    def begin_out_of_sync(self, side: int) -> None:
        """Begins out of sync: the beginning of the stream was not captured."""
        self._sides[side].out_of_sync = True

    def end(self, place: PacketPosition) -> None:
        """Ends both streams and reports incomplete messages."""
        for side, state in enumerate(self._sides):
            left = len(state.buffer)
            if state.out_of_sync and left + state.searched:
                reason = f"{left + state.searched} bytes in which no {self.NAME} message begins"
                self._damaged(side, place, reason)
            elif left:
                missing = self._still_missing(state)
                detail = f", {missing} bytes are missing" if missing else ""
                reason = f"the stream ends within a message, after {left} bytes{detail}"
                self._damaged(side, place, reason)
        self._sides = (_Side(), _Side())  # a connection is remembered for longer than its bytes

    # --- cutting --------------------------------------------------------------------------------

    def _still_missing(self, state: _Side) -> int:
        """Bytes still missing of the current message, if its length is known, else 0."""
        if state.skip:
            return state.skip
        if state.out_of_sync or len(state.buffer) < self.HEAD:
            return 0
        return self.length(bytes(state.buffer[: self.HEAD])) - len(state.buffer)

    def _cut(self, side: int, state: _Side, place: PacketPosition) -> None:
        buffer, at = state.buffer, 0
        while True:
            if state.out_of_sync:
                at = self._found(side, state, at, place)
                if state.out_of_sync:
                    break
            head = bytes(buffer[at : at + self.HEAD])
            if len(head) < self.HEAD:
                break
            try:
                size = self.length(head)
            except WireError as error:
                self._damaged(side, place, f"no {self.NAME} message: {error}")
                state.out_of_sync = True
                self.lost(side)
                continue
            if len(buffer) - at < size:
                break
            self.message(side, bytes(buffer[at : at + size]), state.place(at + size))
            at += size
        state.drop(at)

    def _found(self, side: int, state: _Side, at: int, place: PacketPosition) -> int:
        """Searches for the next message; returns its offset, or the one to search on from."""
        buffer, start = state.buffer, at
        while True:
            found = self.find(buffer, at)
            if found < 0 or len(buffer) - found < self.HEAD:
                at = max(at, found if found >= 0 else len(buffer) - self.HEAD + 1)
                state.searched += at - start
                return at
            try:
                self.length(bytes(buffer[found : found + self.HEAD]))
            except WireError:
                at = found + 1
                continue
            state.searched += found - start
            if state.searched:
                reason = f"{state.searched} bytes before the next {self.NAME} message"
                self._damaged(side, place, reason)
            state.out_of_sync, state.searched = False, 0
            return found

    def _damaged(self, side: int, place: PacketPosition, reason: str) -> None:
        self.tell(side, place, 0, Meaning(self.NAME, "damage", error=reason))
