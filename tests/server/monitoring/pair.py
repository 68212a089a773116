"""A PEC and the PSC of a second site in this process, each with a monitoring endpoint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.file import override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.directory_server import DirectoryServer
from mqis.server.founding import found
from mqis.server.identity import seed_text
from mqis.server.monitoring.status import ServerStatus
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from tests.waiting import until


def with_values(config: Config, **values: dict[str, object]) -> Config:
    return override(config, values, "test")


def pec_config(home: Path, ports: list[int]) -> Config:
    """A new enterprise whose PEC everybody may change: who may do what is tested elsewhere."""
    home.mkdir()
    url = f"sqlite:{home / 'd.db'}"
    with closing(open_store(url, create=True)) as store:
        found(store, "Acme", "Delft", "pec1")
    return with_values(
        Config(),
        server={"name": "pec1", "role": "pec"},
        store={"url": url},
        rpc={"mapper": False},
        security={"accounts": str(home / "accounts.toml"), "administrators": ["S-1-1-0"]},
        replication={
            "port": ports[0],
            "key": str(home / "key"),
            "recovery_wait_s": 5,
            "journal": str(home / "journal"),
            "archive": str(home / "archive"),
        },
        hosts={"psc2": f"127.0.0.1:{ports[1]}", "pec1": f"127.0.0.1:{ports[0]}"},
        monitoring={"enabled": True, "port": 0},
    )


async def psc_config(pec: DirectoryServer, home: Path, port: int) -> Config:
    """The configuration of a PSC, joined by the calls that 'mqis join' makes."""
    home.mkdir()
    key = MachineKey.open(home / "key")
    pec_key = MachineKey.open(Path(pec.config.replication.key))
    blob = key_list(key.public)
    async with client_of(pec) as client:
        properties: dict[int, PropVariant] = props(
            {PropId.S_PSC: "psc2", PropId.S_PSC_SIGNPK: blob}
        )
        site = await client.create(ObjectType.SITE, "Leiden", properties)
        assert site is not None
        machine = await client.create(
            ObjectType.MACHINE,
            "psc2",
            props(
                {
                    PropId.QM_SITE_ID: site,
                    PropId.QM_SERVICE: 4,
                    PropId.QM_SIGN_PKS: blob,
                }
            ),
        )
        got = await client.get(ObjectType.MACHINE, [PropId.QM_MACHINE_ID], path="pec1")
        known = got.popitem()[1].value
        assert isinstance(known, Guid)
    url = f"sqlite:{home / 'd.db'}"
    open_store(url, create=True).close()
    return with_values(
        pec.config,
        server={"name": "psc2", "role": "psc"},
        store={"url": url},
        replication={
            "port": port,
            "key": str(home / "key"),
            "pec": "pec1",
            "id": str(machine),
            "site_id": str(site),
            "seeds": [seed_text(Seed("pec1", known, pec_key.public))],
            "journal": str(home / "journal"),
        },
    )


@asynccontextmanager
async def client_of(server: DirectoryServer) -> AsyncIterator[DirectoryClient]:
    client = await DirectoryClient.connect([ServerAddress("127.0.0.1", server.ready.port)])
    async with client:
        yield client


async def fetch(port: int | None, path: str) -> tuple[int, bytes]:
    """Status and body of a document."""
    assert port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split(b" ")[1]), body


async def scrape(server: DirectoryServer) -> str:
    """The metrics of a server, as soon as it has checked its journal."""

    async def look() -> str | None:
        _, body = await fetch(server.ready.monitoring_port, "/metrics")
        return body.decode() if b"\nmqis_journal_faults " in body else None

    return await until(look, "the journal is checked")


async def status_of(server: DirectoryServer) -> ServerStatus:
    status, body = await fetch(server.ready.monitoring_port, "/status")
    assert status == 200, body
    return ServerStatus.from_json(json.loads(body))


@dataclass(frozen=True, slots=True)
class Pair:
    pec: DirectoryServer
    psc: DirectoryServer

    async def create(self, at: DirectoryServer, path: str) -> Guid:
        async with client_of(at) as client:
            made = await client.create(ObjectType.QUEUE, path, props({PropId.Q_LABEL: "label"}))
        assert made is not None
        return made

    async def converged(self) -> None:
        async def same() -> bool:
            both = [await status_of(server) for server in (self.pec, self.psc)]
            numbers = [{p.id: p.last_seq for p in status.partitions} for status in both]
            return numbers[0] == numbers[1]

        await until(same)


@asynccontextmanager
async def pair(home: Path, **values: dict[str, object]) -> AsyncIterator[Pair]:
    """``values`` take the place of keys of both."""
    ports = free_ports(2)
    first = with_values(pec_config(home / "pec1", ports), **values)
    async with DirectoryServer(first, grace_s=1) as pec:
        second = await psc_config(pec, home / "psc2", ports[1])
        async with DirectoryServer(second, grace_s=1) as psc:
            yield Pair(pec, psc)
