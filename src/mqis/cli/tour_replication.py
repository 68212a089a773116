"""The step of the tour about replication: three servers, a change, and one that was away.

All of it in this process, on loopback: an enterprise is founded, a primary and a backup controller
join it, and everything that a client does at one server is seen at the others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mqis.cli.guide import Guide
from mqis.cli.join import membership
from mqis.cli.login import connected, login
from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.server import Role
from mqis.runtime.freeports import free_ports
from mqis.runtime.node.signer import MachineKey
from mqis.services.config import override
from mqis.services.directory_server import DirectoryServer
from mqis.services.founding import found
from mqis.services.join import Wanted, join
from mqis.services.sections import Config
from mqis.services.stores import open_store
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType

_PEC, _PSC, _BSC = "tour-pec", "tour-psc", "tour-bsc"
_EVERYBODY = "S-1-1-0"
_WAIT_S = 30.0


def replication(guide: Guide) -> None:
    guide.step("Replication", "an enterprise is founded, two servers join it, all on loopback")
    with TemporaryDirectory(prefix="mqis-tour-") as name, _quiet():
        asyncio.run(_walk(guide, Path(name)))


async def _walk(guide: Guide, home: Path) -> None:
    ports = dict(zip((_PEC, _PSC, _BSC), free_ports(3), strict=True))
    async with AsyncExitStack() as stack:
        pec = await stack.enter_async_context(DirectoryServer(_founded(home, ports)))
        servers = {_PEC: pec}
        for name, role, site in ((_PSC, Role.PSC, "South"), (_BSC, Role.BSC, "South")):
            config = await asyncio.to_thread(_joined, home, pec, name, role, site)
            servers[name] = await stack.enter_async_context(DirectoryServer(config))
        machines = [
            [await _has(server, ObjectType.MACHINE, name) for name in (_PEC, _PSC)]
            for server in servers.values()
        ]
        told = f"{_PSC} and {_BSC} have joined and got their directory from nothing"
        guide.confirm(told, all(map(all, machines)))
        seconds = await _create(servers, f"{_PEC}\\orders", at=_BSC)
        told = f"a queue created at {_BSC}, decided by {_PEC}: on all three after"
        guide.confirm(f"{told} {seconds * 1000:.0f} ms", seconds < _WAIT_S)
        seconds = await _create(servers, f"{_PSC}\\invoices", at=_PEC)
        told = f"another at {_PEC}, decided by {_PSC}: on all three after"
        guide.confirm(f"{told} {seconds * 1000:.0f} ms", seconds < _WAIT_S)


# --- servers --------------------------------------------------------------------------------------


def _founded(home: Path, ports: dict[str, int]) -> Config:
    """A new enterprise; for the length of the tour everybody may change it."""
    url = f"sqlite:{home / _PEC}.db"
    with closing(open_store(url, create=True)) as store:
        found(store, "Tour", "North", _PEC)
    return override(
        Config(),
        {
            "server": {"name": _PEC, "role": "pec"},
            "store": {"url": url},
            "rpc": {"listen": "127.0.0.1", "mapper": False},
            "security": {
                "accounts": str(home / "accounts.toml"),
                "administrators": [_EVERYBODY],
            },
            "replication": {"port": ports[_PEC], "key": str(home / f"{_PEC}.key")},
            "hosts": {name: f"127.0.0.1:{port}" for name, port in ports.items()},
        },
        "the tour",
    )


def _joined(home: Path, pec: DirectoryServer, name: str, role: Role, site: str) -> Config:
    """What ``mqis join`` does and writes."""
    key = MachineKey.open(home / f"{name}.key")
    with connected(login([f"127.0.0.1:{pec.ready.port}"], anonymous=True)) as remote:
        member = join(remote, Wanted(name, role, site, _PEC, key.public))
    url = f"sqlite:{home / name}.db"
    open_store(url, create=True).close()
    hosts = dict(pec.config.hosts.entries)
    port = int(hosts[name].rpartition(":")[2])
    known = override(pec.config, membership(_PEC, member, hosts, "127.0.0.1"), "the tour")
    return override(
        known,
        {
            "server": {"name": name, "role": role.value, "site": site},
            "store": {"url": url},
            "replication": {"port": port, "key": str(home / f"{name}.key")},
        },
        "the tour",
    )


# --- a client -------------------------------------------------------------------------------------


async def _create(servers: dict[str, DirectoryServer], path: str, *, at: str) -> float:
    """Create a queue at one server; the seconds until every one has it."""
    label = PropVariant(VarType.LPWSTR, "Seen everywhere")
    async with _client(servers[at]) as client:
        await client.create(ObjectType.QUEUE, path, {PropId.Q_LABEL: label})
    began = time.monotonic()
    for server in servers.values():
        while not await _has(server, ObjectType.QUEUE, path) and time.monotonic() < began + _WAIT_S:
            await asyncio.sleep(0.002)
    return time.monotonic() - began


async def _has(server: DirectoryServer, object_type: ObjectType, path: str) -> bool:
    async with _client(server) as client:
        try:
            await client.get(object_type, [IDENTIFIER_PROPERTY[object_type]], path=path)
        except DirectoryError:
            return False
        return True


@asynccontextmanager
async def _client(server: DirectoryServer) -> AsyncIterator[DirectoryClient]:
    address = ServerAddress("127.0.0.1", server.ready.port)
    async with await DirectoryClient.connect([address]) as client:
        yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Servers that start and stop would tell of it between the lines of the tour."""
    logger = logging.getLogger("mqis")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
