"""Checks at the end of a run: compare the servers' stores with each other and with the history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    Partition,
    PurgeState,
    name_key,
)
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.types.catalogue import by_role
from mqis.protocol.directory.types.row_columns import PropertyRole
from mqis.protocol.ports import View
from mqis.protocol.replication.convergence import HeldObject, differences
from mqis.protocol.replication.replicated import changed_properties
from mqis.protocol.replication.topology_changes import is_bsc
from mqis.sim.history import NumberHistory, Version
from mqis.sim.run_trace import Violation
from mqis.sim.simulated_server import SimServer
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber

#: Properties that the authority sets from its clock.
_TIMES = frozenset(by_role(PropertyRole.MODIFY_TIME).values())


class CheckedEnterprise(Protocol):
    """The part of a ``World`` that the checkers read."""

    servers: dict[int, SimServer]
    history: NumberHistory


class Picture:
    """The content of one server's store, read once."""

    def __init__(self, server: SimServer) -> None:
        self.server = server
        with server.disk.store.read() as view:
            self.partitions: dict[Guid, Partition] = {p.id: p for p in view.partitions()}
            self.objects = _by_partition(view)

    def holds(self, partition: Guid) -> Mapping[Guid, HeldObject]:
        return self.objects.get(partition, {})


def _by_partition(view: View) -> dict[Guid, dict[Guid, HeldObject]]:
    found: dict[Guid, dict[Guid, HeldObject]] = {}
    for object_type in ObjectType:
        if object_type is not ObjectType.DELETEDOBJECT:
            for obj in view.objects(object_type):
                found.setdefault(obj.partition, {})[obj.id] = HeldObject.of(obj)
    return found


# --- agreement ------------------------------------------------------------------------------------


def disagreements(enterprise: CheckedEnterprise) -> list[str]:
    """Describes every disagreement between servers; empty if all agree."""
    servers = list(enterprise.servers.values())
    found = [f"{server.name} is down" for server in servers if server.node is None]
    found = found or [line for server in servers for line in _recoveries(server)]
    found = found or _numbers(servers)
    if not found:
        pictures = [Picture(server) for server in servers]
        found = [line for p in pictures for line in _contents(p, pictures)]
        found += [line for p in pictures for line in _neighbors(p, pictures[0])]
        found += [line for p in pictures for line in _set_aside(p.server, _abandoned(pictures))]
        found += [line for server in servers for line in _strangers(server, servers)]
    return found


def _recoveries(server: SimServer) -> list[str]:
    """Describes the partitions in which a server is being restored: it decides nothing there."""
    recoveries = () if server.node is None else server.node.replication.memory.recoveries
    return [f"{server.name} is being restored in {id_}" for id_ in recoveries]


def _numbers(servers: list[SimServer]) -> list[str]:
    """Describes the replicas that are behind; cheaper than comparing their content."""
    found = []
    true: dict[Guid, Partition] = {}
    states: list[tuple[SimServer, dict[Guid, Partition]]] = []
    for server in servers:
        with server.disk.store.read() as view:
            states.append((server, {p.id: p for p in view.partitions()}))
    for server, partitions in states:
        for state in partitions.values():
            if _is_authority(server, state):
                true[state.id] = state
    for server, partitions in states:
        found += _behind(server, partitions, true)
    return found


def _is_authority(server: SimServer, state: Partition) -> bool:
    me = server.me
    if state.id == ENTERPRISE_PARTITION:
        return me.is_pec
    return me.is_psc and state.id == me.site


def _behind(
    server: SimServer, partitions: dict[Guid, Partition], true: dict[Guid, Partition]
) -> list[str]:
    found = []
    for id_, state in true.items():
        here = partitions.get(id_)
        if here is None:
            found.append(f"{server.name} does not know {state.owner}'s partition")
        elif here.purge_state is not PurgeState.NORMAL:
            found.append(f"{server.name} is in a full synchronisation with {state.owner}")
        elif here.last_seq != state.last_seq:
            what = "the enterprise" if id_ == ENTERPRISE_PARTITION else state.owner
            found.append(
                f"{server.name} is at {here.last_seq.value} of {what}, not {state.last_seq.value}"
            )
    return found


def _contents(picture: Picture, pictures: list[Picture]) -> list[str]:
    found = []
    for other in pictures:
        for state in other.partitions.values():
            if other is not picture and _is_authority(other.server, state):
                same_site = picture.server.me.site == state.id
                wrong = differences(
                    other.holds(state.id), picture.holds(state.id), same_site=same_site
                )
                found += [f"{picture.server.name}: {difference}" for difference in wrong]
    true = pictures[0].partitions.keys()
    known = picture.partitions.keys()
    found += [f"{picture.server.name} still has partition {id_}" for id_ in sorted(known - true)]
    found += [f"{picture.server.name} lacks partition {id_}" for id_ in sorted(true - known)]
    return found


def _strangers(server: SimServer, servers: list[SimServer]) -> list[str]:
    """Describes the servers whose machine this one does not hold, so that it refuses them."""
    with server.disk.store.read() as view:
        unknown = [o for o in servers if view.get(ObjectType.MACHINE, o.me.id) is None]
    return [f"{server.name} does not know {other.name}" for other in unknown]


def _abandoned(pictures: list[Picture]) -> set[Guid]:
    """The partitions that replicas hold and that have no authority.

    They are those of servers that were retired, if a backup from before is restored where it was
    known: their replicas wait until somebody deletes the site again.
    """
    held = [(p, state) for p in pictures for state in p.partitions.values()]
    owned = {state.id for p, state in held if _is_authority(p.server, state)}
    return {state.id for _, state in held} - owned


