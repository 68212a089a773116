"""S_DSValidateServer, its callbacks, S_DSCloseServerHandle, and the handles between them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from mqis.client.authentication import Callbacks, ServerProof
from mqis.protocol.authentication import NOWHERE, Addresses, AuthLevel, AuthType, SecurityContext
from mqis.protocol.directory import signature
from mqis.protocol.directory.serverauth import ServerAuth
from mqis.protocol.rpc.client_side import (
    AgreedContext,
    Bound,
    CalledBack,
    CallReturned,
    ClientConnection,
)
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.directory.dscomm import MAX_LEGS
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.query_stubs import ColumnSet
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propvariant import VarType
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.pdu import decode_pdu
from mqis.wire.rpc.pdu_bodies import Request
from mqis.wire.security.tokens import MAX_TOKEN
from tests.protocol.directory.world import MACHINE
from tests.runtime.directory.serving import (
    ALICE,
    AUTHENTICATOR,
    HOST,
    OK,
    SIGNATURE_SIZE,
    Caller,
    Served,
    fault_of,
    initiator,
    scenario,
    serving,
)

NULL = VarType.NULL
MISMATCH, NULL_CONTEXT = FaultStatus.CONTEXT_MISMATCH, FaultStatus.IN_NULL_CONTEXT


@dataclass
class Listening:
    """Callbacks that answer as ``answer`` says and remember what they were asked."""

    answer: Callable[[dscomm.InitSecCtx], dscomm.InitSecCtxAnswer]
    asked: list[dscomm.InitSecCtx] = field(default_factory=list)
    opnums: list[int] = field(default_factory=list)

    def __call__(self, context: AgreedContext, opnum: int, stub: bytes, big_endian: bool) -> bytes:
        self.opnums.append(opnum)
        syntax = Syntax.NDR64 if context.transfer == NDR64 else Syntax.NDR20
        operation = dscomm.INIT_SEC_CTX
        asked = operation.request.decode(stub, syntax, big_endian=big_endian)
        self.asked.append(asked)
        answer = self.answer(asked)
        return operation.response.encode(answer, syntax, given={"buffer_size": asked.buffer_size})


def _get(auth: ContextHandle, size: int = SIGNATURE_SIZE) -> dscomm.GetProps:
    return dscomm.GetProps(MACHINE, "C14", (203,), (NULL,), auth, size)


async def _handshake(caller: Caller, callbacks: Callbacks, context: SecurityContext) -> int:
    """Validate with ``context``; the auth handle goes to the caller."""
    callbacks.pending[77] = context
    got = await caller.validate(context.step(None) or b"", 77)
    caller.auth = got.handle
    return got.result


class TestEmptyContext:
    @pytest.mark.req("MQDS-3.1.4.2-03")
    @scenario
    async def test_no_token_gives_a_handle_and_no_callback(self) -> None:
        listening = Listening(lambda _: dscomm.InitSecCtxAnswer(b"", 0))
        async with (
            serving(gss=SharedSecret()) as served,
            served.caller(callbacks=listening) as caller,
        ):
            got = await caller.validate(b"")
            assert (got.result, bool(got.handle)) == (OK, True)
            assert listening.opnums == []

    @pytest.mark.req("MQDS-3.1.4.2-04")
    @pytest.mark.parametrize("size", [0, 1, 16, 1000, 131_072])
    @scenario
    async def test_signatures_are_zeros_as_long_as_the_client_asked(self, size: int) -> None:
        async with serving() as served, served.caller() as caller:
            got = await caller.call(dscomm.GET_PROPS, _get(caller.auth, size))
            assert (got.result, got.signature) == (OK, bytes(size))

    @pytest.mark.req("MQDS-3.1.4.2-01")
    @pytest.mark.parametrize("setup_mode", [0, 1, -1])
    @scenario
    async def test_enterprise_and_setup_mode_are_ignored(self, setup_mode: int) -> None:
        request = dscomm.ValidateServer(Guid(b"\xee" * 16), setup_mode, 1, 1, b"")
        async with serving() as served, served.caller() as caller:
            assert (await caller.call(dscomm.VALIDATE_SERVER, request)).result == OK

    @pytest.mark.req("MQDS-3.1.4.3-04", "MQDS-3.1.4.3-01")
    @scenario
    async def test_it_closes(self) -> None:
        async with serving() as served, served.caller() as caller:
            request = dscomm.HandleGiven(caller.auth)
            got = await caller.call(dscomm.CLOSE_SERVER_HANDLE, request)
            assert (got.result, got.handle) == (OK, ContextHandle.NULL)
            assert served.context.handles.count(ServerAuth) == 0


class TestHandshake:
    @pytest.mark.req("MQDS-3.1.4.2-05", "MQDS-3.1.4.2-06", "MQDS-3.1.4.2-07")
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_legs(self, transfer: SyntaxId) -> None:
        """hello; challenge, proof by the first callback; the server's proof by the second."""
        provider = SharedSecret()
        context = provider.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")

        def step(asked: dscomm.InitSecCtx) -> dscomm.InitSecCtxAnswer:
            token = context.step(asked.token) or b""
            wanted = OK if context.complete else HResult.SEC_I_CONTINUE_NEEDED
            return dscomm.InitSecCtxAnswer(token, wanted)

        listening = Listening(step)
        async with (
            serving(gss=provider) as served,
            served.caller(callbacks=listening, transfers=[transfer]) as caller,
        ):
            got = await caller.validate(context.step(None) or b"", 0xCAFE)
            assert (got.result, bool(got.handle)) == (OK, True)
            assert context.complete
            assert listening.opnums == [2, 2]
            assert [asked.context for asked in listening.asked] == [0xCAFE, 0xCAFE]
            assert {asked.buffer_size for asked in listening.asked} == {MAX_TOKEN}
            await _check_signed(caller, got.handle, context)
            context = provider.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
            again = await caller.validate(context.step(None) or b"", 0xCAFE)
            assert (again.result, again.handle == got.handle) == (OK, False)
            await _check_signed(caller, again.handle, context)

    @pytest.mark.req("MQDS-3.1.1.3-01", "MQDS-3.1.1.15-01", "MQDS-3.1.4.7-12")
    @scenario
    async def test_the_real_provider(self) -> None:
        """NTLM inside SPNEGO, beside the NTLM that protects the connection."""
        callbacks = Callbacks()
        async with (
            serving(gss=AUTHENTICATOR) as served,
            served.caller(ALICE, level=AuthLevel.PRIVACY, callbacks=callbacks) as caller,
        ):
            context = initiator(ALICE).initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "host/srv1")
            assert await _handshake(caller, callbacks, context) == OK
            for _ in range(3):
                await _check_signed(caller, caller.auth, context)

    @pytest.mark.req("MQDS-3.1.4.2-09", "MQDS-1.5-03")
    @scenario
    async def test_a_server_without_credentials(self) -> None:
        async with serving(gss=None) as served, served.caller() as caller:
            got = await caller.validate(b"token")
            assert (got.handle, got.result) == (
                ContextHandle.NULL,
                HResult.MQDS_E_CANT_INIT_SERVER_AUTH,
            )

    @pytest.mark.req("MQDS-3.1.4.2-08", "MQDS-3.1.4.2-09")
    @pytest.mark.parametrize("token", [b"\0", b"NTLMSSP\0", b"x" * 4000])
    @scenario
    async def test_tokens_that_are_none(self, token: bytes) -> None:
        for gss in (SharedSecret(), AUTHENTICATOR):
            async with serving(gss=gss) as served, served.caller() as caller:
                before = served.context.handles.count(ServerAuth)
                got = await caller.validate(token)
                assert (got.handle, got.result) == (
                    ContextHandle.NULL,
                    HResult.MQ_ERROR_DS_ERROR,
                )
                assert served.context.handles.count(ServerAuth) == before

    @pytest.mark.req("MQDS-3.1.4.2-08")
    @scenario
    async def test_a_wrong_proof(self) -> None:
        callbacks = Callbacks()
        liar = SharedSecret(b"guessed")
        async with (
            serving(gss=SharedSecret()) as served,
            served.caller(callbacks=callbacks) as caller,
        ):
            context = liar.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
            assert await _handshake(caller, callbacks, context) == HResult.MQ_ERROR_DS_ERROR
            assert caller.auth == ContextHandle.NULL

    @pytest.mark.req("MQDS-3.1.4.2-10", "MQDS-3.2.4.3-02")
    @pytest.mark.parametrize(
        ("result", "becomes"),
        [
            (0xC00E0035, 0xC00E0035),
            (0x80090308, 0x80090308),
            # Not an error by its bits, yet neither of the two that go on: never a success.
            (0x00090313, 0xC00E0043),
            (1, 0xC00E0043),
        ],
    )
    @scenario
    async def test_a_client_that_gives_up(self, result: int, becomes: int) -> None:
        listening = Listening(lambda _: dscomm.InitSecCtxAnswer(b"", result))
        async with (
            serving(gss=SharedSecret()) as served,
            served.caller(callbacks=listening) as caller,
        ):
            got = await caller.validate(b"hello somebody")
            assert (got.handle, got.result) == (ContextHandle.NULL, becomes)
            assert len(listening.asked) == 1

    @pytest.mark.req("MQDS-3.2.4.3-02")
    @scenario
    async def test_a_client_that_wants_more_when_the_server_is_done(self) -> None:
        provider = SharedSecret()
        context = provider.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")

        def never_content(asked: dscomm.InitSecCtx) -> dscomm.InitSecCtxAnswer:
            token = context.step(asked.token) or b"more"
            return dscomm.InitSecCtxAnswer(token, HResult.SEC_I_CONTINUE_NEEDED)

        async with (
            serving(gss=provider) as served,
            served.caller(callbacks=Listening(never_content)) as caller,
        ):
            got = await caller.validate(context.step(None) or b"")
            assert (got.handle, got.result) == (ContextHandle.NULL, HResult.MQ_ERROR_DS_ERROR)

    @pytest.mark.req("MQDS-3.1.4.2-10")
    @scenario
    async def test_a_client_that_answers_with_a_fault(self) -> None:
        def refuse(_asked: dscomm.InitSecCtx) -> dscomm.InitSecCtxAnswer:
            raise RpcFault(FaultStatus.OP_RNG_ERROR)

        for callbacks in (Listening(refuse), None):
            async with (
                serving(gss=SharedSecret()) as served,
                served.caller(callbacks=callbacks) as caller,
            ):
                got = await caller.validate(b"hello somebody")
                assert (got.handle, got.result) == (
                    ContextHandle.NULL,
                    HResult.MQ_ERROR_DS_ERROR,
                )

    @scenario
    async def test_a_handshake_without_end(self) -> None:
        class Endless:
            complete = False
            identity = None

            def step(self, _token: bytes | None) -> bytes | None:
                return b"again"

        class Provider:
            def acceptor(
                self, _auth_type: int, _level: int, _addresses: Addresses = NOWHERE
            ) -> SecurityContext:
                return Endless()  # type: ignore[return-value]

        listening = Listening(lambda _: dscomm.InitSecCtxAnswer(b"and again", OK))
        async with (
            serving(gss=Provider()) as served,
            served.caller(callbacks=listening) as caller,
        ):
            got = await caller.validate(b"begin")
            assert got.result == HResult.MQ_ERROR_DS_ERROR
            assert len(listening.asked) == MAX_LEGS

    @scenario
    async def test_a_client_that_leaves_in_the_middle(self) -> None:
        async with serving(gss=SharedSecret()) as served:

            def leave(_asked: dscomm.InitSecCtx) -> dscomm.InitSecCtxAnswer:
                caller.rpc.abort()
                return dscomm.InitSecCtxAnswer(b"", OK)

            async with served.caller(callbacks=Listening(leave)) as caller:
                with pytest.raises(Exception, match="closed"):
                    await caller.validate(b"hello somebody")
            assert set((await served.emptied()).values()) == {0}


