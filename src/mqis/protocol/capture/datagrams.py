"""Decoders of UDP datagrams: discovery (MS-MQSD) and pings (MS-MQQB 2.2.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mqis.protocol.capture.row import Meaning
from mqis.wire.mqqb.ping import Ping
from mqis.wire.mqsd.packet import decode_packet
from mqis.wire.mqsd.request import TopologyClientRequest


class DatagramProtocol(NamedTuple):
    """An entry of the registry. ``decode`` takes all bytes or raises ``WireError``."""

    name: str
    ports: frozenset[int]
    decode: Callable[[bytes], Meaning]


def discovery(data: bytes) -> Meaning:
    packet = decode_packet(data)
    kind = type(packet).__name__
    if isinstance(packet, TopologyClientRequest):
        where = f"site {packet.site_id}" if packet.site_id else "no site"
        return Meaning("mqsd", kind, f"{packet.request_id}: a client of {where}", packet)
    servers = tuple(spec.name for spec in packet.servers)
    answer = (
        f"site {packet.responding_site_id} has {', '.join(servers)}" if servers else "your site"
    )
    return Meaning("mqsd", kind, f"{packet.correlation_id}: {answer}", packet, machines=servers)


def ping(data: bytes) -> Meaning:
    packet = Ping.from_bytes(data)
    summary = f"cookie {packet.cookie:08x}" + (", refused" if packet.refused else "")
    return Meaning("ping", "Ping", summary, packet, queue_manager=packet.guid)
