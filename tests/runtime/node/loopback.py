"""Servers of one enterprise in this process, with sockets and stores of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.protocol.node.node import Node, Outcome
from mqis.protocol.ports import Store
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.protocol.replication.effects import Refusal
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.server_identity import Role, Server
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.driver import NodeDriver
from mqis.runtime.node.members import Members, Seed
from mqis.runtime.node.signer import MachineKey, MachineSigner
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from tests.waiting import DEADLINE_S, until

T = TypeVar("T")

QUEUE, MACHINE, SITE = ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.SITE
#: As the real ones, but in a hurry, except that an answer may take its time.
SETTINGS = ReplicationSettings(
    retry_s=1.0, max_retry_s=2.0, reply_wait_s=DEADLINE_S, repeat_s=1.0, recovery_retry_s=0.5
)
LIMITS = QueueingLimits(retry_s=0.1, retry_max_s=0.5)


@cache
def machine_key(name: str) -> MachineKey:
    """One for each name and run: making them takes a while."""
    assert name
    return MachineKey.generate(1024)


@dataclass
class Host:
    """The part of a server that survives a crash: its identity and its store."""

    me: Server
    store: Store = field(default_factory=MemoryStore)
    seeds: dict[Guid, Seed] = field(default_factory=dict)
    policy: SigningPolicy = SigningPolicy.NONE
    signs: bool = True
    port: int = 0
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.me.name

    def find(self, kind: ObjectType, path: str) -> DirectoryObject | None:
        with self.store.read() as view:
            return view.find(kind, path)

    def refusals(self) -> list[str]:
        return [o.text for o in self.outcomes if isinstance(o, Refusal)]


class Net:
    """The address book of the servers; a proxy can be placed between two of them."""

    def __init__(self, policy: SigningPolicy = SigningPolicy.NONE) -> None:
        self.policy = policy
        self.hosts: dict[str, Host] = {}
        self.detours: dict[str, int] = {}

    async def resolve(self, machine: str) -> tuple[str, int]:
        port = self.detours.get(machine) or self.hosts[machine].port
        if not port:
            raise OSError(f"{machine} is down")
        return "127.0.0.1", port

    def pec(self, name: str, site: str) -> Host:
        me = Server(name, SystemEntropy().guid(), SystemEntropy().guid(), Role.PEC, name)
        host = self._add(me)
        with host.store.write() as tx:
            events = DirectoryEvents(tx, 0, SystemEntropy())
            events.create_directory_object(
                ObjectType.ENTERPRISE, props({PropId.E_NAME: "Lab", PropId.E_PECNAME: name})
            )
            events.create_directory_object(
                SITE,
                props(
                    {
                        PropId.S_PATHNAME: site,
                        PropId.S_PSC: name,
                        PropId.S_SITEID: me.site,
                    }
                ),
            )
            events.create_directory_object(MACHINE, self.machine(me, ServiceBits.PEC))
        return host

    def psc(self, name: str, pec: Host) -> Host:
        entropy = SystemEntropy()
        seeds = {pec.me.id: pec.name}
        me = Server(name, entropy.guid(), entropy.guid(), Role.PSC, pec.name, seeds=seeds)
        return self._add(me)

    def bsc(self, name: str, psc: Host, pec: Host) -> Host:
        seeds = {pec.me.id: pec.name, psc.me.id: psc.name}
        me = Server(
            name, SystemEntropy().guid(), psc.me.site, Role.BSC, pec.name, psc.name, seeds=seeds
        )
        return self._add(me)

    def _add(self, me: Server) -> Host:
        seeds = {
            id: Seed(name, id, machine_key(name).public)
            for id, name in me.seeds.items()  # noqa: A001
        }
        host = self.hosts[me.name] = Host(me, seeds=seeds, policy=self.policy)
        return host

    def machine(self, me: Server, bits: ServiceBits) -> dict[int, PropVariant]:
        found: dict[int, PropVariant] = props(
            {
                PropId.QM_PATHNAME: me.name,
                PropId.QM_MACHINE_ID: me.id,
                PropId.QM_SITE_IDS: (me.site,),
                PropId.QM_SERVICE: bits,
            }
        )
        if self.policy is not SigningPolicy.NONE:
            found[PropId.QM_SIGN_PKS] = prop(
                PropId.QM_SIGN_PKS, key_list(machine_key(me.name).public)
            )
        return found


class Running:
    """A server that is up."""

    def __init__(self, host: Host, driver: NodeDriver, writer: GroupCommitWriter) -> None:
        self.host = host
        self.driver = driver
        self.writer = writer

    async def create(
        self, kind: ObjectType, properties: dict[int, PropVariant], path: str | None = None
    ) -> DirectoryObject:
        if path is None:
            return await self.driver.change(lambda e: e.create_directory_object(kind, properties))
        return await self.driver.change(lambda e: e.create(kind, path, properties))

    async def queue(self, path: str, label: str = "") -> DirectoryObject:
        return await self.create(QUEUE, props({PropId.Q_LABEL: label}), path)

    async def admit(self, net: Net, other: Host, site: str = "") -> None:
        """Creates the objects of a new server here, as joining does."""
        me = other.me
        if site:
            await self.create(
                SITE,
                props(
                    {
                        PropId.S_PATHNAME: site,
                        PropId.S_PSC: me.name,
                        PropId.S_SITEID: me.site,
                    }
                ),
            )
        bits = ServiceBits.PSC if me.is_psc else ServiceBits.BSC
        await self.create(MACHINE, net.machine(me, bits))

    async def sees(self, kind: ObjectType, path: str) -> DirectoryObject:
        return await until(lambda: self.host.find(kind, path), f"{path} at {self.host.name}")

    async def serves(self, path: str) -> None:
        """Until this authority takes changes: a new one asks around first."""

        async def attempt() -> bool:
            try:
                await self.queue(path)
            except DirectoryError:
                return False
            return True

        await until(attempt, f"{self.host.name} serves")


@asynccontextmanager
async def running(
    net: Net,
    host: Host,
    settings: ReplicationSettings = SETTINGS,
    writer: GroupCommitWriter | None = None,
) -> AsyncIterator[Running]:
    """The server of ``host`` until the block ends, on the port that it had before."""
    writer = GroupCommitWriter(host.store) if writer is None else writer
    required = host.policy is SigningPolicy.REQUIRE
    members = Members(host.store, host.seeds, keys_required=required)
    signer = MachineSigner(machine_key(host.name), members.keys_of) if host.signs else None
    queue = QueueingMachine(
        host.me.id,
        host.name,
        MessageIdCounter(0),
        limits=LIMITS,
        peers=members,
        signer=None if host.policy is SigningPolicy.NONE else signer,
        policy=host.policy,
    )
    entropy = SystemEntropy()
    node = Node(Replication(host.me, entropy, settings, journaled=False), queue, entropy)
    driver = NodeDriver(node, writer, members, net.resolve, on_outcome=host.outcomes.append)
    try:
        async with driver:
            host.port = await driver.listen("127.0.0.1", host.port)
            yield Running(host, driver, writer)
    finally:
        await writer.close()
