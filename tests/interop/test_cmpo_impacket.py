"""impacket's NDR and RPC, by hand, against a partner of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from impacket.dcerpc.v5 import epm, transport
from impacket.dcerpc.v5.dtypes import DWORD, WSTR
from impacket.dcerpc.v5.ndr import NDRCALL, NDRENUM, NDRSTRUCT, NDRUniConformantArray
from impacket.dcerpc.v5.rpcrt import DCERPC_v5, DCERPCException
from impacket.uuid import uuidtup_to_bin

from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import FixedResolver
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.typed import TypedService
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.ixnremote import BoundVersionSet
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from tests.interop.rpc_threads import in_thread
from tests.runtime.oletx.endpoints import ALPHA, BETA
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.interop

IXN_REMOTE = uuidtup_to_bin(("906b0ce0-c70b-1067-b317-00dd010662da", "1.0"))
NULL_GUID = "00000000-0000-0000-0000-000000000000"
BIND_GUID = "a5acacb4-b766-4074-b45d-ade720d1d8e8"
TCP = b"\x08\0\0\0\x01\0\0\0"


# --- the interface in impacket's words ------------------------------------------------------------


class DCERPCSessionError(DCERPCException):  # type: ignore[misc]
    """The exception that impacket raises for results; it looks for this name."""

    def __init__(self, error_code: int, packet: Any) -> None:
        super().__init__(error_code=error_code, packet=packet)


class RANK(NDRENUM):  # type: ignore[misc]
    class enumItems:  # noqa: N801
        SRANK_PRIMARY = 1
        SRANK_SECONDARY = 2


class VERSIONS(NDRSTRUCT):  # type: ignore[misc]
    structure = tuple((f"n{n}", DWORD) for n in range(6))


class BOUND(NDRSTRUCT):  # type: ignore[misc]
    structure = tuple((f"n{n}", DWORD) for n in range(3))


class BYTES(NDRUniConformantArray):  # type: ignore[misc]
    item = "c"


class HANDLE(NDRSTRUCT):  # type: ignore[misc]
    structure = (("octets", "20s=b'\0' * 20"),)

    def getAlignment(self) -> int:  # noqa: N802
        return 4


class PokeW(NDRCALL):  # type: ignore[misc]
    opnum = 6
    structure = (
        ("rank", RANK),
        ("callee", WSTR),
        ("host", WSTR),
        ("caller", WSTR),
        ("size", DWORD),
        ("blob", BYTES),
    )


class PokeWResponse(NDRCALL):  # type: ignore[misc]
    structure = (("result", DWORD),)


class BuildContextW(NDRCALL):  # type: ignore[misc]
    opnum = 7
    structure = (
        ("rank", RANK),
        ("versions", VERSIONS),
        ("callee", WSTR),
        ("host", WSTR),
        ("caller", WSTR),
        ("guid_in", WSTR),
        ("guid_out", WSTR),
        ("bound", BOUND),
        ("size", DWORD),
        ("blob", BYTES),
    )


class BuildContextWResponse(NDRCALL):  # type: ignore[misc]
    structure = (("guid_out", WSTR), ("bound", BOUND), ("handle", HANDLE), ("result", DWORD))


class NegotiateResources(NDRCALL):  # type: ignore[misc]
    opnum = 2
    structure = (("handle", HANDLE), ("type", RANK), ("requested", DWORD), ("accepted", DWORD))


class NegotiateResourcesResponse(NDRCALL):  # type: ignore[misc]
    structure = (("accepted", DWORD), ("result", DWORD))


class TearDownContext(NDRCALL):  # type: ignore[misc]
    opnum = 4
    structure = (("handle", HANDLE), ("rank", RANK), ("teardown", RANK))


class TearDownContextResponse(NDRCALL):  # type: ignore[misc]
    structure = (("handle", HANDLE), ("result", DWORD))


# --- both sides -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Partners:
    """Ours, and what it calls at impacket's."""

    primary: OleTxEndpoint
    secondary: OleTxEndpoint
    callbacks: list[idl.BuildContext]


