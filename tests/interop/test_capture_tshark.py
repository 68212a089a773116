"""tshark reads the captures that we write, and finds in them what we do."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from examples.capture.scene import DIRECTORY, OLETX
from mqis.protocol.capture.decoder import decode_rows
from mqis.protocol.capture.row import DecodedRow
from mqis.protocol.capture.rpc_calls import INTERFACES
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import FixedResolver
from mqis.testing.pcap import decode_capture
from mqis.testing.ports import free_ports
from mqis.wire.rpc.pdu_header import PacketType
from tests.protocol.capture.recordings import enterprise
from tests.runtime.oletx.endpoints import ALPHA, BETA, TYPE, echo
from tests.waiting import in_time, until

pytestmark = pytest.mark.interop

FIELDS = (
    *("frame.number", "frame.time_epoch", "frame.len", "tcp.stream", "tcp.srcport", "tcp.len"),
    *("dcerpc.pkt_type", "dcerpc.opnum", "dcerpc.cn_call_id", "_ws.expert.severity"),
)
#: Wrong checksums are errors, 0x800000.
ERROR = 0x800000

Frame = dict[str, list[str]]


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> list[Frame]:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("there is no tshark (Debian: tshark)")
    path = tmp_path_factory.mktemp("capture") / "enterprise.pcap"
    path.write_bytes(enterprise())
    ports = [word for port in (DIRECTORY, OLETX) for word in ("-d", f"tcp.port=={port},dcerpc")]
    columns = [word for name in FIELDS for word in ("-e", name)]
    done = subprocess.run(
        [
            *(program, "-r", str(path), *ports, "-o", "tcp.check_checksum:TRUE"),
            *("-T", "fields", *columns, "-E", "aggregator=;"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [
        {
            name: cell.split(";") if cell else []
            for name, cell in zip(FIELDS, line.split("\t"), strict=True)
        }
        for line in done.stdout.splitlines()
    ]


@pytest.fixture(scope="module")
def rows() -> list[DecodedRow]:
    return list(decode_rows(enterprise()))


def test_packets_with_their_times_and_lengths(frames: list[Frame]) -> None:
    ours = [
        (p.number, f"{p.time_ns // 10**9}.{p.time_ns % 10**9:09}", p.original)
        for p in decode_capture(enterprise())
        if p.time_ns is not None
    ]
    theirs = [
        (int(f["frame.number"][0]), f["frame.time_epoch"][0], int(f["frame.len"][0]))
        for f in frames
    ]
    assert ours == theirs


def test_checksums_and_numbers_make_sense(frames: list[Frame]) -> None:
    assert [f for f in frames if any(int(n) >= ERROR for n in f["_ws.expert.severity"])] == []


def test_streams(frames: list[Frame], rows: list[DecodedRow]) -> None:
    """The same packets begin those in which anything was said."""
    first: dict[str, int] = {}
    said: set[str] = set()
    for frame in frames:
        for stream in frame["tcp.stream"]:
            first.setdefault(stream, int(frame["frame.number"][0]))
            if frame["tcp.len"] != ["0"]:
                said.add(stream)
    assert {row.stream for row in rows if row.transport == "tcp"} == {first[s] for s in said}


def test_calls(frames: list[Frame], rows: list[DecodedRow]) -> None:
    """Every request and response by its port, number and call."""
    opnums = {
        (each.name, operation.name): operation.opnum
        for each in INTERFACES
        for operation in each.description.operations
    }
    ours: Counter[tuple[int, int, int, int]] = Counter()
    for row in rows:
        name, _, which = row.kind.rpartition(" ")
        if which in ("request", "response") and (row.protocol, name) in opnums:
            kind = PacketType.REQUEST if which == "request" else PacketType.RESPONSE
            opnum = opnums[row.protocol, name]
            ours[row.source_port, kind, opnum, row.call_id or 0] += 1
    theirs: Counter[tuple[int, int, int, int]] = Counter()
    for frame in frames:
        if frame["dcerpc.opnum"]:
            names = ("tcp.srcport", "dcerpc.pkt_type", "dcerpc.opnum", "dcerpc.cn_call_id")
            port, ptype, number, call = (int(text) for name in names for text in frame[name])
            theirs[port, ptype, number, call] += 1
    assert ours == theirs
    assert len(ours) > 30


# --- a capture of somebody else -------------------------------------------------------------------


def test_what_dumpcap_writes_of_a_session_on_loopback(tmp_path: Path) -> None:
    """pcapng of another program, and the segments that a kernel makes."""
    program = shutil.which("dumpcap")
    if program is None:
        pytest.skip("there is no dumpcap (Debian: wireshark-common)")
    path, ports = tmp_path / "live.pcapng", free_ports(2)
    chosen = " or ".join(f"tcp port {port}" for port in ports)
    with subprocess.Popen(
        [program, "-q", "-i", "lo", "-f", chosen, "-w", str(path)],
        stderr=subprocess.PIPE,
        text=True,
    ) as capturing:
        assert capturing.stderr is not None
        said = ""
        while "File:" not in said:  # which it says once it captures
            line = capturing.stderr.readline()
            if not line:
                pytest.skip(f"no capture without privilege: {said}")
            said += line
        asyncio.run(in_time(_session(ports)))
        time.sleep(0.5)  # packets on their way through the kernel
        capturing.send_signal(signal.SIGINT)
        said += capturing.stderr.read()
    found = list(decode_rows(path.read_bytes()))
    assert [row.error for row in found if row.error] == []
    sent = [json.loads(row.detail) for row in found if row.kind == "USER_MESSAGE"]
    assert {each["user_msg_type"] for each in sent} == {1, 2}
    ends = Counter(row.kind for row in found if row.kind.startswith("TearDownContext"))
    assert ends == {"TearDownContext request": 2, "TearDownContext response": 2}
    packets = decode_capture(path.read_bytes())
    assert f"Packets captured: {len(packets)}\n" in said


async def _session(ports: list[int]) -> None:
    resolver = FixedResolver()
    async with (
        OleTxEndpoint(ALPHA, resolver=resolver, port=ports[0]) as a,
        OleTxEndpoint(BETA, resolver=resolver, port=ports[1]) as b,
    ):
        resolver.add(ALPHA.cid, "127.0.0.1", a.port)
        resolver.add(BETA.cid, "127.0.0.1", b.port)
        a.accept(TYPE, echo)
        async with await b.connect(a.name, TYPE) as connection:
            await connection.send(1, bytes(60_000))
            await connection.receive()
        await a.close()
        await until(lambda: not b.transport.machine.sessions)
