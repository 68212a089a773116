"""TopologyClientRequest (MS-MQSD 2.2.2): a client looks for directory servers.

0   4   TopologyPacketHeader, Type 1
4   16  EnterpriseID
20  16  RequestID
36  16  SiteID; null if the client is in no site yet
52  u32 IPXNetworkCount, 1..32          over IPX only
56  u32 IPXNetworkNumberArray[count]    over IPX only
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import ClassVar

from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer


class TopologyPacketType(IntEnum):
    REQUEST = 1
    REPLY = 2


@dataclass(frozen=True, slots=True)
class TopologyPacketHeader(Structure):
    """The header with all fields; the packets drop those that receivers ignore."""

    NAME: ClassVar[str] = "the header"

    type: int
    version: int = 0
    reserved: int = 0

    @classmethod
    def decode(cls, reader: Reader) -> TopologyPacketHeader:
        version = reader.u8()
        return cls(reader.u8(), version, reader.u16())

    def encode(self, writer: Writer) -> None:
        writer.u8(self.version)
        writer.u8(self.type)
        writer.u16(self.reserved)


def expect_type(reader: Reader, wanted: TopologyPacketType) -> None:
    """Reads a header and raises ``WireError`` unless its type is ``wanted``."""
    at = reader.offset
    found = TopologyPacketHeader.decode(reader).type
    if found != wanted:
        raise reader.error(f"packet type {found} is not {wanted.value} ({wanted.name})", at + 1)


MAX_NETWORKS = 32
#: The size of a request over IP.
REQUEST_SIZE = 52
_FIXED = Struct("<4x16s16s16s")
#: The size of IPXNetworkCount and one entry: a shorter rest is not an IPX part (3.2.5.1).
_IPX_PART = 8


@dataclass(frozen=True, slots=True)
class TopologyClientRequest(Structure):
    """A request of a client; ``ipx_networks`` is empty over IP."""

    NAME: ClassVar[str] = "the request"

    enterprise_id: Guid
    request_id: Guid
    site_id: Guid
    ipx_networks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.ipx_networks) > MAX_NETWORKS:
            raise ValueError(
                f"a request has at most {MAX_NETWORKS} networks, not {len(self.ipx_networks)}"
            )

    @classmethod
    def decode(cls, reader: Reader) -> TopologyClientRequest:
        """Decodes a request strictly (2.2.2): nothing follows the site, or a whole IPX part."""
        expect_type(reader, TopologyPacketType.REQUEST)
        ids = reader.guid(), reader.guid(), reader.guid()
        return cls(*ids, _ipx_networks(reader) if reader.remaining else ())

    @classmethod
    def received(cls, data: bytes, *, ipx: bool = False) -> TopologyClientRequest:
        """Decodes a request as servers do (3.2.5.1, E-MQSD-17): ignores a rest that is no IPX part.

        Over IP it ignores everything behind the site identifier.
        """
        enterprise_id, request_id, site_id = map(Guid, read_identifiers(data))
        has_ipx_part = ipx and len(data) >= REQUEST_SIZE + _IPX_PART
        networks = _ipx_networks(Reader(data, REQUEST_SIZE)) if has_ipx_part else ()
        return cls(enterprise_id, request_id, site_id, networks)

    def encode(self, writer: Writer) -> None:
        TopologyPacketHeader(TopologyPacketType.REQUEST).encode(writer)
        writer.guid(self.enterprise_id)
        writer.guid(self.request_id)
        writer.guid(self.site_id)
        if self.ipx_networks:
            writer.u32(len(self.ipx_networks))
            for number in self.ipx_networks:
                writer.u32(number)


def read_identifiers(data: bytes) -> tuple[bytes, bytes, bytes]:
    """The EnterpriseID, RequestID and SiteID of a request, which are all that a server needs.

    Raw bytes, because a server reads tens of thousands a second and only compares them.
    """
    if len(data) < REQUEST_SIZE or data[1] != TopologyPacketType.REQUEST:
        reader = Reader(data)  # raises the error with its offset
        expect_type(reader, TopologyPacketType.REQUEST)
        reader.bytes(REQUEST_SIZE - reader.offset, "the request")
    found: tuple[bytes, bytes, bytes] = _FIXED.unpack_from(data)
    return found


def _ipx_networks(reader: Reader) -> tuple[int, ...]:
    at = reader.offset
    count = reader.count(MAX_NETWORKS, 4, "IPXNetworkNumberArray")
    if not count:
        raise reader.error("IPXNetworkCount is 0, at least 1 is required", at)
    return tuple(reader.u32() for _ in range(count))
