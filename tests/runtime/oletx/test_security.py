"""Security levels on real associations, authenticated by NTLM at packet privacy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.cmpo.partner_security import SecurityLevel, is_machine
from mqis.protocol.cmpo.session_setup import SessionError
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.oletx.application_connection import Message
from mqis.runtime.oletx.oletx_endpoint import ConnectionRequest
from mqis.runtime.oletx.partner_binding import Security
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult
from mqis.wire.rpc.interfaces import NDR20
from tests.runtime.oletx.endpoints import ALPHA, BETA, TYPE, couple, echo, security
from tests.waiting import run

MUTUAL, INCOMING, NONE = SecurityLevel.MUTUAL, SecurityLevel.INCOMING, SecurityLevel.NONE
BLOB = bytes.fromhex("08000000 01000000")


@pytest.mark.parametrize("first", [0, 1], ids=["primary", "secondary"])
@pytest.mark.parametrize("level", SecurityLevel)
def test_both_authenticate(level: SecurityLevel, first: int) -> None:
    """They know each other in both directions."""
    asked: list[ConnectionRequest] = []

    def admit(request: ConnectionRequest) -> int:
        asked.append(request)
        return 0

    async def scene() -> None:
        securities = (security(level, ALPHA), security(level, BETA))
        async with couple(securities=securities) as both:
            one, other = both[first], both[1 - first]
            other.accept(TYPE, echo, admit)
            async with await one.connect(other.name, TYPE) as connection:
                await connection.send(1, b"secret")
                assert await connection.receive() == Message(2, b"secret")
            (asking,) = asked
            assert str(asking.identity) == f"CORP\\{one.name.host_name}$"
            assert is_machine(asking.identity, asking.partner.host_name)
            for endpoint in both:
                (binding,) = endpoint.transport._bindings.values()
                assert binding.authenticated
                for protocol in endpoint.transport._server._connections:
                    assert protocol._machine is not None

    run(scene())


@pytest.mark.parametrize("first", [0, 1], ids=["primary", "secondary"])
def test_none_falls_back_when_the_partner_knows_nobody(first: int) -> None:
    async def scene() -> None:
        plain = [Security(), Security()]
        plain[first] = security(NONE, (ALPHA, BETA)[first])
        async with couple(securities=(plain[0], plain[1])) as both:
            one, other = both[first], both[1 - first]
            other.accept(TYPE, echo)
            async with await one.connect(other.name, TYPE) as connection:
                await connection.send(1)
                assert await connection.receive() == Message(2, b"")
            (binding,) = one.transport._bindings.values()
            assert not binding.authenticated

    run(scene())


def test_none_falls_back_when_the_password_is_wrong() -> None:
    async def scene() -> None:
        securities = (security(NONE, ALPHA, "wrong"), security(NONE, BETA))
        async with couple(securities=securities) as (a, b):
            b.accept(TYPE, echo)
            async with await a.connect(BETA, TYPE) as connection:
                await connection.send(1)
                assert await connection.receive() == Message(2, b"")

    run(scene())


def test_mutual_does_not_fall_back() -> None:
    async def scene() -> None:
        securities = (security(MUTUAL, ALPHA, "wrong"), security(MUTUAL, BETA))
        async with couple(securities=securities) as (a, _b):
            with pytest.raises(SessionError):
                await a.connect(BETA, TYPE)

    run(scene())


@pytest.mark.parametrize("level", [MUTUAL, INCOMING])
@pytest.mark.parametrize("first", [0, 1], ids=["primary", "secondary"])
def test_strangers_get_no_session(level: SecurityLevel, first: int) -> None:
    async def scene() -> None:
        names = (ALPHA, BETA)
        securities = [security(level, name) for name in names]
        securities[first] = Security()
        async with couple(securities=(securities[0], securities[1])) as both:
            with pytest.raises(SessionError) as failure:
                await both[first].connect(names[1 - first], TYPE)
            assert failure.value.result in (CmResult.ACCESS_DENIED, CmResult.TIMED_OUT)
            assert not both[1 - first].transport.machine.sessions

    run(scene())


@pytest.mark.parametrize("first", [0, 1], ids=["primary", "secondary"])
def test_incoming_lets_itself_call_strangers(first: int) -> None:
    """Sessions that this side asks for may do without."""

    async def scene() -> None:
        names = (ALPHA, BETA)
        securities = [Security(), Security()]
        securities[first] = security(INCOMING, names[first])
        async with couple(securities=(securities[0], securities[1])) as both:
            one, other = both[first], both[1 - first]
            other.accept(TYPE, echo)
            async with await one.connect(names[1 - first], TYPE) as connection:
                await connection.send(1)
                assert await connection.receive() == Message(2, b"")

    run(scene())


@pytest.mark.parametrize("level", [MUTUAL, INCOMING])
def test_a_plain_call_is_a_fault(level: SecurityLevel) -> None:
    async def scene() -> None:
        securities = (security(level, ALPHA), security(level, BETA))
        async with couple(securities=securities) as (a, _b):
            client = await RpcClient.connect("127.0.0.1", a.port, [idl.SYNTAX], transfers=[NDR20])
            async with client:
                poke = idl.Poke(2, str(ALPHA.cid), "BETA", str(BETA.cid), BLOB)
                for operation in (idl.POKE, idl.POKE_W):
                    with pytest.raises(RpcFault) as fault:
                        await invoke(client, idl.IXN_REMOTE, operation, poke)
                    assert fault.value.status == FaultStatus.ACCESS_DENIED
            assert not a.transport.machine.sessions

    run(scene())


def test_levels_need_what_they_promise() -> None:
    full = security(NONE, ALPHA)
    with pytest.raises(ValueError, match="initiator"):
        replace(full, level=MUTUAL, initiator=None)
    for level in (MUTUAL, INCOMING):
        with pytest.raises(ValueError, match="authenticator"):
            replace(full, level=level, authenticator=None)
