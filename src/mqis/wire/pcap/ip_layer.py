"""IPv4 and IPv6: addresses, and the offset of the transport header (RFC 791, RFC 8200).

The length in the IP header limits the payload, because an Ethernet frame can be padded. If it is 0,
the network card was to fill it in later, and the packet extends to the end of the frame.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from mqis.wire.errors import WireError

_IPV4 = Struct(">BxHHHxB2x4s4s")
_IPV6 = Struct(">IHBx16s16s")
_FRAGMENT = Struct(">BxHI")

#: The IPv6 extension headers that carry their own length.
_HOP_BY_HOP, _ROUTING, _FRAGMENTED, _AUTHENTICATION, _OPTIONS, _MOBILITY = 0, 43, 44, 51, 60, 135
_SKIPPED = frozenset({_HOP_BY_HOP, _ROUTING, _AUTHENTICATION, _OPTIONS, _MOBILITY})
_MAX_EXTENSIONS = 16


class NetworkPacket(NamedTuple):
    """An IP header; the payload extends from ``start`` to ``end`` unless it was truncated."""

    source: bytes
    destination: bytes
    protocol: int
    start: int
    end: int
    #: A fragment's packet identification, its offset in that packet, and whether more follow.
    identification: int = 0
    fragment_at: int = 0
    more: bool = False

    @property
    def is_fragment(self) -> bool:
        return self.more or self.fragment_at > 0


def decode_ipv4(data: bytes, at: int, frame_end: int) -> NetworkPacket:
    """Decodes an IPv4 header; ``frame_end`` is the end of the frame on the wire."""
    if len(data) < at + 20:
        raise WireError(f"an IPv4 header has 20 bytes, here are {len(data) - at}", at)
    first, length, identification, fragment, protocol, source, target = _IPV4.unpack_from(data, at)
    header = (first & 0x0F) * 4
    if first >> 4 != 4 or header < 20:
        raise WireError(f"an IPv4 header cannot begin with 0x{first:02x}", at)
    if not length:
        length = frame_end - at
    if length < header:
        raise WireError(f"an IPv4 packet of {length} bytes cannot have {header} of header", at + 2)
    where, more = (fragment & 0x1FFF) * 8, bool(fragment & 0x2000)
    start, end = at + header, at + length
    return NetworkPacket(source, target, protocol, start, end, identification, where, more)


def decode_ipv6(data: bytes, at: int, frame_end: int) -> NetworkPacket:
    """Decodes an IPv6 header and skips its extension headers."""
    if len(data) < at + 40:
        raise WireError(f"an IPv6 header has 40 bytes, here are {len(data) - at}", at)
    first, length, kind, source, target = _IPV6.unpack_from(data, at)
    if first >> 28 != 6:
        raise WireError(f"an IPv6 header cannot have version {first >> 28}", at)
    start = at + 40
    end = start + length if length else frame_end
    identification, where, more = 0, 0, False
    for _ in range(_MAX_EXTENSIONS):
        if kind == _FRAGMENTED:
            kind, place, identification = _FRAGMENT.unpack_from(
                _checked_slice(data, start, 8), start
            )
            where, more = place & 0xFFF8, bool(place & 1)
            start += 8
            if where:  # not the first fragment: no transport header follows
                break
        elif kind in _SKIPPED:
            following, size = _checked_slice(data, start, 2)[start : start + 2]
            start += (size + 2) * 4 if kind == _AUTHENTICATION else (size + 1) * 8
            kind = following
        else:
            break
    else:
        raise WireError(f"the packet has more than {_MAX_EXTENSIONS} extension headers", start)
    if start > end:
        raise WireError("the extension headers are longer than the packet", min(start, len(data)))
    return NetworkPacket(source, target, kind, start, end, identification, where, more)


def _checked_slice(data: bytes, at: int, size: int) -> bytes:
    if len(data) < at + size:
        raise WireError("the packet ends within an extension header", min(at, len(data)))
    return data
