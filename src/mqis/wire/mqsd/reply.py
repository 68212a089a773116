"""TopologyServerReply (MS-MQSD 2.2.3): a server's networks and the servers of its site.

0       4   TopologyPacketHeader, Type 2
4       16  CorrelationID, the RequestID that is answered
20      u32 ConnectedNetworkCount n, 1..32
24      u32 ConnectedNetworkMask, 0 over IP
28      u32 DirectoryServiceServerSize z, bytes of the server array with its NUL
32      16n ConnectedNetworkArray
32+16n  16  RespondingSiteID             only if z > 0
48+16n  z   DirectoryServiceServerArray  only if z > 0

z is 0 if and only if the server is in the client's site.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.mqsd.header import TopologyPacketHeader, TopologyPacketType, expect_type
from mqis.wire.mqsd.request import MAX_NETWORKS
from mqis.wire.mqsd.serverarray import array_size, decode_servers, encode_servers
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

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