@asynccontextmanager
async def partners() -> AsyncIterator[Partners]:
    """The callee of callbacks is a few lines on our server: impacket serves no interface."""
    callbacks: list[idl.BuildContext] = []

    def call_back(_call: IncomingCall, request: idl.BuildContext) -> idl.ContextBuilt:
        callbacks.append(request)
        handle = ContextHandle(Guid(b"h" * 16))
        return idl.ContextBuilt(request.guid_in, BoundVersionSet(2, 1, 5), handle, 0)

    def tear_down(_call: IncomingCall, _request: idl.TearDownContext) -> idl.ContextTornDown:
        return idl.ContextTornDown(ContextHandle.NULL, 0)

    service = TypedService(
        idl.IXN_REMOTE, {idl.BUILD_CONTEXT_W: call_back, idl.TEAR_DOWN_CONTEXT: tear_down}
    )
    resolver = FixedResolver()
    async with (
        RpcServer([service], SystemEntropy()) as server,
        OleTxEndpoint(ALPHA, resolver=resolver, mapper_port=0) as primary,
        OleTxEndpoint(BETA, resolver=resolver) as secondary,
    ):
        port = await server.listen("127.0.0.1")
        resolver.add(ALPHA.cid, "127.0.0.1", port)
        yield Partners(primary, secondary, callbacks)


@pytest.fixture
def ours() -> Iterator[Partners]:
    with in_thread(partners()) as found:
        yield found


def bound_to(port: int) -> DCERPC_v5:
    way = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    way.set_connect_timeout(DEADLINE_S)
    dce = way.get_dce_rpc()
    dce.connect()
    dce.bind(IXN_REMOTE)
    return dce


def poke(callee: str, caller: str) -> Any:
    request = PokeW()
    request["rank"] = 2
    request["callee"] = callee + "\0"
    request["host"] = "BETA\0"
    request["caller"] = caller + "\0"
    request["size"] = len(TCP)
    request["blob"] = [bytes([octet]) for octet in TCP]
    return request


def build() -> Any:
    request = BuildContextW()
    request["rank"] = 1
    for n, version in enumerate((1, 2, 1, 1, 1, 5)):
        request["versions"][f"n{n}"] = version
    request["callee"] = f"{BETA.cid}\0"
    request["host"] = "ALPHA\0"
    request["caller"] = f"{ALPHA.cid}\0"
    request["guid_in"] = BIND_GUID + "\0"
    request["guid_out"] = NULL_GUID + "\0"
    for n in range(3):
        request["bound"][f"n{n}"] = 0
    request["size"] = len(TCP)
    request["blob"] = [bytes([octet]) for octet in TCP]
    return request


def test_poke(ours: Partners) -> None:
    dce = bound_to(ours.primary.port)
    answer = dce.request(poke(str(ALPHA.cid), str(BETA.cid)), uuid=ALPHA.cid.raw)
    assert answer["result"] == 0
    dce.disconnect()


def test_a_poke_for_somebody_else(ours: Partners) -> None:
    dce = bound_to(ours.primary.port)
    with pytest.raises(DCERPCSessionError) as failure:
        dce.request(poke(BIND_GUID, str(BETA.cid)))
    assert failure.value.error_code == 0x80070057
    dce.disconnect()


def test_a_whole_session(ours: Partners) -> None:
    dce = bound_to(ours.secondary.port)
    built = dce.request(build(), uuid=BETA.cid.raw)
    assert built["result"] == 0
    assert built["guid_out"] == BIND_GUID + "\0"
    assert [built["bound"][f"n{n}"] for n in range(3)] == [2, 1, 5]
    handle = built["handle"]["octets"]
    assert handle != bytes(20)
    (callback,) = ours.callbacks
    assert (callback.rank, callback.guid_in) == (2, BIND_GUID)
    assert (callback.host_name, callback.caller) == ("BETA", str(BETA.cid))

    asked = NegotiateResources()
    asked["handle"]["octets"] = handle
    asked["type"] = 0
    asked["requested"] = 100
    asked["accepted"] = 0
    granted = dce.request(asked)
    assert (granted["accepted"], granted["result"]) == (100, 0)

    down = TearDownContext()
    down["handle"]["octets"] = handle
    down["rank"] = 1
    down["teardown"] = 0
    assert len(down.getData()) == 24
    answer = dce.request(down)
    assert answer["result"] == 0
    assert answer["handle"]["octets"] == bytes(20)
    with pytest.raises(DCERPCException, match="nca_s_fault_context_mismatch"):
        dce.request(asked)
    dce.disconnect()


def test_the_endpoint_mapper_knows_the_identifier(ours: Partners) -> None:
    way = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{ours.primary.mapper_port}]")
    dce = way.get_dce_rpc()
    dce.connect()
    (entry,) = epm.hept_lookup(None, dce=dce)
    assert entry["object"] == ALPHA.cid.raw
    floors = entry["tower"]["Floors"]
    assert epm.PrintStringBinding(floors) == f"ncacn_ip_tcp:127.0.0.1[{ours.primary.port}]"
    dce.disconnect()
