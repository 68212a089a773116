"""Making boxcars (MS-CMP 2.1.1.1, 2.1.1.2, the Boxcar object of 3.1.1.2)."""

from __future__ import annotations

from collections.abc import Iterable

from mqis.wire.cmp.boxcar import ALIGNMENT, HEADER, HEADER_SIZE, MAX_MESSAGES, MAX_SIZE
from mqis.wire.cmp.packet import PACKET, PACKET_SIZE, RESERVED, MsgTag, Packet

_FILLER = tuple(bytes(size) for size in range(ALIGNMENT))
_USER_MESSAGE = int(MsgTag.USER_MESSAGE)
_pack = PACKET.pack


def size_in_boxcar(data_size: int) -> int:
    """What a packet with so much data takes, its filler included."""
    size = PACKET_SIZE + data_size
    return size + -size % ALIGNMENT


class BoxcarBuilder:
    """Messages in order, and how long they will be. Data is copied once, by ``to_bytes``.

    The last packet gets its filler too, as in the example of 4.1.2 (E-CMP-05): the longest boxcar
    is a multiple of 8, so that never makes one too long.
    """

    __slots__ = ("_parts", "count", "size")

    def __init__(self, packets: Iterable[Packet] = ()) -> None:
        self.count = 0
        self.size = HEADER_SIZE
        self._parts: list[bytes | memoryview] = [b""]  # the header goes first, once it is known
        for packet in packets:
            self.add(packet)

    def has_room(self, data_size: int) -> bool:
        """Whether neither limit is broken by one more packet with so much data."""
        return self.count < MAX_MESSAGES and self.size + size_in_boxcar(data_size) <= MAX_SIZE

    def add(self, packet: Packet) -> None:
        data = packet.data
        size = len(data)
        filler = -size % ALIGNMENT  # the header is a multiple of 8
        after = self.size + PACKET_SIZE + size + filler
        header = packet.header()
        if after > MAX_SIZE or self.count >= MAX_MESSAGES:
            raise ValueError(f"the boxcar has no room for {size} bytes of data")
        parts = self._parts
        parts.append(header)
        if size:
            parts.append(data)
            if filler:
                parts.append(_FILLER[filler])
        self.count += 1
        self.size = after

    def add_user_message(
        self, connection_id: int, message_type: int, data: bytes, is_master: int
    ) -> bool:
        """The same for what boxcars are full of; False if there is no room.

        No ``Packet`` is made, and nothing is checked but the room: whoever sends has done that.
        """
        size = len(data)
        filler = -size % ALIGNMENT
        after = self.size + PACKET_SIZE + size + filler
        if after > MAX_SIZE or self.count >= MAX_MESSAGES:
            return False
        parts = self._parts
        parts.append(_pack(_USER_MESSAGE, is_master, connection_id, message_type, size, RESERVED))
        parts.append(data)
        if filler:
            parts.append(_FILLER[filler])
        self.count += 1
        self.size = after
        return True

    def to_bytes(self) -> bytes:
        if not self.count:
            raise ValueError("a boxcar carries at least one message")
        self._parts[0] = HEADER.pack(0, 0, self.size, self.count)
        return b"".join(self._parts)
