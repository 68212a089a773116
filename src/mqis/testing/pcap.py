"""Captures of bytes that were exchanged (Ethernet, IPv4), as files of the classic format.

Nothing is captured from an interface, so no privilege is needed. Sequence numbers and checksums
are those that the packets would have had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from struct import Struct, unpack
from struct import error as struct_error

from mqis.wire.errors import WireError
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.captured import MAX_PACKET, Buffer, Captured, LinkType, Unreadable
from mqis.wire.pcap.classic import HEADER, RECORD
from mqis.wire.pcap.tcp_udp import TCP, UDP, TcpFlags

#: The payload of an Ethernet segment, so that messages cross segment borders as they really do.
SEGMENT = 1448
_ETHERNET = bytes.fromhex("020000000002 020000000001 0800")
_IPV4 = Struct(">BBHHHBBH4s4s")
_TCP = Struct(">HHIIBBHHH")
_UDP = Struct(">HHHH")
_DONT_FRAGMENT = 0x4000
_MICROSECONDS, _NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D


@dataclass(frozen=True, slots=True)
class Ends:
    """The addresses and ports of a client, which opened the connection, and its server."""

    client: str
    client_port: int
    server: str
    server_port: int

    def sides(self, from_client: bool) -> tuple[bytes, bytes, int, int]:
        client, server = (IPv4Address(text).packed for text in (self.client, self.server))
        if from_client:
            return client, server, self.client_port, self.server_port
        return server, client, self.server_port, self.client_port


def tcp_frame(
    ends: Ends, from_client: bool, numbers: tuple[int, int], flags: int, data: bytes = b""
) -> bytes:
    """Builds a TCP frame; ``numbers`` are the sequence number and the acknowledged one."""
    source, target, source_port, target_port = ends.sides(from_client)
    seq, ack = (number % (1 << 32) for number in numbers)
    header = _TCP.pack(source_port, target_port, seq, ack, 5 << 4, flags, 65535, 0, 0)
    checksum = _pseudo_checksum(source, target, TCP, header + data)
    tcp = header[:16] + checksum.to_bytes(2, "big") + header[18:] + data
    return _framed(from_client, source, target, TCP, tcp)


def udp_frame(ends: Ends, from_client: bool, data: bytes) -> bytes:
    source, target, source_port, target_port = ends.sides(from_client)
    header = _UDP.pack(source_port, target_port, 8 + len(data), 0)
    checksum = _pseudo_checksum(source, target, UDP, header + data) or 0xFFFF
    udp = header[:6] + checksum.to_bytes(2, "big") + data
    return _framed(from_client, source, target, UDP, udp)


#: A time in ns, whether the client sent the bytes, and the bytes.
Part = tuple[int, bool, bytes]


def conversation_frames(
    ends: Ends,
    parts: Iterable[Part],
    *,
    opened_ns: int = 0,
    segment: int = SEGMENT,
    first_seq: tuple[int, int] = (1000, 5000),
) -> Iterator[tuple[int, bytes]]:
    """Yields the frames of a whole connection with their times: handshake, the parts, the end.

    Every segment is acknowledged; ``first_seq`` are the initial numbers of client and server.
    """
    following = {True: first_seq[0], False: first_seq[1]}
    now = opened_ns

    def frame(from_client: bool, flags: int, data: bytes = b"") -> tuple[int, bytes]:
        ack = 0 if flags == TcpFlags.SYN else following[not from_client]
        made = tcp_frame(ends, from_client, (following[from_client], ack), flags, data)
        following[from_client] += len(data) + bool(flags & (TcpFlags.SYN | TcpFlags.FIN))
        return now, made

    yield frame(True, TcpFlags.SYN)
    yield frame(False, TcpFlags.SYN | TcpFlags.ACK)
    yield frame(True, TcpFlags.ACK)
    for time_ns, from_client, data in parts:
        now = time_ns
        for at in range(0, len(data), segment):
            yield frame(from_client, TcpFlags.PSH | TcpFlags.ACK, data[at : at + segment])
            yield frame(not from_client, TcpFlags.ACK)
    yield frame(True, TcpFlags.FIN | TcpFlags.ACK)
    yield frame(False, TcpFlags.FIN | TcpFlags.ACK)
    yield frame(True, TcpFlags.ACK)


def _framed(from_client: bool, source: bytes, target: bytes, protocol: int, data: bytes) -> bytes:
    size = 20 + len(data)
    if size > 0xFFFF:
        raise ValueError(f"{len(data)} bytes do not fit an IPv4 packet")
    header = _IPV4.pack(0x45, 0, size, 0, _DONT_FRAGMENT, 64, protocol, 0, source, target)
    checksum = _checksum(header).to_bytes(2, "big")
    ends = _ETHERNET if from_client else _ETHERNET[6:12] + _ETHERNET[:6] + _ETHERNET[12:]
    return ends + header[:10] + checksum + header[12:] + data


def _pseudo_checksum(source: bytes, target: bytes, protocol: int, data: bytes) -> int:
    return _checksum(source + target + bytes([0, protocol]) + len(data).to_bytes(2, "big") + data)


def _checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total: int = sum(unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def write_pcap(
    packets: Iterable[tuple[int, bytes]],
    link_type: int = LinkType.ETHERNET,
    *,
    nanoseconds: bool = False,
    big_endian: bool = False,
    snap_length: int = MAX_PACKET,
) -> bytes:
    """Makes a file of these packets (time in ns, bytes); truncates them to the snap length."""
    order, unit = ">" if big_endian else "<", 1 if nanoseconds else 1000
    magic = _NANOSECONDS if nanoseconds else _MICROSECONDS
    record = Struct(order + RECORD)
    parts = [Struct(order + HEADER).pack(magic, 2, 4, 0, 0, snap_length, link_type)]
    for time_ns, data in packets:
        seconds, fraction = divmod(time_ns, 1_000_000_000)
        kept = data[:snap_length]
        try:
            parts.append(record.pack(seconds, fraction // unit, len(kept), len(data)))
        except struct_error as error:
            raise ValueError(f"a time of {time_ns} ns does not fit: {error}") from None
        parts.append(kept)
    return b"".join(parts)


def decode_capture(data: Buffer) -> tuple[Captured, ...]:
    """Decodes all packets of a whole file; raises ``WireError`` at the first unreadable part."""
    found: list[Captured] = []
    for each in walk_capture(data):
        if isinstance(each, Unreadable):
            raise WireError(each.reason, each.offset)
        found.append(each)
    return tuple(found)
