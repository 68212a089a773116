"""IXnRemote call by call: what a partner that is not ours would see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mqis.protocol.budget import Budget, Quota
from mqis.protocol.cmpo.partner_session import SessionState
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.protocol.rpc.groups import AssociationGroup
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import FixedResolver
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.typed import TypedService, invoke
from mqis.wire.cmp.builder import BoxcarBuilder
from mqis.wire.cmp.packet import Packet
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, SessionRank, TeardownType
from mqis.wire.cmpo.ixnremote import BindVersionSet, BoundVersionSet
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc.interfaces import NDR20, NDR64, Operation
from tests.runtime.oletx.endpoints import ALPHA, BETA, PATIENT, QUICK, TYPE
from tests.waiting import DEADLINE_S, run, until

BLOB = bytes.fromhex("08000000 01000000")
VERSIONS = BindVersionSet(1, 2, 1, 1, 1, 5)
BOUND = BoundVersionSet(2, 1, 5)
GUID = "11111111-2222-3333-4444-555555555555"
PING = BoxcarBuilder([Packet.ping()]).to_bytes()


class Stranger:
    """A primary made by hand: calls, and answers the callback as it is told."""

    def __init__(self, endpoint: OleTxEndpoint, resolver: FixedResolver) -> None:
        self.endpoint = endpoint
        self._resolver = resolver
        self.calls: list[tuple[IncomingCall, Any]] = []
        self.handle = ContextHandle(Guid(b"h" * 16))
        self.inner = 0
        #: While it is not set, calls wait.
        self.released = asyncio.Event()
        self.released.set()
        self.group: AssociationGroup | None = None

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Stranger]:
        handlers = dict.fromkeys(idl.IXN_REMOTE.operations, self._serve)
        service = TypedService(idl.IXN_REMOTE, handlers)
        async with RpcServer([service], SystemEntropy()) as server:
            port = await server.listen("127.0.0.1")
            self._resolver.add(ALPHA.cid, "127.0.0.1", port)
            client = await RpcClient.connect(
                "127.0.0.1", self.endpoint.port, [idl.SYNTAX], transfers=[NDR20]
            )
            async with client:
                self.client = client
                yield self

    async def _serve(self, call: IncomingCall, request: Any) -> Any:
        self.calls.append((call, request))
        await self.released.wait()
        if isinstance(request, idl.BuildContext):
            guid = request.guid_in if self.inner == 0 else idl.NO_GUID
            return idl.ContextBuilt(guid, BOUND, self.handle, self.inner)
        if isinstance(request, idl.NegotiateResources):
            return idl.ResourcesNegotiated(request.requested, 0)
        if isinstance(request, idl.TearDownContext):
            return idl.ContextTornDown(ContextHandle.NULL, 0)
        return idl.RemoteResult(0)

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        return await invoke(
            self.client, idl.IXN_REMOTE, operation, request, target=BETA.cid, timeout_s=DEADLINE_S
        )

    async def build(self, operation: Any = idl.BUILD_CONTEXT_W) -> idl.ContextBuilt:
        request = idl.BuildContext(
            SessionRank.PRIMARY,
            VERSIONS,
            str(BETA.cid),
            ALPHA.host_name,
            str(ALPHA.cid),
            GUID,
            idl.NO_GUID,
            BoundVersionSet.NONE,
            BLOB,
        )
        answer: idl.ContextBuilt = await self.call(operation, request)
        return answer

    def methods(self) -> list[int]:
        return [call.opnum for call, _ in self.calls]


@asynccontextmanager
async def stranger(settings: CmpoSettings = PATIENT) -> AsyncIterator[Stranger]:
    resolver = FixedResolver()
    async with (
        OleTxEndpoint(BETA, resolver=resolver, settings=settings) as endpoint,
        Stranger(endpoint, resolver).serving() as partner,
    ):
        yield partner


@pytest.mark.parametrize("operation", [idl.BUILD_CONTEXT_W, idl.BUILD_CONTEXT], ids=["W", "A"])
def test_a_session_by_hand(operation: Any) -> None:
    async def scene() -> None:
        async with stranger() as partner:
            built = await partner.build(operation)
            assert (built.result, built.guid_out, built.bound) == (0, GUID, BOUND)
            assert built.handle
            ((call, request),) = partner.calls
            assert call.opnum == idl.BUILD_CONTEXT_W.opnum  # W is tried first
            assert call.target == ALPHA.cid  # the object UUID
            assert (request.rank, request.guid_in) == (SessionRank.SECONDARY, GUID)

            asked = idl.NegotiateResources(built.handle, 0, 10)
            granted = await partner.call(idl.NEGOTIATE_RESOURCES, asked)
            assert (granted.accepted, granted.result) == (10, 0)
            sent = await partner.call(idl.SEND_RECEIVE, idl.SendReceive(built.handle, 1, PING))
            assert sent.result == 0

            down = idl.TearDownContext(built.handle, SessionRank.PRIMARY, TeardownType.FORCE)
            answer = await partner.call(idl.TEAR_DOWN_CONTEXT, down)
            assert answer == idl.ContextTornDown(ContextHandle.NULL, 0)
            await until(lambda: not partner.endpoint.transport.machine.sessions)
            _, back = partner.calls[-1]
            assert back == idl.TearDownContext(partner.handle, SessionRank.SECONDARY, 0)
            with pytest.raises(RpcFault) as fault:
                await partner.call(idl.SEND_RECEIVE, idl.SendReceive(built.handle, 1, PING))
            assert fault.value.status == FaultStatus.CONTEXT_MISMATCH

    run(scene())


def test_a_problem_is_not_called_back() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            built = await partner.build()
            down = idl.TearDownContext(built.handle, SessionRank.PRIMARY, TeardownType.PROBLEM)
            answer = await partner.call(idl.TEAR_DOWN_CONTEXT, down)
            assert answer == idl.ContextTornDown(ContextHandle.NULL, 0)
            assert not partner.endpoint.transport.machine.sessions
            assert partner.methods() == [idl.BUILD_CONTEXT_W.opnum]

    run(scene())


def test_a_secondary_is_not_to_begin_a_teardown() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            built = await partner.build()
            begin = idl.BeginTearDown(built.handle, TeardownType.FORCE)
            answer = await partner.call(idl.BEGIN_TEAR_DOWN, begin)
            assert answer.result == CmResult.INVALID_ARGUMENT

    run(scene())


def test_the_loss_of_the_association_is_the_end() -> None:
    """Context handle rundown."""

    async def scene() -> None:
        async with stranger() as partner:
            await partner.build()
            (session,) = partner.endpoint.transport.machine.sessions
            assert session.state is SessionState.ACTIVE
            await partner.client.close()
            await until(lambda: not partner.endpoint.transport.machine.sessions)

    run(scene())


def test_a_callback_that_is_refused_is_made_again_and_given_up() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            partner.inner = CmResult.SERVER_NOT_READY
            built = await partner.build()
            assert built.result in (CmResult.SERVER_NOT_READY, CmResult.TIMED_OUT)
            assert (built.guid_out, built.bound) == (idl.NO_GUID, BoundVersionSet.NONE)
            assert not built.handle
            assert len(partner.calls) > 3
            partner.inner = CmResult.VERSION_SET_NOT_SUPPORTED
            partner.calls.clear()
            assert (await partner.build()).result == CmResult.VERSION_SET_NOT_SUPPORTED
            assert len(partner.calls) == 1

    run(scene())


def test_a_callback_without_an_answer_times_out_after_half_the_timer() -> None:
    async def scene() -> None:
        async with stranger(QUICK) as partner:
            partner.released.clear()
            built = await partner.build()
            assert built.result == CmResult.TIMED_OUT
            assert not partner.endpoint.transport.machine.sessions

    run(scene())


def test_a_primary_that_gives_up_its_call() -> None:
    """It goes away while the secondary waits for the answer to its own call."""

    async def scene() -> None:
        async with stranger() as partner:
            partner.released.clear()
            task = asyncio.create_task(partner.build())
            await until(lambda: partner.calls)
            partner.client.abort()
            with pytest.raises(RpcConnectionError):
                await task
            await until(lambda: not partner.endpoint.transport.machine.sessions)
            assert not partner.endpoint.transport._issued

    run(scene())


def test_a_primary_that_may_have_no_more_handles() -> None:
    """They ran out while the secondary waited for the answer to its own call."""

    async def scene() -> None:
        async with stranger() as partner:
            partner.released.clear()
            task = asyncio.create_task(partner.build())
            await until(lambda: partner.calls)
            (protocol,) = partner.endpoint.transport._server._connections
            assert protocol._machine is not None
            assert protocol._machine.group is not None
            protocol._machine.group.budget = Budget(Quota(0, 0, 0, 0))
            partner.released.set()
            with pytest.raises(RpcFault):
                await asyncio.wait_for(task, DEADLINE_S)
            await until(lambda: not partner.endpoint.transport.machine.sessions)

    run(scene())


def test_several_calls_at_once_are_served() -> None:
    """While BuildContext waits for its callback, others get their answers."""

    async def scene() -> None:
        async with stranger() as partner:
            partner.released.clear()
            task = asyncio.create_task(partner.build())
            await until(lambda: partner.calls)
            second = await partner.build()
            assert second.result == CmResult.SERVER_NOT_READY
            assert not task.done()
            partner.released.set()
            assert (await task).result == 0

    run(scene())


@pytest.mark.req("CMP-2.1.1.3-01")
@pytest.mark.parametrize(
    ("messages", "boxcar"),
    [
        (2, PING),
        (1, PING + bytes(8)),
        (1, PING[:8] + bytes([48]) + PING[9:]),
        (1, PING[:12] + bytes(28)),
    ],
    ids=["count", "longer", "total", "none"],
)
def test_boxcars_that_contradict_their_call(messages: int, boxcar: bytes) -> None:
    async def scene() -> None:
        async with stranger() as partner:
            built = await partner.build()
            request = idl.SendReceive(built.handle, messages, boxcar)
            answer = await partner.call(idl.SEND_RECEIVE, request)
            assert answer.result == CmResult.INVALID_ARGUMENT
            assert partner.endpoint.transport.machine.sessions[0].state is SessionState.ACTIVE

    run(scene())


@pytest.mark.req("CMP-3.1.4.2-04", "CMP-2.1.1-01")
def test_what_this_side_calls_for_a_connection() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            await partner.build()
            async with asyncio.timeout(DEADLINE_S):
                await partner.endpoint.connect(ALPHA, TYPE)
            await until(lambda: len(partner.calls) >= 3)
            (_, build), (_, asked), (_, sent) = partner.calls[:3]
            assert isinstance(build, idl.BuildContext)
            assert isinstance(asked, idl.NegotiateResources)
            assert (asked.handle, asked.resource, asked.accepted) == (partner.handle, 0, 0)
            assert 1 <= asked.requested < 1000
            assert isinstance(sent, idl.SendReceive)
            assert sent.boxcar == BoxcarBuilder([Packet.connection_req(1, TYPE)]).to_bytes()
            assert sent.messages == 1

    run(scene())


@pytest.mark.req("CMP-3.1.7.3-03")
def test_nothing_to_grant() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            built = await partner.build()
            (link,) = partner.endpoint._links.values()
            asked = idl.NegotiateResources(built.handle, 0, 1000)
            total = 0
            for _ in range(200):
                answer = await partner.call(idl.NEGOTIATE_RESOURCES, asked)
                total += answer.accepted
                if answer.result:
                    break
            assert (answer.result, answer.accepted) == (CmResult.OUT_OF_RESOURCES, 0)
            assert total == link.mux.limits.max_incoming == link.mux._incoming.granted

    run(scene())


def test_handles_of_nobody() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            await partner.build()
            for handle in (ContextHandle.NULL, ContextHandle(Guid(b"?" * 16))):
                with pytest.raises(RpcFault) as fault:
                    await partner.call(idl.SEND_RECEIVE, idl.SendReceive(handle, 1, PING))
                assert fault.value.status == FaultStatus.CONTEXT_MISMATCH

    run(scene())


def test_a_handle_of_another_association() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            built = await partner.build()
            port = partner.endpoint.port
            other = await RpcClient.connect("127.0.0.1", port, [idl.SYNTAX], transfers=[NDR20])
            async with other:
                with pytest.raises(RpcFault) as fault:
                    await invoke(
                        other,
                        idl.IXN_REMOTE,
                        idl.SEND_RECEIVE,
                        idl.SendReceive(built.handle, 1, PING),
                    )
            assert fault.value.status == FaultStatus.CONTEXT_MISMATCH

    run(scene())


def test_ndr64_is_not_offered() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            port = partner.endpoint.port
            with pytest.raises(RpcConnectionError, match="does not offer"):
                await RpcClient.connect("127.0.0.1", port, [idl.SYNTAX], transfers=[NDR64])

    run(scene())


def test_an_operation_that_is_not_there() -> None:
    async def scene() -> None:
        async with stranger() as partner:
            with pytest.raises(RpcFault) as fault:
                await partner.client.call(idl.SYNTAX, 8, b"")
            assert fault.value.status == FaultStatus.OP_RNG_ERROR

    run(scene())


@pytest.mark.parametrize(
    ("opnum", "stub"),
    [
        (idl.SEND_RECEIVE.opnum, bytes(20) + b"\1\0\0\0" + b"\x27\0\0\0" * 2 + bytes(39)),
        (idl.POKE_W.opnum, bytes(12)),
        (idl.BEGIN_TEAR_DOWN.opnum, bytes(21)),
    ],
)
def test_a_stub_out_of_range_is_a_fault(opnum: int, stub: bytes) -> None:
    async def scene() -> None:
        async with stranger() as partner:
            await partner.build()
            with pytest.raises(RpcFault) as fault:
                await partner.client.call(idl.SYNTAX, opnum, stub)
            assert fault.value.status == FaultStatus.BAD_STUB_DATA

    run(scene())
