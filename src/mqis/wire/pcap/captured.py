"""The contents of a capture file, in either format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

Buffer = bytes | memoryview

#: More than any capture length that tools allow (libpcap's MAXIMUM_SNAPLEN); a record that claims
#: more is damaged.
MAX_PACKET = 0x40000


class LinkType(IntEnum):
    """The LINKTYPE_ numbers that mqis understands; other numbers are kept."""

    NULL = 0
    ETHERNET = 1
    #: LINKTYPE_RAW, and the numbers that some systems write for it.
    RAW_BSD = 12
    RAW_OPENBSD = 14
    RAW = 101
    LOOP = 108
    LINUX_SLL = 113
    IPV4 = 228
    IPV6 = 229
    LINUX_SLL2 = 276


class Captured(NamedTuple):
    """A packet. A tuple, not a dataclass, because a file has millions of them."""

    #: The packet's number from 1 on, as in other tools.
    number: int
    #: The offset of its record in the file.
    offset: int
    #: Nanoseconds since 1970; None if the file has no time for it.
    time_ns: int | None
    link_type: int
    data: bytes
    #: Its length on the wire; the capture may have truncated it.
    original: int

    @property
    def cut(self) -> int:
        """The number of its bytes that are not in the file."""
        return max(0, self.original - len(self.data))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a file that is not a packet, with its offset and the reason."""

    offset: int
    reason: str
    #: The number of the packet at that place, if there is one.
    number: int = 0
