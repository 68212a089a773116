"""A small enterprise at work: discovery, the directory, replication, a session of OleTx."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path

from examples.capture.recorder import HOST, Recorder
from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress, find_port
from mqis.config.file import override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.errors import DirectoryError
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.runtime.oletx.application_connection import OleTxConnection
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import FixedResolver
from mqis.server.directory_server import DirectoryServer
from mqis.server.founding import found
from mqis.server.identity import seed_text
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqsd.request import TopologyClientRequest
from mqis.wire.propvariant import PropVariant

CLIENT, PEC, PSC = "10.0.0.7", "10.0.0.1", "10.0.1.1"
MAPPER, DIRECTORY, QUEUES, OLETX = 135, 2103, 1801, 49_664
NETWORK = "4ad55d96-0001-4000-8000-000000000001"
QUEUE = "pec1\\orders"
PARTNERS = (
    NameObject.parse("PEC1/b51996ef-c434-4f79-a288-56efd302fc8e"),
    NameObject.parse("PSC1/a3afb37b-f64a-4e6c-9017-f6a96ba6f166"),
)
CONNECTION_TYPE = 0x101
#: Far longer than anything here takes, even on a machine that does much else.
WAIT_S = 180.0


async def record(directory: Path) -> Recorder:
    """Records all conversations; ``directory`` is for the servers' files."""
    recorder = Recorder()
    async with asyncio.timeout(2 * WAIT_S):
        await enterprise(recorder, directory)
        await oletx(recorder)
    return recorder


# --- two directory servers and a client -----------------------------------------------------------


async def enterprise(recorder: Recorder, directory: Path) -> None:
    """Runs two servers and a client; each server has only a proxy's address of the other."""
    ports = free_ports(4)
    queues, proxies = ports[:2], ports[2:]
    hosts = {"pec1": f"{HOST}:{proxies[0]}", "psc1": f"{HOST}:{proxies[1]}"}
    config = _found(directory / "pec1", queues[0], hosts)
    async with (
        recorder.proxy(queues[0], (PEC, QUEUES), PSC, proxies[0]),
        recorder.proxy(queues[1], (PSC, QUEUES), PEC, proxies[1]),
        DirectoryServer(config, grace_s=1) as pec,
    ):
        assert pec.ready.mapper_port
        assert pec.ready.discovery_port
        await discover(recorder, pec.ready.discovery_port)
        async with (
            recorder.proxy(pec.ready.mapper_port, (PEC, MAPPER), CLIENT) as mapper,
            recorder.proxy(pec.ready.port, (PEC, DIRECTORY), CLIENT) as port,
        ):
            await find_port(ServerAddress(HOST, mapper_port=mapper), dscomm.SYNTAX, WAIT_S)
            address = ServerAddress(HOST, port)
            second = await _joined(address, directory / "psc1", queues[1], pec.config)
            async with DirectoryServer(second, grace_s=1) as psc:
                await change(address, psc)


async def change(pec: ServerAddress, psc: DirectoryServer) -> None:
    """Creates a queue at the PEC and waits until the other server has it."""
    async with await DirectoryClient.connect([pec]) as client:
        label: dict[int, PropVariant] = props({PropId.Q_LABEL: "Orders of today"})
        await client.create(ObjectType.QUEUE, QUEUE, label)
        await client.get(ObjectType.QUEUE, [PropId.Q_LABEL, PropId.Q_INSTANCE], path=QUEUE)
    there = ServerAddress(HOST, psc.ready.port)
    end = time.monotonic() + WAIT_S
    async with await DirectoryClient.connect([there]) as client:
        while time.monotonic() < end:
            try:
                await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path=QUEUE)
            except DirectoryError:
                await asyncio.sleep(0.02)
            else:
                return
    raise TimeoutError(f"{QUEUE} was not replicated to the other server")


