"""Directory servers that route: three sites in a row, on loopback sockets, in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.queueing.events import Arrived, SessionClosed, SessionOpened
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.manager import QueueStatistics as Transport
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import PrivateQueue, QueuedMessage
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.routing.breakage import NoRouteError
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.protocol.routing.router import DirectoryRouter
from mqis.protocol.routing.snapshot import Snapshot
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint
from mqis.server.directory_server import DirectoryServer
from mqis.server.identity import seed_text
from mqis.server.replication import ReplicationService
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import SyncRequest, encode_message
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.server.test_replication_serve import client_of, pec_config, with_values
from tests.waiting import DEADLINE_S, until

LINK, MACHINE, SITE = ObjectType.ROUTINGLINK, ObjectType.MACHINE, ObjectType.SITE
ROUTING = ServiceBits.ROUTING
HOST = "127.0.0.1"
#: A private queue of plain machines.
QUEUE = 20


def service_of(server: DirectoryServer) -> ReplicationService:
    assert server._replication is not None
    return server._replication


def transport(server: DirectoryServer) -> Transport:
    return service_of(server).driver.node.queue.statistics


def refused(server: DirectoryServer) -> int:
    counted = transport(server)
    return counted.refused - counted.duplicates


def find(server: DirectoryServer, kind: ObjectType, path: str) -> Guid:
    with service_of(server).store.read() as view:
        found = view.find(kind, path)
    assert found is not None
    return found.id


def next_hop(server: DirectoryServer, target: Guid) -> str | None:
    """The name of the first next hop; None: there is no route."""
    routing = service_of(server).routing
    assert routing is not None
    try:
        return routing.router.next_hops(target)[0].machine
    except NoRouteError:
        return None


# --- an enterprise --------------------------------------------------------------------------------


class Row:
    """``a`` in Delft, ``b`` in Leiden, ``c`` in Gouda: all gates, with links a - b and b - c."""

    a: DirectoryServer
    b: DirectoryServer
    c: DirectoryServer

    def __init__(self, home: Path, stack: AsyncExitStack) -> None:
        self._home = home
        self._stack = stack
        names = ("pec1", "psc2", "psc3", "desk1", "desk3")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))

    async def start(self) -> None:
        config = pec_config(self._home / "pec1", [self.ports["pec1"], self.ports["psc2"]])
        hosts: dict[str, object] = {name: f"{HOST}:{port}" for name, port in self.ports.items()}
        config = with_values(config, hosts=hosts, replication={"connect_retry_s": 1, "retry_s": 1})
        self.a = await self._stack.enter_async_context(DirectoryServer(config, grace_s=1))
        self.b = await self._join("psc2", "Leiden")
        self.c = await self._join("psc3", "Gouda")
        async with client_of(self.a) as client:
            bits = ServiceBits.PEC | ROUTING
            await client.set(MACHINE, props({PropId.QM_SERVICE: bits}), path="pec1")
            for site, gate in (("Delft", "pec1"), ("Leiden", "psc2"), ("Gouda", "psc3")):
                gates = (find(self.a, MACHINE, gate),)
                await client.set(SITE, props({PropId.S_GATES: gates}), path=site)
            for ends in (("Delft", "Leiden"), ("Leiden", "Gouda")):
                first, second = (find(self.a, SITE, name) for name in ends)
                cost = 1
                await client.create(
                    LINK,
                    None,
                    props(
                        {
                            PropId.L_NEIGHBOR1: first,
                            PropId.L_NEIGHBOR2: second,
                            PropId.L_COST: cost,
                        }
                    ),
                )
        a, c = find(self.a, MACHINE, "pec1"), find(self.a, MACHINE, "psc3")
        await until(lambda: next_hop(self.a, c) == "psc2")
        await until(lambda: next_hop(self.b, c) == "psc3" and next_hop(self.b, a) == "pec1")
        await until(lambda: next_hop(self.c, a) == "psc2")

    async def _join(self, name: str, site: str) -> DirectoryServer:
        home = self._home / name
        home.mkdir()
        blob = key_list(MachineKey.open(home / "key").public)
        pec_key = MachineKey.open(self._home / "pec1" / "key").public
        async with client_of(self.a) as client:
            values: dict[int, PropVariant] = props({PropId.S_PSC: name, PropId.S_PSC_SIGNPK: blob})
            site_id = await client.create(SITE, site, values)
            assert site_id is not None
            bits = ServiceBits.PSC | ROUTING
            machine = await client.create(
                MACHINE,
                name,
                props(
                    {
                        PropId.QM_SITE_ID: site_id,
                        PropId.QM_SERVICE: bits,
                        PropId.QM_SIGN_PKS: blob,
                    }
                ),
            )
        url = f"sqlite:{home / 'd.db'}"
        open_store(url, create=True).close()
        config = with_values(
            self.a.config,
            server={"name": name, "role": "psc"},
            store={"url": url},
            replication={
                "port": self.ports[name],
                "key": str(home / "key"),
                "pec": "pec1",
                "id": str(machine),
                "site_id": str(site_id),
                "seeds": [seed_text(Seed("pec1", find(self.a, MACHINE, "pec1"), pec_key))],
            },
        )
        return await self._stack.enter_async_context(DirectoryServer(config, grace_s=1))

    def links(self) -> dict[frozenset[Guid], Guid]:
        with service_of(self.a).store.read() as view:
            snapshot = Snapshot.read(view)
        return {frozenset({link.site1, link.site2}): id_ for id_, link in snapshot.links.items()}


@asynccontextmanager
async def plain_machine(
    server: DirectoryServer, name: str, ports: dict[str, int]
) -> AsyncIterator[QueueingEndpoint]:
    """A queue manager without any service, that knows what ``server``'s directory says now."""
    with service_of(server).store.read() as view:
        snapshot = Snapshot.read(view)
    me = find(server, MACHINE, name)
    keeper = RoutingTableKeeper(me, lambda: snapshot, 0.0)
    router = DirectoryRouter(me, keeper, private_queues=(QUEUE,))

    async def resolve(machine: str) -> tuple[str, int]:
        return HOST, ports[canonical(machine)]

    ids = MessageIdCounter(0)
    limits = QueueingLimits(retry_s=0.2, retry_max_s=0.2)
    manager = QueueingMachine(me, name, ids, limits=limits, peers=router, router=router)
    async with QueueingEndpoint(manager, resolve) as endpoint:
        await endpoint.listen(HOST, ports[name])
        yield endpoint


