"""Finding and binding a server: ports, endpoint mapper, versions, and the list of all servers."""

from __future__ import annotations

import pytest

from mqis.client.authentication import Callbacks
from mqis.client.servers import ServerAddress, find_port
from mqis.protocol.directory import signature
from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import EndpointMapperService
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.rpc.interfaces import SyntaxId
from mqis.wire.security.sddl import parse_sddl
from tests.protocol.directory.world import (
    ENTERPRISE,
    MACHINE,
    SITE,
    SITE_A,
    World,
    blob,
    guid,
    text,
    ui4,
)
from tests.runtime.directory.serving import (
    ALICE,
    HOST,
    OK,
    SIGNATURE_SIZE,
    Caller,
    scenario,
    serving,
)


def staffed() -> World:
    """Alpha has a PSC and two BSCs, and machines that are neither; Beta's PSC has no object."""
    world = World()
    for name, bits in (("bsc2", 2), ("PSC1", 4), ("BSC1", 3), ("router", 1), ("ras", 16)):
        world.create_event(MACHINE, {203: text(name), 201: guid(SITE_A), 210: ui4(bits)})
    return world


async def cache(
    caller: Caller,
    index: int,
    servers: dscomm.StringPointer | None = None,
    room: int = SIGNATURE_SIZE,
) -> dscomm.ServersCache:
    request = dscomm.CreateServersCache(index, servers, caller.auth, room)
    return await caller.call(dscomm.CREATE_SERVERS_CACHE, request)


def _text(got: dscomm.ServersCache) -> str | None:
    return None if got.servers is None else got.servers.text


class TestServersCache:
    @pytest.mark.req("MQDS-1.5-02", "MQDS-3.1.4.20-02", "MQDS-2.2.17-01")
    @scenario
    async def test_sites_by_name_psc_before_bscs(self) -> None:
        async with serving(staffed()) as served, served.caller() as caller:
            got = [await cache(caller, index) for index in range(3)]
        assert [(g.result, g.index, _text(g)) for g in got] == [
            (OK, 0, "Alpha;\\10PSC1,10BSC1,10bsc2"),
            (OK, 1, "Beta;\\10PSC2"),
            (OK, 2, "Far;\\"),
        ]

    @pytest.mark.req("MQDS-3.1.4.20-03")
    @pytest.mark.parametrize("index", [3, 4, 0xFFFFFFFF])
    @scenario
    async def test_the_end(self, index: int) -> None:
        async with serving(staffed()) as served, served.caller() as caller:
            got = await cache(caller, index)
        assert (got.result, got.index, got.servers) == (
            HResult.MQDS_E_NO_MORE_DATA,
            index,
            None,
        )

    @pytest.mark.req("MQDS-3.1.4.20-01")
    @pytest.mark.parametrize(
        "given", [None, dscomm.StringPointer(None), dscomm.StringPointer("old")]
    )
    @scenario
    async def test_what_the_client_sends_is_replaced(
        self, given: dscomm.StringPointer | None
    ) -> None:
        async with serving(staffed()) as served, served.caller() as caller:
            assert _text(await cache(caller, 1, given)) == "Beta;\\10PSC2"

    @pytest.mark.req("MQDS-3.1.4.20-04", "MQDS-3.1.4.20-05")
    @scenario
    async def test_signature(self) -> None:
        gss, callbacks = SharedSecret(), Callbacks()
        async with (
            serving(staffed(), gss=gss) as served,
            served.caller(callbacks=callbacks) as caller,
            caller.proven(gss, callbacks) as proof,
        ):
            small = await cache(caller, 1, None, 31)
            assert small.result == HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL
            got = await cache(caller, 1, None, 32)
            proof.check(signature.servers_digest(1, "Beta;\\10PSC2"), got.signature)

    @scenario
    async def test_names_that_the_list_cannot_spell_are_left_out(self) -> None:
        """A comma in a machine's name, a semicolon and backslash in a site's."""
        world = staffed()
        world.create_event(MACHINE, {203: text("a,b"), 201: guid(SITE_A), 210: ui4(2)})
        world.create_event(SITE, {301: text("Bad;\\10x")})
        async with serving(world) as served, served.caller() as caller:
            got = [_text(await cache(caller, index)) for index in range(4)]
        assert got == ["Alpha;\\10PSC1,10BSC1,10bsc2", "Beta;\\10PSC2", "Far;\\", None]

    @pytest.mark.req("MQDS-3.1.4-03")
    @scenario
    async def test_it_is_the_enterprises_to_show(self) -> None:
        world = staffed()
        closed = blob(parse_sddl("O:BAD:(A;;0x20;;;AU)").to_bytes())
        world.update_event(world.one(ENTERPRISE), {1601: closed})
        async with (
            serving(world) as served,
            served.caller() as anonymous,
            served.caller(ALICE) as alice,
        ):
            assert (await cache(anonymous, 0)).result == HResult.MQ_ERROR_ACCESS_DENIED
            assert (await cache(alice, 0)).result == OK

    @scenario
    async def test_without_an_enterprise(self) -> None:
        async with serving(World(empty=True)) as served, served.caller() as caller:
            assert (await cache(caller, 0)).result == HResult.MQDS_E_NO_MORE_DATA


