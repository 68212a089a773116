"""The reader of boxcars (MS-CMP 2.1.1, 2.2.1).

     0  u32  dwSeqNumThisCar, 0, ignored
     4  u32  dwAckSeqNum, 0, ignored
     8  u32  dwcbTotal, all bytes of the boxcar, its filler included: 40 to 81,920
    12  u32  dwcMessages, 1 to 3,412
    16       the first packet

A wrong header, or a header that contradicts the call that carried it, makes the whole boxcar
invalid. An error further in (an unknown tag, a packet that runs past the end) ends the boxcar
there: the packets before it are kept and the rest is dropped (E-CMP-09, E-CMP-10).

Every packet begins at a multiple of 8. Filler behind the last packet is optional and of any length
(E-CMP-05); it is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from mqis.wire.cmp.packet import PACKET, PACKET_SIZE, MsgTag, Packet
from mqis.wire.errors import WireError

HEADER_SIZE = 16
MIN_SIZE = HEADER_SIZE + PACKET_SIZE
MAX_SIZE = 81_920
#: The number of empty packets that fit; the 4,095 that RPC allows cannot be reached (E-CMP-08).
MAX_MESSAGES = 3_412
ALIGNMENT = 8

HEADER = Struct("<4I")
_TAGS = frozenset(int(tag) for tag in MsgTag)

#: The six fields of MESSAGE_PACKET in their order, and the offset of the data behind them.
Head = tuple[tuple[int, int, int, int, int, int], int]


@dataclass(frozen=True, slots=True)
class Remainder:
    """The dropped end of a boxcar: its offset, the reason and its number of packets."""

    offset: int
    reason: str
    messages: int


class BoxcarReader:
    """An iterator over the packets of a boxcar; it copies no data.

    The constructor checks the header and raises ``WireError``. ``count`` is the number of messages
    that the RPC call named. After the iteration ``remainder`` is the dropped part, if any.
    """

    __slots__ = ("_data", "_view", "count", "remainder")

    def __init__(self, data: bytes, count: int | None = None) -> None:
        size = len(data)
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise WireError(f"a boxcar of {size} bytes, {MIN_SIZE} to {MAX_SIZE} are allowed", 0)
        _, _, total, messages = HEADER.unpack_from(data)
        if total != size:
            raise WireError(f"dwcbTotal is {total}, but the boxcar has {size} bytes", 8)
        if not 1 <= messages <= MAX_MESSAGES:
            raise WireError(f"{messages} messages, 1 to {MAX_MESSAGES} are allowed", 12)
        if count is not None and count != messages:
            raise WireError(f"dwcMessages is {messages}, but the call announced {count}", 12)
        self.count: int = messages
        self.remainder: Remainder | None = None
        self._data = data
        self._view = memoryview(data)

    def __iter__(self) -> Iterator[Packet]:
        return map(self.packet, self.heads())

    def packet(self, head: Head) -> Packet:
        (tag, is_master, connection_id, user_msg_type, length, reserved), start = head
        data = self._view[start : start + length] if length else b""
        return Packet(tag, is_master, connection_id, user_msg_type, data, reserved)

    def heads(self) -> Iterator[Head]:
        """Yields the header fields of each packet and the offset of its data.

        It saves a caller from making thousands of ``Packet`` values.
        """
        data, unpack, tags = self._data, PACKET.unpack_from, _TAGS
        size, at = len(data), HEADER_SIZE
        for number in range(self.count):
            start = at + PACKET_SIZE
            if start > size:
                self._stop(at, "the packet runs past the end", number)
                return
            fields = unpack(data, at)
            if fields[0] not in tags:
                self._stop(at, f"0x{fields[0]:x} is not a MsgTag", number)
                return
            length = fields[4]
            end = start + length
            if end > size:
                self._stop(at, f"{length} bytes of data run past the end", number)
                return
            yield fields, start
            at = end + -end % ALIGNMENT

    def _stop(self, offset: int, reason: str, handled: int) -> None:
        self.remainder = Remainder(offset, reason, self.count - handled)


@dataclass(frozen=True, slots=True)
class Boxcar:
    """A completely decoded boxcar; each packet owns its data as bytes."""

    packets: tuple[Packet, ...]
    remainder: Remainder | None = None

    @classmethod
    def from_bytes(cls, data: bytes) -> Boxcar:
        reader = BoxcarReader(data)
        packets = tuple(packet._replace(data=bytes(packet.data)) for packet in reader)
        return cls(packets, reader.remainder)
