"""Plants faults of messages and replicas, which an audit has to find with their causes."""

from __future__ import annotations

from dataclasses import replace

from mqis.lab.generate.delivery import EXPIRED_BECAUSE, REFUSED_BECAUSE, DeliveryHop, Mishap
from mqis.lab.generate.generated_exports import replica_of
from mqis.lab.generate.planted_faults import (
    DIFFERENCES,
    MISHAPS,
    Duplicate,
    Gap,
    PlantedFault,
    PlantedState,
)
from mqis.lab.generate.run import GeneratorRun
from mqis.lab.generate.synchronizing import ask_in_vain
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.objects import DirectoryObject, Scope
from mqis.protocol.replication.convergence import Difference, copy_of, differences
from mqis.protocol.replication.outgoing_changes import scope_of
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber

_REASONS = {"refused": REFUSED_BECAUSE, "expired": EXPIRED_BECAUSE}
#: The cause of an object that only one replica holds and no journal mentions.
_FOREIGN = "foreign"
#: The changes of an outage that go to the other servers together.
_GATHERED = 20


class FaultyRun(GeneratorRun):
    """A run whose messages get lost, and whose replicas hold something else."""

    def plant_mishaps(self) -> None:
        for number in range(self.plan.faults):
            for index, kind in enumerate(MISHAPS):
                what = "different" if kind == "corrupted" else DIFFERENCES[(number + index) % 3]
                self._plant(kind, what, self._hop())
            self._plant("lost", DIFFERENCES[number % 3], self._hop(self.damaged))
            self._duplicate()
            self._foreign()
        if self.plan.outage:
            self._plant_outage()

    def _plant_outage(self) -> None:
        """Keeps a backup controller from many changes. What it missed never comes."""
        partition = self.history.members[0].site
        lacking = self.backups[1]
        hop = self.delivery.path(partition, lacking)[-1]
        first = self.state(partition).last_seq.value + 1
        self.delivery.away = frozenset({lacking})
        for _ in range(self.plan.outage):
            self.tick()
            made = self.history.create_queue(scope=Scope.ENTERPRISE, site=partition)
            self.history.queues.remove(made)
            self.settle(_GATHERED)
            self.overrides[lacking, made.id] = PlantedState(None)
            self._missing(lacking, made, "never_sent", hop)
        self._flush()
        self.delivery.away = frozenset()
        last = self.state(partition).last_seq.value
        self.result.gaps.append(Gap(lacking, str(partition), first, last))
        self.ordinary(partition)

    def empty_replica(self) -> None:
        """Lets the export of a backup controller be empty, although it applied all changes."""
        empty = self.emptied = self.backups[2]
        faults = self.result.faults
        kept = [f for f in faults if f.server != empty or f.difference == "missing"]
        known = {f.id for f in kept if f.server == empty}
        self.result.faults = kept
        site = self.delivery.members[empty].site
        for obj in [obj for kind in ORDER for obj in self.tx.objects(kind)]:
            self.overrides[empty, obj.id] = PlantedState(None)
            concerned = site == obj.partition or scope_of(obj) is not Scope.SITE
            if concerned and str(obj.id) not in known:
                hop = self.delivery.path(obj.partition, empty)[-1]
                self._missing(empty, obj, "corrupted", hop)
        for server, id_ in [key for key in self.overrides if key[0] == empty]:
            self.overrides[server, id_] = PlantedState(None)

    def _missing(self, server: str, obj: DirectoryObject, cause: str, hop: DeliveryHop) -> None:
        about = obj.type.label, str(obj.id), str(obj.partition), self.born[obj.id]
        fault = PlantedFault(server, "missing", cause, *about, hop.source, hop.target)
        self.result.faults.append(fault)

    def _hop(self, target: str = "") -> tuple[Guid, DeliveryHop]:
        """A random partition, and the last step of its path to ``target`` or a random server."""
        sites = sorted({m.site for m in self.history.members})
        names = [m.name for m in self.history.members if m.name != self.damaged]
        while True:
            partition = self.random.choice(sites)
            way = self.delivery.path(partition, target or self.random.choice(names))
            if way[-1].source != way[-1].target:
                return partition, way[-1]

    def _plant(self, kind: str, what: str, where: tuple[Guid, DeliveryHop]) -> None:
        partition, hop = where
        queue = self.ordinary(partition) if what != "missing" else None
        self.tick()
        after, before = self._faulty_change(what, partition, queue)
        (change,) = self.history.take()
        self.count(change)
        sent = self.delivery.made(change)
        self.delivery.send([sent], Mishap(kind, hop))
        reached = [hop.target] if kind == "corrupted" else self.delivery.below(hop.target)
        for server in reached:
            held = corrupted(after) if kind == "corrupted" and after is not None else before
            self.overrides[server, sent.object_id] = PlantedState(held)
            certain = hop.target != self.damaged
            cause = kind if certain else "unknown"
            reason = _REASONS.get(kind, "") if certain else ""
            found = difference_of(after, held)
            assert found.kind == what, (found, what)
            self.result.faults.append(
                PlantedFault(
                    server,
                    what,
                    cause,
                    found.type.label,
                    str(found.id),
                    str(partition),
                    sent.change.seq.value,
                    hop.source,
                    hop.target,
                    found.properties,
                    reason,
                )
            )
            if kind != "corrupted" and server != self.damaged:
                number = sent.change.seq.value
                self.result.gaps.append(Gap(server, str(partition), number, number))
        self.ordinary(partition)  # a later change, so that the missed number is a gap
        if kind == "lost" and hop.target != self.damaged:
            ask_in_vain(self.delivery, hop, self.state(partition))

    def _faulty_change(
        self, what: str, partition: Guid, queue: DirectoryObject | None
    ) -> tuple[DirectoryObject | None, DirectoryObject | None]:
        """Makes the change that a server misses, the object's last; returns it after and before."""
        if queue is None:
            made = self.history.create_queue(scope=Scope.ENTERPRISE, site=partition)
            self.history.queues.remove(made)
            return made, None
        if what == "extra":
            self.history.delete_queue(queue)
            return None, queue
        changed = self.history.update_queue(queue)
        self.history.queues.remove(changed)
        return changed, queue

    def _duplicate(self) -> None:
        partition, hop = self._hop()
        self.tick()
        made = self.history.create_queue(scope=Scope.ENTERPRISE, site=partition)
        (change,) = self.history.take()
        self.count(change)
        self.delivery.send([self.delivery.made(change)], Mishap("duplicated", hop))
        self.result.duplicates.append(Duplicate(hop.target, str(partition), made.seq.value))

    def _foreign(self) -> None:
        """Plants an object in a replica that its authority never made."""
        partition, hop = self._hop()
        own = (queue for queue in self.history.queues if queue.partition == partition)
        like = next(own, None) or self.ordinary(partition)
        id_ = self.history.entropy.guid()
        name = f"{(like.path or '').partition(chr(92))[0]}\\stray{id_}"
        stray = DirectoryObject(
            like.type,
            id_,
            partition,
            SequenceNumber.MIN,
            props({**like.properties, PropId.Q_PATHNAME: name}),
        )
        self.overrides[hop.target, id_] = PlantedState(stray)
        self.result.faults.append(
            PlantedFault(
                hop.target,
                "extra",
                _FOREIGN,
                like.type.label,
                str(id_),
                str(partition),
                None,
                None,
                None,
            )
        )


def difference_of(after: DirectoryObject | None, held: DirectoryObject | None) -> Difference:
    """The difference between two states of an object, by the rule of ``convergence``."""
    authority = copy_of([after] if after is not None else [])
    replica = copy_of([replica_of(held)] if held is not None else [])
    (found,) = differences(authority, replica, same_site=True)
    return found


def corrupted(obj: DirectoryObject) -> DirectoryObject:
    label = f"{obj.value(PropId.Q_LABEL)!s}?"
    return replace(obj, properties=props({**obj.properties, PropId.Q_LABEL: label}))
