"""The operations of clients, as functions of the directory that their server holds.

An operation draws its object from the objects that exist when it runs, so it still makes sense if
earlier ones are left out. It does nothing if there is no such object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject, Scope
from mqis.protocol.undeletion.conflicts import bring_back, conflicts
from mqis.protocol.undeletion.lost import LostObject
from mqis.sim.steps import Change
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.certificates import digest_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.descriptor import Control, SecurityDescriptor

Properties = dict[int, PropVariant]
ClientOperation = Callable[[DirectoryEvents], object]
_Work = Callable[[DirectoryEvents, Random], object]


def operation(
    change: Change, salt: int, deleted: Sequence[DirectoryObject] = ()
) -> ClientOperation:
    """Returns the operation of an ``Operate`` step; ``salt`` seeds its random choices.

    ``deleted`` are the objects that clients deleted, as they were then: a journal has them.
    """
    if change is Change.UNDELETE:
        return lambda events: _undelete(events, Random(salt), deleted)
    work = _WORK[change]
    return lambda events: work(events, Random(salt))


def _any(
    events: DirectoryEvents, object_type: ObjectType, random: Random
) -> DirectoryObject | None:
    found = list(events.transaction.objects(object_type))
    return random.choice(found) if found else None


def _plain_machine(events: DirectoryEvents, random: Random) -> DirectoryObject | None:
    """A random machine that is neither a directory server nor a roamer."""
    machines = events.transaction.objects(ObjectType.MACHINE)
    plain = (machine for machine in machines if ServiceAttributes.of(machine).role is None)
    found = [machine for machine in plain if not (machine.path or "").startswith("roamer")]
    return random.choice(found) if found else None


def _site(events: DirectoryEvents, random: Random) -> DirectoryObject | None:
    """A random site that has a PSC."""
    sites = events.transaction.objects(ObjectType.SITE)
    found = [site for site in sites if site.value(PropId.S_PSC)]
    return random.choice(found) if found else None


# --- queues ---------------------------------------------------------------------------------------


def queue_properties(random: Random) -> Properties:
    choices: Properties = props(
        {
            PropId.Q_LABEL: random.choice(("", "orders", f"label {random.getrandbits(16)}")),
            PropId.Q_QUOTA: random.getrandbits(20),
            PropId.Q_JOURNAL: random.getrandbits(1),
            PropId.Q_BASEPRIORITY: random.randrange(-8, 8),
            PropId.Q_TYPE: Guid(random.randbytes(16)),
            PropId.Q_AUTHENTICATE: random.getrandbits(1),
            PropId.Q_SCOPE: random.choice((Scope.SITE, *[Scope.ENTERPRISE] * 4)),
        }
    )
    chosen = random.sample(sorted(choices), random.choice((1, 1, 1, 2, 4)))
    return {propid: choices[propid] for propid in chosen}


def _create_queue(events: DirectoryEvents, random: Random) -> object:
    host = _any(events, ObjectType.MACHINE, random)
    if host is None:
        return None
    path = f"{host.path}\\q{random.getrandbits(24)}"
    return events.create(ObjectType.QUEUE, path, queue_properties(random))


def _create_queues(events: DirectoryEvents, random: Random) -> object:
    host = _any(events, ObjectType.MACHINE, random)
    if host is not None:
        for index in range(random.randint(3, 12)):
            path = f"{host.path}\\bulk{random.getrandbits(24)}.{index}"
            events.create(ObjectType.QUEUE, path, queue_properties(random))
    return None


def _update_queue(events: DirectoryEvents, random: Random) -> object:
    queue = _any(events, ObjectType.QUEUE, random)
    return None if queue is None else events.update(queue, queue_properties(random))


# --- machines -------------------------------------------------------------------------------------


def _create_machine(events: DirectoryEvents, random: Random) -> object:
    site = _site(events, random)
    if site is None:
        return None
    name = f"m{random.getrandbits(24):06x}"
    return _new_machine(events, random, name, site, Guid(random.randbytes(16)))


def _new_machine(
    events: DirectoryEvents, random: Random, name: str, site: DirectoryObject, identifier: Guid
) -> object:
    properties: Properties = props(
        {
            PropId.QM_MACHINE_ID: identifier,
            PropId.QM_SITE_IDS: (site.id,),
            PropId.QM_OS: random.choice((0x100, 0x300, 0x400)),
        }
    )
    return events.create(ObjectType.MACHINE, name, properties)


def _update_machine(events: DirectoryEvents, random: Random) -> object:
    machine = _plain_machine(events, random)
    if machine is None:
        return None
    choices: Properties = props(
        {
            PropId.QM_QUOTA: random.getrandbits(20),
            PropId.QM_JOURNAL_QUOTA: random.getrandbits(20),
            PropId.QM_MACHINE_TYPE: f"model {random.getrandbits(8)}",
            PropId.QM_CNS: tuple(Guid(random.randbytes(16)) for _ in range(random.randrange(3))),
            PropId.QM_SERVICE: random.getrandbits(1),
        }
    )
    chosen = random.sample(sorted(choices), random.choice((1, 1, 2)))
    return events.update(machine, {propid: choices[propid] for propid in chosen})


def _move_machine(events: DirectoryEvents, random: Random) -> object:
    """Moves a machine to another site; its old authority keeps it."""
    machine, site = _plain_machine(events, random), _site(events, random)
    if machine is None or site is None:
        return None
    return events.update(machine, props({PropId.QM_SITE_ID: site.id}))


def roamer(random: Random) -> str:
    """The name of the machine of ``RECREATE_MACHINE``, which it draws first."""
    return f"roamer{random.randrange(3)}"


def _recreate_machine(events: DirectoryEvents, random: Random) -> object:
    """Deletes a machine, or creates it again under the same name.

    In its old site it keeps its identifier, in another one it gets a new one. Only clients keep
    names unique among sites. This one does: it creates only at the authority, and only if no
    authority has the name (``World`` checks that in the history).
    """
    name = roamer(random)
    there = events.transaction.find(ObjectType.MACHINE, name)
    if there is not None:
        return events.delete_directory_object(there)
    assert events.own_site is not None
    assert events.owns is not None
    own = events.transaction.get(ObjectType.SITE, events.own_site)
    if own is None or not events.owns(own.id):
        return None
    identifier = Guid(bytes(a ^ b for a, b in zip(own.id.raw, name.encode() * 3, strict=False)))
    return _new_machine(events, random, name, own, identifier)


def _delete_machine(events: DirectoryEvents, random: Random) -> object:
    machine = _plain_machine(events, random)
    return None if machine is None else events.delete_directory_object(machine)


# --- objects of the enterprise --------------------------------------------------------------------


def _create_user(events: DirectoryEvents, random: Random) -> object:
    account = bytes.fromhex("010500000000000515000000") + random.randbytes(16)
    certificate = b"\x30\x10\x30\x0e\x0c\x0c" + random.randbytes(12)
    properties: Properties = props(
        {
            PropId.U_SID: account,
            PropId.U_SIGN_CERT: certificate,
            PropId.U_DIGEST: (Guid(digest_of(certificate)),),
        }
    )
    return events.create(ObjectType.USER, None, properties)


def _create_network(events: DirectoryEvents, random: Random) -> object:
    name = f"net{random.randrange(50)}"
    properties: Properties = props(
        {
            PropId.CN_NAME: name,
            PropId.CN_PROTOCOLID: 1,
        }
    )
    return events.create(ObjectType.CN, name, properties)


def _update_network(events: DirectoryEvents, random: Random) -> object:
    network = _any(events, ObjectType.CN, random)
    if network is None:
        return None
    return events.update(network, props({PropId.CN_NAME: f"net{random.randrange(50)}"}))


def _create_link(events: DirectoryEvents, random: Random) -> object:
    first, second = (_any(events, ObjectType.SITE, random) for _ in range(2))
    if first is None or second is None or first.id == second.id:
        return None
    properties: Properties = props(
        {
            PropId.L_NEIGHBOR1: first.id,
            PropId.L_NEIGHBOR2: second.id,
            PropId.L_ACTUAL_COST: random.randint(1, 99),
        }
    )
    return events.create(ObjectType.ROUTINGLINK, None, properties)


def _update_link(events: DirectoryEvents, random: Random) -> object:
    link = _any(events, ObjectType.ROUTINGLINK, random)
    cost: Properties = props({PropId.L_ACTUAL_COST: random.randint(1, 99)})
    return None if link is None else events.update(link, cost)


def _create_site(events: DirectoryEvents, random: Random) -> object:
    """Creates a site without a server."""
    return events.create(ObjectType.SITE, f"empty{random.randrange(8)}", {})


def _empty_site(events: DirectoryEvents, random: Random) -> DirectoryObject | None:
    sites = events.transaction.objects(ObjectType.SITE)
    found = [site for site in sites if not site.value(PropId.S_PSC)]
    return random.choice(found) if found else None


def _delete_site(events: DirectoryEvents, random: Random) -> object:
    site = _empty_site(events, random)
    return None if site is None else events.delete_directory_object(site)


def _update_site(events: DirectoryEvents, random: Random) -> object:
    site = _any(events, ObjectType.SITE, random)
    choices: Properties = props(
        {
            PropId.S_INTERVAL1: random.randint(1, 9),
            PropId.S_INTERVAL2: random.randint(5, 60),
            PropId.S_GATES: (Guid(random.randbytes(16)),),
        }
    )
    propid = random.choice(sorted(choices))
    return None if site is None else events.update(site, {propid: choices[propid]})


def _update_enterprise(events: DirectoryEvents, random: Random) -> object:
    found = _any(events, ObjectType.ENTERPRISE, random)
    long_live: Properties = props({PropId.E_LONG_LIVE: random.getrandbits(20)})
    return None if found is None else events.update(found, long_live)


_PROTECTED = (
    ObjectType.QUEUE,
    ObjectType.MACHINE,
    ObjectType.CN,
    ObjectType.SITE,
    ObjectType.ENTERPRISE,
)


def _update_descriptor(events: DirectoryEvents, random: Random) -> object:
    """Sets the security descriptor of an object, or clears it: the object has none then."""
    object_type = random.choice(_PROTECTED)
    found = _any(events, object_type, random)
    # A liar asks for a descriptor without SACL: no client may have set that one before.
    bits = random.choice((Control.SACL_PRESENT, Control.DACL_PRESENT | Control.SACL_PRESENT))
    descriptor = SecurityDescriptor(control=bits).to_bytes()
    if found is None:
        return None
    propid = SECURITY_PROPERTY[object_type]
    value = b"" if found.value(propid) and random.random() < 0.7 else descriptor
    return events.update_directory_object(found, props({propid: value}))


def _deleting(object_type: ObjectType) -> _Work:
    def work(events: DirectoryEvents, random: Random) -> object:
        found = _any(events, object_type, random)
        return None if found is None else events.delete_directory_object(found)

    return work


def _undelete(
    events: DirectoryEvents, random: Random, deleted: Sequence[DirectoryObject]
) -> object:
    """Brings back an object that is gone here, unless its place is taken or its owner is missing.

    Clients keep the names of roamers unique among sites (``_recreate_machine``).
    """
    view = events.transaction
    gone = [obj for obj in deleted if view.get(obj.type, obj.id) is None]
    plain = [obj for obj in gone if "roamer" not in (obj.path or "")]
    if not plain:
        return None
    obj = random.choice(plain)
    lost = LostObject(obj.type, obj.id, obj.partition, 0, 0, obj=obj)
    return None if conflicts([lost], view) else bring_back(events, lost)


_WORK: dict[Change, _Work] = {
    Change.CREATE_QUEUE: _create_queue,
    Change.CREATE_QUEUES: _create_queues,
    Change.UPDATE_QUEUE: _update_queue,
    Change.DELETE_QUEUE: _deleting(ObjectType.QUEUE),
    Change.CREATE_MACHINE: _create_machine,
    Change.UPDATE_MACHINE: _update_machine,
    Change.MOVE_MACHINE: _move_machine,
    Change.RECREATE_MACHINE: _recreate_machine,
    Change.DELETE_MACHINE: _delete_machine,
    Change.CREATE_USER: _create_user,
    Change.DELETE_USER: _deleting(ObjectType.USER),
    Change.CREATE_NETWORK: _create_network,
    Change.UPDATE_NETWORK: _update_network,
    Change.DELETE_NETWORK: _deleting(ObjectType.CN),
    Change.CREATE_LINK: _create_link,
    Change.UPDATE_LINK: _update_link,
    Change.DELETE_LINK: _deleting(ObjectType.ROUTINGLINK),
    Change.CREATE_SITE: _create_site,
    Change.DELETE_SITE: _delete_site,
    Change.UPDATE_SITE: _update_site,
    Change.UPDATE_ENTERPRISE: _update_enterprise,
    Change.UPDATE_DESCRIPTOR: _update_descriptor,
}
