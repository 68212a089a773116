"""A small enterprise on memory stores, whose every message the test sees and may lose.

Time stands still but for ``advance``. Nothing is random: identifiers follow from names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any, TypeVar

from mqis.protocol.clock import Instant
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DirectoryObject,
    Partition,
)
from mqis.protocol.directory.ownchange import NotAuthority, OwnChange
from mqis.protocol.ports import View
from mqis.protocol.queueing.events import Acknowledged
from mqis.protocol.queueing.queued_message import QueuedMessage as Envelope
from mqis.protocol.replication.convergence import HeldObject, copy_of, differences
from mqis.protocol.replication.effects import Effect, Recovered, Refusal, RequestAnswered, Send
from mqis.protocol.replication.machine import Received, Replication
from mqis.protocol.replication.server_identity import Role, Server
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import Message, decode_message, encode_message
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber

START = 1_700_000_000.0


def guid_of(name: str) -> Guid:
    return Guid(md5(name.lower().encode(), usedforsecurity=False).digest())


def text(value: str) -> PropVariant:
    return PropVariant(VarType.LPWSTR, value)


def number(value: int) -> SequenceNumber:
    return SequenceNumber(value)


class CountedEntropy:
    def __init__(self, name: str) -> None:
        self._name, self._count = name, 0

    def guid(self) -> Guid:
        self._count += 1
        return guid_of(f"{self._name}/{self._count}")


@dataclass(slots=True)
class Node:
    """One server: its store survives a crash, its machine does not."""

    server: Server
    settings: ReplicationSettings
    store: MemoryStore = field(default_factory=MemoryStore)
    machine: Replication = field(init=False)
    #: Every effect but messages, in order.
    told: list[Effect] = field(default_factory=list)
    up: bool = True
    lives: int = 0

    def __post_init__(self) -> None:
        self.boot()

    def boot(self) -> None:
        self.lives += 1
        entropy = CountedEntropy(f"{self.server.name}/{self.lives}")
        self.machine = Replication(self.server, entropy, self.settings)

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def holds_a_reply(self) -> bool:
        return any(p.held is not None for p in self.machine.memory.partitions.values())

    def refusals(self) -> list[str]:
        return [effect.text for effect in self.told if isinstance(effect, Refusal)]

    def answers(self) -> dict[int, int]:
        return {e.request: e.hresult for e in self.told if isinstance(e, RequestAnswered)}

    def recovered(self) -> list[Recovered]:
        return [effect for effect in self.told if isinstance(effect, Recovered)]

    def partition(self, id: Guid) -> Partition:  # noqa: A002
        with self.store.read() as view:
            found = view.partition(id)
        assert found is not None
        return found

    def knows(self, id: Guid) -> bool:  # noqa: A002
        with self.store.read() as view:
            return view.partition(id) is not None

    def last(self, id: Guid) -> int:  # noqa: A002
        return self.partition(id).last_seq.value

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        with self.store.read() as view:
            return view.find(object_type, path)

    def tombstones(self, partition: Guid) -> list[int]:
        with self.store.read() as view:
            changes = view.changes(partition, SequenceNumber.MIN)
            return [c.seq.value for c in changes if not isinstance(c, DirectoryObject)]

    def holds(self, partition: Guid) -> dict[Guid, HeldObject]:
        """The objects that this server holds of a partition."""
        with self.store.read() as view:
            return copy_of(_objects(view, partition))

    def copy_of(self, partition: Guid) -> dict[Guid, object]:
        """The same, as replicas of one site have to agree on it."""
        return {id_: (held.type, held.content) for id_, held in self.holds(partition).items()}


def _objects(view: View, partition: Guid) -> Iterator[DirectoryObject]:
    for object_type in ObjectType:
        for obj in view.objects(object_type):
            if obj.partition == partition:
                yield obj


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message on its way."""

    sender: str
    machine: str
    identifier: MessageIdentifier
    body: bytes
    authenticated: bool = False
    #: What the transport was asked for; forged messages have none.
    envelope: Envelope | None = None

    @property
    def message(self) -> Message:
        return decode_message(self.body)