async def _check_signed(caller: Caller, auth: ContextHandle, context: SecurityContext) -> None:
    got = await caller.call(dscomm.GET_PROPS, _get(auth))
    assert got.result == OK
    assert 16 < len(got.signature) < SIGNATURE_SIZE
    ServerProof(context).check(signature.properties_digest((203,), got.values), got.signature)


class TestHandles:
    @pytest.mark.req("MQDS-3.1.4.3-03", "MQDS-3.1.4.3-01")
    @scenario
    async def test_closed_ones_are_gone(self) -> None:
        async with serving() as served, served.caller() as caller:
            request = dscomm.HandleGiven(caller.auth)
            await caller.call(dscomm.CLOSE_SERVER_HANDLE, request)
            assert await fault_of(caller.call(dscomm.CLOSE_SERVER_HANDLE, request)) == MISMATCH
            assert await fault_of(caller.call(dscomm.GET_PROPS, _get(caller.auth))) == MISMATCH

    @pytest.mark.req("MQDS-3.1.4.3-03")
    @scenario
    async def test_foreign_and_null_ones(self) -> None:
        async with serving() as served, served.caller() as one, served.caller() as other:
            assert await fault_of(other.call(dscomm.GET_PROPS, _get(one.auth))) == MISMATCH
            nothing = one.call(dscomm.GET_PROPS, _get(ContextHandle.NULL))
            assert await fault_of(nothing) == NULL_CONTEXT
            made_up = ContextHandle(Guid(b"\x11" * 16))
            assert await fault_of(one.call(dscomm.GET_PROPS, _get(made_up))) == MISMATCH

    @pytest.mark.req("MQDS-3.1.1.4-02")
    @scenario
    async def test_a_context_lives_as_long_as_its_handle(self) -> None:
        """Through many calls, other handles made and closed, and errors."""
        provider, callbacks = SharedSecret(), Callbacks()
        async with serving(gss=provider) as served, served.caller(callbacks=callbacks) as caller:
            context = provider.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
            await _handshake(caller, callbacks, context)
            for _ in range(20):
                await _check_signed(caller, caller.auth, context)
            other = (await caller.validate()).handle
            await caller.call(dscomm.CLOSE_SERVER_HANDLE, dscomm.HandleGiven(other))
            missing = dscomm.GetProps(MACHINE, "C99", (203,), (NULL,), caller.auth, 256)
            assert (await caller.call(dscomm.GET_PROPS, missing)).result != OK
            await _check_signed(caller, caller.auth, context)

    @pytest.mark.req("MQDS-3.1.6.1-01", "MQDS-3.1.1.4-01")
    @scenario
    async def test_rundown_frees_the_context(self) -> None:
        provider, callbacks = SharedSecret(), Callbacks()
        async with serving(gss=provider) as served:
            async with served.caller(callbacks=callbacks) as caller:
                client = provider.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
                await _handshake(caller, callbacks, client)
                assert served.counters()["authentications"] == 2
                kept = _contexts(served)
                assert [context() is not None for context in kept] == [True]
                caller.rpc.abort()  # without a word, as a client that dies
            assert set((await served.emptied()).values()) == {0}
            gc.collect()
            assert [context() for context in kept] == [None]


