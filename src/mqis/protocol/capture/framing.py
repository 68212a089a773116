"""A stream of messages that carry their lengths: cutting it, and finding the way after a loss.

A dissector gets the bytes of both directions, each in order. Where bytes are missing inside of a
message whose length is known, the next one begins where that ends. Where they are not, the next one
is looked for, as at the beginning of a stream that was captured from the middle on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from mqis.protocol.capture.limits import Limits
from mqis.protocol.capture.row import Meaning, Place
from mqis.wire.errors import WireError

#: Of which side, completed where, how many bytes, what it says.
Tell = Callable[[int, Place, int, Meaning], None]


def _nobody_asks(_side: int) -> None:
    return


class _Side:
    """What has come from one side and is no whole message yet."""

    __slots__ = ("astray", "buffer", "marks", "searched", "skip", "taken")

    def __init__(self) -> None:
        self.buffer = bytearray()
        #: How many bytes went before the buffer, and where those in it came from, by their end.
        self.taken = 0
        self.marks: deque[tuple[int, Place]] = deque()
        #: Bytes of a broken message that are still to come.
        self.skip = 0
        #: It is not known where the next message begins; so many bytes were passed over.
        self.astray = False
        self.searched = 0

    def add(self, data: bytes, place: Place) -> None:
        self.buffer += data
        self.marks.append((self.taken + len(self.buffer), place))

    def drop(self, size: int) -> None:
        del self.buffer[:size]
        self.taken += size
        while self.marks and self.marks[0][0] <= self.taken:
            self.marks.popleft()

    def place(self, at: int) -> Place:
        """Where the byte before ``at`` in the buffer came from; ``at`` never goes back."""
        end = self.taken + at
        while self.marks[0][0] < end:
            self.marks.popleft()
        return self.marks[0][1]


class Dissector(ABC):
    """Base of those that read one protocol; one object a connection."""

    NAME: ClassVar[str]
    #: So many bytes tell how long a message is.
    HEAD: ClassVar[int]

    def __init__(self, tell: Tell, limits: Limits) -> None:
        self.tell = tell
        self.limits = limits
        #: To be told which side is the client, by whoever sees it.
        self.opened_by: Callable[[int], None] = _nobody_asks
        self._sides = (_Side(), _Side())

    # --- what a protocol says -----------------------------------------------------------------

    @classmethod
    @abstractmethod
    def length(cls, head: bytes) -> int:
        """Of the message that begins so; ``WireError`` if none does."""

    @classmethod
    @abstractmethod
    def find(cls, data: bytes | bytearray, at: int) -> int:
        """Where a message may begin from ``at`` on; -1 if nowhere, by what is there."""

    @abstractmethod
    def message(self, side: int, data: bytes, place: Place) -> None:
        """One whole message."""

    def lost(self, side: int) -> None:
        """Messages of this side are missing, nobody knows how many. Most protocols do not care."""
        return

    # --- what a connection tells ----------------------------------------------------------------

    def data(self, side: int, data: bytes, place: Place) -> None:
        state = self._sides[side]
        if state.skip:
            passed = min(state.skip, len(data))
            state.skip -= passed
            data = data[passed:]
        if data:
            state.add(data, place)
            self._cut(side, state, place)

    def gap(self, side: int, size: int, place: Place, reason: str) -> None:
        """So many bytes are not there."""
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
            state.astray = True
        self.lost(side)
        self._damaged(side, place, f"{size} bytes are missing{broken}: {reason}")

    def begin_astray(self, side: int) -> None:
        """The stream was captured from somewhere on."""
        self._sides[side].astray = True

    def end(self, place: Place) -> None:
        """No more bytes come."""
        for side, state in enumerate(self._sides):
            left = len(state.buffer)
            if state.astray and left + state.searched:
                reason = f"{left + state.searched} bytes in which no {self.NAME} message begins"
                self._damaged(side, place, reason)
            elif left:
                missing = self._still_missing(state)
                told = f", {missing} bytes are missing" if missing else ""
                reason = f"the stream ends within a message, after {left} bytes{told}"
                self._damaged(side, place, reason)
        self._sides = (_Side(), _Side())  # a connection is remembered for longer than its bytes

    # --- cutting --------------------------------------------------------------------------------

    def _still_missing(self, state: _Side) -> int:
        """Bytes of the message under way that have not come, if its length is known."""
        if state.skip:
            return state.skip
        if state.astray or len(state.buffer) < self.HEAD:
            return 0
        return self.length(bytes(state.buffer[: self.HEAD])) - len(state.buffer)

    def _cut(self, side: int, state: _Side, place: Place) -> None:
        buffer, at = state.buffer, 0
        while True:
            if state.astray:
                at = self._found(side, state, at, place)
                if state.astray:
                    break
            head = bytes(buffer[at : at + self.HEAD])
            if len(head) < self.HEAD:
                break
            try:
                size = self.length(head)
            except WireError as error:
                self._damaged(side, place, f"no {self.NAME} message: {error}")
                state.astray = True
                self.lost(side)
                continue
            if len(buffer) - at < size:
                break
            self.message(side, bytes(buffer[at : at + size]), state.place(at + size))
            at += size
        state.drop(at)

    def _found(self, side: int, state: _Side, at: int, place: Place) -> int:
        """Where the next message begins, if one does; what cannot begin one is behind us."""
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
            state.astray, state.searched = False, 0
            return found

    def _damaged(self, side: int, place: Place, reason: str) -> None:
        self.tell(side, place, 0, Meaning(self.NAME, "damage", error=reason))
