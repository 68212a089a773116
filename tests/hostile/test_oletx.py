"""Strangers at an OleTx partner: whom it connects to for them, whose sessions they touch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.cmpo.partner_security import SecurityLevel
from mqis.protocol.rpc.faults import RpcFault
from mqis.runtime.authentication.credentials import LogonCredentials as Account
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.oletx import resolver
from mqis.runtime.oletx.application_connection import Message
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import MapperResolver
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult
from mqis.wire.cmpo.ixnremote import BindVersionSet, BoundVersionSet
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc.interfaces import NDR20
from tests.runtime.oletx.endpoints import (
    ALPHA,
    BETA,
    DOMAIN,
    PASSWORD,
    PATIENT,
    TYPE,
    couple,
    echo,
    security,
)
from tests.waiting import run, until

BLOB = bytes.fromhex("08000000 01000000")
#: An address that did not call.
THIRD_PARTY = "127.0.0.9"


def cid(number: int) -> Guid:
    """Of a partner below Alpha, which is what Alpha builds a session to when it pokes."""
    return Guid.parse(f"00000000-0000-4000-8000-{number:012x}")


def poke(host: str, caller: Guid) -> idl.Poke:
    return idl.Poke(2, str(ALPHA.cid), host, str(caller), BLOB)


@asynccontextmanager
async def stranger(
    endpoint: OleTxEndpoint, credentials: Credentials | None = None
) -> AsyncIterator[RpcClient]:
    client = await RpcClient.connect(
        "127.0.0.1", endpoint.port, [idl.SYNTAX], transfers=[NDR20], credentials=credentials
    )
    async with client:
        yield client


@asynccontextmanager
async def listener(address: str, came: list[str]) -> AsyncIterator[int]:
    """Somebody who is connected to, and says nothing."""

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(address)
        writer.transport.abort()

    server = await asyncio.start_server(accept, address, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.req("SEC-10-03")
def test_a_stranger_does_not_choose_whom_a_partner_connects_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The caller names its host itself; a name may be any address."""

    async def attack() -> None:
        came: list[str] = []
        async with listener(THIRD_PARTY, came) as port:
            monkeypatch.setattr(resolver, "MAPPER_PORT", port)
            async with OleTxEndpoint(ALPHA) as victim, stranger(victim) as client:
                answer = await invoke(client, idl.IXN_REMOTE, idl.POKE_W, poke(THIRD_PARTY, cid(1)))
                assert answer.result == CmResult.OK
                await asyncio.sleep(0.5)
                assert came == []

    run(attack())


@pytest.mark.req("SEC-10-03")
def test_a_partner_is_called_back_at_the_address_that_it_called_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        came: list[str] = []
        async with listener("127.0.0.1", came) as port:
            monkeypatch.setattr(resolver, "MAPPER_PORT", port)
            async with OleTxEndpoint(ALPHA) as endpoint, stranger(endpoint) as client:
                await invoke(client, idl.IXN_REMOTE, idl.POKE_W, poke("127.0.0.1", cid(1)))
                await until(lambda: came)

    run(scene())


@pytest.mark.req("SEC-10-03")
def test_one_address_does_not_take_all_sessions() -> None:
    async def hold(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    async def attack() -> None:
        silent = await asyncio.start_server(hold, "127.0.0.1", 0)
        async with silent:
            port = silent.sockets[0].getsockname()[1]
            hosts = MapperResolver({"GAMMA": ("127.0.0.1", port)})
            async with (
                OleTxEndpoint(ALPHA, resolver=hosts, settings=PATIENT) as victim,
                stranger(victim) as client,
            ):
                results = [
                    (await invoke(client, idl.IXN_REMOTE, idl.POKE_W, poke("GAMMA", cid(n)))).result
                    for n in range(1, 101)
                ]
                assert results.count(CmResult.OK) == 64
                assert results.count(CmResult.SERVER_TOO_BUSY) == 36
                assert len(victim.transport.machine.sessions) == 64

    run(attack())


@pytest.mark.req("SEC-10-03")
def test_a_refused_call_does_not_put_another_name_on_a_session() -> None:
    """``admit`` decides by the identity of the session, so nobody else may change it."""

    async def attack() -> None:
        level = SecurityLevel.MUTUAL
        securities = (security(level, ALPHA), security(level, BETA))
        async with couple(securities=securities) as (alpha, beta):
            beta.accept(TYPE, echo)
            async with await alpha.connect(BETA, TYPE):
                session = beta.transport.machine.session(ALPHA.cid)
                assert session is not None
                assert str(beta.transport.identity(session)) == "CORP\\ALPHA$"
                someone = PyspnegoInitiator(Account("BETA$", DOMAIN, PASSWORD))
                credentials = Credentials(someone, AuthType.NTLM, AuthLevel.PRIVACY, "host/BETA")
                async with stranger(beta, credentials) as client:
                    answer = await invoke(client, idl.IXN_REMOTE, idl.BUILD_CONTEXT_W, _build())
                assert answer.result != CmResult.OK
                assert str(beta.transport.identity(session)) == "CORP\\ALPHA$"

    run(attack())


def _build() -> idl.BuildContext:
    """As Alpha would call Beta."""
    return idl.BuildContext(
        1,
        BindVersionSet(1, 2, 1, 1, 1, 5),
        str(BETA.cid),
        ALPHA.host_name,
        str(ALPHA.cid),
        str(cid(7)),
        idl.NO_GUID,
        BoundVersionSet.NONE,
        BLOB,
    )


@pytest.mark.req("SEC-10-03")
def test_a_handle_is_worth_nothing_on_another_association() -> None:
    """Whoever has listened knows the handle; it tears nothing down."""

    async def attack() -> None:
        async with couple() as (alpha, beta):
            beta.accept(TYPE, echo)
            async with await alpha.connect(BETA, TYPE) as connection:
                ((_, handle),) = beta.transport._issued.values()
                async with stranger(beta) as client:
                    request = idl.TearDownContext(ContextHandle(handle), 1, 0)
                    with pytest.raises(RpcFault):
                        await invoke(client, idl.IXN_REMOTE, idl.TEAR_DOWN_CONTEXT, request)
                await connection.send(1, b"still here")
                assert await connection.receive() == Message(2, b"still here")

    run(attack())
