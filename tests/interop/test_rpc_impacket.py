"""impacket, an independent client, against our server."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from impacket.dcerpc.v5 import epm, mgmt
from impacket.dcerpc.v5.rpcrt import (
    RPC_C_AUTHN_LEVEL_CONNECT,
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
    DCERPC_v5,
)
from impacket.uuid import bin_to_uuidtup, uuidtup_to_bin

from examples.shapes.host import ANNOTATION, Host, hosted
from mqis.wire.rpc import epmapper
from mqis.wire.rpc import mgmt as our_mgmt
from tests.interop import rpc_impacket as shapes
from tests.interop.rpc_impacket import (
    SHAPES,
    DCERPCException,
    call,
    connect,
    disconnect_all,
    mirror,
    uuid_of,
    who_am_i,
)
from tests.interop.rpc_threads import in_thread

pytestmark = pytest.mark.interop

BLOB = bytes(range(256)) * 400
LEVELS = [
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_LEVEL_CONNECT,
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with in_thread(hosted()) as found:
        yield found


@pytest.fixture(autouse=True)
def _no_connections_left() -> Iterator[None]:
    yield
    disconnect_all()


def listening(dce: DCERPC_v5) -> bool:
    """impacket's own helper does not know of the second number, the answer."""
    dce.call(our_mgmt.IS_SERVER_LISTENING.opnum, b"")
    status, answer = struct.unpack("<II", dce.recv())
    return bool(status == 0 and answer == 1)


# --- management and endpoint mapper ---------------------------------------------------------------


def test_management(host: Host) -> None:
    dce = connect(host.port)
    dce.bind(mgmt.MSRPC_UUID_MGMT)

    ids = mgmt.hinq_if_ids(dce)
    vector = ids["if_id_vector"]
    found = {entry["Data"].getData() for entry in vector["if_id"]}
    assert vector["count"] == 2
    assert found == {SHAPES, uuid_of(our_mgmt.SYNTAX)}
    assert listening(dce)
    statistics = list(mgmt.hinq_stats(dce)["statistics"])
    assert len(statistics) == 4
    calls_in, calls_out, packets_in, packets_out = statistics
    assert calls_out == 0  # callbacks; nobody was called back
    assert min(calls_in, packets_in, packets_out) >= 1
    with pytest.raises(DCERPCException, match="access_denied"):
        mgmt.hstop_server_listening(dce)


def test_lookup_of_the_endpoint_map(host: Host) -> None:
    entries = epm.hept_lookup(None, dce=connect(host.mapper_port))

    (entry,) = entries
    floors = entry["tower"]["Floors"]
    assert bin_to_uuidtup(SHAPES) == (str(floors[0]).split(" ")[0], "1.0")
    assert entry["annotation"].rstrip(b"\0").decode() == ANNOTATION
    binding = epm.PrintStringBinding(floors)
    assert binding == f"ncacn_ip_tcp:127.0.0.1[{host.port}]"


@pytest.mark.parametrize("level", LEVELS)
def test_map_of_an_interface(host: Host, level: int) -> None:
    found = epm.hept_map(
        "127.0.0.1", SHAPES, protocol="ncacn_ip_tcp", dce=connect(host.mapper_port, level)
    )

    assert found == f"ncacn_ip_tcp:127.0.0.1[{host.port}]"


def test_map_of_an_interface_that_is_not_there(host: Host) -> None:
    stranger = uuidtup_to_bin(("00000000-0000-0000-0000-000000000001", "1.0"))

    with pytest.raises(DCERPCException, match="ept_s_not_registered"):
        epm.hept_map("127.0.0.1", stranger, protocol="ncacn_ip_tcp", dce=connect(host.mapper_port))


# --- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("syntax", [shapes.NDR20, shapes.NDR64], ids=["ndr20", "ndr64"])
@pytest.mark.parametrize("level", LEVELS)
def test_calls_at_every_level(host: Host, level: int, syntax: tuple[str, str]) -> None:
    dce = connect(host.port, level)
    dce.bind(SHAPES, transfer_syntax=syntax)
    assert dce.transfer_syntax == uuidtup_to_bin(syntax)

    name = "" if level == RPC_C_AUTHN_LEVEL_NONE else "EXAMPLE\\alice"
    assert who_am_i(dce) == (name, level)

    squares = shapes.Squares()
    squares["first"], squares["count"] = 100_000, 3
    answer = call(dce, squares)
    assert [n["Data"] for n in answer["squares"]] == [10**10, 10_000_200_001, 10_000_400_004]

    line = shapes.Polyline()
    line["line"]["width"], line["line"]["count"] = 7, 2
    for x, y in ((1, -1), (2, -2)):
        point = shapes.POINT()
        point["x"], point["y"] = x, y
        line["line"]["points"].append(point)
    back = call(dce, line)["line"]
    assert (back["closed"], back["width"], back["count"]) == (1, 7, 2)
    assert [(p["x"], p["y"]) for p in back["points"]] == [(2, -2), (1, -1)]


