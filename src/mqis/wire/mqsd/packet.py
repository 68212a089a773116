"""The decoder for all MS-MQSD packets, by the type in their header."""

from __future__ import annotations

from mqis.wire.errors import WireError
from mqis.wire.mqsd.header import TopologyPacketHeader, TopologyPacketType
from mqis.wire.mqsd.reply import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest
from mqis.wire.reader import Reader

Packet = TopologyClientRequest | TopologyServerReply


def decode_packet(data: bytes) -> Packet:
    """Decodes a whole datagram."""
    found = TopologyPacketHeader.decode(Reader(data)).type
    if found == TopologyPacketType.REQUEST:
        return TopologyClientRequest.from_bytes(data)
    if found == TopologyPacketType.REPLY:
        return TopologyServerReply.from_bytes(data)
    raise WireError(f"packet type {found} is neither a request nor a reply", 1)
