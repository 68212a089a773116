"""A builder of boxcars (MS-CMP 2.1.1.1, 2.1.1.2, the Boxcar object of 3.1.1.2)."""

from __future__ import annotations

from collections.abc import Iterable

from mqis.wire.cmp.boxcar import ALIGNMENT, HEADER, HEADER_SIZE, MAX_MESSAGES, MAX_SIZE
from mqis.wire.cmp.packet import PACKET, PACKET_SIZE, RESERVED, MsgTag, Packet

_FILLER = tuple(bytes(size) for size in range(ALIGNMENT))
_USER_MESSAGE = int(MsgTag.USER_MESSAGE)
_pack = PACKET.pack


def size_in_boxcar(data_size: int) -> int:
    """The bytes that a packet with this much data takes in a boxcar, its filler included."""
    size = PACKET_SIZE + data_size
    return size + -size % ALIGNMENT


class BoxcarBuilder:
    """A boxcar under construction, with its size so far. ``to_bytes`` copies the data, once.

    The last packet gets filler too, as in the example of 4.1.2 (E-CMP-05). The maximum size is a
    multiple of 8, so the filler never makes a boxcar too long.
    """

    __slots__ = ("_parts", "count", "size")

    def __init__(self, packets: Iterable[Packet] = ()) -> None:
        self.count = 0
        self.size = HEADER_SIZE
        self._parts: list[bytes | memoryview] = [b""]  # the header goes first, once it is known
        for packet in packets:
            self.add(packet)

    def has_room(self, data_size: int) -> bool:
        """Returns whether one more packet with this much data stays within both limits."""
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
        """Adds a USER_MESSAGE, the most frequent packet; returns False if there is no room.

        It builds no ``Packet`` and checks only the room: the sender has checked the fields.
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
            raise ValueError("a boxcar needs at least one message")
        self._parts[0] = HEADER.pack(0, 0, self.size, self.count)
        return b"".join(self._parts)
