"""What a capture file consists of, whichever format it has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

Buffer = bytes | memoryview

#: More than any capture length that tools allow (libpcap's MAXIMUM_SNAPLEN): a record that claims
#: more is none.
MAX_PACKET = 0x40000


class LinkType(IntEnum):
    """LINKTYPE_ numbers of what is understood; other numbers are kept."""

    NULL = 0
    ETHERNET = 1
    #: LINKTYPE_RAW, and what some systems write into files for it.
    RAW_BSD = 12
    RAW_OPENBSD = 14
    RAW = 101
    LOOP = 108
    LINUX_SLL = 113
    IPV4 = 228
    IPV6 = 229
    LINUX_SLL2 = 276


class Captured(NamedTuple):
    """One packet. A tuple and no dataclass: a file has millions."""

    #: From 1 on, as other tools count.
    number: int
    #: Where its record begins in the file.
    offset: int
    #: Since 1970; None where the file has no time for it.
    time_ns: int | None
    link_type: int
    data: bytes
    #: Its length on the wire, of which the snap length may have cut something off.
    original: int

    @property
    def cut(self) -> int:
        """How many of its bytes are not in the file."""
        return max(0, self.original - len(self.data))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes of a file that are no packet: where, and why."""

    offset: int
    reason: str
    #: The packet that stands there, if one does.
    number: int = 0
