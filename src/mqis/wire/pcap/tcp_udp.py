"""TCP segments and UDP datagrams (RFC 9293, RFC 768), and their decoding from a frame.

Checksums are not verified: a capture on the sending host contains them before the network card
fills them in.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from mqis.wire.errors import WireError
from mqis.wire.pcap.captured import LinkType
from mqis.wire.pcap.ip_layer import NetworkPacket, decode_ipv4, decode_ipv6
from mqis.wire.pcap.link_layer import IPV4, IPV6, network_packet

TCP: Final = 6
UDP: Final = 17

_TCP = Struct(">HHIIBB")
_UDP = Struct(">HHH")
_TCP_SIZE, _UDP_SIZE = 20, 8
#: Ethernet, IPv4 without options and TCP in one step: most packets are like this.
_USUAL = Struct(">12xHBxHxxHxB2x4s4sHHIIBB")
_USUAL_SIZE = 54


class TcpFlags:
    """TCP flags, as plain integers because every segment tests some."""

    FIN: Final = 0x01
    SYN: Final = 0x02
    RST: Final = 0x04
    PSH: Final = 0x08
    ACK: Final = 0x10


class TcpSegment(NamedTuple):
    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    seq: int
    ack: int
    flags: int
    data: bytes
    #: The number of bytes behind ``data`` that were on the wire but are not in the file.
    lost: int = 0


class UdpDatagram(NamedTuple):
    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    data: bytes
    lost: int = 0


class Fragment(NamedTuple):
    """A fragment of an IP packet, which has to be reassembled before it can be decoded."""

    source: bytes
    destination: bytes
    protocol: int
    identification: int
    at: int
    more: bool
    data: bytes
    lost: int = 0


Frame = TcpSegment | UdpDatagram | Fragment


def decode_frame(link_type: int, data: bytes, original: int) -> Frame | None:
    """Decodes a captured packet; returns None if it is not TCP or UDP, nor a fragment of them."""
    if link_type == LinkType.ETHERNET and len(data) >= _USUAL_SIZE:
        usual = _usual(data)
        if usual is not None:
            return usual
    kind, at = network_packet(link_type, data)
    frame_end = max(original, len(data))
    if kind == IPV4:
        packet = decode_ipv4(data, at, frame_end)
    elif kind == IPV6:
        packet = decode_ipv6(data, at, frame_end)
    else:
        return None
    if packet.protocol not in (TCP, UDP):
        return None
    if packet.is_fragment:
        there = data[packet.start : packet.end]
        lost = packet.end - packet.start - len(there)
        return Fragment(*packet[:3], packet.identification, *packet[6:], there, lost)
    return decode_transport(packet, data)


def _usual(data: bytes) -> TcpSegment | None:
    # fmt: off
    (kind, first, length, fragment, protocol, source, target, source_port, target_port,
     seq, ack, words, flags) = _USUAL.unpack_from(data)
    # fmt: on
    if kind != IPV4 or first != 0x45 or protocol != TCP or fragment & 0x3FFF or not length:
        return None
    start, end = 34 + (words >> 4) * 4, 14 + length
    if start < _USUAL_SIZE or start > end:
        return None  # the general decoder reports the error
    there = data[start:end]
    lost = end - start - len(there)
    return TcpSegment(source, target, source_port, target_port, seq, ack, flags, there, lost)


def decode_transport(packet: NetworkPacket, data: bytes) -> TcpSegment | UdpDatagram:
    """Decodes the segment or datagram in an IP packet; ``data`` may be truncated."""
    return (_segment if packet.protocol == TCP else _datagram)(packet, data)


def _segment(packet: NetworkPacket, data: bytes) -> TcpSegment:
    at, end = packet.start, packet.end
    if min(end, len(data)) < at + _TCP_SIZE:
        raise WireError(f"a TCP header has {_TCP_SIZE} bytes, here are {len(data) - at}", at)
    source, target, seq, ack, words, flags = _TCP.unpack_from(data, at)
    start = at + (words >> 4) * 4
    if start < at + _TCP_SIZE or start > end:
        raise WireError(f"a TCP header cannot have {(words >> 4) * 4} bytes", at + 12)
    there = data[start:end]
    lost = end - start - len(there)
    return TcpSegment(*packet[:2], source, target, seq, ack, flags, there, lost)


def _datagram(packet: NetworkPacket, data: bytes) -> UdpDatagram:
    at, end = packet.start, packet.end
    if min(end, len(data)) < at + _UDP_SIZE:
        raise WireError(f"a UDP header has {_UDP_SIZE} bytes, here are {len(data) - at}", at)
    source, target, length = _UDP.unpack_from(data, at)
    if length:  # 0 means the same as in IP
        if length < _UDP_SIZE or at + length > end:
            raise WireError(f"UDP length {length} is impossible in {end - at} bytes", at + 4)
        end = at + length
    there = data[at + _UDP_SIZE : end]
    return UdpDatagram(*packet[:2], source, target, there, end - at - _UDP_SIZE - len(there))
