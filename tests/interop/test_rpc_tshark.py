"""tshark reads recorded conversations: every PDU of ours has to make sense to it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import groupby
from pathlib import Path

import pytest

from examples.shapes import interface as idl
from examples.shapes.client import ShapesClient, credentials
from examples.shapes.host import ANNOTATION, PASSWORD, Host, hosted
from examples.shapes.samples import SAMPLES
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.faults import RpcConnectionError, RpcFault
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.pdu_header import PacketType
from mqis.wire.rpc.tower import Tower
from tests.interop.rpc_pcap import Recorder, recorded, write_pcap

pytestmark = pytest.mark.interop

SERVER_PORT = 49170
#: Severity of expert information; wrong checksums are among the errors, 0x800000.
WARNING = 0x600000
FIELDS = (
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "tcp.dstport",
    "dcerpc.pkt_type",
    "dcerpc.cn_call_id",
    "dcerpc.opnum",
    "dcerpc.cn_status",
    "dcerpc.cn_bind_to_uuid",
    "dcerpc.cn_ack_result",
    "dcerpc.cn_ack_reason",
    "dcerpc.cn_ack_trans_id",
    "dcerpc.cn_reject_reason",
    "dcerpc.auth_type",
    "dcerpc.auth_level",
    "dcerpc.stub_data",
    "dcerpc.encrypted_stub_data",
    "epm.opnum",
    "epm.proto.tcp_port",
    "epm.proto.ip",
    "epm.uuid",
    "epm.annotation",
)
SYNTAXES = [pytest.param(NDR20, id="ndr20"), pytest.param(NDR64, id="ndr64")]
PROTECTION = [
    (AuthType.NONE, AuthLevel.NONE),
    *(
        (kind, level)
        for kind in (AuthType.NTLM, AuthType.SPNEGO)
        for level in (AuthLevel.CONNECT, AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY)
    ),
]
MARKER = b"found by tshark"

BIND, BIND_ACK = PacketType.BIND, PacketType.BIND_ACK
ALTER, ALTER_RESP = PacketType.ALTER_CONTEXT, PacketType.ALTER_CONTEXT_RESP
REQUEST, RESPONSE, FAULT = PacketType.REQUEST, PacketType.RESPONSE, PacketType.FAULT


Frame = dict[str, list[str]]


class Capture:
    """A capture file as tshark sees it; one run of it asks for everything."""

    def __init__(self, path: Path, recorder: Recorder) -> None:
        self.program = shutil.which("tshark")
        if self.program is None:
            pytest.skip("there is no tshark (Debian: tshark)")
        self.path = path
        write_pcap(path, recorder.conversations, SERVER_PORT)
        columns = [word for name in FIELDS for word in ("-e", name)]
        rows = self.run("-T", "fields", *columns, "-E", "aggregator=;").splitlines()
        values = [[cell.split(";") if cell else [] for cell in row.split("\t")] for row in rows]
        self.frames: list[Frame] = [dict(zip(FIELDS, row, strict=True)) for row in values]

    def run(self, *options: str) -> str:
        settings = ("tcp.check_checksum:TRUE", f"ntlmssp.nt_password:{PASSWORD}")
        done = subprocess.run(
            [
                str(self.program),
                *("-r", str(self.path), "-d", f"tcp.port=={SERVER_PORT},dcerpc"),
                *(word for setting in settings for word in ("-o", setting)),
                *options,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def complaints(self) -> list[tuple[list[str], list[str]]]:
        """The kinds of PDUs that tshark complains about, with its complaints."""
        return [
            (frame["dcerpc.pkt_type"], frame["_ws.expert.message"])
            for frame in self.frames
            if frame["_ws.malformed"]
            or any(int(severity) >= WARNING for severity in frame["_ws.expert.severity"])
        ]

    def field(self, name: str, packet_type: int | None = None) -> list[str]:
        """Every value of a field, in frames that have a PDU of some type."""
        wanted = None if packet_type is None else str(packet_type)
        return [
            value
            for frame in self.frames
            if wanted is None or wanted in frame["dcerpc.pkt_type"]
            for value in frame[name]
        ]

    def numbers(self, name: str, packet_type: int | None = None) -> list[int]:
        return [int(value, 0) for value in self.field(name, packet_type)]

    def types(self) -> list[tuple[bool, int]]:
        """The sender and packet type of each PDU, fragments merged: (client, packet type)."""
        found = [
            (frame["tcp.dstport"] == [str(SERVER_PORT)], int(type_), call)
            for frame in self.frames
            for type_, call in zip(
                frame["dcerpc.pkt_type"], frame["dcerpc.cn_call_id"], strict=True
            )
        ]
        return [(client, type_) for (client, type_, _call), _ in groupby(found)]


def capture(path: Path, scene: Callable[[Host, int], Awaitable[None]], mapper: bool) -> Capture:
    """The traffic of ``scene``, recorded through a proxy whose port it gets."""

    async def run() -> Recorder:
        async with hosted() as host:
            port = host.mapper_port if mapper else host.port
            async with recorded(host.address, port) as recorder:
                await scene(host, recorder.port)
            return recorder

    return Capture(path / "rpc.pcap", asyncio.run(run()))


def authentication_legs(kind: int) -> list[tuple[bool, int]]:
    if kind == AuthType.NTLM:
        return [(True, PacketType.AUTH3)]
    return [(True, ALTER), (False, ALTER_RESP)] if kind == AuthType.SPNEGO else []


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize(("kind", "level"), PROTECTION)
def test_every_kind_of_pdu(tmp_path: Path, syntax: SyntaxId, kind: int, level: int) -> None:
    async def scene(_host: Host, port: int) -> None:
        wanted = None if kind == AuthType.NONE else credentials(kind, level)
        async with ShapesClient() as client:
            await client.connect("127.0.0.1", port, transfers=[syntax], credentials=wanted)
            await client.call(idl.MIRROR, idl.Octets(MARKER * 1000))
            await client.consult(4)
            with pytest.raises(RpcFault):
                await client.call(idl.FAIL, idl.Number(0x1C01_0014))
            await client.rpc.add_interface(mgmt.SYNTAX, [syntax])
            # Not one without parameters: tshark 4.0 cannot decrypt nothing.
            await invoke(client.rpc, mgmt.MGMT, mgmt.INQ_STATS, mgmt.StatisticsAsked(4))

    seen = capture(tmp_path, scene, mapper=False)

    assert seen.complaints() == []
    call, answer = (True, REQUEST), (False, RESPONSE)
    assert seen.types() == [
        (True, BIND),
        (False, BIND_ACK),
        *authentication_legs(kind),
        *(call, answer),
        *(call, (False, REQUEST), (True, RESPONSE), answer),
        *(call, (False, FAULT)),
        *((True, ALTER), (False, ALTER_RESP)),
        *(call, answer),
    ]
    requests = Counter(seen.numbers("dcerpc.opnum", REQUEST))
    fragments = requests.pop(idl.MIRROR.opnum)
    assert fragments == -(-len(MARKER) * 1000 // 5840)
    consult, double_it, fail = idl.CONSULT.opnum, idl.DOUBLE_IT.opnum, idl.FAIL.opnum
    assert requests == Counter([consult, double_it, fail, mgmt.INQ_STATS.opnum])
    assert seen.numbers("dcerpc.cn_status") == [0x1C01_0014]
    uuids = {Guid.parse(uuid) for uuid in seen.field("dcerpc.cn_bind_to_uuid")}
    assert uuids == {idl.SYNTAX.uuid, mgmt.SYNTAX.uuid}
    assert set(seen.numbers("dcerpc.cn_ack_result")) == {0}
    assert {Guid.parse(uuid) for uuid in seen.field("dcerpc.cn_ack_trans_id")} == {syntax.uuid}
    assert set(seen.numbers("dcerpc.auth_type")) == ({kind} if kind else set())
    assert set(seen.numbers("dcerpc.auth_level")) == ({level} if kind else set())
    assert _readable(seen, level)


def _readable(seen: Capture, level: int) -> bool:
    """The stub in plain: from privacy tshark gets there with the password alone, after checking
    the proof and deriving the same keys."""
    stubs = "".join(seen.field("dcerpc.stub_data"))
    in_plain = MARKER.hex() in stubs
    if level < AuthLevel.PRIVACY:
        return in_plain
    encrypted = seen.field("dcerpc.encrypted_stub_data")
    return bool(encrypted) and MARKER.hex() not in "".join(encrypted)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_every_shape(tmp_path: Path, syntax: SyntaxId) -> None:
    async def scene(_host: Host, port: int) -> None:
        async with ShapesClient() as client:
            await client.connect("127.0.0.1", port, transfers=[syntax])
            for sample in SAMPLES:
                await client.call(sample.operation, sample.request, sample.given)

    seen = capture(tmp_path, scene, mapper=False)

    assert seen.complaints() == []
    assert set(seen.numbers("dcerpc.opnum")) == {sample.operation.opnum for sample in SAMPLES}


@pytest.mark.parametrize("kind", [AuthType.NTLM, AuthType.SPNEGO])
def test_tshark_knows_the_password_and_agrees(tmp_path: Path, kind: int) -> None:
    """It computes the NT proof itself, and tells so in its expert information."""

    async def scene(_host: Host, port: int) -> None:
        async with ShapesClient() as client:
            wanted = credentials(kind, AuthLevel.PRIVACY)
            await client.connect("127.0.0.1", port, credentials=wanted)
            await client.consult(1)

    seen = capture(tmp_path, scene, mapper=False)

    assert "NTLMv2 authenticated using <Global NT Password>" in seen.run("-q", "-z", "expert")


def test_a_refused_bind(tmp_path: Path) -> None:
    async def scene(_host: Host, port: int) -> None:
        stranger = SyntaxId(Guid.parse("00000000-0000-0000-0000-000000000001"), 1)
        with pytest.raises(RpcConnectionError, match="does not offer"):
            await RpcClient.connect("127.0.0.1", port, [stranger])
        with pytest.raises(RpcConnectionError, match="refused"):
            await RpcClient.connect("127.0.0.1", port, [idl.SYNTAX], group_id=77)

    seen = capture(tmp_path, scene, mapper=False)

    assert seen.complaints() == [([str(PacketType.BIND_NAK.value)], ["Bind not acknowledged"])]
    assert seen.numbers("dcerpc.cn_ack_result") == [2, 2]
    assert seen.numbers("dcerpc.cn_ack_reason") == [1, 1]
    assert seen.numbers("dcerpc.cn_reject_reason") == [0]


def test_the_endpoint_mapper_with_its_towers(tmp_path: Path) -> None:
    ports: list[int] = []

    async def scene(host: Host, port: int) -> None:
        ports.append(host.port)
        async with await RpcClient.connect(
            "127.0.0.1", port, [epmapper.SYNTAX], transfers=[NDR20]
        ) as client:
            tower = epmapper.TowerOctets(Tower.tcp(idl.SYNTAX, 0, "0.0.0.0").to_bytes())
            mapping = epmapper.MapAsked(None, tower, ContextHandle.NULL, 4)
            looking = epmapper.LookupAsked(0, None, None, 1, ContextHandle.NULL, 500)
            await invoke(
                client, epmapper.EPMAPPER, epmapper.EPT_MAP, mapping, given={"max_towers": 4}
            )
            await invoke(
                client, epmapper.EPMAPPER, epmapper.EPT_LOOKUP, looking, given={"max_entries": 500}
            )

    seen = capture(tmp_path, scene, mapper=True)

    # tshark 4.0 does not follow the pointers in a map response, ours or Samba's.
    assert seen.complaints() == [([str(RESPONSE.value)], ["Long frame"])]
    assert seen.numbers("epm.opnum") == [3, 3, 2, 2]
    for frames, port, address in ((REQUEST, 0, "0.0.0.0"), (RESPONSE, ports[0], "127.0.0.1")):
        assert seen.numbers("epm.proto.tcp_port", frames) == [port]
        assert seen.field("epm.proto.ip", frames) == [address]
        uuids = [Guid.parse(uuid) for uuid in seen.field("epm.uuid", frames)]
        assert uuids == [idl.SYNTAX.uuid, NDR20.uuid]
    assert seen.field("epm.annotation") == [ANNOTATION]
