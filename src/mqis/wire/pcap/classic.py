"""pcap, the classic format (draft-ietf-opsawg-pcap): a header, then packets to the end.

 0  u32  magic: a1b2c3d4 for microseconds, a1b23c4d for nanoseconds; tells the byte order
 4  u16  major version 2              16  u32  snap length
 6  u16  minor version 4              20  u32  link type in the low 26 bits
 8  8    reserved

and before each packet:

 0  u32  seconds since 1970            8  u32  bytes in the file
 4  u32  micro- or nanoseconds        12  u32  bytes on the wire

Nothing marks the start of a packet, so a reader cannot continue behind a damaged one.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from mqis.wire.errors import WireError
from mqis.wire.pcap.captured import MAX_PACKET, Buffer, Captured, Unreadable

FILE_HEADER = 24
RECORD_HEADER = 16
#: The bits above give the length of a frame's checksum, which is not needed.
_LINK_TYPE = 0x03FFFFFF

HEADER = "IHHiIII"
RECORD = "IIII"
#: The first four bytes: byte order, and the nanoseconds in one unit of the fraction.
_MAGICS = {
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
    bytes.fromhex("a1b23c4d"): (">", 1),
}


def is_pcap(data: Buffer) -> bool:
    return bytes(data[:4]) in _MAGICS


def walk_pcap(data: Buffer) -> Iterator[Captured | Unreadable]:
    """Yields all packets, and the unreadable rest if any; ``WireError`` for a bad header."""
    order, unit, link_type = _file_header(data)
    unpack = Struct(order + RECORD).unpack_from
    at, size, number = FILE_HEADER, len(data), 0
    while at < size:
        number += 1
        start = at + RECORD_HEADER
        if start > size:
            yield Unreadable(at, f"the file ends within the header of packet {number}", number)
            return
        seconds, fraction, length, original = unpack(data, at)
        end = start + length
        if length > MAX_PACKET:
            yield Unreadable(at, f"packet {number} cannot have {length} bytes", number)
            return
        if end > size:
            reason = f"the file ends {end - size} bytes before the end of packet {number}"
            yield Unreadable(at, reason, number)
            return
        time_ns = seconds * 1_000_000_000 + fraction * unit
        yield Captured(number, at, time_ns, link_type, bytes(data[start:end]), original)
        at = end


def _file_header(data: Buffer) -> tuple[str, int, int]:
    """The byte order, the unit of the fraction in nanoseconds, and the link type."""
    known = _MAGICS.get(bytes(data[:4]))
    if known is None:
        raise WireError("this is not a pcap file", 0)
    if len(data) < FILE_HEADER:
        raise WireError("the file ends within its header", len(data))
    order, unit = known
    _, major, minor, _, _, _, link_type = Struct(order + HEADER).unpack_from(data)
    if major != 2:
        raise WireError(f"pcap version {major}.{minor} is unknown, only 2 is known", 4)
    return order, unit, link_type & _LINK_TYPE
