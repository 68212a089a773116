"""The tables of all protocols decoded in a capture. To add a protocol, add a line to one of them.

STREAMS      over TCP: its dissector, and the ports where it is expected
DATAGRAMS    over UDP: a function of the datagram
QUEUES       in MSMQ messages: a private queue, and a function of the body (private_queues.py)
INTERFACES   in RPC: an interface, and a function that describes its calls (rpc_calls.py)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mqis.protocol.capture.mqqb_dissector import MqqbDissector
from mqis.protocol.capture.private_queues import QUEUES
from mqis.protocol.capture.recognition import StreamProtocol
from mqis.protocol.capture.row import Meaning
from mqis.protocol.capture.rpc_calls import INTERFACES
from mqis.protocol.capture.rpc_dissector import RpcDissector
from mqis.wire.mqqb.ping import Ping
from mqis.wire.mqsd.discovery_packet import decode_packet
from mqis.wire.mqsd.request import TopologyClientRequest

# --- Decoders of UDP datagrams: discovery (MS-MQSD) and pings (MS-MQQB 2.2.7) ---------------------


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


# --- The tables of all protocols decoded in a capture ---------------------------------------------

STREAMS: tuple[StreamProtocol, ...] = (
    StreamProtocol(MqqbDissector, frozenset({1801})),
    StreamProtocol(RpcDissector, frozenset({135, 2101, 2103, 2105})),
)
DATAGRAMS: tuple[DatagramProtocol, ...] = (
    DatagramProtocol("mqsd", frozenset({1801}), discovery),
    DatagramProtocol("ping", frozenset({3527}), ping),
)

#: The protocols that rows can have, carriers included.
PROTOCOLS: tuple[str, ...] = (
    *(protocol.dissector.NAME for protocol in STREAMS),
    *(protocol.name for protocol in DATAGRAMS),
    *(protocol.name for protocol in QUEUES),
    *(protocol.name for protocol in INTERFACES),
    "cmp",
    "tcp",
    "udp",
)
