"""Directory servers with a role: RPC in front, replication behind, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from shutil import copyfile

import pytest

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.errors import ConfigError
from mqis.config.file import override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.machine_values import sites_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.server_identity import Role
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.directory_server import DirectoryServer
from mqis.server.founding import found
from mqis.server.hosts import HostResolver
from mqis.server.identity import identify, parse_seed, seed_text
from mqis.storage.journal.journal_reader import records
from mqis.storage.memory_store import MemoryStore
from mqis.testing.ports import free_ports
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.journal import RecordKind
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.waiting import until

QUEUE, MACHINE, SITE = ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.SITE


def text(value: str) -> PropVariant:
    return PropVariant(VarType.LPWSTR, value)


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
            "reply_wait_s": 60,
        },
        hosts={"psc2": f"127.0.0.1:{ports[1]}", "pec1": f"127.0.0.1:{ports[0]}"},
    )


def with_values(config: Config, **values: dict[str, object]) -> Config:
    return override(config, values, "test")


async def joined(pec: DirectoryServer, home: Path, port: int, role: str = "psc") -> Config:
    """Joins a server by the calls that 'mqis join' makes."""
    home.mkdir()
    key = MachineKey.open(home / "key")
    pec_key = MachineKey.open(Path(pec.config.replication.key))
    blob = key_list(key.public)
    async with client_of(pec) as client:
        site = await client.create(
            SITE, "Leiden", props({PropId.S_PSC: "psc2", PropId.S_PSC_SIGNPK: blob})
        )
        assert site is not None
        machine = await client.create(
            MACHINE,
            "psc2",
            props(
                {
                    PropId.QM_SITE_ID: site,
                    PropId.QM_SERVICE: 4,
                    PropId.QM_SIGN_PKS: blob,
                }
            ),
        )
        assert machine is not None
        known = (await client.get(MACHINE, [PropId.QM_MACHINE_ID], path="pec1")).popitem()[1].value
        assert isinstance(known, Guid)
    url = f"sqlite:{home / 'd.db'}"
    open_store(url, create=True).close()
    return with_values(
        pec.config,
        server={"name": "psc2", "role": role},
        store={"url": url},
        replication={
            "port": port,
            "key": str(home / "key"),
            "pec": "pec1",
            "id": str(machine),
            "site_id": str(site),
            "seeds": [seed_text(Seed("pec1", known, pec_key.public))],
        },
    )


@asynccontextmanager
async def client_of(server: DirectoryServer) -> AsyncIterator[DirectoryClient]:
    client = await DirectoryClient.connect([ServerAddress("127.0.0.1", server.ready.port)])
    async with client:
        yield client


async def label(server: DirectoryServer, path: str) -> str | None:
    async with client_of(server) as client:
        try:
            got = await client.get(QUEUE, [PropId.Q_LABEL], path=path)
        except DirectoryError:
            return None
        return str(got[PropId.Q_LABEL].value)


async def becomes(server: DirectoryServer, path: str, value: str | None) -> None:
    async def look() -> bool:
        return await label(server, path) == value

    await until(look)


@pytest.mark.req("MQDS-3.1.4.9-11", "MQDSRP-3.1.7.2.1-03", "MQDSRP-2.1-01")
def test_an_update_by_path_is_propagated(tmp_path: Path) -> None:
    async def run() -> None:
        ports = free_ports(2)
        async with DirectoryServer(pec_config(tmp_path / "pec1", ports), grace_s=1) as pec:
            config = await joined(pec, tmp_path / "psc2", ports[1])
            async with DirectoryServer(config, grace_s=1) as psc, client_of(pec) as client:
                assert (psc.ready.role, psc.ready.partitions) == ("psc", ("Leiden",))
                await client.create(QUEUE, "pec1\\q", props({PropId.Q_LABEL: "before"}))
                await becomes(psc, "pec1\\q", "before")
                await client.set(QUEUE, props({PropId.Q_LABEL: "after"}), path="pec1\\q")
                await becomes(psc, "pec1\\q", "after")

    asyncio.run(run())


def test_a_change_for_another_authority_is_forwarded_and_answered(tmp_path: Path) -> None:
    async def run() -> None:
        ports = free_ports(2)
        async with DirectoryServer(pec_config(tmp_path / "pec1", ports), grace_s=1) as pec:
            config = await joined(pec, tmp_path / "psc2", ports[1])
            async with DirectoryServer(config, grace_s=1) as psc, client_of(psc) as client:
                made = await client.create(QUEUE, "pec1\\q", props({PropId.Q_LABEL: "mine"}))
                assert await label(pec, "pec1\\q") == "mine", "acknowledged before it was made"
                await becomes(psc, "pec1\\q", "mine")
                got = await client.get(QUEUE, [PropId.Q_INSTANCE], path="pec1\\q")
                assert got[PropId.Q_INSTANCE].value == made
                with pytest.raises(DirectoryError) as refused:
                    await client.create(SITE, "Delft", props({PropId.S_PSC: "x"}))
                assert refused.value.hresult == HResult.MQ_ERROR_QUEUE_EXISTS
            with pytest.raises(DirectoryError) as dead:
                async with client_of(pec) as client:
                    await client.create(QUEUE, "psc2\\q", props({PropId.Q_LABEL: ""}))
            assert dead.value.hresult in (
                HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER,
                HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE,
            )

    asyncio.run(run())


def test_the_journal_has_what_happened(tmp_path: Path) -> None:
    async def run() -> None:
        config = pec_config(tmp_path / "pec1", free_ports(2))
        journal = tmp_path / "journal"
        config = with_values(config, replication={"journal": str(journal)})
        async with DirectoryServer(config, grace_s=1) as pec, client_of(pec) as client:
            await client.create(QUEUE, "pec1\\q", props({PropId.Q_LABEL: ""}))
        kinds = [entry.record.kind for entry in records(journal)]
        assert RecordKind.CHANGE in kinds

    asyncio.run(run())


def test_a_restored_authority_gets_back_what_the_others_have(tmp_path: Path) -> None:
    async def run() -> None:
        ports = free_ports(2)
        config = pec_config(tmp_path / "pec1", ports)
        file, backup = tmp_path / "pec1" / "d.db", tmp_path / "backup.db"
        async with DirectoryServer(config, grace_s=1) as pec:
            second = await joined(pec, tmp_path / "psc2", ports[1])
            async with DirectoryServer(second, grace_s=1):
                pass
        copyfile(file, backup)
        async with DirectoryServer(second, grace_s=1) as psc:
            async with DirectoryServer(config, grace_s=1) as pec, client_of(pec) as client:
                await client.create(QUEUE, "pec1\\late", props({PropId.Q_LABEL: "kept"}))
                await becomes(psc, "pec1\\late", "kept")
            for part in ("-wal", "-shm"):
                Path(f"{file}{part}").unlink(missing_ok=True)
            copyfile(backup, file)
            async with DirectoryServer(config, grace_s=1, restored=True) as pec:
                await becomes(pec, "pec1\\late", "kept")
                async with client_of(pec) as client:
                    await client.set(QUEUE, props({PropId.Q_LABEL: "new"}), path="pec1\\late")
                await becomes(psc, "pec1\\late", "new")

    asyncio.run(run())


def test_a_text_that_is_no_seed_changes_nothing_at_a_reread(tmp_path: Path) -> None:
    async def run() -> None:
        config = pec_config(tmp_path / "pec1", free_ports(2))
        async with DirectoryServer(config, grace_s=1) as pec:
            values = {"heartbeat_s": 77, "seeds": ["x y"]}
            with pytest.raises(ConfigError, match="'x y' is not NAME GUID KEY"):
                pec.reread(with_values(config, replication=values))
            assert pec.config == config
            result = pec.reread(with_values(config, replication={"seeds": []}))
            assert result.waiting == []

    asyncio.run(run())


def test_hosts_and_times_are_reread(tmp_path: Path) -> None:
    async def run() -> None:
        config = pec_config(tmp_path / "pec1", free_ports(2))
        async with DirectoryServer(config, grace_s=1) as pec:
            new = with_values(
                config,
                hosts={"psc2": "127.9.9.9:5"},
                replication={"heartbeat_s": 77, "signing": "none"},
            )
            result = pec.reread(new)
            assert result.applied == ["replication.heartbeat_s", "hosts"]
            assert result.waiting == ["replication.signing"]
            service = pec._replication
            assert service is not None
            assert await service.resolver("PSC2.example") == ("127.9.9.9", 5)
            assert service.driver.node.replication.settings.heartbeat_s == 77

    asyncio.run(run())


@pytest.mark.req("MQDSRP-3.1.3.3-01")
def test_a_busy_port_is_explained(tmp_path: Path) -> None:
    async def run() -> None:
        config = pec_config(tmp_path / "pec1", free_ports(2))
        server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            busy = with_values(config, replication={"port": port})
            with pytest.raises(MqisError, match=r"cannot listen for messages at 127\.0\.0"):
                async with DirectoryServer(busy):
                    pass

    asyncio.run(run())


# --- who a server is ------------------------------------------------------------------------------


class TestIdentity:
    def store(self) -> MemoryStore:
        store = MemoryStore()
        found(store, "Acme", "Delft", "pec1")
        return store

    def machine(self, store: MemoryStore) -> DirectoryObject:
        with store.read() as view:
            obj = view.find(MACHINE, "pec1")
        assert obj is not None
        return obj

    @pytest.mark.req("MQDSRP-3.1.1.1-03")
    def test_the_store_tells_who_the_pec_is(self) -> None:
        """A machine may stand in several sites: the first one counts."""
        store = self.store()
        machine = self.machine(store)
        [site] = sites_of(machine)
        both: dict[int, PropVariant] = props({PropId.QM_SITE_IDS: (site, Guid(b"s" * 16))})
        with store.write() as tx:
            tx.update(machine, machine.with_properties(both, machine.seq))
        config = with_values(Config(), server={"name": "PEC1", "role": "pec"})
        with store.read() as view:
            me = identify(config, view)
        assert (me.name, me.role, me.pec) == ("PEC1", Role.PEC, "pec1")
        assert (me.id, me.site) == (machine.id, site)

    @pytest.mark.parametrize(
        ("server", "replication", "message"),
        [
            (
                {"name": "x", "role": "psc"},
                {},
                "server.role: it is psc, but the directory has no ma",
            ),
            (
                {"name": "pec1", "role": "psc"},
                {},
                "server.role: it is psc, but the PEC of this ente",
            ),
            (
                {"name": "pec1", "role": "pec"},
                {"id": str(Guid(b"x" * 16))},
                "replication.id: it is .*, but the store says",
            ),
            (
                {"name": "x", "role": "psc"},
                {"id": str(Guid(b"x" * 16))},
                "replication.site_id: not set, and the machine 'x' names no site",
            ),
            (
                {"name": "x", "role": "psc"},
                {"id": str(Guid(b"x" * 16)), "site_id": str(Guid(b"y" * 16)), "seeds": ["x y"]},
                "replication.seeds: 'x y' is not NAME GUID KEY",
            ),
            (
                {"name": "x", "role": "bsc"},
                {"id": str(Guid(b"x" * 16)), "site_id": str(Guid(b"y" * 16))},
                "replication.psc: not set, and the store names no PSC",
            ),
        ],
    )
    def test_what_is_missing_is_named(
        self, server: dict[str, object], replication: dict[str, object], message: str
    ) -> None:
        config = with_values(Config(), server=server, replication=replication)
        with self.store().read() as view, pytest.raises(ConfigError, match=message):
            identify(config, view)

    def test_a_new_server_has_to_be_told_the_pec(self) -> None:
        config = with_values(
            Config(),
            server={"name": "x", "role": "psc"},
            replication={"id": str(Guid(b"x" * 16)), "site_id": str(Guid(b"y" * 16))},
        )
        with MemoryStore().read() as view, pytest.raises(ConfigError, match=r"replication\.pec"):
            identify(config, view)

    def test_seeds_are_text(self) -> None:
        seed = Seed("pec1", Guid(b"x" * 16), MachineKey.generate().public)
        assert parse_seed(seed_text(seed)) == seed
        assert parse_seed(seed_text(Seed("a", Guid(b"x" * 16)))).key is None


class TestHosts:
    def test_the_configuration_then_the_directory_then_dns(self) -> None:
        store = MemoryStore()
        found(store, "Acme", "Delft", "pec1", "10.1.2.3")
        resolver = HostResolver(store, [("psc2", "10.0.0.2"), ("psc3", "[::1]:7")], 1805)

        async def run() -> None:
            assert await resolver("PSC2") == ("10.0.0.2", 1805)
            assert await resolver("psc3") == ("::1", 7)
            assert await resolver("pec1") == ("10.1.2.3", 1805)
            assert await resolver("127.0.0.9") == ("127.0.0.9", 1805)
            resolver.use([("pec1", "10.9.9.9:9")])
            assert await resolver("pec1") == ("10.9.9.9", 9)

        asyncio.run(run())