async def add_plain(server: DirectoryServer, name: str, site: str) -> Guid:
    async with client_of(server) as client:
        values: dict[int, PropVariant] = props({PropId.QM_SITE_ID: find(server, SITE, site)})
        made = await client.create(MACHINE, name, values)
    assert made is not None
    return made


# --- three servers --------------------------------------------------------------------------------


def test_a_message_is_relayed_until_the_directory_has_no_link(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            row = Row(tmp_path, stack)
            await row.start()
            target = find(row.a, MACHINE, "psc3")
            before = refused(row.c)
            message = QueuedMessage(b"hello", queue=PrivateQueue(target, QUEUE))
            sent = service_of(row.a).driver.endpoint.send_routed(message)
            await until(lambda: refused(row.c) > before)
            assert transport(row.b).relayed == 1
            relayed = f"relayed {sent} of {sent.source} for {target} to psc3, hop 1"
            await until(lambda: relayed in caplog.text)
            assert refused(row.c) == before + 1, "it has no such queue"

            ends = frozenset({find(row.a, SITE, "Delft"), find(row.a, SITE, "Leiden")})
            async with client_of(row.a) as client:  # the PEC, which decides about links
                await client.delete(LINK, guid=row.links()[ends])
            await until(lambda: next_hop(row.a, target) is None)
            a = find(row.c, MACHINE, "pec1")
            await until(lambda: next_hop(row.b, a) is None and next_hop(row.c, a) is None)
            assert next_hop(row.b, target) == "psc3", "the other link is still there"

            kept = service_of(row.a).driver.endpoint.send_routed(message)
            await until(lambda: f"{kept} for {target} waits: no route" in caplog.text)
            assert transport(row.b).relayed == 1
            restarts = [service_of(s).driver.statistics.restarts for s in (row.a, row.b, row.c)]
            assert restarts == [0, 0, 0]

    with caplog.at_level(logging.DEBUG, "mqis.runtime.node.server_routes"):
        asyncio.run(run())
    assert "messages relayed: 1, refused: " in caplog.text


def test_plain_machines_send_through_servers_and_do_not_replicate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            row = Row(tmp_path, stack)
            await row.start()
            await add_plain(row.a, "desk1", "Delft")
            target = await add_plain(row.c, "desk3", "Gouda")
            for server in (row.a, row.b, row.c):
                for name in ("desk1", "desk3"):
                    await until(partial(knows, server, name))
            desk1 = await stack.enter_async_context(plain_machine(row.a, "desk1", row.ports))
            desk3 = await stack.enter_async_context(plain_machine(row.a, "desk3", row.ports))
            desk1.send_routed(QueuedMessage(b"hello", queue=PrivateQueue(target, QUEUE)))
            async with asyncio.timeout(DEADLINE_S):
                while not isinstance(event := await desk3.next_event(), Arrived):
                    pass
            assert (event.body, event.hops) == (b"hello", 3)
            assert [transport(s).relayed for s in (row.a, row.b, row.c)] == [1, 1, 1]

            # The same machine, to the queues that only directory servers may write to.
            driver = service_of(row.a).driver
            before, seen = refused(row.a), driver.statistics.refusals
            zero, much = SequenceNumber(0), SequenceNumber(99)
            site = find(row.a, SITE, "Delft")
            asking = SyncRequest(site, Guid.NULL, zero, much, zero, False, 1, "desk1")
            body = encode_message(asking)
            desk1.send("pec1", QueuedMessage(body))
            notice = PrivateQueue(find(row.a, MACHINE, "pec1"), NOTIFY_QUEUE_ID)
            desk1.send("pec1", QueuedMessage(b"", queue=notice))
            await until(lambda: refused(row.a) == before + 2)
            assert (driver.statistics.notices, driver.statistics.restarts) == (0, 0)
            assert driver.statistics.refusals == seen, "replication did not even see it"
            assert "refused from desk1 at 127.0.0.1: " in caplog.text

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())


