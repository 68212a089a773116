"""The demonstration enterprise with two of its servers running, in a thread of this process.

ams-dir1 is the PEC and has the directory; ber-dir1 is the PSC of Berlin and gets it by replication.
The other servers that the directory names do not run, as it happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from mqis.client.directory import DirectoryClient
from mqis.client.remote import RemoteUser, connect
from mqis.client.servers import ServerAddress
from mqis.config.file import default_toml, override
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Store
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.accounts import AccountsFile
from mqis.server.directory_server import DirectoryServer
from mqis.server.identity import seed_text
from mqis.testing.ports import free_ports
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import ADMINISTRATORS
from tests.waiting import DEADLINE_S

ALICE, ALICES_PASSWORD = "LAB\\alice", "rabbit hole"
BOB, BOBS_PASSWORD = "LAB\\bob", "builder"
PEC, PSC = "ams-dir1", "ber-dir1"

T = TypeVar("T")


class Enterprise:
    """Starts with ``start``; calls from other threads go through ``run``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.servers: dict[str, DirectoryServer] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_S)

    def start(self) -> None:
        self._thread.start()
        accounts = AccountsFile(self.home / "accounts.toml")
        accounts.add("alice", ALICES_PASSWORD, domain="LAB", groups=[ADMINISTRATORS])
        accounts.add("bob", BOBS_PASSWORD, domain="LAB")
        self.run(self._start())
        places = tuple(self._place(name) for name in self.servers)
        save_nodes(self.home, Nodes(demo.ENTERPRISE_NAME, places))

    def stop(self) -> None:
        for name in list(self.servers):
            self.stop_server(name)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)

    def stop_server(self, name: str) -> None:
        self.run(self.servers.pop(name).__aexit__())

    # --- what others change while the console looks on --------------------------------------------

    async def create_queue(self, path: str, label: str) -> str:
        """As an administrator somewhere else would, over RPC; its identifier."""
        properties: dict[int, PropVariant] = props({PropId.Q_LABEL: label})
        user = RemoteUser("alice", "LAB")
        async with await connect([self._address(PEC)], user, ALICES_PASSWORD) as client:
            made = await client.create(ObjectType.QUEUE, path, properties)
        assert made is not None
        return str(made)

    async def label(self, path: str, server: str = PEC) -> str | None:
        async with await DirectoryClient.connect([self._address(server)]) as client:
            try:
                got = await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path=path)
            except DirectoryError:
                return None
        return str(got[PropId.Q_LABEL].value)

    def _address(self, server: str) -> ServerAddress:
        return ServerAddress("127.0.0.1", self.servers[server].ready.port)

    # --- two servers ------------------------------------------------------------------------------

    async def _start(self) -> None:
        queue, other, *absent = free_ports(5)
        config = self._config(PEC, "pec", queue)
        config = override(config, {"hosts": self._hosts(queue, other, absent)}, "test")
        with closing(open_store(config.store.url, create=True)) as store:
            await asyncio.to_thread(demo.build, store)
            joining = self._joining(store, config, other)
        self.servers[PEC] = DirectoryServer(config, grace_s=1)
        await self.servers[PEC].start()
        self.servers[PSC] = DirectoryServer(joining, grace_s=1)
        await self.servers[PSC].start()

    def _config(self, name: str, role: str, port: int) -> Config:
        home = self.home / name
        home.mkdir()
        values: dict[str, dict[str, object]] = {
            "server": {"name": name, "role": role},
            "store": {"url": f"sqlite:{home / 'directory.db'}"},
            "rpc": {"mapper": False},
            "security": {"accounts": str(self.home / "accounts.toml"), "domain": "LAB"},
            "replication": {
                "port": port,
                "key": str(home / "key"),
                "journal": str(home / "journal"),
                "recovery_wait_s": 1,
            },
            "monitoring": {"enabled": True, "port": 0},
        }
        made = override(Config(), values, "test")
        (home / "mqis.toml").write_text(default_toml(made), encoding="utf-8")
        return made

    @staticmethod
    def _hosts(pec: int, psc: int, absent: list[int]) -> dict[str, object]:
        others = zip(("ams-dir2", "ber-dir2", "chi-dir1"), absent, strict=True)
        ports = {PEC: pec, PSC: psc, **dict(others)}
        return {name: f"127.0.0.1:{port}" for name, port in ports.items()}

    def _joining(self, store: Store, pec: Config, port: int) -> Config:
        """Does what 'mqis join' would have done: the directory gets the key of the PSC."""
        config = self._config(PSC, "psc", port)
        key = key_list(MachineKey.open(Path(config.replication.key)).public)
        pec_key = MachineKey.open(Path(pec.replication.key)).public
        with store.write() as tx:
            events = DirectoryEvents(tx, demo.NOW, SystemEntropy())
            machine = tx.find(ObjectType.MACHINE, PSC)
            site = tx.find(ObjectType.SITE, "Berlin")
            first = tx.find(ObjectType.MACHINE, PEC)
            assert machine is not None
            assert site is not None
            assert first is not None
            events.update_directory_object(machine, props({PropId.QM_SIGN_PKS: key}))
            events.update_directory_object(site, props({PropId.S_PSC_SIGNPK: key}))
        open_store(config.store.url, create=True).close()
        joined: dict[str, object] = {
            "pec": PEC,
            "id": str(machine.id),
            "site_id": str(site.id),
            "seeds": [seed_text(Seed(PEC, first.id, pec_key))],
        }
        values: dict[str, dict[str, object]] = {
            "replication": joined,
            "hosts": dict(pec.hosts.entries),
        }
        return override(config, values, "test")

    def _place(self, name: str) -> NodePlace:
        server = self.servers[name]
        ready, config = server.ready, server.config
        return NodePlace(
            name,
            ready.role,
            ready.site,
            "127.0.0.1",
            ready.port,
            ready.mapper_port or 0,
            ready.queue_port or 0,
            0,
            ready.monitoring_port or 0,
            str(self.home / name),
            str(self.home / name / "mqis.toml"),
            config.store.url,
            config.replication.journal,
            str(self.home / name / "log"),
            1,
        )
