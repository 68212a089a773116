"""A local enterprise of mqis servers: a PEC, a PSC in another site, and a BSC in the PEC's site.

Each is a process with a SQLite file; they use sockets, and every message is signed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench import calls, member, twins
from bench.calls import RpcPeer
from bench.enterprise import NOW
from bench.load import LoadError, Operation, Target
from bench.member import Home, Member
from bench.twins import Queue
from mqis.protocol.directory.descriptors import default_descriptor
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.ports import Transaction, View
from mqis.protocol.replication.replicated import content
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.founding import found
from mqis.server.identity import seed_text
from mqis.storage.sqlite import SqliteStore
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import ADMINISTRATORS

PEC, PSC, BSC = "PEC1", "PSC2", "BSC3"
SITE, OTHER_SITE = "HEADQUARTERS", "BRANCH"


@dataclass(frozen=True, slots=True)
class Planned:
    """An enterprise with filled stores, before its servers start."""

    authority: Home
    replicas: tuple[Home, ...]
    #: The partitions that replicas get from the PEC.
    partitions: tuple[Guid, ...]


def plan(directory: Path, replicas: Sequence[str], machines: int, queues: int) -> Planned:
    """Fills the PEC's store, also with the objects that 'mqis join' creates for replicas."""
    names = (PEC, *replicas)
    ports = zip(names, free_ports(len(names)), strict=True)
    homes = {name: Home(directory / name, port) for name, port in ports}
    for home in homes.values():
        home.directory.mkdir(parents=True)
    keys = {n: MachineKey.open(home.directory / "signing.key") for n, home in homes.items()}
    with closing(SqliteStore(homes[PEC].store)) as store:
        found(store, "Bench", SITE, PEC)
        with store.write() as tx:
            machine, site = _found(tx, ObjectType.MACHINE, PEC), _found(tx, ObjectType.SITE, SITE)
            seed = seed_text(Seed(PEC, machine, keys[PEC].public))
            for name in replicas:
                _admit(tx, homes, name, key=keys[name], site=site, seed=seed)
            twins.populate(tx, site, machines, queues)
    homes[PEC].configure(homes.values(), role="pec", site=SITE)
    partitions = (ENTERPRISE_PARTITION, site)
    return Planned(homes[PEC], tuple(homes[name] for name in replicas), partitions)


def _found(view: View, kind: ObjectType, path: str) -> Guid:
    obj = view.find(kind, path)
    assert obj is not None
    return obj.id


def _admit(
    tx: Transaction, homes: dict[str, Home], name: str, *, key: MachineKey, site: Guid, seed: str
) -> None:
    """Joins a replica as 'mqis join' does: makes its objects, configuration and empty store."""
    events = DirectoryEvents(tx, NOW, SystemEntropy(), own_site=site)
    public = key_list(key.public)
    role, where, bits = "bsc", SITE, ServiceBits.BSC
    if name == PSC:
        role, where, bits = "psc", OTHER_SITE, ServiceBits.PSC
        properties: dict[int, PropVariant] = props(
            {
                PropId.S_PSC: name,
                PropId.S_PSC_SIGNPK: public,
            }
        )
        site = events.create(
            ObjectType.SITE, where, properties, security=_descriptor(ObjectType.SITE)
        ).id
    properties = props(
        {
            PropId.QM_SITE_ID: site,
            PropId.QM_SERVICE: int(bits),
            PropId.QM_SIGN_PKS: public,
        }
    )
    machine = events.create(
        ObjectType.MACHINE, name, properties, security=_descriptor(ObjectType.MACHINE)
    )
    homes[name].configure(
        homes.values(),
        role=role,
        site=where,
        pec=PEC,
        psc=PEC if role == "bsc" else name,
        id=str(machine.id),
        site_id=str(site),
        seeds=[seed],
    )
    SqliteStore(homes[name].store).close()


def _descriptor(kind: ObjectType) -> bytes:
    return default_descriptor(kind, ADMINISTRATORS).to_bytes()


class Members:
    """The ``replication.Side`` of mqis: the servers of an enterprise."""

    name = "mqis"

    def __init__(self, planned: Planned, queues: int, resources: ExitStack) -> None:
        self._planned = planned
        self._resources = resources
        self._next = queues
        self._creates = twins.creates(
            queues,
            "utf-16-le",
            lambda queue: calls.create_queue(queue.path, queue.properties(), twins.GIVEN),
        )
        self.members: list[Member] = []
        self._numbers: list[sqlite3.Connection] = []
        #: The PEC, then the replicas, once they accept calls.
        self.targets: list[Target[RpcPeer]] = []

    @property
    def homes(self) -> tuple[Home, ...]:
        return self._planned.authority, *self._planned.replicas

    def start_authority(self) -> None:
        self._start(self._planned.authority)
        self.await_ready()

    def start_replicas(self) -> None:
        for home in self._planned.replicas:
            self._start(home)

    def await_ready(self) -> None:
        for each in self.members[len(self.targets) :]:
            self.targets.append(Target(each.pid, each.ready(), RpcPeer))

    def _start(self, home: Home) -> None:
        self.members.append(member.start(home, self._resources))
        uri = f"{home.store.absolute().as_uri()}?mode=ro"
        numbers = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10)
        self._resources.enter_context(closing(numbers))
        self._numbers.append(numbers)

    def pids(self) -> list[int]:
        return [each.pid for each in self.members]

    # --- changes ----------------------------------------------------------------------------------

    def creates(self, count: int) -> Iterator[bytes]:
        """Requests that create so many new queues."""
        self._next += count
        return islice(self._creates, count)

    def create(self, peer: RpcPeer, request: bytes) -> Operation:
        return peer.create(request)

    def read_last(self, peer: RpcPeer) -> Operation:
        """Reads the last queue of ``creates``."""
        queue = Queue(self._next - 1)
        return peer.call(calls.get_props(queue.path, (PropId.Q_LABEL,), queue.label))

    # --- replicas ---------------------------------------------------------------------------------

    def equal(self) -> bool:
        """Compares the last number of each partition, as a replica has no gaps below it."""
        true, *copies = (self._last(numbers) for numbers in self._numbers)
        return all(copy == true for copy in copies)

    def _last(self, numbers: sqlite3.Connection) -> list[bytes | None]:
        known = dict(numbers.execute("SELECT id, last_seq FROM partitions").fetchall())
        return [known.get(partition.raw) for partition in self._planned.partitions]

    def compare(self) -> int:
        """Compares all objects; returns their number. Raises ``LoadError`` at a difference."""
        with ExitStack() as opened:
            true, *copies = (opened.enter_context(_view(home)) for home in self.homes)
            for home, copy in zip(self._planned.replicas, copies, strict=True):
                self._compare(true, copy, home.name)
            return sum(1 for _ in self._held(true))

    def _compare(self, true: View, copy: View, name: str) -> None:
        for obj in self._held(true):
            held = copy.get(obj.type, obj.id)
            if held is None or held.seq != obj.seq or content(held) != content(obj):
                fault = "is missing" if held is None else "differs"
                raise LoadError(f"{name}: {obj.path} {fault}")
        extra = sum(1 for _ in self._held(copy)) - sum(1 for _ in self._held(true))
        if extra:
            raise LoadError(f"{name}: {extra} objects too many")

    def _held(self, view: View) -> Iterator[DirectoryObject]:
        for kind in ObjectType:
            for obj in view.objects(kind):
                if obj.partition in self._planned.partitions:
                    yield obj


@contextmanager
def _view(home: Home) -> Iterator[View]:
    with closing(SqliteStore(home.store, create=False)) as store, store.read() as view:
        yield view
