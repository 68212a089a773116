"""Endpoint mapper and management through real calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.protocol.rpc.faults import FaultStatus
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import EndpointMapperService, ManagementService
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.typed import invoke
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.epmapper import EpmStatus
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.tower import Tower
from tests.runtime.rpc.desk import DESK, HOST, OPEN, Desk, Number, count, refused
from tests.waiting import run

OBJECT = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
NOWHERE = ContextHandle(Guid.parse("deadbeef-0000-0000-0000-000000000000"))


def interface(number: int, major: int = 1, minor: int = 0) -> SyntaxId:
    return SyntaxId(Guid.parse(f"{number:08x}-0000-0000-0000-000000000000"), major, minor)


@asynccontextmanager
async def mapper(
    registry: EndpointRegistry, transfer: SyntaxId = NDR20, principal: str = ""
) -> AsyncIterator[RpcClient]:
    def endpoint() -> object:
        return server.endpoint

    services = [
        EndpointMapperService(registry),
        ManagementService(endpoint, principal),  # type: ignore[arg-type]
        Desk(),
    ]
    server = RpcServer(services, SystemEntropy())
    async with server:
        port = await server.listen(HOST)
        bound = [epmapper.SYNTAX, mgmt.SYNTAX, DESK.syntax]
        async with await RpcClient.connect(HOST, port, bound, transfers=[transfer]) as client:
            yield client


def registry_of(number: int) -> EndpointRegistry:
    registry = EndpointRegistry()
    for n in range(1, number + 1):
        registry.insert(Registration(interface(n), 1000 + n, "10.0.0.1", f"service {n}"))
    return registry


async def lookup(
    client: RpcClient,
    most: int = 500,
    handle: ContextHandle = ContextHandle.NULL,
    *,
    inquiry: int = 0,
    target: Guid | None = None,
    wanted: mgmt.InterfaceId | None = None,
) -> epmapper.LookupFound:
    asked = epmapper.LookupAsked(inquiry, target, wanted, 1, handle, most)
    return await invoke(
        client, epmapper.EPMAPPER, epmapper.EPT_LOOKUP, asked, given={"max_entries": most}
    )


async def map_(
    client: RpcClient,
    tower: Tower | bytes | None,
    most: int = 4,
    handle: ContextHandle = ContextHandle.NULL,
    target: Guid | None = None,
) -> epmapper.MapFound:
    octets = tower.to_bytes() if isinstance(tower, Tower) else tower
    wanted = None if octets is None else epmapper.TowerOctets(octets)
    asked = epmapper.MapAsked(target, wanted, handle, most)
    return await invoke(
        client, epmapper.EPMAPPER, epmapper.EPT_MAP, asked, given={"max_towers": most}
    )


async def free(client: RpcClient, handle: ContextHandle) -> epmapper.HandleFreed:
    asked = epmapper.HandleAsked(handle)
    return await invoke(client, epmapper.EPMAPPER, epmapper.EPT_LOOKUP_HANDLE_FREE, asked)


def asking(syntax: SyntaxId) -> Tower:
    return Tower.tcp(syntax, 0, "0.0.0.0")


def ports(found: epmapper.MapFound) -> list[int | None]:
    return [Tower.from_bytes(t.octets).port for t in found.towers if t is not None]


# --- endpoint mapper ------------------------------------------------------------------------------


@pytest.mark.parametrize("transfer", [NDR20, NDR64])
def test_map_finds_the_port(transfer: SyntaxId) -> None:
    async def main() -> None:
        async with mapper(registry_of(3), transfer) as client:
            found = await map_(client, asking(interface(2)))
            assert (found.status, found.handle) == (EpmStatus.OK, ContextHandle.NULL)
            assert ports(found) == [1002]
            assert found.towers[0] is not None
            tower = Tower.from_bytes(found.towers[0].octets)
            assert (tower.interface, tower.address) == (interface(2), "10.0.0.1")

    run(main())


def test_map_of_what_is_not_there() -> None:
    async def main() -> None:
        nothing = epmapper.MapFound(ContextHandle.NULL, (), EpmStatus.NOT_REGISTERED)
        async with mapper(registry_of(3)) as client:
            for tower in (asking(interface(9)), asking(interface(1, 2)), b"", b"\5\0\1", None):
                assert await map_(client, tower) == nothing
            assert await map_(client, asking(interface(1)), most=0) == nothing

    run(main())


def test_entries_for_an_object_come_first() -> None:
    async def main() -> None:
        registry = registry_of(1)
        registry.insert(Registration(interface(1), 2001, "10.0.0.1", object=OBJECT))
        async with mapper(registry) as client:
            assert ports(await map_(client, asking(interface(1)))) == [1001]
            assert ports(await map_(client, asking(interface(1)), target=OBJECT)) == [2001, 1001]
            found = await lookup(client, inquiry=2, target=OBJECT)
            assert [entry.object for entry in found.entries] == [OBJECT]

    run(main())


def test_map_in_pages() -> None:
    async def main() -> None:
        registry = EndpointRegistry()
        for n in range(5):
            registry.insert(Registration(interface(1), 1000 + n, "10.0.0.1"), replace=False)
        async with mapper(registry) as client:
            handle, seen = ContextHandle.NULL, []
            for expected in (2, 2, 1):
                found = await map_(client, asking(interface(1)), 2, handle)
                assert (len(found.towers), found.status) == (expected, EpmStatus.OK)
                seen += ports(found)
                handle = found.handle
            assert seen == [1000, 1001, 1002, 1003, 1004]
            assert handle == ContextHandle.NULL

    run(main())


@pytest.mark.parametrize("transfer", [NDR20, NDR64])
def test_lookup_in_pages(transfer: SyntaxId) -> None:
    async def main() -> None:
        async with mapper(registry_of(25), transfer) as client:
            first = await lookup(client, 10)
            second = await lookup(client, 10, first.handle)
            assert second.handle == first.handle
            third = await lookup(client, 10, second.handle)
            assert third.handle == ContextHandle.NULL
            pages = [len(page.entries) for page in (first, second, third)]
            names = [e.annotation for page in (first, second, third) for e in page.entries]
            assert pages == [10, 10, 5]
            assert names == [f"service {n}" for n in range(1, 26)]
            await refused(FaultStatus.CONTEXT_MISMATCH, lookup(client, 10, first.handle))
            assert len((await lookup(client)).entries) == 25

    run(main())


def test_a_lookup_sees_what_was_there_when_it_began() -> None:
    async def main() -> None:
        registry = registry_of(4)
        async with mapper(registry) as client:
            first = await lookup(client, 2)
            registry.delete(interface(4))
            rest = await lookup(client, 10, first.handle)
            assert [e.annotation for e in rest.entries] == ["service 3", "service 4"]

    run(main())


def test_lookup_by_interface_and_of_nothing() -> None:
    async def main() -> None:
        async with mapper(registry_of(3)) as client:
            wanted = mgmt.InterfaceId(interface(2).uuid, 1, 0)
            found = await lookup(client, inquiry=1, wanted=wanted)
            assert [e.annotation for e in found.entries] == ["service 2"]
            nothing = await lookup(client, inquiry=2, target=OBJECT)
            assert (nothing.entries, nothing.status) == ((), EpmStatus.NOT_REGISTERED)
        async with mapper(EndpointRegistry()) as client:
            assert (await lookup(client)).status == EpmStatus.NOT_REGISTERED

    run(main())


def test_a_lookup_is_freed_before_its_end() -> None:
    async def main() -> None:
        async with mapper(registry_of(5)) as client:
            page = await lookup(client, 2)
            assert await free(client, page.handle) == epmapper.HandleFreed(ContextHandle.NULL, 0)
            await refused(FaultStatus.CONTEXT_MISMATCH, free(client, page.handle))
            await refused(FaultStatus.CONTEXT_MISMATCH, lookup(client, 2, page.handle))
            assert (await free(client, ContextHandle.NULL)).status == 0
            await refused(FaultStatus.CONTEXT_MISMATCH, free(client, NOWHERE))

    run(main())


def test_handles_of_other_interfaces_are_no_lookups() -> None:
    """The group's handles are shared, so one of another kind can come here."""

    async def main() -> None:
        async with mapper(registry_of(5)) as client:
            ticket = await invoke(client, DESK, OPEN, Number(1))
            for call in (
                lookup(client, 2, ticket.handle),
                map_(client, asking(interface(1)), 2, ticket.handle),
                free(client, ticket.handle),
            ):
                await refused(FaultStatus.CONTEXT_MISMATCH, call)

    run(main())