def knows(server: DirectoryServer, name: str) -> bool:
    """Returns whether the routing snapshot of a server contains a machine."""
    routing = service_of(server).routing
    assert routing is not None
    return any(m.name == name for m in routing.keeper.snapshot.machines.values())


# --- one server -----------------------------------------------------------------------------------


async def greeted(server: DirectoryServer, ports: dict[str, int]) -> bool:
    """Returns whether a machine that is no directory server gets a session."""
    async with asyncio.timeout(DEADLINE_S), plain_machine(server, "desk1", ports) as desk:
        desk.send("pec1", QueuedMessage(b"let me in"))
        while True:
            event = await desk.next_event()
            if isinstance(event, (SessionOpened, SessionClosed)):
                return isinstance(event, SessionOpened)


def forwards(server: DirectoryServer, wanted: bool) -> bool:
    routing = service_of(server).routing
    assert routing is not None
    return routing.router.forwards is wanted


def one_server(home: Path, route: bool) -> tuple[Config, dict[str, int]]:
    ports = free_ports(2)
    config = with_values(pec_config(home / "pec1", ports), replication={"route": route})
    return config, {"pec1": ports[0], "desk1": ports[1]}


def test_the_routing_bit_decides_who_gets_a_session(tmp_path: Path) -> None:
    async def run() -> None:
        config, ports = one_server(tmp_path, route=True)
        async with DirectoryServer(config, grace_s=1) as server, client_of(server) as client:
            await add_plain(server, "desk1", "Delft")
            assert not await greeted(server, ports)
            for bits, may in ((9, True), (8, False)):
                await client.set(MACHINE, props({PropId.QM_SERVICE: bits}), path="pec1")
                await until(partial(forwards, server, may))
                assert await greeted(server, ports) is may

    asyncio.run(run())


def test_a_configuration_without_routes_has_the_stricter_rule(tmp_path: Path) -> None:
    async def run() -> None:
        config, ports = one_server(tmp_path, route=False)
        async with DirectoryServer(config, grace_s=1) as server, client_of(server) as client:
            await add_plain(server, "desk1", "Delft")
            await client.set(MACHINE, props({PropId.QM_SERVICE: 9}), path="pec1")
            assert service_of(server).routing is None
            assert not await greeted(server, ports)

    asyncio.run(run())