@pytest.mark.parametrize("syntax", [shapes.NDR20, shapes.NDR64], ids=["ndr20", "ndr64"])
def test_pointers(host: Host, syntax: tuple[str, str]) -> None:
    dce = connect(host.port)
    dce.bind(SHAPES, transfer_syntax=syntax)
    request = shapes.Pointers()
    request["ref"] = 1
    request["unique"], request["full"], request["shared"] = shapes.NULL, 20, 300
    answer = call(dce, request)

    assert answer["unique"] == b""  # null
    assert (answer["total"], answer["nulls"], answer["same"]) == (321, 1, 0)


def test_context_handles(host: Host) -> None:
    dce = connect(host.port, RPC_C_AUTHN_LEVEL_PKT_PRIVACY)
    dce.bind(SHAPES)
    opening = shapes.OpenPile()
    opening["height"] = 5
    handle = call(dce, opening)["handle"]
    assert handle["octets"] != bytes(20)
    taking = shapes.Take()
    taking["handle"], taking["count"] = handle, 3
    assert [n["Data"] for n in call(dce, taking)["numbers"]] == [4, 3, 2]
    assert [n["Data"] for n in call(dce, taking)["numbers"]] == [1, 0]
    closing = shapes.ClosePile()
    closing["handle"] = handle
    assert call(dce, closing)["handle"]["octets"] == bytes(20)
    with pytest.raises(DCERPCException, match="nca_s_fault_context_mismatch"):
        call(dce, taking)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("fragment", [0, 1000], ids=["usual", "small"])
def test_fragments_both_ways(host: Host, level: int, fragment: int) -> None:
    dce = connect(host.port, level)
    dce.set_max_fragment_size(fragment or -1)
    dce.bind(SHAPES)

    before = host.server.endpoint.statistics.packets_in
    assert mirror(dce, BLOB) == BLOB[::-1]
    packets = host.server.endpoint.statistics.packets_in - before
    assert packets >= len(BLOB) // (fragment or 5840)


@pytest.mark.parametrize("level", LEVELS[:1] + LEVELS[2:])
def test_another_interface_on_the_same_connection(host: Host, level: int) -> None:
    dce = connect(host.port, level)
    dce.bind(SHAPES)
    other = dce.alter_ctx(mgmt.MSRPC_UUID_MGMT)

    assert listening(other)
    assert mirror(dce, b"abc") == b"cba"


def test_an_interface_that_is_not_offered(host: Host) -> None:
    dce = connect(host.port)

    with pytest.raises(DCERPCException, match="abstract_syntax_not_supported"):
        dce.bind(uuid_of(epmapper.SYNTAX))


@pytest.mark.parametrize(
    ("status", "name"),
    [(0x5, "rpc_s_access_denied"), (0x1C010014, "nca_s_server_too_busy")],
)
@pytest.mark.parametrize("level", [RPC_C_AUTHN_LEVEL_NONE, RPC_C_AUTHN_LEVEL_PKT_PRIVACY])
def test_faults(host: Host, level: int, status: int, name: str) -> None:
    dce = connect(host.port, level)
    dce.bind(SHAPES)
    request = shapes.Fail()
    request["status"] = status

    with pytest.raises(DCERPCException, match=name):
        call(dce, request)
    assert mirror(dce, b"still there") == b"ereht llits"


def test_a_stub_that_is_too_short(host: Host) -> None:
    dce = connect(host.port)
    dce.bind(SHAPES)
    dce.call(shapes.Squares.opnum, b"\1\2")

    with pytest.raises(DCERPCException, match="rpc_x_bad_stub_data"):
        dce.recv()


def test_an_operation_that_is_not_there(host: Host) -> None:
    dce = connect(host.port)
    dce.bind(SHAPES)
    dce.call(99, b"")

    with pytest.raises(DCERPCException, match="nca_s_op_rng_error"):
        dce.recv()


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_wrong_password_is_refused(host: Host, level: int) -> None:
    """NTLM's last leg has no answer, so the first call is."""
    dce = connect(host.port, level, password="looking-glass")
    dce.bind(SHAPES)
    before = host.server.endpoint.statistics.calls_in

    with pytest.raises(DCERPCException, match="access_denied"):
        who_am_i(dce)
    assert host.server.endpoint.statistics.calls_in == before


def test_a_message_that_was_changed_is_refused(host: Host) -> None:
    dce = connect(host.port, RPC_C_AUTHN_LEVEL_PKT_INTEGRITY)
    dce.bind(SHAPES)
    way = dce.get_rpc_transport()
    send = way.send

    def tamper(data: bytes, forceWriteAndx: int = 0, forceRecv: int = 0) -> None:  # noqa: N803
        at = 24 + 4  # the count of a call to squares
        send(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], forceWriteAndx, forceRecv)

    request = shapes.Squares()
    request["first"], request["count"] = 1, 2
    assert len(call(dce, request)["squares"]) == 2
    way.send = tamper
    with pytest.raises(DCERPCException, match="00000721"):
        call(dce, request)
