"""Consequences of sites, machines and the enterprise object for replication (3.1.7.2.5 to .12).

Partitions and neighbours follow from the directory: a partition for each site, a neighbour for the
PSC of each other site and for each BSC of our own. So whatever way a change came, and however
often, the result is the same (E30, E33 to E37, E44, E61).
"""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DirectoryObject,
    Partition,
    name_key,
)
from mqis.protocol.directory.ownership import remove
from mqis.protocol.ports import Transaction
from mqis.protocol.replication import number_recovery, quarantine, rounds
from mqis.protocol.replication.acknowledging import forget
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.memory import Neighbor
from mqis.protocol.replication.propagation import send_changes
from mqis.protocol.replication.sync_requests import ask
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber


def after_change(work: Work, before: DirectoryObject | None, after: DirectoryObject | None) -> None:
    """Called once for every change of an object, whoever made it."""
    obj = after or before
    if obj is None:
        return
    if obj.type is ObjectType.SITE:
        if after is None:
            drop_site(work, obj.id)
        else:
            put_site(work, after)
            if before is None and after.id == work.me.site:
                _announce(work)
    elif obj.type is ObjectType.ENTERPRISE and after is not None:
        _put_enterprise(work, after)
    elif obj.type is ObjectType.MACHINE:
        _machine(work, before, after)


def forget_object(work: Work, obj: DirectoryObject) -> None:
    """Remove what the authority has no more, with what follows from that; no tombstone is left."""
    work.tx.delete(obj)
    work.changed(obj.type)
    after_change(work, obj, None)


# --- sites ----------------------------------------------------------------------------------------


def put_site(work: Work, site: DirectoryObject) -> None:
    """A site has a partition, whose authority is its PSC (3.1.7.2.5, 3.1.7.2.11)."""
    psc = site.value(PropId.S_PSC)
    name = psc if isinstance(psc, str) else ""
    state = work.partition(site.id)
    if state is None:
        state = work.put(Partition(site.id, name))
        _introduce(work, state)
    elif name and name_key(name) != name_key(state.owner):
        set_owner(work, state, name)
    if work.me.is_bsc and site.id == work.me.site and name:
        work.memory.psc = name


def names_another(work: Work, site: Guid, name: str) -> bool:
    """Returns whether the directory has another server as the PSC of a site."""
    found = work.tx.get(ObjectType.SITE, site)
    psc = None if found is None else found.value(PropId.S_PSC)
    return isinstance(psc, str) and psc != "" and name_key(psc) != name_key(name)


def _announce(work: Work) -> None:
    """Tells all neighbours the own numbers at once: the own site is new, or was undeleted.

    After a delete of the site they have dropped its partition, which this server has kept.
    """
    for neighbor in work.memory.neighbors.values():
        neighbor.heartbeat_at = work.now


def set_owner(work: Work, state: Partition, name: str) -> None:
    """The authority has another name now: what is asked for, and told, goes there."""
    owned = owns(work.tx, work.me, state.id)
    former = work.tx.find(ObjectType.MACHINE, state.owner)
    _remove_neighbor(work, state.owner, state.id)
    state = work.put(replace(state, owner=name))
    _machine(work, None, former)  # a BSC of our site that was promoted for a short time only
    work.memory.progress(state.id).asked = None
    if work.me.is_bsc and state.id == work.me.site:
        work.memory.psc = name
    if not owned and owns(work.tx, work.me, state.id):
        number_recovery.begin(work, state.id)
    _introduce(work, state)


def follow_psc(tx: Transaction, site: DirectoryObject, psc: str) -> None:
    """Names another PSC in the store of a backup controller that cannot learn of it.

    The site keeps its number: the version that the new PSC sends is newer. A copy that names the
    PSC already is that version, with the PSC's key, and stays as it is.
    """
    named = site.value(PropId.S_PSC)
    if not isinstance(named, str) or name_key(named) != name_key(psc):
        properties = {**site.properties, PropId.S_PSC: prop(PropId.S_PSC, psc)}
        properties.pop(PropId.S_PSC_SIGNPK, None)  # the key of the former PSC
        tx.update(site, replace(site, properties=properties))
    state = tx.partition(site.id)
    if state is not None:
        tx.put_partition(replace(state, owner=psc))