Wanted = Callable[[Parcel], bool]
M = TypeVar("M", bound=Message)


class Enterprise:
    """Servers and the messages between them."""

    def __init__(
        self, settings: ReplicationSettings | None = None, *, signed: bool = False
    ) -> None:
        self.settings = settings or ReplicationSettings()
        self.signed = signed
        self.now = 1000.0
        self.nodes: dict[str, Node] = {}
        self.wire: deque[Parcel] = deque()
        #: Everything that was ever sent.
        self.sent: list[Parcel] = []
        self.lost: list[Parcel] = []
        self._losses: list[Wanted] = []
        self._requests = 0

    # --- building ---------------------------------------------------------------------------------

    def add_pec(self, name: str, site: str) -> Node:
        server = Server(name, guid_of(name), guid_of(site), Role.PEC, name)
        node = self.nodes[name] = Node(server, self.settings)
        with node.store.write() as tx:
            events = DirectoryEvents(tx, int(START), CountedEntropy("first"))
            events.create_directory_object(
                ObjectType.ENTERPRISE, props({PropId.E_NAME: "E", PropId.E_PECNAME: name})
            )
            events.create_directory_object(ObjectType.SITE, site_properties(site, name))
            machine = machine_properties(name, site, ServiceBits.PEC)
            events.create_directory_object(ObjectType.MACHINE, machine)
        self.start(node)
        return node

    def add_psc(self, name: str, site: str, *, settle: bool = True) -> Node:
        pec = next(node for node in self.nodes.values() if node.server.is_pec)
        self.create(pec, ObjectType.SITE, site_properties(site, name))
        self.create(pec, ObjectType.MACHINE, machine_properties(name, site, ServiceBits.PSC))
        seeds = {pec.server.id: pec.name}
        server = Server(name, guid_of(name), guid_of(site), Role.PSC, pec.name, seeds=seeds)
        node = self.nodes[name] = Node(server, self.settings)
        self.start(node)
        if settle:
            self.run()
        return node

    def add_bsc(self, name: str, psc: str, *, settle: bool = True) -> Node:
        primary = self.nodes[psc]
        pec = next(node for node in self.nodes.values() if node.server.is_pec)
        properties = machine_properties(name, "", ServiceBits.BSC)
        properties[PropId.QM_SITE_ID] = prop(PropId.QM_SITE_ID, primary.server.site)
        self.create(primary, ObjectType.MACHINE, properties)
        seeds = {pec.server.id: pec.name, primary.server.id: primary.name}
        server = Server(
            name, guid_of(name), primary.server.site, Role.BSC, pec.name, psc, seeds=seeds
        )
        node = self.nodes[name] = Node(server, self.settings)
        self.start(node)
        if settle:
            self.run()
        return node

    def clone(self) -> Enterprise:
        """The same servers on copies of their stores, all just started."""
        twin = Enterprise(self.settings)
        twin.now = self.now
        for name, node in self.nodes.items():
            copied = twin.nodes[name] = Node(node.server, node.settings, snapshot(node.store))
            twin.start(copied)
        twin.run(5)
        twin.sent.clear()
        return twin

    # --- time and messages ------------------------------------------------------------------------

    @property
    def at(self) -> Instant:
        return Instant(self.now, START + self.now)

    def start(self, node: Node, *, restored: bool = False) -> None:
        node.up = True
        with node.store.write() as tx:
            effects = node.machine.start(tx, self.at, restored=restored)
        self.carry_out(node, effects)

    def crash(self, name: str) -> None:
        """The machine is gone, and with it what lay in its queues."""
        self.nodes[name].up = False
        self.wire = deque(p for p in self.wire if name not in (p.machine, p.sender))

    def restart(self, name: str, *, restored: bool = False) -> None:
        node = self.nodes[name]
        node.boot()
        self.start(node, restored=restored)

    def backup(self, name: str) -> MemoryStore:
        return snapshot(self.nodes[name].store)

    def restore(self, name: str, backup: MemoryStore, *, authority: bool = False) -> None:
        self.crash(name)
        self.nodes[name].store = snapshot(backup)
        self.restart(name, restored=authority)

    def lose(self, wanted: Wanted) -> Callable[[], None]:
        """Lose what is wanted from now on, until the result is called."""
        self._losses.append(wanted)
        return lambda: self._losses.remove(wanted)

    def lose_next(self, wanted: Wanted) -> None:
        """Lose the first such message."""

        def once(parcel: Parcel) -> bool:
            if not wanted(parcel):
                return False
            self._losses.remove(once)
            return True

        self._losses.append(once)

    def carry_out(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            if not isinstance(effect, Send):
                node.told.append(effect)
                continue
            parcel = Parcel(
                node.name,
                effect.machine,
                effect.identifier,
                effect.message.body,
                self.signed,
                effect.message,
            )
            self.sent.append(parcel)
            if any(wanted(parcel) for wanted in list(self._losses)):
                self.lost.append(parcel)
            else:
                self.wire.append(parcel)

    def deliver(self, parcel: Parcel) -> None:
        """Deliver a message; what it leaves to be done at once is done, as a driver does it."""
        self.hand_over(parcel)
        node = self.nodes.get(parcel.machine)
        if node is not None and node.up and node.holds_a_reply:
            self.ring(node)

    def hand_over(self, parcel: Parcel) -> None:
        node = self.nodes.get(parcel.machine)
        if node is None or not node.up:
            return
        received = Received(
            parcel.body, parcel.identifier, parcel.identifier.source, parcel.authenticated
        )
        with node.store.write() as tx:
            effects = node.machine.receive(tx, received, self.at)
        self.carry_out(node, effects)
        self._acknowledge(parcel)

    def _acknowledge(self, parcel: Parcel) -> None:
        """The transport tells the sender that its message is there."""
        sender = self.nodes.get(parcel.sender)
        if sender is not None and sender.up:
            told = Acknowledged((parcel.identifier,), parcel.machine, 1)
            with sender.store.write() as tx:
                effects = sender.machine.transported(tx, [told], self.at)
            self.carry_out(sender, effects)

    def run(self, seconds: float = 1.0) -> None:
        """Deliver everything, and whatever follows from it within some seconds."""
        end = self.now + seconds
        while True:
            while self.wire:
                self.deliver(self.wire.popleft())
            wakes = [
                (wake, node.name)
                for node in self.nodes.values()
                if node.up and (wake := node.machine.next_timer()) is not None
            ]
            wake, name = min(wakes, default=(float("inf"), ""))
            if wake > end:
                break
            self.now = max(self.now, wake)
            self.ring(self.nodes[name])
        self.now = end

    def ring(self, node: Node) -> None:
        with node.store.write() as tx:
            effects = node.machine.handle_timer(tx, self.at)
        self.carry_out(node, effects)

    # --- changes ----------------------------------------------------------------------------------

    def change(self, node: Node, operation: Callable[[DirectoryEvents], object]) -> int | None:
        """As a client of ``node``; a number if the change was forwarded, else it is done."""
        made: list[OwnChange] = []
        try:
            with node.store.write() as tx:
                events = DirectoryEvents(
                    tx,
                    int(self.at.unix),
                    CountedEntropy(f"client/{len(self.sent)}/{self.now}"),
                    own_site=node.server.site,
                    owns=node.machine.may_change(tx, self.at),
                    permit=node.machine.permit(tx, self.at),
                    observe=made.append,
                )
                operation(events)
                effects = node.machine.changed(tx, made, self.at)
        except NotAuthority as refused:
            return self.forward(node, refused.change)
        self.carry_out(node, effects)
        return None

    def forward(self, node: Node, change: OwnChange) -> int:
        self._requests += 1
        with node.store.write() as tx:
            effects = node.machine.request(tx, change, self._requests, self.at)
        self.carry_out(node, effects)
        return self._requests

    def create(
        self, node: Node, object_type: ObjectType, properties: dict[int, PropVariant]
    ) -> int | None:
        return self.change(node, lambda e: e.create_directory_object(object_type, properties))

    def create_queue(self, node: Node, path: str, **values: PropVariant) -> int | None:
        properties: dict[int, PropVariant] = props({PropId.Q_PATHNAME: path})
        properties |= {PropId[f"Q_{name.upper()}"]: value for name, value in values.items()}
        properties[PropId.Q_INSTANCE] = prop(PropId.Q_INSTANCE, guid_of(path))
        return self.create(node, ObjectType.QUEUE, properties)

    def update(
        self, node: Node, object_type: ObjectType, path: str, properties: dict[int, PropVariant]
    ) -> int | None:
        def operation(events: DirectoryEvents) -> None:
            obj = events.transaction.find(object_type, path)
            assert obj is not None
            events.update_directory_object(obj, properties)

        return self.change(node, operation)

    def label(self, node: Node, path: str, label: str) -> int | None:
        return self.update(node, ObjectType.QUEUE, path, props({PropId.Q_LABEL: label}))

    def delete(self, node: Node, object_type: ObjectType, path: str) -> int | None:
        def operation(events: DirectoryEvents) -> None:
            obj = events.transaction.find(object_type, path)
            assert obj is not None
            events.delete_directory_object(obj)

        return self.change(node, operation)

    # --- judging ----------------------------------------------------------------------------------

    def check_converged(self) -> None:
        """Every replica holds what the authority holds, object by object, property by property."""
        for node in self.nodes.values():
            for partition in _partitions(node):
                authority = self._authority(partition)
                if authority is None:
                    continue
                same_site = node.server.site == authority.server.site
                found = list(
                    differences(
                        authority.holds(partition), node.holds(partition), same_site=same_site
                    )
                )
                assert found == [], f"{node.name} differs from {authority.name}"
                assert node.partition(partition).last_seq == authority.partition(partition).last_seq

    def _authority(self, partition: Guid) -> Node | None:
        for node in self.nodes.values():
            if partition == ENTERPRISE_PARTITION and node.server.is_pec:
                return node
            if partition == node.server.site and node.server.is_psc:
                return node
        return None

    def messages(self, kind: type[M], to: str = "", sender: str = "") -> list[M]:
        """The messages of one kind that were sent, optionally those to or from one machine."""
        wanted = carries(kind, to, sender)
        found = (parcel.message for parcel in self.sent if wanted(parcel))
        return [message for message in found if isinstance(message, kind)]

    def inject(
        self, sender: str, machine: str, message: Message, *, authenticated: bool = False
    ) -> None:
        """A message that no machine sent, from the session of ``sender``."""
        identifier = MessageIdentifier(guid_of(sender), 1_000_000 + len(self.sent))
        self.deliver(Parcel(sender, machine, identifier, encode_message(message), authenticated))


def _partitions(node: Node) -> list[Guid]:
    with node.store.read() as view:
        return [state.id for state in view.partitions()]


def snapshot(store: MemoryStore) -> MemoryStore:
    """A copy of a store as it is now."""
    twin = MemoryStore()
    with store.read() as view, twin.write() as tx:
        for state in view.partitions():
            tx.put_partition(state)
            for change in view.changes(state.id, SequenceNumber.MIN):
                if not isinstance(change, DirectoryObject):
                    tx.bury(change)
            for obj in _objects(view, state.id):
                tx.insert(obj)
        for family in ("neighbor", "authority", "reply", "quarantine", "queueing"):
            for key, value in view.states(family):
                tx.put_state(family, key, value)
    return twin


def site_properties(site: str, psc: str) -> dict[int, PropVariant]:
    return props(
        {
            PropId.S_SITEID: guid_of(site),
            PropId.S_PATHNAME: site,
            PropId.S_PSC: psc,
        }
    )


def machine_properties(name: str, site: str, service: int) -> dict[int, PropVariant]:
    return props(
        {
            PropId.QM_MACHINE_ID: guid_of(name),
            PropId.QM_PATHNAME: name,
            PropId.QM_SITE_ID: guid_of(site),
            PropId.QM_SERVICE: int(service),
        }
    )


def carries(kind: type[Any], to: str = "", sender: str = "") -> Wanted:
    """Messages of one kind, perhaps to or from one machine."""

    def wanted(parcel: Parcel) -> bool:
        return (
            isinstance(parcel.message, kind)
            and to in ("", parcel.machine)
            and sender in ("", parcel.sender)
        )

    return wanted
