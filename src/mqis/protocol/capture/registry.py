"""The tables of all protocols decoded in a capture. To add a protocol, add a line to one of them.

STREAMS      over TCP: its dissector, and the ports where it is expected
DATAGRAMS    over UDP: a function of the datagram
QUEUES       in MSMQ messages: a private queue, and a function of the body (queues.py)
INTERFACES   in RPC: an interface, and a function that describes its calls (interfaces.py)
"""

from __future__ import annotations

from mqis.protocol.capture.datagrams import DatagramProtocol, discovery, ping
from mqis.protocol.capture.interfaces import INTERFACES
from mqis.protocol.capture.mqqb import MqqbDissector
from mqis.protocol.capture.queues import QUEUES
from mqis.protocol.capture.recognition import StreamProtocol
from mqis.protocol.capture.rpc import RpcDissector

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