def _introduce(work: Work, state: Partition) -> None:
    """Make the authority of a site a neighbour, and ask it for what it has."""
    if state.id == ENTERPRISE_PARTITION or work.me.is_called(state.owner):
        if owns(work.tx, work.me, state.id):
            number_recovery.begin_if_new(work, state)
        return
    if work.me.is_psc and state.owner:
        add_neighbor(work, state.owner, state.id, intersite=True)
    if ENTERPRISE_PARTITION in work.memory.recoveries and owns(work.tx, work.me, state.id):
        # A site that a restored PEC hears of only now: its PSC may be in office long since.
        number_recovery.begin(work, state.id)
    ask(work, state.id)


def drop_site(work: Work, site: Guid) -> None:
    """Every server forgets the partition of a deleted site (E35), but for the site's own."""
    state = work.partition(site)
    if state is None or site == ENTERPRISE_PARTITION:
        return
    _remove_neighbor(work, state.owner, site)
    if site == work.me.site:
        return
    rounds.end(work, site)
    quarantine.forget(work, site)
    for obj in remove(work.tx, site):
        work.changed(obj.type)
    work.tx.purge(site, SequenceNumber.MAX)
    work.tx.drop_partition(site)
    work.memory.partitions.pop(site, None)
    work.memory.recoveries.pop(site, None)


# --- the enterprise -------------------------------------------------------------------------------


def _put_enterprise(work: Work, enterprise: DirectoryObject) -> None:
    """PROPID_E_PECNAME names the authority of the enterprise partition (3.1.7.2.10)."""
    name = enterprise.value(PropId.E_PECNAME)
    state = work.partition(ENTERPRISE_PARTITION)
    if state is None or not isinstance(name, str) or not name:
        return
    if name_key(name) != name_key(state.owner):
        owned = owns(work.tx, work.me, state.id)
        work.put(replace(state, owner=name))
        work.memory.progress(state.id).asked = None
        if not owned and owns(work.tx, work.me, state.id):
            number_recovery.begin(work, state.id)
        ask(work, state.id)


# --- machines -------------------------------------------------------------------------------------


def is_bsc(machine: DirectoryObject) -> bool:
    """The bit, not the number: a BSC that routes is one too (E71)."""
    return ServiceAttributes.of(machine).role is ServiceBits.BSC


def _machine(work: Work, before: DirectoryObject | None, after: DirectoryObject | None) -> None:
    """A BSC of the own site is a neighbour of its PSC (3.1.7.2.12)."""
    if not work.me.is_psc:
        return
    old_name = _neighbor_name(work, before)
    new_name = _neighbor_name(work, after)
    if old_name is not None and (new_name is None or name_key(old_name) != name_key(new_name)):
        _remove_neighbor(work, old_name, work.me.site)
    if new_name is not None:
        add_neighbor(work, new_name, work.me.site, intersite=False)


def _neighbor_name(work: Work, machine: DirectoryObject | None) -> str | None:
    if machine is None or machine.partition != work.me.site or not is_bsc(machine):
        return None
    name = machine.path
    return None if name is None or work.me.is_called(name) else name


# --- neighbours -----------------------------------------------------------------------------------


def add_neighbor(work: Work, name: str, site: Guid, *, intersite: bool) -> None:
    neighbors = work.memory.neighbors
    if not work.me.is_called(name) and name_key(name) not in neighbors:
        neighbors[name_key(name)] = Neighbor(name, site, intersite)


def _remove_neighbor(work: Work, name: str, site: Guid) -> None:
    """Unless it is one for another reason: a machine can be the PSC of two sites.

    It still hears of the change that makes it none: a replaced authority has to stop deciding.
    """
    found = work.memory.neighbor(name)
    if found is not None and found.site == site:
        send_changes(work, found)
        del work.memory.neighbors[name_key(name)]
        forget(work, name)


def reread(work: Work) -> None:
    """After something was undone: back to what the store says, keeping what is still true."""
    known = work.memory.neighbors
    work.memory.neighbors = {}
    read_neighbors(work)
    for key, fresh in work.memory.neighbors.items():
        old = known.get(key)
        if old is not None and old.site == fresh.site:
            work.memory.neighbors[key] = old
    for partition in list(work.memory.recoveries):
        if not number_recovery.is_running(work, partition):
            del work.memory.recoveries[partition]


def read_neighbors(work: Work) -> None:
    """All neighbours, from what the directory holds (3.1.3.2)."""
    if not work.me.is_psc:
        return
    for state in work.tx.partitions():
        if state.id != ENTERPRISE_PARTITION and state.owner:
            add_neighbor(work, state.owner, state.id, intersite=True)
    for machine in work.tx.owned_by(ObjectType.MACHINE, work.me.site):
        name = _neighbor_name(work, machine)
        if name is not None:
            add_neighbor(work, name, work.me.site, intersite=False)
