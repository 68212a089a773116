"""Runs five directory servers in three sites as local processes, with links that can be cut.

Every server reaches each other one through a separate proxy, so each link can fail on its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mqis.config.file import default_toml, override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.service import ServiceBits
from mqis.protocol.ports import Store
from mqis.protocol.replication.replicated import content
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.founding import found
from mqis.server.identity import seed_text
from mqis.storage.journal.checking import check_journal
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import props
from mqis.wire.propvariant import PropVariant, VarType

HOST = "127.0.0.1"
ENTERPRISE = "Chaos"
#: Name, site, role; the first of a site is its authority.
SERVERS = (
    ("ams-dir1", "Amsterdam", "pec"),
    ("ams-dir2", "Amsterdam", "bsc"),
    ("ber-dir1", "Berlin", "psc"),
    ("ber-dir2", "Berlin", "bsc"),
    ("chi-dir1", "Chicago", "psc"),
)
PEC = SERVERS[0][0]
_BITS = {"pec": ServiceBits.PEC, "psc": ServiceBits.PSC, "bsc": ServiceBits.BSC}
START_S = 180.0


# --- links ----------------------------------------------------------------------------------------


class Link:
    """A proxy from one server to another, which can be cut for a while."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.up = True

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self.up = False
        for writer in list(self._writers):
            writer.transport.abort()
        self._writers.clear()

    def close(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.up:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pipe(reader, far_writer), self._pipe(far_reader, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
            self._writers.discard(writer)


# --- servers --------------------------------------------------------------------------------------


@dataclass
class Server:
    """One server; its files outlive its processes."""

    name: str
    site: str
    role: str
    home: Path
    rpc_port: int
    queue_port: int
    id: Guid = field(default_factory=lambda: SystemEntropy().guid())
    process: asyncio.subprocess.Process | None = None

    @property
    def up(self) -> bool:
        return self.process is not None

    @property
    def store(self) -> Path:
        return self.home / "directory.db"

    async def start(self) -> None:
        """Starts the process and waits until it is ready."""
        log = (self.home / "log").open("ab")
        with log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mqis.cli.main", "serve", "--json"),
                cwd=self.home,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={k: v for k, v in os.environ.items() if not k.startswith("MQIS_")},
            )
        assert process.stdout is not None
        line = b""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(START_S):
                    line = await process.stdout.readline()
        finally:
            if not line and process.returncode is None:
                process.kill()
                await process.wait()
        if not line or json.loads(line)["event"] != "ready":
            raise RuntimeError(f"{self.name} did not start: {(self.home / 'log').read_text()}")
        self.process = process

    async def kill(self) -> None:
        """Ends the process with SIGKILL."""
        process, self.process = self.process, None
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()

    async def stop(self) -> int:
        process, self.process = self.process, None
        if process is None:
            return 0
        if process.returncode is None:
            process.terminate()
        return await process.wait()


@dataclass
class Enterprise:
    """All servers, and the links between them."""

    servers: dict[str, Server]
    links: dict[tuple[str, str], Link]

    @classmethod
    async def build(cls, directory: Path, signing: str) -> Enterprise:
        """Makes the servers; the PEC has the directory, the others get it by replication."""
        ports = free_ports(2 * len(SERVERS))
        servers = {
            name: Server(name, site, role, directory / name, ports[2 * n], ports[2 * n + 1])
            for n, (name, site, role) in enumerate(SERVERS)
        }
        links = {}
        for near in servers:
            for far, server in servers.items():
                if near != far:
                    link = links[near, far] = Link(server.queue_port)
                    await link.open()
        made = cls(servers, links)
        made._write(signing)
        return made

    def _write(self, signing: str) -> None:
        keys = {}
        for server in self.servers.values():
            server.home.mkdir(parents=True)
            keys[server.name] = MachineKey.open(server.home / "signing.key")
            open_store(str(server.store), create=True).close()
        with closing(open_store(str(self.servers[PEC].store), claim=True)) as store:
            sites = _fill(store, self.servers, keys)
        for server in self.servers.values():
            (server.home / "mqis.toml").write_text(self._config(server, sites, keys, signing))

    def _config(
        self, server: Server, sites: dict[str, Guid], keys: dict[str, MachineKey], signing: str
    ) -> str:
        psc = next(s.name for s in self.servers.values() if s.site == server.site)
        seeds = {PEC, psc} - {server.name}
        known = [seed_text(Seed(n, self.servers[n].id, keys[n].public)) for n in sorted(seeds)]
        values: dict[str, dict[str, object]] = {
            "server": {"name": server.name, "role": server.role, "site": server.site},
            "store": {"url": "sqlite:directory.db"},
            "rpc": {"port": server.rpc_port, "mapper": False},
            "security": {"administrators": ["S-1-1-0"]},  # everyone: it listens on loopback only
            "replication": {
                "port": server.queue_port,
                "pec": PEC,
                "psc": psc,
                "id": str(server.id),
                "site_id": str(sites[server.site]),
                "seeds": known,
                "signing": signing,
                "journal": "journal",
                "notify": False,
                "heartbeat_s": 5,
                "retry_s": 2,
                "reply_wait_s": 5,
                "recovery_wait_s": 30,
                "connect_retry_s": 1,
            },
            "hosts": {
                far: f"{HOST}:{link.port}"
                for (near, far), link in self.links.items()
                if near == server.name
            },
            "log": {"level": "warning"},
        }
        return default_toml(override(Config(), values, "chaos"))

    async def start(self) -> None:
        await self.servers[PEC].start()
        pscs = [s for s in self.servers.values() if s.role == "psc"]
        await asyncio.gather(*(server.start() for server in pscs))
        rest = [s for s in self.servers.values() if not s.up]
        await asyncio.gather(*(server.start() for server in rest))

    async def close(self) -> None:
        await asyncio.gather(*(server.kill() for server in self.servers.values()))
        for link in self.links.values():
            link.close()

    # --- judging ----------------------------------------------------------------------------------

    def faults(self) -> list[str]:
        """Faults of the stores and journals; the servers must have ended."""
        found = []
        for server in self.servers.values():
            with closing(open_store(str(server.store))) as store:
                found += [f"{server.name}: {fault}" for fault in store.check()]
            journal = server.home / "journal"
            found += [
                f"{server.name}: journal: {fault}"
                for fault in [str(fault) for fault in check_journal(journal).faults]
            ]
        return found

    def differences(self) -> list[str]:
        """Differences between the replicas; also works while servers run."""
        copies = {name: copy_of(server.store) for name, server in self.servers.items()}
        first = copies[PEC]
        return [
            f"{name} has {_compare(first, copy)}" for name, copy in copies.items() if copy != first
        ]


Copy = dict[str, object]


def copy_of(path: Path) -> Copy:
    """The content that replicas have to agree on: all objects, and each partition's last number."""
    held: Copy = {}
    with closing(open_store(str(path))) as store, store.read() as view:
        for kind in ObjectType:
            for obj in view.objects(kind):
                held[f"{kind.label} {obj.id}"] = (obj.partition, obj.seq, content(obj))
        for state in view.partitions():
            held[f"partition {state.id}"] = (state.last_seq, state.owner.lower())
    return held


def _compare(ours: Copy, theirs: Copy) -> str:
    lacks = [key for key in ours if key not in theirs]
    more = [key for key in theirs if key not in ours]
    other = [key for key in ours if key in theirs and ours[key] != theirs[key]]
    summary = f"{len(lacks)} missing, {len(more)} too many, {len(other)} different"
    return f"{summary}: {', '.join((lacks + more + other)[:3])}"


def _fill(store: Store, servers: dict[str, Server], keys: dict[str, MachineKey]) -> dict[str, Guid]:
    """Creates in one step the objects that joining servers would create."""
    pec = servers[PEC]
    found(store, ENTERPRISE, pec.site, pec.name)
    sites: dict[str, Guid] = {}
    with store.write() as tx:
        events = DirectoryEvents(tx, 0, SystemEntropy())
        machine = tx.find(ObjectType.MACHINE, PEC)
        assert machine is not None
        pec.id = machine.id
        events.update_directory_object(machine, {PropId.QM_SIGN_PKS: _key(keys[PEC])})
        for server in servers.values():
            if server.site not in sites:
                sites[server.site] = _site(events, server).id
            if server is not pec:
                events.create(
                    ObjectType.MACHINE,
                    server.name,
                    props(
                        {
                            PropId.QM_MACHINE_ID: server.id,
                            PropId.QM_SITE_ID: sites[server.site],
                            PropId.QM_SERVICE: int(_BITS[server.role]),
                            PropId.QM_SIGN_PKS: _key(keys[server.name]),
                        }
                    ),
                )
    return sites


def _site(events: DirectoryEvents, psc: Server) -> DirectoryObject:
    known = events.transaction.find(ObjectType.SITE, psc.site)
    name = psc.name
    return known or events.create(ObjectType.SITE, psc.site, props({PropId.S_PSC: name}))


def _key(key: MachineKey) -> PropVariant:
    return PropVariant(VarType.BLOB, key_list(key.public))
