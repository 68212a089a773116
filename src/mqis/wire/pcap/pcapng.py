"""pcapng (draft-ietf-opsawg-pcapng): blocks that carry their length twice.

 0  u32  block type                          n-4  u32  the length again
 4  u32  length of the block, a multiple of 4
 8       body

A section begins with a header block, which gives the byte order, and has its own interfaces, which
its packets name. A reader skips blocks of other types and blocks with wrong contents. It cannot
continue behind a wrong length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from mqis.wire.errors import WireError
from mqis.wire.pcap.captured import MAX_PACKET, Buffer, Captured, Unreadable

INTERFACE, SIMPLE_PACKET, ENHANCED_PACKET = 1, 3, 6
_MAGIC = bytes.fromhex("0a0d0d0a")
_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}
_SMALLEST = 12
#: More than any block that tools write; a greater length means damage.
_MAX_BLOCK = 64 << 20
_END_OF_OPTIONS, _TSRESOL, _TSOFFSET = 0, 9, 14
_MICROSECONDS = 6
_MAX_INTERFACES = 65_536


@dataclass(frozen=True, slots=True)
class CaptureInterface:
    """IDB: the link type, snap length and clock of the packets that name it."""

    link_type: int
    snap_length: int
    #: Units per second, and seconds to add to a time stamp.
    resolution: int = 1_000_000
    offset_s: int = 0

    def time_ns(self, stamp: int) -> int | None:
        """Nanoseconds since 1970; None if the stamp is impossible (negative or centuries ahead)."""
        time_ns = stamp * 1_000_000_000 // self.resolution + self.offset_s * 1_000_000_000
        return time_ns if 0 <= time_ns < 1 << 63 else None


class _Section:
    """A section: the layouts in its byte order, and its interfaces."""

    __slots__ = ("enhanced", "interface", "interfaces", "length", "offset", "option", "start")

    def __init__(self, order: str) -> None:
        self.start = Struct(order + "II")
        self.length = Struct(order + "I")
        self.option = Struct(order + "HH")
        self.interface = Struct(order + "HHI")
        self.enhanced = Struct(order + "IIIII")
        self.offset = Struct(order + "q")
        self.interfaces: list[CaptureInterface] = []


def is_pcapng(data: Buffer) -> bool:
    return bytes(data[:4]) == _MAGIC


def walk_pcapng(data: Buffer) -> Iterator[Captured | Unreadable]:
    """Yields packets and unreadable parts; raises ``WireError`` if the file is not pcapng."""
    section = _section(data, 0)
    at, size, number = 0, len(data), 0
    while at < size:
        try:
            if bytes(data[at : at + 4]) == _MAGIC:
                section = _section(data, at)
            kind, end = _block(data, at, section)
        except WireError as error:
            yield Unreadable(at, error.reason)
            return
        if kind in (ENHANCED_PACKET, SIMPLE_PACKET):
            number += 1
        found: Captured | Unreadable | None
        try:
            found = _inside(data, at, end, section, kind=kind, number=number)
        except WireError as error:
            found = Unreadable(at, error.reason, number if kind != INTERFACE else 0)
        if found is not None:
            yield found
        at = end


def _section(data: Buffer, at: int) -> _Section:
    """Decodes the section header at ``at``: type, length, byte-order magic, version."""
    if len(data) - at < 28:
        raise WireError("the file ends within a section header", at)
    order = _ORDERS.get(bytes(data[at + 8 : at + 12]))
    if order is None:
        raise WireError("this is not a pcapng section: its byte order is unknown", at + 8)
    section = _Section(order)
    major, minor = section.option.unpack_from(data, at + 12)
    if major != 1:
        raise WireError(f"pcapng version {major}.{minor} is unknown, only 1 is known", at + 12)
    return section


def _block(data: Buffer, at: int, section: _Section) -> tuple[int, int]:
    """The type of the block, and the offset of its end."""
    left = len(data) - at
    if left < _SMALLEST:
        raise WireError("the file ends within a block", at)
    kind, length = section.start.unpack_from(data, at)
    if length % 4 or not _SMALLEST <= length <= _MAX_BLOCK:
        raise WireError(f"a block cannot have {length} bytes", at + 4)
    if length > left:
        raise WireError(f"the file ends {length - left} bytes before the end of a block", at)
    (again,) = section.length.unpack_from(data, at + length - 4)
    if again != length:
        raise WireError(f"a block of {length} bytes ends with length {again}", at + length - 4)
    return kind, at + length


def _inside(
    data: Buffer, at: int, end: int, section: _Section, *, kind: int, number: int
) -> Captured | None:
    """Decodes a block: returns a packet, or stores an interface in ``section``."""
    if kind == ENHANCED_PACKET:
        return _enhanced(data, at, end, number, section)
    if kind == SIMPLE_PACKET:
        return _simple(data, at, end, number, section)
    if kind == INTERFACE:
        if len(section.interfaces) >= _MAX_INTERFACES:
            raise WireError(f"the section has more than {_MAX_INTERFACES} interfaces", at)
        section.interfaces.append(_interface(data, at, end, section))
    return None


# 8 u32 interface, 12 u32 and 16 u32 time, high half first, 20 u32 captured, 24 u32 original, 28 ...
def _enhanced(data: Buffer, at: int, end: int, number: int, section: _Section) -> Captured:
    if end - at < 32:
        raise WireError("an enhanced packet block is too short for its fields", at)
    index, high, low, length, original = section.enhanced.unpack_from(data, at + 8)
    if index >= len(section.interfaces):
        raise WireError(f"packet {number} names interface {index}, which is not described", at + 8)
    if length > end - at - 32:
        raise WireError(f"{length} bytes of packet {number} do not fit in their block", at + 20)
    interface = section.interfaces[index]
    octets = bytes(data[at + 28 : at + 28 + length])
    time_ns = interface.time_ns(high << 32 | low)
    return Captured(number, at, time_ns, interface.link_type, octets, original)


# 8 u32 original length, 12 data: of the first interface, without a time
def _simple(data: Buffer, at: int, end: int, number: int, section: _Section) -> Captured:
    if end - at < 16:
        raise WireError("a simple packet block is too short for its field", at)
    if not section.interfaces:
        raise WireError(f"packet {number} needs interface 0, which is not described", at)
    (original,) = section.length.unpack_from(data, at + 8)
    first = section.interfaces[0]
    length = min(original, first.snap_length or original)
    if length > end - at - 16:
        raise WireError(f"{length} bytes of packet {number} do not fit in their block", at + 8)
    octets = bytes(data[at + 12 : at + 12 + length])
    return Captured(number, at, None, first.link_type, octets, original)


# 8 u16 link type, 10 u16 reserved, 12 u32 snap length, 16 options: u16 code, u16 length, value
def _interface(data: Buffer, at: int, end: int, section: _Section) -> CaptureInterface:
    if end - at < 20:
        section.interfaces.append(CaptureInterface(-1, MAX_PACKET))  # later ones keep their numbers
        raise WireError("an interface description is too short for its fields", at)
    link_type, _, snap_length = section.interface.unpack_from(data, at + 8)
    resolution, offset_s = 10**_MICROSECONDS, 0
    where, last = at + 16, end - 4
    while where + 4 <= last:
        code, length = section.option.unpack_from(data, where)
        value = bytes(data[where + 4 : min(where + 4 + length, last)])
        if code == _END_OF_OPTIONS or len(value) < length:
            break
        if code == _TSRESOL and length == 1:
            resolution = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
        elif code == _TSOFFSET and length == 8:
            offset_s = int(section.offset.unpack(value)[0])
        where += 4 + length + -length % 4
    return CaptureInterface(link_type, snap_length, resolution, offset_s)
