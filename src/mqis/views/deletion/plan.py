"""The plan of a delete: the objects that go with an object, and those that keep naming it.

A directory server removes just the object that a client names (MS-MQDS 3.1.4.5). What hangs on it
has one of three fates:

- *first*: a client has to delete it before, or it would be left without its owner: the queues of a
  machine, the links of a site.
- *along*: every server drops it, because it lies in the partition of a deleted site.
- *left*: it stays and names an object that is no more, such as a site whose gate is deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.object_sources import Record, Source, as_guid
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, name_key
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.errors import DirectoryError
from mqis.views.presentation.properties import friendly
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import Value


def _naming_properties() -> dict[ObjectType, dict[ObjectType, tuple[PropId, ...]]]:
    """The properties that can name an object of a type, by the type of the object that has them.

    Queues are left out: they are deleted with the machine that they name.
    """
    found: dict[ObjectType, dict[ObjectType, tuple[PropId, ...]]] = {}
    for row in ROWS.values():
        if row.refers_to is not None and row.stored and row.object_type is not ObjectType.QUEUE:
            kinds = found.setdefault(row.refers_to, {})
            kinds[row.object_type] = (*kinds.get(row.object_type, ()), row.id)
    return found


_NAMING = _naming_properties()
_ENDS = _NAMING[ObjectType.SITE][ObjectType.ROUTINGLINK]
#: For more machines than this, one lookup of all queues is faster than one for each machine.
_MOST_LOOKUPS = 20


@dataclass(frozen=True, slots=True)
class Dependent:
    """One object of a plan."""

    type: ObjectType
    id: Guid
    path: str | None = None
    #: The properties by which it names the object that is deleted, if it stays.
    names_it_by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path or str(self.id)


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """Everything that a delete of ``target`` does to the directory."""

    target: Dependent
    first: tuple[Dependent, ...] = ()
    along: tuple[Dependent, ...] = ()
    left: tuple[Dependent, ...] = ()
    #: Names of directory servers whose machine objects go; the others no longer accept them.
    servers: tuple[str, ...] = ()
    #: The reason why no operator can mean this delete; None: nothing speaks against it.
    danger: str | None = None


def counts(dependents: Sequence[Dependent]) -> dict[str, int]:
    """The number of dependents of each type, in the order of exports."""
    found = Counter(dependent.type for dependent in dependents)
    return {kind.label: found[kind] for kind in ORDER if found[kind]}


def plan_delete(source: Source, object_type: ObjectType, name: str) -> DeletePlan:
    """Returns the plan to delete one object, from what the caller may read."""
    planner = _PLANNERS.get(object_type, _plan_other)
    return planner(source, _target(source, object_type, name))


def _target(source: Source, object_type: ObjectType, name: str) -> Dependent:
    try:
        return _as_dependent(source.get(object_type, name, (IDENTIFIER_PROPERTY[object_type],)))
    except DirectoryError:
        digest = as_guid(name)
        if object_type is not ObjectType.USER or digest is None:
            raise
        # The digest of a certificate: S_DSDeleteObjectGuid deletes that certificate of its user.
        return Dependent(object_type, digest)


def _plan_other(source: Source, target: Dependent) -> DeletePlan:
    return DeletePlan(target, left=tuple(_naming(source, target, frozenset())))


def _plan_machine(source: Source, target: Dependent) -> DeletePlan:
    controllers = _controllers(source)
    queues = tuple(_queues(source, [target.id]))
    gone = frozenset({target.id, *(queue.id for queue in queues)})
    left = tuple(_naming(source, target, gone))
    if name_key(target.name) not in controllers:
        return DeletePlan(target, queues, left=left)
    danger = (
        f"{target.name} is a directory server: the others would no longer accept it, and no client "
        "would find it"
    )
    return DeletePlan(target, queues, left=left, servers=(target.name,), danger=danger)


def _plan_site(source: Source, target: Dependent) -> DeletePlan:
    controllers = _controllers(source)
    links = tuple(_links(source, target.id))
    lookup = source.lookup(ObjectType.MACHINE, (PropId.QM_SITE_IDS,), (), ())
    machines = [_as_dependent(m) for m in lookup if _first(m, PropId.QM_SITE_IDS) == target.id]
    queues = _queues(source, [machine.id for machine in machines])
    along = (*machines, *queues)
    servers = tuple(m.name for m in machines if name_key(m.name) in controllers)
    gone = frozenset({target.id, *(one.id for one in (*links, *along))})
    left = tuple(_naming(source, target, gone))
    danger = None
    if servers:
        danger = (
            f"the site has directory servers ({', '.join(servers)}): the others would no longer "
            "accept them"
        )
    return DeletePlan(target, links, along, left, servers, danger)


def _plan_enterprise(source: Source, target: Dependent) -> DeletePlan:
    """Nothing is removed, but no server serves a directory without its enterprise."""
    danger = "every server needs the enterprise object: without it the whole directory is unusable"
    servers = tuple(sorted(_controllers(source).values()))
    others = (kind for kind in ORDER if kind is not ObjectType.ENTERPRISE)
    left = tuple(_as_dependent(one) for kind in others for one in source.lookup(kind, (), (), ()))
    return DeletePlan(target, left=left, servers=servers, danger=danger)


_PLANNERS: dict[ObjectType, Callable[[Source, Dependent], DeletePlan]] = {
    ObjectType.MACHINE: _plan_machine,
    ObjectType.SITE: _plan_site,
    ObjectType.ENTERPRISE: _plan_enterprise,
}


# --- parts of the directory -----------------------------------------------------------------------


def _controllers(source: Source) -> dict[str, str]:
    """The names of all directory servers: by their roles, and as PSC of a site or PEC."""
    found: dict[str, str] = {}
    columns = (PropId.QM_SERVICE, PropId.QM_SERVICE_DSSERVER)
    for machine in source.lookup(ObjectType.MACHINE, columns, (), ()):
        if machine.path is not None and _is_server(machine):
            found[name_key(machine.path)] = machine.path
    for kind, propid in (
        (ObjectType.SITE, PropId.S_PSC),
        (ObjectType.ENTERPRISE, PropId.E_PECNAME),
    ):
        for record in source.lookup(kind, (propid,), (), ()):
            name = record.value(propid)
            if isinstance(name, str) and name:
                found.setdefault(name_key(name), name)
    return found


def _is_server(machine: Record) -> bool:
    bits = machine.value(PropId.QM_SERVICE)
    service = ServiceAttributes.from_bits(bits if isinstance(bits, int) else 0)
    return service.directory_server or machine.value(PropId.QM_SERVICE_DSSERVER) == 1


def _queues(source: Source, machines: Sequence[Guid]) -> Iterator[Dependent]:
    if len(machines) > _MOST_LOOKUPS:
        wanted = frozenset(machines)
        for queue in source.lookup(ObjectType.QUEUE, (PropId.Q_QMID,), (), ()):
            if queue.value(PropId.Q_QMID) in wanted:
                yield _as_dependent(queue)
        return
    for machine in machines:
        of_machine = Restriction(Relation.EQ, PropId.Q_QMID, prop(PropId.Q_QMID, machine))
        for queue in source.lookup(ObjectType.QUEUE, (), (of_machine,), ()):
            yield _as_dependent(queue)


def _links(source: Source, site: Guid) -> Iterator[Dependent]:
    for link in source.lookup(ObjectType.ROUTINGLINK, _ENDS, (), ()):
        ends = [link.value(end) for end in _ENDS]
        if site in ends:
            names = [_site_name(source, end) for end in ends]
            yield Dependent(ObjectType.ROUTINGLINK, link.id, " - ".join(names))


def _site_name(source: Source, site: Value) -> str:
    name = source.name_of(ObjectType.SITE, site) if isinstance(site, Guid) else None
    return name or str(site)


def _naming(source: Source, target: Dependent, gone: frozenset[Guid]) -> Iterator[Dependent]:
    """The objects that stay and name the target."""
    for kind, columns in _NAMING.get(target.type, {}).items():
        for record in source.lookup(kind, columns, (), ()):
            naming = tuple(friendly(p) for p in columns if _holds(record.value(p), target.id))
            if naming and record.id not in gone:
                yield Dependent(kind, record.id, record.path, naming)


def _holds(value: Value, wanted: Guid) -> bool:
    return wanted in value if isinstance(value, tuple) else value == wanted


def _first(record: Record, propid: PropId) -> object:
    value = record.value(propid)
    return value[0] if isinstance(value, tuple) and value else None


def _as_dependent(record: Record) -> Dependent:
    return Dependent(record.type, record.id, record.path)
