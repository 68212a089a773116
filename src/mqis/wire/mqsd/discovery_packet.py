"""The decoder for all MS-MQSD packets, by the type in their header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import ServerSpec, format_server_specs, parse_server_specs
from mqis.wire.mqsd.request import (
    MAX_NETWORKS,
    TopologyClientRequest,
    TopologyPacketHeader,
    TopologyPacketType,
    expect_type,
)
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

# --- TopologyServerReply (MS-MQSD 2.2.3): a server's networks and the servers of its site ---------
# 0 4 TopologyPacketHeader, Type 2 4 16 CorrelationID, the RequestID that is answered 20 u32
# ConnectedNetworkCount n, 1..32 24 u32 ConnectedNetworkMask, 0 over IP 28 u32
# DirectoryServiceServerSize z, bytes of the server array with its NUL 32 16n ConnectedNetworkArray
# 32+16n 16 RespondingSiteID only if z > 0 48+16n z DirectoryServiceServerArray only if z > 0
#
# z is 0 if and only if the server is in the client's site.

#: The most that one UDP datagram over IPv4 can carry.
MAX_REPLY = 65_507
_CORRELATION_AT = 4
_CORRELATION_END = 20


@dataclass(frozen=True, slots=True)
class TopologyServerReply(Structure):
    """A reply; it has no site and no servers if the server is in the client's site."""

    NAME: ClassVar[str] = "the reply"

    correlation_id: Guid
    connected_networks: tuple[Guid, ...]
    connected_network_mask: int = 0
    responding_site_id: Guid | None = None
    servers: tuple[ServerSpec, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.connected_networks) <= MAX_NETWORKS:
            raise ValueError(
                f"a reply has 1 to {MAX_NETWORKS} networks, not {len(self.connected_networks)}"
            )
        if (self.responding_site_id is None) != (not self.servers):
            raise ValueError("a reply has both a site and its servers, or neither")
        if self.size > MAX_REPLY:
            raise ValueError(f"a reply of {self.size} bytes does not fit in a datagram")

    @property
    def own_site(self) -> bool:
        """True if the server is in the client's site; the array's size alone tells (3.1.5.2)."""
        return not self.servers

    @property
    def size(self) -> int:
        """The encoded size in bytes."""
        listed = 16 + array_size(self.servers) if self.servers else 0
        return 32 + 16 * len(self.connected_networks) + listed

    @classmethod
    def decode(cls, reader: Reader) -> TopologyServerReply:
        expect_type(reader, TopologyPacketType.REPLY)
        correlation_id = reader.guid()
        count, mask, size = _network_count(reader), reader.u32(), reader.u32()
        networks = tuple(reader.guid() for _ in range(count))
        if not size:
            return cls(correlation_id, networks, mask)
        site_id = reader.guid()
        servers = decode_servers(reader.sub(size, "DirectoryServiceServerArray"))
        try:
            return cls(correlation_id, networks, mask, site_id, servers)
        except ValueError as error:  # longer than any datagram
            raise reader.error(str(error)) from None

    def encode(self, writer: Writer) -> None:
        TopologyPacketHeader(TopologyPacketType.REPLY).encode(writer)
        writer.guid(self.correlation_id)
        writer.u32(len(self.connected_networks))
        writer.u32(self.connected_network_mask)
        writer.u32(array_size(self.servers) if self.servers else 0)
        for network in self.connected_networks:
            writer.guid(network)
        if self.responding_site_id is not None:
            writer.guid(self.responding_site_id)
            encode_servers(writer, self.servers)


def with_correlation(packet: bytes, request_id: bytes) -> bytes:
    """Returns the encoded reply for another request: only the CorrelationID differs."""
    return packet[:_CORRELATION_AT] + request_id + packet[_CORRELATION_END:]


def _network_count(reader: Reader) -> int:
    at = reader.offset
    count = reader.count(MAX_NETWORKS, 16, "ConnectedNetworkArray")
    if not count:
        raise reader.error("ConnectedNetworkCount is 0, at least 1 is required", at)
    return count


# --- DirectoryServiceServerArray (MS-MQSD 2.2.3) --------------------------------------------------
# ``10nt4pec,11psc2`` and a NUL, in UTF-16LE.
#
# The ABNF counts bytes, but separator and terminator are 16-bit units: U+2C00 and U+0100 contain
# the bytes of a comma and of half a NUL, yet they are letters of a name (E-MQSD-12).

_NUL = b"\0\0"


def decode_servers(reader: Reader) -> tuple[ServerSpec, ...]:
    """Decodes the whole ``reader``: one entry or more, terminated by a single NUL."""
    start = reader.offset
    size = reader.remaining
    if size % 2:
        raise reader.error(f"a server array has an even number of bytes, not {size}")
    text = reader.utf16z(size // 2, "DirectoryServiceServerArray")
    reader.expect_end("DirectoryServiceServerArray")
    try:
        return parse_server_specs(text)
    except WireError as error:  # its offset counts characters, some of which have two units
        before = text[: error.offset].encode("utf-16-le", "surrogatepass")
        raise WireError(error.reason, start + len(before)) from None


def encode_servers(writer: Writer, servers: tuple[ServerSpec, ...]) -> None:
    writer.utf16z(format_server_specs(servers))


def array_size(servers: tuple[ServerSpec, ...]) -> int:
    """The encoded size in bytes, with the NUL."""
    text = format_server_specs(servers)
    return len(text.encode("utf-16-le", "surrogatepass")) + len(_NUL)


Packet = TopologyClientRequest | TopologyServerReply


def decode_packet(data: bytes) -> Packet:
    """Decodes a whole datagram."""
    found = TopologyPacketHeader.decode(Reader(data)).type
    if found == TopologyPacketType.REQUEST:
        return TopologyClientRequest.from_bytes(data)
    if found == TopologyPacketType.REPLY:
        return TopologyServerReply.from_bytes(data)
    raise WireError(f"packet type {found} is neither a request nor a reply", 1)