def _set_aside(server: SimServer, abandoned: set[Guid]) -> list[str]:
    """Describes what a replica still waits for: objects in quarantine, and parts of replies."""
    if server.node is None:
        return []
    partitions = server.node.replication.memory.partitions.values()
    found = [f"{server.name} has set {id_} aside" for p in partitions for id_ in p.quarantine]
    with server.disk.store.read() as view:
        kept = [Guid(key[16:]) for key, _ in view.states("quarantine")]
        open_ = [id_ for key, _ in view.states("round") if (id_ := Guid(key)) not in abandoned]
    found += [f"{server.name} still waits for the end of a reply of {id_}" for id_ in open_]
    return found or [f"{server.name} still lists {id_} as set aside" for id_ in kept]


def _neighbors(picture: Picture, pec: Picture) -> list[str]:
    """Compares a server's neighbours with the right ones: other sites' PSCs and its site's BSCs."""
    server = picture.server
    if server.node is None:
        return []
    neighbors = set(server.node.replication.memory.neighbors)
    wanted: set[str] = set()
    if server.me.is_psc:
        owners = (name_key(p.owner) for p in pec.partitions.values() if p.owner)
        wanted = {owner for owner in owners if owner != name_key(server.name)}
        wanted |= _bscs(picture)
    return [f"{server.name} tells {name}" for name in sorted(neighbors - wanted)] + [
        f"{server.name} does not tell {name}" for name in sorted(wanted - neighbors)
    ]


def _bscs(picture: Picture) -> set[str]:
    server = picture.server
    with server.disk.store.read() as view:
        machines = view.objects(ObjectType.MACHINE)
        return {
            name_key(machine.path or "")
            for machine in machines
            if machine.partition == server.me.site and is_bsc(machine)
        }


# --- nothing lost ---------------------------------------------------------------------------------


def check_nothing_lost(enterprise: CheckedEnterprise) -> None:
    """Checks that every authority holds exactly what it committed (unless its disk was lost)."""
    for server in enterprise.servers.values():
        picture = Picture(server)
        for state in picture.partitions.values():
            if _is_authority(server, state):
                _check_last(enterprise.history, picture, state.id)


def _check_last(history: NumberHistory, picture: Picture, partition: Guid) -> None:
    holds = picture.holds(partition)
    name = picture.server.name
    last = history.of(partition).last
    for id_, version in last.items():
        if version.held is None and id_ in holds:
            raise Violation("no deleted object back", f"{name} has {version} again")
        if version.held is not None and holds.get(id_) != version.held:
            raise Violation("no acknowledged change lost", f"{name} does not have {version}")
    for id_ in holds:
        if id_ not in last:
            raise Violation("no acknowledged change lost", f"{name} has {id_}, which nobody made")


def check_tombstones(enterprise: CheckedEnterprise) -> None:
    """Checks that every PSC has the tombstones of all deletions between its two numbers.

    The authority of a deleted site is gone, so a restored PEC that has the site again stays at the
    number of its backup, and says nothing about later deletions.
    """
    for server in enterprise.servers.values():
        if server.me.is_psc:
            with server.disk.store.read() as view:
                for state in view.partitions():
                    _check_buried(server, view, state, enterprise.history)


def _check_buried(server: SimServer, view: View, state: Partition, history: NumberHistory) -> None:
    kept = {change.id for change in view.changes(state.id, state.purged_seq)}
    for id_, version in history.of(state.id).last.items():
        is_told = state.purged_seq < version.seq <= state.last_seq
        if version.held is None and is_told and id_ not in kept:
            raise Violation(
                "nothing purged that someone needs",
                f"{server.name} has no tombstone of {version}, and says to have all above "
                f"{state.purged_seq.value} up to {state.last_seq.value}",
            )


def check_announced(
    history: NumberHistory, server: str, partition: Guid, seq: SequenceNumber
) -> None:
    """Checks that a server which tells its subscribers of a change has that change."""
    state = history.seen(server, partition)
    if state is not None and state.purge_state is PurgeState.NORMAL and seq > state.last_seq:
        raise Violation(
            "nothing announced that is not there",
            f"{server} announces {seq.value} of {partition}, and is at {state.last_seq.value}",
        )


def check_nothing_ahead(server: SimServer) -> None:
    """Checks that a server which refused a change has nothing above its last numbers."""
    with server.disk.store.read() as view:
        for state in view.partitions():
            for change in view.changes(state.id, state.last_seq):
                raise Violation(
                    "a refused reply leaves nothing",
                    f"{server.name} has {change.id} at {change.seq.value} of {state.id}, "
                    f"and is at {state.last_seq.value}",
                )


def check_answered(history: NumberHistory, change: OwnChange) -> None:
    """Checks that the authority made a forwarded change that was answered with success."""
    known = history.of(change.obj.partition)
    versions = [version for version in known.versions.values() if version.id == change.obj.id]
    if not any(_fulfils(version, change) for version in versions):
        what = f"{change.kind.name.lower()} of {change.obj.type.label} {change.obj.id}"
        raise Violation("no acknowledged change lost", f"the {what} was answered, not made")


def _fulfils(version: Version, change: OwnChange) -> bool:
    if change.kind is ChangeKind.DELETE:
        return version.held is None
    if version.held is None:
        return False
    if change.kind is ChangeKind.CREATE:
        return True
    wanted = dict(changed_properties(change.obj, change.changed))
    content = version.held.content
    return all(content.get(p) == value for p, value in wanted.items() if p not in _TIMES)
