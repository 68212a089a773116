"""The link headers, which tell where a network packet begins.

ETHERNET    12  u16 type; 802.1Q tags of 4 bytes before the one that counts
NULL, LOOP   0  u32 address family, in the byte order of the host that captured, or in network's
LINUX_SLL   14  u16 type, 16 packet
LINUX_SLL2   0  u16 type, 20 packet
RAW              nothing: the first four bits tell the version
"""

from __future__ import annotations

from struct import Struct

from mqis.wire.errors import WireError
from mqis.wire.pcap.captured import LinkType

IPV4, IPV6 = 0x0800, 0x86DD
_VLANS = frozenset({0x8100, 0x88A8, 0x9100})
#: AF_INET everywhere; AF_INET6 of NetBSD, FreeBSD, Darwin and Linux.
_FAMILIES = {2: IPV4, 24: IPV6, 28: IPV6, 30: IPV6, 10: IPV6}
_U16 = Struct(">H")

#: The offset of the ethertype, and of the packet, for link types that have one.
_TYPED = {
    LinkType.ETHERNET: (12, 14),
    LinkType.LINUX_SLL: (14, 16),
    LinkType.LINUX_SLL2: (0, 20),
}
_FAMILY = frozenset({LinkType.NULL, LinkType.LOOP})
_BARE = frozenset(
    {LinkType.RAW, LinkType.RAW_BSD, LinkType.RAW_OPENBSD, LinkType.IPV4, LinkType.IPV6}
)
KNOWN: frozenset[int] = frozenset(_TYPED) | _FAMILY | _BARE


def network_packet(link_type: int, data: bytes) -> tuple[int, int]:
    """The ethertype of the network packet and its offset; ``WireError`` if the header is bad."""
    typed = _TYPED.get(link_type)  # type: ignore[call-overload]
    if typed is not None:
        return _behind_tags(data, *typed)
    if link_type in _FAMILY:
        return _by_family(data)
    if link_type not in _BARE:
        raise WireError(f"link type {link_type} is unknown", 0)
    if not data:
        raise WireError("the packet is empty", 0)
    return (IPV6 if data[0] >> 4 == 6 else IPV4), 0


def _behind_tags(data: bytes, type_at: int, at: int) -> tuple[int, int]:
    if len(data) < at:
        raise WireError(f"a link header has {at} bytes, here are {len(data)}", len(data))
    (kind,) = _U16.unpack_from(data, type_at)
    while kind in _VLANS:
        if len(data) < at + 4:
            raise WireError("the packet ends within a VLAN tag", at)
        (kind,) = _U16.unpack_from(data, at + 2)
        at += 4
    return kind, at


def _by_family(data: bytes) -> tuple[int, int]:
    if len(data) < 4:
        raise WireError("the packet ends within its address family", len(data))
    # A family is a small number, so the position of its non-zero byte tells the byte order.
    family = int.from_bytes(data[:4], "little" if data[0] else "big")
    return _FAMILIES.get(family, 0), 4
