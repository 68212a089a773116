"""Small enterprises of real servers in this process, each with a home of its own on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.file import default_toml, load, override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.errors import DirectoryError
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.directory_server import DirectoryServer
from mqis.server.founding import found
from mqis.server.identity import seed_text
from mqis.server.restoremark import mark_of
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests import waiting

QUEUE, MACHINE, SITE = ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.SITE
NAMES = ("pec1", "psc2", "bsc3", "bsc4")
_BITS = {"psc": 4, "bsc": 2}


def text(value: str) -> PropVariant:
    return PropVariant(VarType.LPWSTR, value)


class Site:
    """Homes below one directory. Everybody may do everything: rights are tested elsewhere."""

    def __init__(
        self, directory: Path, *, recovery_wait_s: int = 3, signing: str = "require"
    ) -> None:
        self.directory = directory
        self.homes: dict[str, Path] = {}
        self.ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
        self.rpc_ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
        self._recovery_wait_s = recovery_wait_s
        self._signing = signing

    def home(self, name: str) -> Path:
        home = self.homes[name] = self.directory / name
        home.mkdir()
        MachineKey.open(home / "signing.key")
        return home

    def write(self, name: str, **values: dict[str, object]) -> None:
        """The configuration of one server."""
        base: dict[str, dict[str, object]] = {
            "server": {"name": name},
            "store": {"url": "sqlite:d.db"},
            "rpc": {"mapper": False, "port": self.rpc_ports[name]},
            "security": {"administrators": ["S-1-1-0"]},
            "replication": {
                "port": self.ports[name],
                "recovery_wait_s": self._recovery_wait_s,
                "connect_retry_s": 1,
                "retry_s": 2,
                "heartbeat_s": 2,
                "reply_wait_s": 20,
                "signing": self._signing,
            },
            "hosts": {n: f"127.0.0.1:{port}" for n, port in self.ports.items()},
        }
        for section, keys in values.items():
            base[section] = {**base.get(section, {}), **keys}
        config = override(Config(), base, "test")
        (self.homes[name] / "mqis.toml").write_text(default_toml(config))

    def found(self, name: str) -> Path:
        """A new enterprise with its PEC."""
        home = self.home(name)
        with closing(open_store(str(home / "d.db"), create=True)) as store:
            found(store, "Acme", "Delft", name)
        self.write(name, server={"role": "pec", "site": "Delft"})
        return home

    async def join(
        self, pec: DirectoryServer, name: str, role: str, site: str, psc: str = ""
    ) -> Path:
        """Joins a server by the calls that 'mqis join' makes."""
        home = self.home(name)
        key = MachineKey.open(home / "signing.key")
        blob = key_list(key.public)
        async with client_of(pec) as client:
            if role == "psc":
                keys: dict[int, PropVariant] = props(
                    {PropId.S_PSC: name, PropId.S_PSC_SIGNPK: blob}
                )
                site_id = await client.create(SITE, site, keys)
            else:
                site_id = await id_of(client, SITE, site)
            assert site_id is not None
            machine = await client.create(
                MACHINE,
                name,
                props(
                    {
                        PropId.QM_SITE_ID: site_id,
                        PropId.QM_SERVICE: _BITS[role],
                        PropId.QM_SIGN_PKS: blob,
                    }
                ),
            )
            if machine is None:
                machine = await id_of(client, MACHINE, name)
            seeds = [await self._seed(client, n) for n in dict.fromkeys(("pec1", psc)) if n]
        open_store(str(home / "d.db"), create=True).close()
        self.write(
            name,
            server={"role": role, "site": site},
            replication={
                "pec": "pec1",
                "psc": psc,
                "id": str(machine),
                "site_id": str(site_id),
                "seeds": seeds,
            },
        )
        return home

    async def _seed(self, client: DirectoryClient, name: str) -> str:
        key = MachineKey.open(self.homes[name] / "signing.key").public
        return seed_text(Seed(name, await id_of(client, MACHINE, name), key))

    @asynccontextmanager
    async def serving(self, name: str) -> AsyncIterator[DirectoryServer]:
        async with DirectoryServer(load(self.homes[name] / "mqis.toml"), grace_s=1) as server:
            yield server

    # --- looking ----------------------------------------------------------------------------------

    def numbers(self, name: str) -> dict[str, int]:
        """Last numbers by the names of partitions, from the store itself."""
        with closing(open_store(str(self.homes[name] / "d.db"))) as store, store.read() as view:
            found = {}
            for state in view.partitions():
                site = view.get(SITE, state.id)
                called = "enterprise" if state.id == ENTERPRISE_PARTITION else str(state.id)
                found[called if site is None else str(site.path)] = state.last_seq.value
        return found

    def mark(self, name: str) -> str | None:
        with closing(open_store(str(self.homes[name] / "d.db"))) as store, store.read() as view:
            return mark_of(view)

    async def settled(self, condition: Callable[[], bool]) -> None:
        await waiting.until(condition)


@asynccontextmanager
async def client_of(server: DirectoryServer) -> AsyncIterator[DirectoryClient]:
    address = ServerAddress("127.0.0.1", server.ready.port)
    async with await DirectoryClient.connect([address]) as client:
        yield client


async def id_of(client: DirectoryClient, kind: ObjectType, name: str) -> Guid:
    """Once it is there: what another server decided comes a moment later."""
    propid = {SITE: PropId.S_SITEID, MACHINE: PropId.QM_MACHINE_ID}[kind]

    async def look() -> Guid | None:
        try:
            found = (await client.get(kind, [propid], path=name))[propid].value
        except DirectoryError:
            return None
        assert isinstance(found, Guid)
        return found

    return await waiting.until(look, f"{kind.label} {name}")


async def create(server: DirectoryServer, path: str, label: str) -> None:
    async with client_of(server) as client:
        await client.create(QUEUE, path, props({PropId.Q_LABEL: label}))


async def label_of(server: DirectoryServer, path: str) -> str | None:
    async with client_of(server) as client:
        try:
            return str((await client.get(QUEUE, [PropId.Q_LABEL], path=path))[PropId.Q_LABEL].value)
        except DirectoryError:
            return None


async def until(server: DirectoryServer, path: str, label: str | None) -> None:
    async def look() -> bool:
        return await label_of(server, path) == label

    await waiting.until(look, f"{path} with {label!r}")


async def create_soon(server: DirectoryServer, path: str, label: str) -> None:
    """An authority that asks the others first says so; it is tried again."""

    async def attempt() -> bool:
        try:
            await create(server, path, label)
        except DirectoryError:
            return False
        return True

    await waiting.until(attempt, f"{path} created")
