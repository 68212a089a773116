"""Measures decoding of captures to rows, compared with tshark on the same file.

The file has RPC calls of the directory, replication between queue managers, boxcars, and other
traffic, about as much of each. tshark 4.0 dissects RPC down to its stubs, whose interfaces it does
not know, and has no dissector for MS-MQQB. mqis decodes those too, and the time for that counts.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

from bench.measure import Sample, contest, once
from bench.results import Results, Row
from bench.run import Bench, Run
from mqis.protocol.capture.decoder import CaptureDecoder, parse_network
from mqis.testing.cmp import user_message
from mqis.testing.pcap import Ends, Part, conversation_frames, write_pcap
from mqis.wire.cmp.builder import BoxcarBuilder
from mqis.wire.cmpo import ixnremote
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, encode_message
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.mqqb.userheader import UserHeader
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc import pdu_bodies
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.pdu_header import FIRST_LAST
from mqis.wire.seqnum import SequenceNumber

_DIRECTORY, _QUEUES, _OLETX, _WEB = 2103, 1801, 49_664, 8080
_ID = Guid(b"something stored")
_HANDLE = ContextHandle(_ID)
TSHARK = "tshark -T fields"
#: The fields that tshark prints, a typical choice.
_FIELDS = ("frame.number", "frame.time_epoch", "ip.src", "ip.dst", "tcp.stream")
_RPC_FIELDS = ("dcerpc.pkt_type", "dcerpc.opnum", "dcerpc.cn_call_id")


def _run(run: Run) -> Results:
    results = Results()
    run.say("capture: generating")
    data = _capture(run.scaled(96, 4), run.scaled(150, 12))
    path = run.directory / "capture.pcap"
    path.write_bytes(data)
    packets = sum(1 for _ in walk_capture(data))
    contenders: dict[str, Callable[[], Sample]] = {
        "every message": lambda: once(lambda: _decoded(data)),
        "without details": lambda: once(lambda: _decoded(data, detail=False)),
        "headers alone": lambda: once(lambda: _decoded(data, nobody=True)),
    }
    program = shutil.which("tshark")
    if program is None:
        results.notes.append("tshark: skipped: it is not installed (Debian: tshark)")
    else:
        contenders[TSHARK] = lambda: once(lambda: _tshark(program, path, packets))
    run.say("capture: decoding")
    samples = contest(run.rounds, contenders)
    size = len(data) / packets
    table = f"{packets:,} packets of {size:,.0f} bytes"
    for name, rounds in samples.items():
        peer = (TSHARK, samples[TSHARK]) if TSHARK in samples and name != TSHARK else None
        results.rows.append(Row.of(table, name, rounds, peer=peer, size=size))
    results.notes.append(
        f"{_rows(data):,} rows; 'headers' is the work that each task of Spark does for all packets"
    )
    return results


BENCH = Bench("capture", "captured packets to rows, beside tshark", _run)


def _decoded(data: bytes, *, detail: bool = True, nobody: bool = False) -> int:
    networks = [parse_network("192.0.2.1")] if nobody else []
    decoder = CaptureDecoder(detail=detail, networks=networks)
    packets = 0
    for each in walk_capture(data):
        decoder.receive(each)
        packets += 1
        decoder.take()
    decoder.finish()
    return packets


def _rows(data: bytes) -> int:
    decoder = CaptureDecoder(detail=False)
    for each in walk_capture(data):
        decoder.receive(each)
    decoder.finish()
    found = decoder.take()
    assert not [row for row in found if row.error], "the generated capture has errors"
    return len(found)


def _tshark(program: str, path: Path, packets: int) -> int:
    ports = [word for port in (_DIRECTORY, _OLETX) for word in ("-d", f"tcp.port=={port},dcerpc")]
    columns = [word for name in (*_FIELDS, *_RPC_FIELDS) for word in ("-e", name)]
    done = subprocess.run(
        [program, "-r", str(path), *ports, "-T", "fields", *columns],
        capture_output=True,
        check=True,
    )
    assert done.stdout.count(b"\n") == packets
    return packets


# --- the capture ----------------------------------------------------------------------------------


def _capture(conversations: int, exchanges: int) -> bytes:
    """A capture of conversations of four kinds, with their packets interleaved."""
    kinds = (_calls, _replication, _boxcars, _web)
    frames = []
    for number in range(conversations):
        make, port = (*kinds,)[number % 4], (_DIRECTORY, _QUEUES, _OLETX, _WEB)[number % 4]
        ends = Ends(f"10.0.{number // 200}.{number % 200 + 1}", 40_000 + number, "10.1.0.1", port)
        parts: list[Part] = [(0, side, data) for side, data in make(exchanges)]
        frames.append([frame for _, frame in conversation_frames(ends, parts)])
    mixed = (frame for row in zip_longest(*frames) for frame in row if frame is not None)
    return write_pcap((10**18 + 1000 * number, frame) for number, frame in enumerate(mixed))


def _pdu(
    body: pdu_bodies.Bind | pdu_bodies.BindAck | pdu_bodies.Request | pdu_bodies.Response, call: int
) -> bytes:
    return encode_pdu(body, call_id=call, flags=FIRST_LAST)


def _bound(interface: SyntaxId) -> Iterator[tuple[bool, bytes]]:
    element = pdu_bodies.ContextElement(0, interface, (NDR20,))
    result = pdu_bodies.ContextResult(pdu_bodies.ContextVerdict.ACCEPTANCE, 0, NDR20)
    yield True, _pdu(pdu_bodies.Bind(5840, 5840, 0, (element,)), 1)
    yield False, _pdu(pdu_bodies.BindAck(5840, 5840, 7, "2103", (result,)), 1)


def _calls(exchanges: int) -> Iterator[tuple[bool, bytes]]:
    yield from _bound(dscomm.SYNTAX)
    get, empty = dscomm.GET_PROPS, VarType.NULL
    ids = (int(PropId.Q_LABEL), int(PropId.Q_QUOTA))
    request = dscomm.GetProps(1, "pec1\\orders", ids, (empty, empty), _HANDLE, 0)
    values = (PropVariant(VarType.LPWSTR, "Orders"), PropVariant(VarType.UI4, 7))
    stub = get.request.encode(request, Syntax.NDR20)
    got = dscomm.PropsGot(values, b"", 0)
    back = get.response.encode(got, Syntax.NDR20, given={"cp": 2})
    for call in range(2, exchanges + 2):
        yield True, _pdu(pdu_bodies.Request(0, get.opnum, stub), call)
        yield False, _pdu(pdu_bodies.Response(0, back), call)


def _replication(exchanges: int) -> Iterator[tuple[bool, bytes]]:
    label = (int(PropId.Q_LABEL), PropVariant(VarType.LPWSTR, "Orders of today"))
    queue = QueueName.of_direct("OS:psc1\\private$\\mqis_queue$")
    for number in range(1, exchanges + 1):
        seq = SequenceNumber(number)
        change = DirectoryChange(
            Command.UPDATE, None, _ID, _ID, seq - 1, seq, SequenceNumber.MIN, (label,) * 3
        )
        body = encode_message(ChangePropagation(_ID, (change,)))
        message = UserMessage(UserHeader(_ID, number, queue), MessageProperties(body))
        yield True, message.to_bytes()


def _boxcars(exchanges: int) -> Iterator[tuple[bool, bytes]]:
    yield from _bound(ixnremote.SYNTAX)
    send = ixnremote.SEND_RECEIVE
    packets = [user_message(n, 0x2001, bytes(60), is_master=True) for n in range(4)]
    boxcar = BoxcarBuilder(packets).to_bytes()
    stub = send.request.encode(ixnremote.SendReceive(_HANDLE, 4, boxcar), Syntax.NDR20)
    done = send.response.encode(ixnremote.RemoteResult(0), Syntax.NDR20)
    for call in range(2, exchanges + 2):
        yield True, _pdu(pdu_bodies.Request(0, send.opnum, stub), call)
        yield False, _pdu(pdu_bodies.Response(0, done), call)


def _web(exchanges: int) -> Iterator[tuple[bool, bytes]]:
    for _ in range(exchanges):
        yield True, b"GET / HTTP/1.1\r\nHost: pec1\r\n\r\n"
        yield False, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000