@pytest.mark.parametrize("opnum", [0, 1, 5, 6, 7])
def test_the_map_is_not_changed_from_outside(opnum: int) -> None:
    async def main() -> None:
        async with mapper(registry_of(1)) as client:
            call = client.call(epmapper.SYNTAX, opnum, bytes(64))
            await refused(FaultStatus.OP_RNG_ERROR, call)
            assert len((await lookup(client)).entries) == 1

    run(main())


# --- management -----------------------------------------------------------------------------------


@pytest.mark.parametrize("transfer", [NDR20, NDR64])
def test_interfaces_of_a_server(transfer: SyntaxId) -> None:
    async def main() -> None:
        async with mapper(registry_of(0), transfer) as client:
            told = await invoke(client, mgmt.MGMT, mgmt.INQ_IF_IDS, mgmt.Nothing())
            assert told.status == 0
            assert told.vector is not None
            ids = {(i.uuid, i.major, i.minor) for i in told.vector.ids if i is not None}
            assert ids == {
                (s.uuid, s.major, 0) for s in (epmapper.SYNTAX, mgmt.SYNTAX, DESK.syntax)
            }

    run(main())


def test_statistics_count() -> None:
    async def asked(client: RpcClient, most: int = 4) -> tuple[int, ...]:
        request = mgmt.StatisticsAsked(most)
        return (await invoke(client, mgmt.MGMT, mgmt.INQ_STATS, request)).numbers

    async def main() -> None:
        async with mapper(registry_of(0)) as client:
            before = await asked(client)
            for _ in range(10):
                await count(client)
            after = await asked(client)
            assert [b - a for a, b in zip(before, after, strict=True)] == [11, 0, 11, 11]
            assert len(await asked(client, 2)) == 2
            assert await asked(client, 0) == ()
            assert len(await asked(client, 50)) == 4

    run(main())


def test_a_server_listens_and_is_not_stopped_by_strangers() -> None:
    async def main() -> None:
        async with mapper(registry_of(0)) as client:
            stop = await invoke(client, mgmt.MGMT, mgmt.STOP_SERVER_LISTENING, mgmt.Nothing())
            assert stop == mgmt.Status(FaultStatus.ACCESS_DENIED)
            listening = await invoke(client, mgmt.MGMT, mgmt.IS_SERVER_LISTENING, mgmt.Nothing())
            assert listening == mgmt.Listening(0, 1)

    run(main())


def test_the_principal_of_a_server() -> None:
    async def asked(client: RpcClient, size: int) -> mgmt.Principal:
        request = mgmt.PrincipalAsked(10, size)
        return await invoke(client, mgmt.MGMT, mgmt.INQ_PRINC_NAME, request, given={"size": size})

    async def main() -> None:
        async with mapper(registry_of(0), principal="host/pec") as client:
            assert await asked(client, 100) == mgmt.Principal("host/pec", 0)
            assert await asked(client, 9) == mgmt.Principal("host/pec", 0)
            assert await asked(client, 8) == mgmt.Principal("", FaultStatus.BYTE_COUNT_TOO_SMALL)

    run(main())