def _contexts(served: Served) -> list[weakref.ref[SecurityContext]]:
    """Weak references to the GSS contexts that the server keeps."""
    groups = served.rpc.endpoint.groups._groups.values()
    values = [handle.value for group in groups for handle in group.handles.values()]
    contexts = [value.context for value in values if isinstance(value, ServerAuth)]
    return [weakref.ref(context) for context in contexts if context is not None]


class TestSignatureSize:
    """A buffer that is too small costs the client nothing but another call."""

    @pytest.mark.req("MQDS-3.1.4.7-11")
    @scenario
    async def test_too_small_then_enough(self) -> None:
        provider, callbacks = SharedSecret(), Callbacks()
        async with serving(gss=provider) as served, served.caller(callbacks=callbacks) as caller:
            context = provider.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
            await _handshake(caller, callbacks, context)
            for size in (0, 1, 31):
                got = await caller.call(dscomm.GET_PROPS, _get(caller.auth, size))
                assert got.result == HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL
                assert got.signature == bytes(size)
            got = await caller.call(dscomm.GET_PROPS, _get(caller.auth, 32))
            assert (got.result, len(got.signature)) == (OK, 32)
            digest = signature.properties_digest((203,), got.values)
            # The refused ones took no number of the context, so this is the client's first.
            ServerProof(context).check(digest, got.signature)


