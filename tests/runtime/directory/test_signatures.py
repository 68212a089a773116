"""Signatures: every signing method, every bit of its answer that a stranger could flip."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from mqis.client.authentication import Callbacks, ServerProof, SignatureError
from mqis.protocol.authentication import AuthenticationError, AuthLevel, AuthType
from mqis.protocol.directory import signature
from mqis.protocol.directory.serverauth import ServerAuth, unwrap, wrap
from mqis.protocol.errors import DirectoryError
from mqis.testing.security import SharedSecret
from mqis.wire.errors import WireError
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.query_stubs import ColumnSet
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propvariant import VarType
from mqis.wire.rpc.interfaces import NDR20, Operation
from tests.protocol.directory.world import (
    C14,
    KEYS,
    MACHINE,
    ORDERS,
    QUEUE,
    World,
    blob,
    text,
    ui4,
)
from tests.runtime.directory.serving import (
    ADMIN,
    AUTHENTICATOR,
    BOB,
    OK,
    Caller,
    initiator,
    scenario,
    serving,
)

NULL = VarType.NULL
ROOM = 64


@dataclass(frozen=True)
class Signed:
    """A method: how it is asked, what of its answer counts, and what is signed of that."""

    operation: Operation[Any, Any]
    ask: Callable[[ContextHandle, ContextHandle], Any]
    content: Callable[[Any], Any]
    digest: Callable[[Any], bytes]
    sizes: dict[str, int]
    #: What a lookup is about, for the one method that goes on with it.
    columns: tuple[int, ...] = ()


def _properties(*ids: int) -> Callable[[Any], bytes]:
    return lambda got: signature.properties_digest(ids, got.values)


def _security(operation: Operation[Any, Any], ask: Callable[..., Any]) -> Signed:
    return Signed(
        operation,
        ask,
        # lpnLengthNeeded is not signed; a client cuts its buffer there, and must look at it.
        lambda got: got.descriptor,
        lambda got: signature.security_digest(got.descriptor),
        {"length": 150},
    )


SIGNED = {
    signed.operation.name: signed
    for signed in (
        Signed(
            dscomm.GET_PROPS,
            lambda auth, _: dscomm.GetProps(
                QUEUE, "C14\\orders", (108, 105), (NULL, NULL), auth, ROOM
            ),
            lambda got: got.values,
            _properties(108, 105),
            {"cp": 2},
        ),
        Signed(
            dscomm.GET_PROPS_GUID,
            lambda auth, _: dscomm.GetPropsGuid(
                QUEUE, ORDERS, (103, 101), (NULL, NULL), auth, ROOM
            ),
            lambda got: got.values,
            _properties(103, 101),
            {"cp": 2},
        ),
        Signed(
            dscomm.LOOKUP_NEXT,
            lambda auth, lookup: dscomm.LookupNext(lookup, 4, auth, ROOM),
            lambda got: got.values,
            lambda got: signature.properties_digest(
                ((203, 202) * len(got.values))[: len(got.values)], got.values
            ),
            {"size": 4},
            (203, 202),
        ),
        _security(
            dscomm.GET_OBJECT_SECURITY,
            lambda auth, _: dscomm.GetSecurity(MACHINE, "C14", 7, 150, auth, ROOM),
        ),
        _security(
            dscomm.GET_OBJECT_SECURITY_GUID,
            lambda auth, _: dscomm.GetSecurityGuid(MACHINE, C14, 7, 150, auth, ROOM),
        ),
        _security(
            dscomm.QM_GET_OBJECT_SECURITY,
            lambda auth, _: dscomm.GetMachineSecurity(MACHINE, C14, 7, 150, 1, auth, ROOM),
        ),
        Signed(
            dscomm.CREATE_SERVERS_CACHE,
            lambda auth, _: dscomm.CreateServersCache(1, None, auth, ROOM),
            lambda got: (got.index, got.servers),
            lambda got: signature.servers_digest(got.index, got.servers.text),
            {},
        ),
        Signed(
            dscomm2.GET_COMPUTER_SITES,
            lambda auth, _: dscomm2.GetComputerSites("C14", auth, ROOM),
            lambda got: got.sites,
            lambda got: signature.blob_digest(b"".join(site.raw for site in got.sites)),
            {},
        ),
        Signed(
            dscomm2.GET_PROPS_EX,
            lambda auth, _: dscomm.GetProps(MACHINE, "C14", (239,), (NULL,), auth, ROOM),
            lambda got: got.values,
            _properties(239),
            {"cp": 1},
        ),
        Signed(
            dscomm2.GET_PROPS_GUID_EX,
            lambda auth, _: dscomm.GetPropsGuid(MACHINE, C14, (239,), (NULL,), auth, ROOM),
            lambda got: got.values,
            _properties(239),
            {"cp": 1},
        ),
        Signed(
            dscomm2.GET_GC_LIST_IN_DOMAIN,
            lambda auth, _: dscomm2.GetGCListInDomain(None, "corp", auth, ROOM),
            lambda got: got.servers,
            lambda got: signature.blob_digest(got.servers.encode("utf-16-le")),
            {},
        ),
    )
}
#: One row of MS-MQDS 3.1.1.3 or of the methods themselves for each.
ROWS = {
    "S_DSGetProps": "MQDS-3.1.4.7-10",
    "S_DSGetPropsGuid": "MQDS-3.1.4.8-01",
    "S_DSLookupNext": "MQDS-3.1.4.18-06",
    "S_DSGetObjectSecurity": "MQDS-3.1.4.11-12",
    "S_DSGetObjectSecurityGuid": "MQDS-3.1.4.12-01",
    "S_DSQMGetObjectSecurity": "MQDS-3.1.4.15-06",
    "S_DSCreateServersCache": "MQDS-3.1.4.20-04",
    "S_DSGetComputerSites": "MQDS-3.3.4.1-04",
    "S_DSGetPropsEx": "MQDS-3.3.4.2-04",
    "S_DSGetPropsGuidEx": "MQDS-3.3.4.3-01",
    "S_DSGetGCListInDomain": "MQDS-3.3.4.8-04",
}
METHODS = pytest.mark.parametrize(
    "method",
    [
        pytest.param(signed, id=name, marks=pytest.mark.req(ROWS[name]))
        for name, signed in SIGNED.items()
    ],
)


def world() -> World:
    made = World()
    made.update_event(made.one(QUEUE), {108: text("secret"), 105: ui4(7)})
    made.update_event(made.one(MACHINE), {239: blob(KEYS)})
    return made


@asynccontextmanager
async def conversation(gss: Any, provider: Any) -> AsyncIterator[tuple[Caller, ServerProof]]:
    """A caller to whom the server has proven itself."""
    callbacks = Callbacks()
    async with (
        serving(world(), gss=provider) as served,
        served.caller(ADMIN, callbacks=callbacks, transfers=[NDR20]) as caller,
        caller.proven(gss, callbacks) as proof,
    ):
        served.configure(global_catalogs={"corp": (ServerSpec("gc1"),)})
        yield caller, proof


async def answer_to(caller: Caller, method: Signed) -> bytes:
    """The stub that the server answers with."""
    lookup = ContextHandle.NULL
    if method.columns:
        begin = dscomm.LookupBegin(None, None, ColumnSet(method.columns), None, caller.auth)
        lookup = (await caller.call(dscomm.LOOKUP_BEGIN, begin)).handle
    stub = method.operation.request.encode(method.ask(caller.auth, lookup), Syntax.NDR20)
    both = (dscomm.DSCOMM, dscomm2.DSCOMM2)
    (interface,) = [i.syntax for i in both if method.operation in i.operations]
    answer = await caller.rpc.call(interface, method.operation.opnum, stub)
    if lookup:
        await caller.call(dscomm.LOOKUP_END, dscomm.HandleGiven(lookup))
    return answer.stub


def content_of(method: Signed, proof: ServerProof, stub: bytes) -> Any:
    """The content of an answer that a client may trust; raises an exception if there is none."""
    got = method.operation.response.decode(stub, Syntax.NDR20, given=method.sizes)
    if got.result != OK:
        raise DirectoryError(got.result, "refused")
    proof.check(method.digest(got), got.signature)
    return method.content(got)


@METHODS
@pytest.mark.req("MQDS-3.1.1.3-01", "MQDS-3.1.1.15-01")
@scenario
async def test_every_flipped_bit_is_noticed(method: Signed) -> None:
    """The client accepts what the server sent, or nothing: never anything else.

    Bits of padding and of referent identifiers mean nothing, so an answer survives those.
    """
    provider = SharedSecret()
    async with conversation(provider, provider) as (caller, proof):
        context = copy.deepcopy(proof.context)
        stub = await answer_to(caller, method)
        right = content_of(method, ServerProof(copy.deepcopy(context)), stub)
        assert right
        survived = 0
        for bit in range(8 * len(stub)):
            changed = bytearray(stub)
            changed[bit // 8] ^= 1 << bit % 8
            try:
                fresh = ServerProof(copy.deepcopy(context))
                assert content_of(method, fresh, bytes(changed)) == right, f"bit {bit}"
                survived += 1
            except (SignatureError, WireError, DirectoryError, ValueError, AttributeError):
                continue
        assert survived < 4 * len(stub)


@METHODS
@pytest.mark.req("MQDS-3.1.4.7-12")
@scenario
async def test_the_real_provider_signs_and_numbers(method: Signed) -> None:
    """NTLM inside SPNEGO: one after the other is right, the same answer twice is not."""
    async with conversation(initiator(BOB), AUTHENTICATOR) as (caller, proof):
        first = content_of(method, proof, await answer_to(caller, method))
        stub = await answer_to(caller, method)
        assert content_of(method, proof, stub) == first
        with pytest.raises(SignatureError):
            content_of(method, proof, stub)


@METHODS
@pytest.mark.req("MQDS-3.1.4.2-04")
@scenario
async def test_without_a_context_they_are_zeros(method: Signed) -> None:
    async with (
        serving(world()) as served,
        served.caller(ADMIN, transfers=[NDR20]) as caller,
    ):
        served.configure(global_catalogs={"corp": (ServerSpec("gc1"),)})
        stub = await answer_to(caller, method)
        got = method.operation.response.decode(stub, Syntax.NDR20, given=method.sizes)
        assert (got.result, got.signature) == (OK, bytes(ROOM))


class TestServerAuth:
    """The signing itself, without a socket."""

    def _pair(self) -> tuple[ServerAuth, Any]:
        provider = SharedSecret()
        client = provider.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
        server = provider.acceptor(AuthType.SPNEGO, AuthLevel.PRIVACY)
        token = client.step(None)
        while not client.complete:
            token = client.step(server.step(token))
        return ServerAuth(server), client

    @pytest.mark.req("MQDS-3.1.4.7-12", "MQDS-3.1.4.7-11")
    def test_a_digest_is_sealed_and_signed(self) -> None:
        auth, client = self._pair()
        digest = signature.blob_digest(b"x")
        token = auth.sign(digest, 100)
        assert len(token) == 16 + len(digest)
        assert digest not in token
        assert unwrap(client, token) == digest

    @pytest.mark.req("MQDS-3.1.4.7-11", "MQDS-3.1.4.11-13")
    @pytest.mark.parametrize("size", [0, 16, 31])
    def test_a_refusal_takes_no_number(self, size: int) -> None:
        auth, client = self._pair()
        digest = signature.blob_digest(b"x")
        with pytest.raises(DirectoryError) as caught:
            auth.sign(digest, size)
        assert caught.value.hresult == HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL
        assert unwrap(client, auth.sign(digest, 32)) == digest

    @pytest.mark.req("MQDS-3.1.4.2-04")
    def test_the_empty_context_signs_with_zeros(self) -> None:
        assert ServerAuth(None).sign(b"digest", 7) == bytes(7)
        assert ServerAuth(None).sign(b"digest", 0) == b""

    def test_wrapping_is_numbered(self) -> None:
        auth, client = self._pair()
        assert auth.context is not None
        first, second = wrap(auth.context, b"a"), wrap(auth.context, b"a")
        assert first != second
        with pytest.raises(AuthenticationError):
            unwrap(client, second)


@pytest.mark.req("MQDS-3.1.4.11-13")
@pytest.mark.parametrize(
    "method", [pytest.param(signed, id=name) for name, signed in SIGNED.items()]
)
@scenario
async def test_a_buffer_too_small_for_a_signature(method: Signed) -> None:
    provider = SharedSecret()
    async with conversation(provider, provider) as (caller, proof):

        def small(auth: ContextHandle, lookup: ContextHandle) -> Any:
            request = method.ask(auth, lookup)
            return type(request)(
                **{
                    name: 31 if name == "signature_size" else getattr(request, name)
                    for name in request.__slots__
                }
            )

        shrunk = Signed(
            method.operation, small, method.content, method.digest, method.sizes, method.columns
        )
        stub = await answer_to(caller, shrunk)
        got = method.operation.response.decode(stub, Syntax.NDR20, given=method.sizes)
        assert got.result == HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL
        assert got.signature == bytes(31)
        assert content_of(method, proof, await answer_to(caller, method))
