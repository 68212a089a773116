"""The history of the directory: builds an enterprise, then creates, updates and deletes queues."""

from __future__ import annotations

from random import Random

from mqis.lab.demo import SeededEntropy
from mqis.lab.generate.generated_keys import generated_key, published
from mqis.lab.generate.plan import ENTERPRISE_NAME, GeneratePlan, PlannedServer, name_of
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject, Partition, Scope
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.server_identity import Role
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.security.sddl import parse_sddl

_BITS = {Role.PEC: ServiceBits.PEC, Role.PSC: ServiceBits.PSC, Role.BSC: ServiceBits.BSC}
_DESCRIPTOR = parse_sddl("O:BAG:BAD:P(A;;GA;;;BA)(A;;0x20026;;;AU)").to_bytes()
_WORDS = ("orders", "invoices", "payments", "shipping", "audit", "cache", "errors", "replies")


class ChangeHistory:
    """Makes changes one at a time, all in one transaction."""

    def __init__(self, plan: GeneratePlan, tx: Transaction) -> None:
        self.plan = plan
        self.tx = tx
        self.random = Random(plan.seed)
        self.entropy = SeededEntropy(plan.seed)
        self.now_us = 0
        self.members: list[PlannedServer] = []
        self.queues: list[DirectoryObject] = []
        #: Machine names by site; all of them under None.
        self._machines: dict[Guid | None, list[str]] = {None: []}
        self._made: list[OwnChange] = []
        self._numbers = 0
        self._sites = [self.entropy.guid() for _ in range(plan.sites)]
        self._name_servers()
        #: The servers' signing keys by name.
        self.keys = {m.name: generated_key(m.name) for m in self.members}

    def _name_servers(self) -> None:
        for index, site in enumerate(self._sites):
            psc = name_of(index, "psc")
            role = Role.PSC if index else Role.PEC
            self.members.append(PlannedServer(psc, self.entropy.guid(), site, role, psc))
        for index in range(self.plan.backup_count):
            name, site = name_of(index, "bsc"), self._sites[index]
            psc = self.members[index].name
            self.members.append(PlannedServer(name, self.entropy.guid(), site, Role.BSC, psc))

    def take(self) -> list[OwnChange]:
        """Returns the changes since the last call."""
        made, self._made = self._made, []
        return made

    def events(self) -> DirectoryEvents:
        return DirectoryEvents(
            self.tx, self.now_us // 1_000_000, self.entropy, observe=self._made.append
        )

    # --- the beginning ----------------------------------------------------------------------------

    def build(self) -> None:
        pec = self.members[0].name
        self.tx.put_partition(Partition(ENTERPRISE_PARTITION, pec))
        self._create(ObjectType.ENTERPRISE, E_NAME=ENTERPRISE_NAME, E_PECNAME=pec)
        pscs = [member for member in self.members if member.role is not Role.BSC]
        for index, member in enumerate(pscs):
            self._create(
                ObjectType.SITE,
                S_SITEID=member.site,
                S_PATHNAME=f"site{index + 1:03}",
                S_PSC=member.name,
                S_GATES=(member.id,),
            )
        for index in range(len(self._sites)):
            self._link(index, (index + 1) % len(self._sites))
        for member in self.members:
            bits = int(_BITS[member.role] | ServiceBits.ROUTING)
            key = published(self.keys[member.name])
            self._machine(member.name, member.site, member.id, bits, QM_SIGN_PKS=key)
        for index in range(self.plan.machines):
            name = name_of(index % len(self._sites), f"app{index // len(self._sites) + 1:04}")
            site = self._sites[index % len(self._sites)]
            self._machine(name, site, self.entropy.guid(), 0)
            self._machines[None].append(name)
            self._machines.setdefault(site, []).append(name)
        for _ in range(self.plan.queues):
            self.create_queue()

    def _link(self, first: int, second: int) -> None:
        if first == second or (second == 0 and first == 1):  # two sites have one link
            return
        self._create(
            ObjectType.ROUTINGLINK,
            L_ID=self.entropy.guid(),
            L_NEIGHBOR1=self._sites[first],
            L_NEIGHBOR2=self._sites[second],
            L_ACTUAL_COST=self.random.randint(1, 50),
        )

    def _machine(self, name: str, site: Guid, id_: Guid, bits: int, **more: Value) -> None:
        self._create(
            ObjectType.MACHINE,
            QM_MACHINE_ID=id_,
            QM_PATHNAME=name,
            QM_SITE_IDS=(site,),
            QM_SERVICE=bits,
            QM_OS=0x400,
            QM_SECURITY=_DESCRIPTOR,
            **more,
        )

    def _create(self, kind: ObjectType, **values: Value) -> None:
        self.events().create_directory_object(kind, _properties(values))

    # --- queues -----------------------------------------------------------------------------------

    def create_queue(
        self,
        *,
        scope: Scope | None = None,
        site: Guid | None = None,
        security: bytes = _DESCRIPTOR,
    ) -> DirectoryObject:
        self._numbers += 1
        machine = self.random.choice(self._machines[site])
        if scope is None:
            scope = Scope.SITE if self.random.random() < 0.05 else Scope.ENTERPRISE
        queue = self.events().create(
            ObjectType.QUEUE,
            f"{machine}\\{self.random.choice(_WORDS)}{self._numbers}",
            _properties({"Q_LABEL": f"queue {self._numbers}", "Q_SCOPE": int(scope)}),
            security=security,
        )
        self.queues.append(queue)
        return queue

    def update_queue(self, queue: DirectoryObject | None = None) -> DirectoryObject:
        """Changes a queue's label, and sometimes its quota too."""
        index = self._index(queue)
        values: dict[str, Value] = {"Q_LABEL": f"label {self.random.getrandbits(48):012x}"}
        if self.random.random() < 0.2:
            values["Q_QUOTA"] = self.random.randint(1, 1 << 20)
        self.queues[index] = self.events().update(self.queues[index], _properties(values))
        return self.queues[index]

    def delete_queue(self, queue: DirectoryObject | None = None) -> DirectoryObject:
        index = self._index(queue)
        gone, self.queues[index] = self.queues[index], self.queues[-1]
        self.queues.pop()
        self.events().delete_directory_object(gone)
        return gone

    def _index(self, queue: DirectoryObject | None) -> int:
        if queue is None:
            return self.random.randrange(len(self.queues))
        return next(i for i, held in enumerate(self.queues) if held.id == queue.id)

    def step(self) -> None:
        """Makes one random change; most are updates."""
        roll = self.random.random()
        churn = self.plan.churn
        if roll < churn or len(self.queues) < 2:
            self.create_queue()
        elif roll < 1.7 * churn:
            self.delete_queue()
        else:
            self.update_queue()


def _properties(values: dict[str, Value]) -> dict[int, PropVariant]:
    return props({PropId[name]: value for name, value in values.items()})