class TestCallbackPdus:
    @pytest.mark.req("MQDS-3.2.4.3-03", "MQDS-3.2.4.3-01")
    @scenario
    async def test_a_callback_comes_inside_the_call(self) -> None:
        """On the same connection and context, with the call's identifier; no bind before it."""
        machine = ClientConnection()
        async with serving(gss=SharedSecret()) as served:
            reader, writer = await asyncio.open_connection(HOST, served.port)

            async def exchange() -> tuple[bytes, list[object]]:
                writer.write(machine.data_to_send())
                data = await reader.read(65_536)
                return data, list(machine.receive(data))

            machine.bind([dscomm2.SYNTAX, dscomm.SYNTAX], transfers=[NDR20])
            _, (bound,) = await exchange()
            assert isinstance(bound, Bound)
            context = next(c for c in bound.contexts if c.interface == dscomm.SYNTAX)
            request = dscomm.ValidateServer(Guid.NULL, 0, 0xCAFE, 14, b"hello somebody")
            stub = dscomm.VALIDATE_SERVER.request.encode(request, Syntax.NDR20)
            call_id = machine.request(context, dscomm.VALIDATE_SERVER.opnum, stub)
            data, (called_back,) = await exchange()

            pdu = decode_pdu(data)
            assert isinstance(pdu.body, Request)
            assert pdu.header.call_id == call_id
            assert (pdu.body.context_id, pdu.body.opnum) == (context.id, 2)
            asked = dscomm.INIT_SEC_CTX.request.decode(pdu.body.stub, Syntax.NDR20)
            assert (asked.context, asked.buffer_size) == (0xCAFE, MAX_TOKEN)
            assert asked.token
            assert isinstance(called_back, CalledBack)
            assert served.rpc.connections == 1

            refusal = dscomm.InitSecCtxAnswer(b"", HResult.MQ_ERROR_BAD_SECURITY_CONTEXT)
            given = {"buffer_size": asked.buffer_size}
            answer = dscomm.INIT_SEC_CTX.response.encode(refusal, Syntax.NDR20, given=given)
            machine.answer_callback(call_id, answer)
            _, (answered,) = await exchange()
            assert isinstance(answered, CallReturned)
            got = dscomm.VALIDATE_SERVER.response.decode(answered.stub, Syntax.NDR20)
            assert got.result == HResult.MQ_ERROR_BAD_SECURITY_CONTEXT
            writer.close()
            await writer.wait_closed()


@pytest.mark.req("MQDS-3.1.2-01")
@scenario
async def test_nothing_but_the_connection_has_a_timer() -> None:
    """Handles do not age: whatever is scheduled belongs to the connections or to this test."""
    async with serving() as served, served.caller() as caller:
        columns = ColumnSet((203,))
        begin = dscomm.LookupBegin(None, None, columns, None, caller.auth)
        assert (await caller.call(dscomm.LOOKUP_BEGIN, begin)).result == OK
        loop = asyncio.get_running_loop()
        scheduled = [timer._callback for timer in loop._scheduled]  # type: ignore[attr-defined]
        owners = {getattr(callback, "__self__", callback) for callback in scheduled}
        ours = {type(owner).__module__ for owner in owners}
        ours |= {getattr(callback, "__module__", "") for callback in scheduled}
        assert not any("directory" in module for module in ours), ours
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        assert not any("directory.context" in repr(task) for task in tasks)
        assert len(tasks) <= 1  # the one that waits for this test
