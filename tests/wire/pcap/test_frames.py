"""From a frame to a segment, a datagram or a fragment, over every kind of link."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.testing.pcap import Ends, conversation_frames, tcp_frame, udp_frame
from mqis.wire.errors import WireError
from mqis.wire.pcap.captured import LinkType
from mqis.wire.pcap.ip_layer import decode_ipv4, decode_ipv6
from mqis.wire.pcap.tcp_udp import (
    TCP,
    UDP,
    Fragment,
    TcpFlags,
    TcpSegment,
    UdpDatagram,
    decode_frame,
)

ENDS = Ends("10.1.2.3", 40_000, "192.168.0.9", 1801)
SOURCE, TARGET = ip_address(ENDS.client).packed, ip_address(ENDS.server).packed
SIX = ip_address("fe80::1").packed, ip_address("fe80::2").packed
SEGMENT = TcpSegment(SOURCE, TARGET, 40_000, 1801, 7, 9, TcpFlags.ACK, b"hello")
DATAGRAM = UdpDatagram(SOURCE, TARGET, 40_000, 1801, b"hello")
FRAME = tcp_frame(ENDS, True, (7, 9), TcpFlags.ACK, b"hello")
PACKET, TCP_PART = FRAME[14:], FRAME[34:]
UDP_PACKET = udp_frame(ENDS, True, b"hello")[14:]


def decoded(link_type: int, data: bytes, original: int = 0) -> object:
    return decode_frame(link_type, data, max(original, len(data)))


def ipv6(next_header: int, payload: bytes, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    return struct.pack(">IHBB", 6 << 28, size, next_header, 64) + SIX[0] + SIX[1] + payload


# --- links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link_type", "header"),
    [
        (LinkType.ETHERNET, FRAME[:14]),
        (LinkType.ETHERNET, FRAME[:12] + bytes.fromhex("8100 0064 0800")),
        (LinkType.ETHERNET, FRAME[:12] + bytes.fromhex("88a8 0001 8100 0064 0800")),
        (LinkType.RAW, b""),
        (LinkType.RAW_BSD, b""),
        (LinkType.RAW_OPENBSD, b""),
        (LinkType.IPV4, b""),
        (LinkType.LINUX_SLL, bytes(14) + b"\x08\0"),
        (LinkType.LINUX_SLL2, b"\x08\0" + bytes(18)),
        (LinkType.NULL, b"\x02\0\0\0"),
        (LinkType.NULL, b"\0\0\0\x02"),
        (LinkType.LOOP, b"\0\0\0\x02"),
    ],
)
def test_ipv4_over_every_link(link_type: int, header: bytes) -> None:
    assert decoded(link_type, header + PACKET) == SEGMENT
    assert decoded(link_type, header + UDP_PACKET) == DATAGRAM


@pytest.mark.parametrize(
    ("link_type", "header"),
    [
        (LinkType.ETHERNET, bytes(12) + b"\x86\xdd"),
        (LinkType.RAW, b""),
        (LinkType.IPV6, b""),
        (LinkType.LINUX_SLL, bytes(14) + b"\x86\xdd"),
        *((LinkType.NULL, bytes([family, 0, 0, 0])) for family in (10, 24, 28, 30)),
    ],
)
def test_ipv6_over_every_link(link_type: int, header: bytes) -> None:
    found = decoded(link_type, header + ipv6(TCP, TCP_PART))
    assert found == SEGMENT._replace(source=SIX[0], destination=SIX[1])


def test_what_is_no_ip_is_not_looked_at() -> None:
    assert decoded(LinkType.ETHERNET, bytes(12) + b"\x08\x06" + bytes(60)) is None  # ARP
    assert decoded(LinkType.NULL, b"\x07\0\0\0" + bytes(40)) is None
    icmp = bytearray(PACKET)
    icmp[9] = 1
    assert decoded(LinkType.RAW, bytes(icmp)) is None


@pytest.mark.parametrize(
    ("link_type", "data", "reason"),
    [
        (LinkType.ETHERNET, bytes(13), "a link header has 14 bytes, here are 13"),
        (LinkType.ETHERNET, bytes(12) + b"\x81\0\0", "ends within a VLAN tag"),
        (LinkType.LINUX_SLL, bytes(15), "16 bytes"),
        (LinkType.LINUX_SLL2, bytes(19), "20 bytes"),
        (LinkType.NULL, b"\x02\0", "address family"),
        (LinkType.RAW, b"", "packet is empty"),
        (147, b"x", "link type 147"),
        (-1, b"x", "link type -1"),
    ],
)
def test_a_link_header_that_is_not_there(link_type: int, data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decoded(link_type, data)


# --- IPv4 -----------------------------------------------------------------------------------------


def test_padding_behind_the_packet_is_not_data() -> None:
    for data in (FRAME + bytes(20), FRAME[:12] + b"\x81\0\0\x01" + FRAME[12:] + bytes(20)):
        assert decoded(LinkType.ETHERNET, data) == SEGMENT
    assert decoded(LinkType.RAW, UDP_PACKET + bytes(9)) == DATAGRAM


def test_options_before_the_segment() -> None:
    options = b"\x46" + PACKET[1:2] + struct.pack(">H", len(PACKET) + 4) + PACKET[4:20]
    assert decoded(LinkType.RAW, options + bytes(4) + PACKET[20:]) == SEGMENT
    longer = TCP_PART[:12] + b"\x60" + TCP_PART[13:20] + bytes(4) + TCP_PART[20:]
    with_options = PACKET[:2] + struct.pack(">H", 20 + len(longer)) + PACKET[4:20] + longer
    assert decoded(LinkType.RAW, with_options) == SEGMENT
    assert decoded(LinkType.ETHERNET, FRAME[:14] + with_options) == SEGMENT


@pytest.mark.parametrize("header", [FRAME[:14], b""])
def test_a_length_that_the_card_was_to_fill_in(header: bytes) -> None:
    """Segmentation offload: the frame is longer than the field could say."""
    link_type = LinkType.ETHERNET if header else LinkType.RAW
    data = header + PACKET[:2] + bytes(2) + PACKET[4:] + bytes(70_000)
    found = decoded(link_type, data)
    assert isinstance(found, TcpSegment)
    assert len(found.data) == 5 + 70_000


@given(st.integers(54, len(FRAME)))
def test_what_the_snap_length_cut_is_counted(size: int) -> None:
    found = decode_frame(LinkType.ETHERNET, FRAME[:size], len(FRAME))
    kept = size - 54
    assert found == SEGMENT._replace(data=b"hello"[:kept], lost=5 - kept)
    raw = decode_frame(LinkType.RAW, PACKET[: size - 14], len(PACKET))
    assert raw == found
    udp = decode_frame(LinkType.RAW, UDP_PACKET[: 28 + kept], len(UDP_PACKET))
    assert udp == DATAGRAM._replace(data=b"hello"[:kept], lost=5 - kept)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (PACKET[:19], "an IPv4 header has 20 bytes, here are 19"),
        (b"\x50" + PACKET[1:], "cannot begin with 0x50"),
        (b"\x44" + PACKET[1:], "cannot begin with 0x44"),
        (PACKET[:2] + b"\0\x10" + PACKET[4:], "packet of 16 bytes cannot have 20 of header"),
        (PACKET[:39], "a TCP header has 20 bytes, here are 19"),
        (PACKET[:2] + b"\0\x20" + PACKET[4:], "a TCP header has 20 bytes"),
        (PACKET[:32] + b"\x40" + PACKET[33:], "a TCP header cannot have 16 bytes"),
        (PACKET[:32] + b"\xf0" + PACKET[33:], "a TCP header cannot have 60 bytes"),
        (UDP_PACKET[:27], "a UDP header has 8 bytes, here are 7"),
        (UDP_PACKET[:24] + b"\0\x07" + UDP_PACKET[26:], "length 7 is impossible in 13 bytes"),
        (UDP_PACKET[:24] + b"\0\x0e" + UDP_PACKET[26:], "length 14 is impossible in 13 bytes"),
        (ipv6(TCP, b"")[:39], "an IPv6 header has 40 bytes, here are 39"),
    ],
)
def test_headers_that_are_wrong(data: bytes, reason: str) -> None:
    """Over Ethernet too, where most segments take a shorter way."""
    with pytest.raises(WireError, match=reason):
        decoded(LinkType.RAW, data)
    with pytest.raises(WireError, match=reason):
        decoded(
            LinkType.ETHERNET, bytes(12) + (b"\x86\xdd" if data[0] >> 4 == 6 else b"\x08\0") + data
        )


def test_a_datagram_whose_length_the_card_was_to_fill_in() -> None:
    assert decoded(LinkType.RAW, UDP_PACKET[:24] + bytes(2) + UDP_PACKET[26:]) == DATAGRAM


@given(st.binary(min_size=54, max_size=120), st.data())
def test_the_short_way_and_the_long_one_agree(noise: bytes, data: st.DataObject) -> None:
    """Any Ethernet frame is what the packet in it is over a link without a header."""
    frame = bytearray(data.draw(st.sampled_from([noise, FRAME + noise])))
    frame[12:14] = b"\x08\0"
    for at in data.draw(st.lists(st.integers(14, 53), max_size=3)):
        frame[at] = data.draw(st.integers(0, 255))
    original = data.draw(st.integers(len(frame), len(frame) + 50))
    outcomes = []
    for link_type, start in ((LinkType.ETHERNET, 0), (LinkType.IPV4, 14)):
        try:
            found: object = decode_frame(link_type, bytes(frame[start:]), original - start)
        except WireError as error:
            found = error.reason
        outcomes.append(found)
    if frame[14] >> 4 != 6:  # a bare packet tells its version itself
        assert outcomes[0] == outcomes[1]


# --- fragments ------------------------------------------------------------------------------------


def test_fragments_of_ipv4() -> None:
    first = PACKET[:6] + struct.pack(">H", 0x2000) + PACKET[8:]
    found = decoded(LinkType.RAW, first)
    assert found == Fragment(SOURCE, TARGET, TCP, 0, 0, True, PACKET[20:], 0)
    second = PACKET[:4] + struct.pack(">HH", 77, 3) + PACKET[8:]
    found = decoded(LinkType.ETHERNET, FRAME[:14] + second)
    assert found == Fragment(SOURCE, TARGET, TCP, 77, 24, False, PACKET[20:], 0)
    cut = decode_frame(LinkType.RAW, second[:-4], len(second))
    assert cut == Fragment(SOURCE, TARGET, TCP, 77, 24, False, PACKET[20:-4], 4)
    assert not decode_ipv4(PACKET, 0, len(PACKET)).is_fragment


def test_extension_headers_are_stepped_over() -> None:
    destination_options = bytes([43, 0]) + bytes(6)
    routing = bytes([51, 1]) + bytes(14)
    authentication = bytes([TCP, 4]) + bytes(22)
    payload = destination_options + routing + authentication + TCP_PART
    found = decoded(LinkType.RAW, ipv6(60, payload))
    assert found == SEGMENT._replace(source=SIX[0], destination=SIX[1])
    jumbo = ipv6(60, payload, length=0)
    assert decoded(LinkType.RAW, jumbo) == found


def test_a_packet_may_consist_of_headers_alone() -> None:
    """No Next Header (RFC 8200 4.7): an empty packet, and one that ends with its options."""
    for packet in (ipv6(59, b"", length=0), ipv6(60, bytes([59, 0]) + bytes(6))):
        found = decode_ipv6(packet, 0, len(packet))
        assert (found.protocol, found.start, found.end) == (59, len(packet), len(packet))


def test_fragments_of_ipv6() -> None:
    whole = struct.pack(">BBHI", TCP, 0, 0, 99) + TCP_PART
    found = decoded(LinkType.RAW, ipv6(44, whole))
    assert found == SEGMENT._replace(source=SIX[0], destination=SIX[1])
    first = struct.pack(">BBHI", UDP, 0, 1, 99) + b"first part"
    assert decoded(LinkType.RAW, ipv6(44, first)) == Fragment(
        *SIX, UDP, 99, 0, True, b"first part", 0
    )
    # What follows a later fragment's header is no header, whatever its type says.
    later = struct.pack(">BBHI", UDP, 0, 8, 99) + b"later"
    assert decoded(LinkType.RAW, ipv6(44, later)) == Fragment(*SIX, UDP, 99, 8, False, b"later", 0)


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (ipv6(60, b"\x06"), "ends within an extension header"),
        (ipv6(44, bytes(7)), "ends within an extension header"),
        (ipv6(0, bytes([0, 0, 0, 0, 0, 0, 0, 0]) * 17), "more than 16 extension headers"),
        (ipv6(60, bytes([6, 9]) + bytes(6)), "longer than the packet"),
    ],
)
def test_extension_headers_that_are_wrong(packet: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decoded(LinkType.RAW, packet)


def test_another_version_in_ipv6() -> None:
    with pytest.raises(WireError, match="an IPv6 header cannot have version 4"):
        decoded(LinkType.LINUX_SLL, bytes(14) + b"\x86\xdd" + PACKET + bytes(20))


@given(st.sampled_from([*LinkType]), st.binary(max_size=120), st.integers(0, 200))
def test_garbage_is_decoded_or_raises_one_error(link_type: int, data: bytes, more: int) -> None:
    for octets in (data, FRAME[:20] + data, ipv6(60, data)):
        offset, found = 0, None
        try:
            found = decode_frame(link_type, octets, len(octets) + more)
        except WireError as error:
            offset = error.offset
        assert 0 <= offset <= len(octets)
        assert found is None or found.lost >= 0


# --- building -------------------------------------------------------------------------------------


def test_a_conversation_has_the_numbers_that_it_would_have() -> None:
    parts = [(5, True, b"question"), (6, False, b"a longer answer")]
    made = list(conversation_frames(ENDS, parts, opened_ns=3, segment=8, first_seq=(2**32 - 3, 50)))
    found = [decode_frame(LinkType.ETHERNET, frame, len(frame)) for _, frame in made]
    told = [
        (f.source_port == 40_000, f.seq, f.ack, f.flags, f.data)
        for f in found
        if isinstance(f, TcpSegment)
    ]
    syn, ack, fin, push = TcpFlags.SYN, TcpFlags.ACK, TcpFlags.FIN, TcpFlags.PSH
    assert told == [
        (True, 2**32 - 3, 0, syn, b""),
        (False, 50, 2**32 - 2, syn | ack, b""),
        (True, 2**32 - 2, 51, ack, b""),
        (True, 2**32 - 2, 51, push | ack, b"question"),
        (False, 51, 6, ack, b""),
        (False, 51, 6, push | ack, b"a longer"),
        (True, 6, 59, ack, b""),
        (False, 59, 6, push | ack, b" answer"),
        (True, 6, 66, ack, b""),
        (True, 6, 66, fin | ack, b""),
        (False, 66, 7, fin | ack, b""),
        (True, 7, 67, ack, b""),
    ]
    assert [at for at, _ in made] == [3] * 3 + [5] * 2 + [6] * 7


@given(st.binary(max_size=300), st.booleans())
def test_checksums_are_right(data: bytes, from_client: bool) -> None:
    """Their sum with everything that they cover is 0xFFFF (RFC 1071)."""

    def total(octets: bytes) -> int:
        octets += bytes(len(octets) % 2)
        number: int = sum(struct.unpack(f">{len(octets) // 2}H", octets))
        while number >> 16:
            number = (number & 0xFFFF) + (number >> 16)
        return number

    for frame, protocol in (
        (tcp_frame(ENDS, from_client, (1, 2), 0, data), TCP),
        (udp_frame(ENDS, from_client, data), UDP),
    ):
        assert total(frame[14:34]) == 0xFFFF
        pseudo = frame[26:34] + bytes([0, protocol]) + struct.pack(">H", len(frame) - 34)
        assert total(pseudo + frame[34:]) == 0xFFFF


def test_what_does_not_fit_a_packet() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        tcp_frame(ENDS, True, (0, 0), 0, bytes(65_500))
