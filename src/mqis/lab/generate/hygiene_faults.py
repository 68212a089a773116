"""Plants faults in the directory itself, which all replicas agree on.

Each is a change of an authority like any other, so that every server gets it. Beside them stands
something that looks like a fault and is none: a site whose gate only its link names.
"""

from __future__ import annotations

from mqis.lab.generate.planted_faults import PlantedHygiene
from mqis.lab.generate.run import GeneratorRun
from mqis.protocol.directory.objects import DirectoryObject, Scope
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.security.sddl import parse_sddl

_OPEN = parse_sddl("O:BAG:BAD:(A;;GA;;;WD)").to_bytes()


def plant_hygiene(run: GeneratorRun) -> None:
    """Plants as many faults of each kind as the plan says, and lists them in the result."""
    planter = _Planter(run)
    for number in range(run.plan.hygiene):
        planter.queues()
        planter.machines(number)
        planter.sites(number)
    if run.plan.hygiene:
        planter.looks_like_a_fault()


class _Planter:
    def __init__(self, run: GeneratorRun) -> None:
        self._run = run
        self._tx = run.tx

    def queues(self) -> None:
        nobody = self._run.history.entropy.guid()
        self._changed("orphaned_queue", self._queue(), Q_QMID=nobody)
        self._planted("writable", self._queue(security=_OPEN))

    def machines(self, number: int) -> None:
        """Changes machines that are no servers: their properties in the order of their names."""
        clients = sorted(
            (m for m in self._tx.objects(ObjectType.MACHINE) if not m.value(PropId.QM_SERVICE)),
            key=lambda machine: machine.path or "",
        )
        unknown = (self._run.history.entropy.guid(),)
        picked = [clients[(3 * number + step) % len(clients)] for step in range(3)]
        self._changed("unknown_router", picked[0], QM_OUTFRS=unknown)
        self._changed("unknown_network", picked[1], QM_CNS=unknown)
        self._changed("orphaned_machine", picked[2], QM_SITE_IDS=unknown)

    def sites(self, number: int) -> None:
        first = self._run.history.members[0]
        entropy = self._run.history.entropy
        site = self._created(
            ObjectType.SITE, S_SITEID=entropy.guid(), S_PATHNAME=f"gateless{number + 1:03}"
        )
        self._planted("no_gate", site)
        self._link(first.site, site.id)
        self._planted("unknown_site", self._link(first.site, entropy.guid()))
        self._planted("bad_link", self._link(first.site, first.site))
        self._planted("unknown_gate", self._named_gate(number, entropy.guid()))
        client = next(
            m.id for m in self._tx.objects(ObjectType.MACHINE) if not m.value(PropId.QM_SERVICE)
        )
        self._planted("bad_gate", self._named_gate(number, client))

    def _named_gate(self, number: int, gate: Guid) -> DirectoryObject:
        """A new site without a gate, except the one that is named and cannot be one."""
        entropy = self._run.history.entropy
        name = f"{'unfit' if self._tx.get(ObjectType.MACHINE, gate) else 'absent'}{number + 1:03}"
        site = self._created(
            ObjectType.SITE, S_SITEID=entropy.guid(), S_PATHNAME=name, S_GATES=(gate,)
        )
        self._planted("no_gate", site)
        return site

    def looks_like_a_fault(self) -> None:
        """Moves the gate of the last site to a link, whose gates are not replicated."""
        last = [m for m in self._run.history.members if m.name == m.psc][-1]
        site = self._tx.get(ObjectType.SITE, last.site)
        assert site is not None
        for link in list(self._tx.objects(ObjectType.ROUTINGLINK)):
            if last.site in (link.value(PropId.L_NEIGHBOR1), link.value(PropId.L_NEIGHBOR2)):
                self._update(link, L_GATES=(last.id,))
                self._update(site, S_GATES=())
                return

    # --- changes ----------------------------------------------------------------------------------

    def _queue(self, **more: bytes) -> DirectoryObject:
        self._run.tick()
        site = self._run.history.members[0].site
        made = self._run.history.create_queue(scope=Scope.ENTERPRISE, site=site, **more)
        self._run.history.queues.remove(made)  # so that no later change touches it
        self._run.settle(1)
        return made

    def _link(self, first: Guid, second: Guid) -> DirectoryObject:
        return self._created(
            ObjectType.ROUTINGLINK,
            L_ID=self._run.history.entropy.guid(),
            L_NEIGHBOR1=first,
            L_NEIGHBOR2=second,
            L_ACTUAL_COST=1,
        )

    def _created(self, kind: ObjectType, **values: Value) -> DirectoryObject:
        self._run.tick()
        events = self._run.history.events()
        made = events.create_directory_object(kind, _properties(values))
        self._run.settle(1)
        return made

    def _changed(self, check: str, obj: DirectoryObject, **values: Value) -> None:
        self._planted(check, self._update(obj, **values))

    def _update(self, obj: DirectoryObject, **values: Value) -> DirectoryObject:
        self._run.tick()
        made = self._run.history.events().update(obj, _properties(values))
        self._run.settle(1)
        return made

    def _planted(self, check: str, obj: DirectoryObject) -> None:
        fault = PlantedHygiene(check, obj.type.label, str(obj.id))
        self._run.result.hygiene.append(fault)


def _properties(values: dict[str, Value]) -> dict[int, PropVariant]:
    return props({PropId[name]: value for name, value in values.items()})