class TestServerPort:
    async def _port(self, caller: Caller, ip: int) -> int:
        return (await caller.call(dscomm.GET_SERVER_PORT, dscomm.GetServerPort(ip))).port

    @pytest.mark.req("MQDS-3.1.4.1-02", "MQDS-3.1.4.1-03")
    @scenario
    async def test_the_dynamic_port_over_ip_and_none_over_spx(self) -> None:
        async with serving() as served, served.caller() as caller:
            served.context.listens_on(served.port)
            assert await self._port(caller, 1) == served.port
            assert await self._port(caller, 0) == 0

    @pytest.mark.req("MQDS-3.1.4.1-04")
    @scenario
    async def test_a_server_that_does_not_know_says_0(self) -> None:
        async with serving() as served, served.caller() as caller:
            assert await self._port(caller, 1) == 0


class TestBinding:
    @pytest.mark.req("MQDS-2.1-03", "MQDS-2.1-01")
    @scenario
    async def test_dynamic_endpoints_are_in_the_mapper(self) -> None:
        registry = EndpointRegistry()
        mapper = RpcServer([EndpointMapperService(registry)], SystemEntropy())
        port = await mapper.listen(HOST, 0)
        async with serving() as served:
            for interface in (dscomm.SYNTAX, dscomm2.SYNTAX):
                registry.insert(Registration(interface, served.port, HOST))
                found = await find_port(ServerAddress(HOST, None, port), interface, 5)
                assert found == served.port
            async with await RpcClient.connect(HOST, found, [dscomm.SYNTAX]) as client:
                assert client.offers(dscomm.SYNTAX)
        await mapper.close(0.1)

    @pytest.mark.req("MQDS-1.7-01", "MQDS-2.1-01")
    @scenario
    async def test_both_interfaces_on_one_port(self) -> None:
        async with serving() as served:
            interfaces = [dscomm.SYNTAX, dscomm2.SYNTAX]
            async with await RpcClient.connect(HOST, served.port, interfaces) as client:
                assert all(client.offers(interface) for interface in interfaces)

    @pytest.mark.req("MQDS-2.1-05")
    @pytest.mark.parametrize("uuid", [dscomm.SYNTAX.uuid, dscomm2.SYNTAX.uuid])
    @pytest.mark.parametrize(("major", "minor"), [(0, 0), (2, 0), (1, 1), (0, 1)])
    @scenario
    async def test_other_versions_are_refused(self, uuid: Guid, major: int, minor: int) -> None:
        wrong = SyntaxId(uuid, major, minor)
        async with serving() as served:
            with pytest.raises(RpcConnectionError, match="does not offer"):
                await RpcClient.connect(HOST, served.port, [wrong])
