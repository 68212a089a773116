"""Targets for capture files and their streams: damage gives error rows, never an exception.

``python -m fuzz.capture_targets`` writes the corpus again.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mqis.protocol.capture.decoder import decode_rows
from mqis.protocol.capture.framing import Dissector
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.mqqb_dissector import MqqbDissector
from mqis.protocol.capture.plain import as_text
from mqis.protocol.capture.row import Meaning, PacketPosition
from mqis.protocol.capture.rpc_dissector import RpcDissector
from mqis.testing.cmp import user_message
from mqis.testing.pcap import Ends, conversation_frames, decode_capture, udp_frame, write_pcap
from mqis.wire.cmp.builder import BoxcarBuilder
from mqis.wire.cmp.packet import Packet
from mqis.wire.cmpo import ixnremote
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqdsrp.messages import BscAck, PscAck, encode_message
from mqis.wire.mqqb.internal import ConnectionParameters, EstablishConnection
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.ping import Ping
from mqis.wire.mqqb.properties import MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.mqqb.userheader import UserHeader
from mqis.wire.mqsd.request import TopologyClientRequest
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.tcp_udp import decode_frame
from mqis.wire.rpc import pdu_bodies
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.pdu_header import FIRST_LAST
from mqis.wire.seqnum import SequenceNumber

#: Low limits, so that inputs exceed them soon.
_LIMITS = CaptureLimits(
    max_conversations=4,
    max_pending_bytes=4096,
    max_pending_segments=8,
    max_fragmented=2,
    max_calls=3,
    max_stub=2048,
    max_search=256,
)
_PLACE = PacketPosition(1, 24, 0)


def pcap(data: bytes) -> None:
    """Checks that a file and each of its packets is decoded or refused."""
    for packet in decode_capture(data):
        frame = decode_frame(packet.link_type, packet.data, packet.original)
        assert frame is None or frame.lost >= 0
        assert packet.offset < len(data)


def capture(data: bytes) -> None:
    """Checks that every row is well-formed, whatever the file is."""
    packets = sum(1 for _ in walk_capture(data))
    for row in decode_rows(data, _LIMITS):
        assert not row.detail or json.loads(row.detail) is not None
        assert row.frame <= packets
        assert 0 <= row.offset <= len(data)
        assert row.carrier or row.error


def _dissected(kind: type[Dissector], data: bytes) -> None:
    """Feeds a dissector; the input has steps of (side and gap flag, length, bytes)."""

    def tell(_side: int, _place: PacketPosition, length: int, meaning: Meaning) -> None:
        assert length >= 0
        as_text(meaning.detail, 64)
        assert meaning.kind

    dissector = kind(tell, _LIMITS)
    for flags, part in _steps(data):
        if flags & 2:
            dissector.gap(flags & 1, len(part) + 1, _PLACE, "not there")
        elif part:
            dissector.data(flags & 1, part, _PLACE)
        if flags & 4:
            dissector.begin_out_of_sync(flags & 1)
    dissector.end(_PLACE)


def _steps(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 3 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 3], "little") % 4096
        yield data[at] & 7, data[at + 3 : at + 3 + size]
        at += 3 + size


def rpc_stream(data: bytes) -> None:
    _dissected(RpcDissector, data)


def mqqb_stream(data: bytes) -> None:
    _dissected(MqqbDissector, data)


#: Name, function, and the errors that it may raise.
CAPTURE_TARGETS: tuple[tuple[str, Callable[[bytes], None], tuple[type[Exception], ...]], ...] = (
    ("pcap", pcap, (WireError,)),
    ("capture", capture, ()),
    ("capture-rpc", rpc_stream, ()),
    ("capture-mqqb", mqqb_stream, ()),
)


# --- the corpus -----------------------------------------------------------------------------------

_ONE, _OTHER = Guid(b"the first of two"), Guid(b"the other of two")
_HANDLE = ContextHandle(_ONE)
_CALLER = Ends("10.0.0.7", 40_000, "10.0.0.1", 2103)
_SENDER = Ends("10.0.0.7", 40_001, "10.0.0.1", 1801)

Parts = list[tuple[bool, bytes]]


def _session() -> Parts:
    """A session in which a queue manager sends two replication messages."""

    def message(number: int, body: bytes) -> bytes:
        header = UserHeader(_ONE, number, QueueName.of_direct("OS:psc1\\private$\\mqis_queue$"))
        return UserMessage(header, MessageProperties(body)).to_bytes()

    ack = PscAck(_ONE, _ONE, _OTHER, SequenceNumber(7), "psc1")
    return [
        (True, EstablishConnection(_ONE, Guid.NULL, 1).to_bytes()),
        (False, EstablishConnection(_ONE, _OTHER, 2).to_bytes()),
        (True, ConnectionParameters(1000, 2000).to_bytes()),
        (False, ConnectionParameters(1000, 2000).to_bytes()),
        (True, message(1, encode_message(ack))),
        (True, message(2, encode_message(BscAck(_ONE, _OTHER, "bsc1")))),
    ]


def _bound(interface: SyntaxId) -> Parts:
    element = pdu_bodies.ContextElement(0, interface, (NDR20,))
    result = pdu_bodies.ContextResult(pdu_bodies.ContextVerdict.ACCEPTANCE, 0, NDR20)
    ack = pdu_bodies.BindAck(5840, 5840, 7, "2103", (result,))
    return [
        (True, _pdu(pdu_bodies.Bind(5840, 5840, 0, (element,)), 1)),
        (False, _pdu(ack, 1)),
    ]


def _pdu(
    body: pdu_bodies.Bind | pdu_bodies.BindAck | pdu_bodies.Request | pdu_bodies.Response, call: int
) -> bytes:
    return encode_pdu(body, call_id=call, flags=FIRST_LAST)


def _validation() -> Parts:
    """A call during which the server calls back."""
    validate, init = dscomm.VALIDATE_SERVER, dscomm.INIT_SEC_CTX
    request = validate.request.encode(dscomm.ValidateServer(_ONE, 0, 5, 64, b"token"), Syntax.NDR20)
    back = init.request.encode(dscomm.InitSecCtx(5, b"another", 64), Syntax.NDR20)
    answer = dscomm.InitSecCtxAnswer(b"third", 0)
    answered = init.response.encode(answer, Syntax.NDR20, given={"buffer_size": 64})
    done = validate.response.encode(dscomm.HandleGot(_HANDLE, 0), Syntax.NDR20)
    return [
        *_bound(dscomm.SYNTAX),
        (True, _pdu(pdu_bodies.Request(0, validate.opnum, request), 2)),
        (False, _pdu(pdu_bodies.Request(0, init.opnum, back), 2)),
        (True, _pdu(pdu_bodies.Response(0, answered), 2)),
        (False, _pdu(pdu_bodies.Response(0, done), 2)),
    ]


def _boxcar() -> Parts:
    send = ixnremote.SEND_RECEIVE
    packets = [Packet.connection_req(1, 5), user_message(1, 2, b"hi", is_master=True)]
    boxcar = BoxcarBuilder(packets).to_bytes()
    stub = send.request.encode(ixnremote.SendReceive(_HANDLE, 2, boxcar), Syntax.NDR20)
    done = send.response.encode(ixnremote.RemoteResult(0), Syntax.NDR20)
    return [
        *_bound(ixnremote.SYNTAX),
        (True, _pdu(pdu_bodies.Request(0, send.opnum, stub), 2)),
        (False, _pdu(pdu_bodies.Response(0, done), 2)),
    ]


def _frames(ends: Ends, parts: Parts, segment: int = 400) -> list[bytes]:
    timed = [(0, side, data) for side, data in parts]
    return [frame for _, frame in conversation_frames(ends, timed, segment=segment)]


def _file(frames: Iterable[bytes], **options: bool) -> bytes:
    return write_pcap(((1000 * n, frame) for n, frame in enumerate(frames)), **options)


def _pcapng(frames: Iterable[bytes], order: str) -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack(order + "I", 12 + len(body))
        return struct.pack(order + "I", kind) + size + body + size

    data = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack(order + "HHIHHBxxx", 1, 0, 0, 9, 1, 9))
    for frame in frames:
        fields = struct.pack(order + "IIIII", 0, 0, 5, len(frame), len(frame))
        data += block(6, fields + frame)
    return data + block(3, struct.pack(order + "I", 60) + bytes(60))


def _fragmented(frame: bytes) -> list[bytes]:
    """Splits a datagram into two IP fragments."""
    head, payload = frame[14:34], frame[34:]
    made = []
    for at, piece, more in ((0, payload[:32], 0x2000), (32, payload[32:], 0)):
        fields = struct.pack(">HHH", 20 + len(piece), 9, more | at // 8)
        made.append(frame[:14] + head[:2] + fields + head[8:] + piece)
    return made


def _stream(parts: Parts) -> bytes:
    return b"".join(
        bytes([not from_client]) + struct.pack("<H", len(data)) + data
        for from_client, data in parts
    )


def seeds() -> dict[str, list[bytes]]:
    datagrams = [
        udp_frame(_SENDER, True, TopologyClientRequest(_ONE, _OTHER, _ONE).to_bytes()),
        udp_frame(_SENDER, False, Ping(7, _ONE).to_bytes()),
    ]
    few = [*datagrams, *_frames(_SENDER, _session()[2:4])]
    calls, boxes = _frames(_CALLER, _validation()), _frames(_CALLER, _boxcar())
    return {
        "pcap": [
            _file(few),
            _file(few, big_endian=True, nanoseconds=True),
            _pcapng(few, "<"),
            _pcapng(few, ">"),
        ],
        "capture": [
            _file(_frames(_SENDER, _session())),
            _file(calls),
            _file(boxes),
            _file([*datagrams, *_fragmented(datagrams[0]), *reversed(boxes)]),
        ],
        "capture-rpc": [_stream(_validation()), _stream(_boxcar())],
        "capture-mqqb": [_stream(_session())],
    }


def main() -> None:
    for name, inputs in seeds().items():
        directory = Path(__file__).parent / "corpus" / name
        directory.mkdir(exist_ok=True)
        for number, data in enumerate(inputs, 1):
            (directory / f"seed-{number:02}").write_bytes(data)


if __name__ == "__main__":
    main()
