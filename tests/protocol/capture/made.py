"""Captures of conversations that a test makes up, and the rows of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import settings

from mqis.protocol.capture.decoder import CaptureDecoder, decode_rows
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.row import DecodedRow
from mqis.testing.pcap import Ends, conversation_frames, tcp_frame, write_pcap
from mqis.wire.guid import Guid
from mqis.wire.mqqb.internal import SessionAck, SessionHeader
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.mqqb.userheader import UserHeader
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.tcp_udp import TcpFlags
from mqis.wire.rpc import pdu_bodies
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.pdu_header import FIRST_LAST, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer

#: A whole capture is decoded for each example.
FEW = settings(max_examples=40, deadline=None)
MQQB = Ends("10.0.0.7", 40_000, "10.0.0.1", 1801)
RPC = Ends("10.0.0.7", 40_001, "10.0.0.1", 49_200)
STRANGE = Ends("10.0.0.7", 40_002, "10.0.0.1", 8080)
SOURCE = Guid(b"a queue manager!")


def capture(frames: Iterable[bytes]) -> bytes:
    """A file with a microsecond from one packet to the next."""
    return write_pcap((1000 * number, frame) for number, frame in enumerate(frames, 1))


def frames_of(ends: Ends, parts: Sequence[tuple[bool, bytes]], **options: Any) -> list[bytes]:
    timed = [(0, from_client, data) for from_client, data in parts]
    return [frame for _, frame in conversation_frames(ends, timed, **options)]


def rows_of(frames: Iterable[bytes], limits: CaptureLimits | None = None) -> list[DecodedRow]:
    return list(decode_rows(capture(frames), limits))


def told(rows: Iterable[DecodedRow]) -> list[tuple[str, str | None]]:
    """The kind and the error of each row."""
    return [(row.kind, row.error) for row in rows]


def decode(data: bytes, **options: Any) -> list[DecodedRow]:
    decoder = CaptureDecoder(**options)
    for each in walk_capture(data):
        decoder.receive(each)
    decoder.finish()
    return decoder.take()


def segment(
    ends: Ends, from_client: bool, seq: int, data: bytes = b"", *, ack: int = 0, flags: int = 0
) -> bytes:
    flags |= TcpFlags.ACK if ack else 0
    return tcp_frame(ends, from_client, (seq, ack), flags, data)


# --- MS-MQQB --------------------------------------------------------------------------------------


def ack(number: int) -> bytes:
    return SessionAck(SessionHeader(ack_seq=number)).to_bytes()


def user_message(
    number: int, queue: QueueName | None = None, body: bytes = b"", **more: Any
) -> bytes:
    queue = queue or QueueName.of_direct("OS:pec1\\private$\\orders")
    header = UserHeader(SOURCE, number, queue)
    return UserMessage(header, MessageProperties(body, **more)).to_bytes()


# --- RPC ------------------------------------------------------------------------------------------


def bind(
    *interfaces: SyntaxId,
    transfer: SyntaxId = NDR20,
    call_id: int = 1,
    auth: AuthTrailer | None = None,
) -> bytes:
    elements = tuple(
        pdu_bodies.ContextElement(number, interface, (transfer,))
        for number, interface in enumerate(interfaces)
    )
    return encode_pdu(
        pdu_bodies.Bind(5840, 5840, 0, elements), call_id=call_id, flags=FIRST_LAST, auth=auth
    )


def bind_ack(count: int = 1, transfer: SyntaxId = NDR20, call_id: int = 1) -> bytes:
    result = pdu_bodies.ContextResult(pdu_bodies.ContextVerdict.ACCEPTANCE, 0, transfer)
    body = pdu_bodies.BindAck(5840, 5840, 7, "2103", (result,) * count)
    return encode_pdu(body, call_id=call_id, flags=FIRST_LAST)


def request(call_id: int, opnum: int, stub: bytes, context: int = 0, **options: Any) -> bytes:
    return _call(pdu_bodies.Request(context, opnum, stub), call_id, **options)


def response(call_id: int, stub: bytes, context: int = 0, **options: Any) -> bytes:
    return _call(pdu_bodies.Response(context, stub), call_id, **options)


def _call(
    body: pdu_bodies.Request | pdu_bodies.Response,
    call_id: int,
    *,
    size: int = 0,
    auth: AuthTrailer | None = None,
) -> bytes:
    """In fragments with ``size`` bytes of the stub each, if that is given."""
    stub, pdus = body.stub, b""
    room = size or len(stub) or 1
    for at in range(0, len(stub) or 1, room):
        flags = (0 if at else PfcFlags.FIRST) | (PfcFlags.LAST if at + room >= len(stub) else 0)
        part: Any
        if isinstance(body, pdu_bodies.Request):
            part = pdu_bodies.Request(body.context_id, body.opnum, stub[at : at + room])
        else:
            part = pdu_bodies.Response(body.context_id, stub[at : at + room])
        pdus += encode_pdu(part, call_id=call_id, flags=flags, auth=auth)
    return pdus


def fault(call_id: int, status: int) -> bytes:
    return encode_pdu(pdu_bodies.Fault(0, status), call_id=call_id, flags=FIRST_LAST)