def _found(home: Path, port: int, hosts: dict[str, str]) -> Config:
    home.mkdir(parents=True)
    url = f"sqlite:{home / 'directory.db'}"
    with closing(open_store(url, create=True)) as store:
        found(store, "Acme", "Delft", "pec1")
    values: dict[str, dict[str, object]] = {
        "server": {"name": "pec1", "role": "pec"},
        "store": {"url": url},
        "rpc": {"mapper_port": 0},
        "discovery": {"enabled": True, "port": 0, "networks": [NETWORK]},
        # Everyone may change it: this example is not about access rights.
        "security": {"accounts": str(home / "accounts.toml"), "administrators": ["S-1-1-0"]},
        "replication": {"port": port, "key": str(home / "key")},
        "hosts": dict(hosts),
    }
    return override(Config(), values, "the example")


async def _joined(pec: ServerAddress, home: Path, port: int, config: Config) -> Config:
    """Joins a server as ``mqis join`` does: creates its objects and its configuration."""
    home.mkdir(parents=True)
    key = MachineKey.open(home / "key")
    first = MachineKey.open(Path(config.replication.key))
    blob = key_list(key.public)
    async with await DirectoryClient.connect([pec]) as client:
        named: dict[int, PropVariant] = props({PropId.S_PSC: "psc1", PropId.S_PSC_SIGNPK: blob})
        site = await client.create(ObjectType.SITE, "Leiden", named)
        assert site is not None
        properties: dict[int, PropVariant] = props(
            {
                PropId.QM_SITE_ID: site,
                PropId.QM_SERVICE: 4,
                PropId.QM_SIGN_PKS: blob,
            }
        )
        machine = await client.create(ObjectType.MACHINE, "psc1", properties)
        got = await client.get(ObjectType.MACHINE, [PropId.QM_MACHINE_ID], path="pec1")
        known = got[PropId.QM_MACHINE_ID].value
        assert isinstance(known, Guid)
    url = f"sqlite:{home / 'directory.db'}"
    open_store(url, create=True).close()
    values: dict[str, dict[str, object]] = {
        "server": {"name": "psc1", "role": "psc"},
        "store": {"url": url},
        "rpc": {"mapper": False},
        "discovery": {"enabled": False},
        "replication": {
            "port": port,
            "key": str(home / "key"),
            "pec": "pec1",
            "id": str(machine),
            "site_id": str(site),
            "seeds": [seed_text(Seed("pec1", known, first.public))],
        },
    }
    return override(config, values, "the example")


# --- a datagram and its answer --------------------------------------------------------------------


class _Asker(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, _addr: tuple[str, int]) -> None:
        if not self.answer.done():
            self.answer.set_result(data)


async def discover(recorder: Recorder, port: int) -> None:
    """A client without a site discovers the directory servers."""
    conversation = recorder.opened(CLIENT, (PEC, QUEUES), udp=True)
    loop = asyncio.get_running_loop()
    transport, asker = await loop.create_datagram_endpoint(_Asker, remote_addr=(HOST, port))
    request = TopologyClientRequest(Guid.NULL, Guid(b"a first question"), Guid.NULL).to_bytes()
    conversation.parts.append((time.time_ns(), True, request))
    transport.sendto(request)
    async with asyncio.timeout(WAIT_S):
        answer = await asker.answer
    conversation.parts.append((time.time_ns(), False, answer))
    transport.close()


# --- two partners ---------------------------------------------------------------------------------


async def oletx(recorder: Recorder) -> None:
    """A session from set-up to teardown, with a message there and back in boxcars."""
    resolver = FixedResolver()
    one, other = PARTNERS
    async with (
        OleTxEndpoint(one, resolver=resolver) as a,
        OleTxEndpoint(other, resolver=resolver) as b,
        recorder.proxy(a.port, (PEC, OLETX), PSC) as to_a,
        recorder.proxy(b.port, (PSC, OLETX), PEC) as to_b,
    ):
        resolver.add(one.cid, HOST, to_a)
        resolver.add(other.cid, HOST, to_b)
        a.accept(CONNECTION_TYPE, _echo)
        async with await b.connect(a.name, CONNECTION_TYPE) as connection:
            await connection.send(1, b"prepare")
            await connection.receive()
        await a.close()
        while b.transport.machine.sessions:
            await asyncio.sleep(0.005)


async def _echo(connection: OleTxConnection) -> None:
    async for message in connection:
        await connection.send(message.type + 1, message.body)
