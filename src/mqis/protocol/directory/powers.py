"""Properties that give power over others, and the right that each of them takes.

The right to write an object is not enough for what makes a server, names an authority, gives
somebody an identity or puts an object in somebody else's care: the owner of a workstation could
make it a controller, or register a certificate in another user's name. The row of each property
says what it takes (``types.columns.Takes``); docs/security.md has the table.

``demands`` is the rule in force. It looks at what a change would make of an object, not at the
call that asks for it, so it holds on every way to a change: creation, update, deletion, keys that
are set like permissions, and requests that other servers forward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Flag, auto

from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.types.catalogue import ids_where
from mqis.protocol.directory.types.machine_values import sites_of
from mqis.protocol.directory.types.row_columns import Takes
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.security.masks import EnterpriseRights, MachineRights, SiteRights
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P


def _taking(object_type: ObjectType, *takes: Takes) -> frozenset[int]:
    return ids_where(lambda row: row.object_type is object_type and row.takes in takes)


_CREATE_FRS, _CREATE_BSC = int(SiteRights.CREATE_FRS), int(SiteRights.CREATE_BSC)
_CREATE_MACHINE = int(SiteRights.CREATE_MACHINE)
_CREATE_QUEUE = int(MachineRights.CREATE_QUEUE)
_SET_ENTERPRISE = int(EnterpriseRights.SET_ENTERPRISE_PROPERTIES)
#: A change of these makes a server, decides whom a server's messages are believed of, where
#: messages for it go, or where the machine lies.
_OF_SERVERS = _taking(ObjectType.MACHINE, Takes.ROLE, Takes.SERVER, Takes.PLACE)
#: The name and the key of a site's authority.
_AUTHORITY = _taking(ObjectType.SITE, Takes.ENTERPRISE)
_HOST = _taking(ObjectType.QUEUE, Takes.PLACE)


class ServerKind(Flag):
    """The services of a machine for others, by the right that it takes to make one."""

    NONE = 0
    #: Routes, or serves remote or dependent clients.
    ROUTER = auto()
    #: A backup site controller, or a directory server on its own.
    CONTROLLER = auto()
    #: A PSC or PEC, or a machine that has the name of one.
    PRIMARY = auto()


@dataclass(frozen=True, slots=True)
class Demand:
    """A right on another object than the one that changes."""

    #: What it is for, as denials name it: "make a controller of".
    action: str
    #: The object that grants it; None if there is none, so that administrators alone pass.
    on: DirectoryObject | None
    right: int


def demands(change: OwnChange, view: View) -> Iterator[Demand]:
    """The rights that a change takes beside those on the object itself."""
    before, obj = change.before, change.obj
    if before is not None and before.partition != obj.partition:
        yield Demand("move between authorities", enterprise(view), _SET_ENTERPRISE)
    by_type = _BY_TYPE.get(obj.type)
    if by_type is not None:
        yield from by_type(change, view)


def differing(change: OwnChange) -> frozenset[int]:
    """The stored properties whose values differ afterwards; those of a new object that are set."""
    if change.before is None:
        return frozenset(p for p in change.changed if change.obj.value(p))
    old, new = change.before, change.obj
    return frozenset(p for p in change.changed if (old.value(p) or None) != (new.value(p) or None))


def server_kind(machine: DirectoryObject, view: View) -> ServerKind:
    """Returns the kind of a machine by its service bits, or because an authority has its name.

    Before a new server has a machine object, its site names it already. Whoever creates that
    object gives the server its key.
    """
    kind = ServerKind.PRIMARY if is_named_authority(machine.path or "", view) else ServerKind.NONE
    return kind | service_kind(machine)


def service_kind(machine: DirectoryObject) -> ServerKind:
    """Returns the kind of a machine by its service bits alone."""
    kind = ServerKind.NONE
    service = ServiceAttributes.of(machine)
    if service.role in (ServiceBits.PSC, ServiceBits.PEC):
        kind |= ServerKind.PRIMARY
    elif service.directory_server:
        kind |= ServerKind.CONTROLLER
    for_clients = machine.value(P.QM_SERVICE_DEPCLIENTS) == 1
    if service.routing or service.remote_access or for_clients:
        kind |= ServerKind.ROUTER
    return kind


def is_named_authority(name: str, view: View) -> bool:
    """Returns whether the enterprise or a site names this machine as its authority."""
    wanted = name_key(name)
    if any(name_key(state.owner) == wanted for state in view.partitions()):
        return True
    root = enterprise(view)
    authorities = [] if root is None else [root.value(P.E_PECNAME)]
    authorities += [site.value(P.S_PSC) for site in view.objects(ObjectType.SITE)]
    return any(isinstance(n, str) and name_key(n) == wanted for n in authorities)


def _machine(change: OwnChange, view: View) -> Iterator[Demand]:
    if change.kind is ChangeKind.UPDATE and not _concerns_others(change):
        return
    states = [state for state in (change.before, change.obj) if state is not None]
    kind = ServerKind.NONE
    for state in states:
        kind |= server_kind(state, view)
    before = set() if change.before is None else set(sites_of(change.before))
    sites = dict.fromkeys(site for state in states for site in sites_of(state))
    # A new machine's first site is asked for the right to create it in any case.
    yield from _at("put into another site", [s for s in sites if s not in before], view)
    if kind & ServerKind.CONTROLLER:
        yield from _at("make or change a controller", sites, view, _CREATE_BSC)
    if kind & ServerKind.ROUTER:
        yield from _at("make or change a server", sites, view, _CREATE_FRS)
    if kind & ServerKind.PRIMARY:
        action = "make or change a primary controller"
        yield Demand(action, enterprise(view), _SET_ENTERPRISE)


def _concerns_others(change: OwnChange) -> bool:
    return not differing(change).isdisjoint(_OF_SERVERS)


def _at(
    action: str, sites: Iterable[Guid], view: View, right: int = _CREATE_MACHINE
) -> Iterator[Demand]:
    for site in sites:
        yield Demand(action, view.get(ObjectType.SITE, site), right)


def _queue(change: OwnChange, view: View) -> Iterator[Demand]:
    if change.kind is not ChangeKind.UPDATE or differing(change).isdisjoint(_HOST):
        return
    machine = change.obj.value(P.Q_QMID)
    host = view.get(ObjectType.MACHINE, machine) if isinstance(machine, Guid) else None
    if host is None:
        raise DirectoryError(
            HResult.MQ_ERROR_MACHINE_NOT_FOUND, f"no machine {machine!s} to move the queue to"
        )
    yield Demand("move a queue to", host, _CREATE_QUEUE)


def _site(change: OwnChange, view: View) -> Iterator[Demand]:
    if change.kind is ChangeKind.DELETE:
        concerned = bool(change.obj.value(P.S_PSC))
    else:
        concerned = not differing(change).isdisjoint(_AUTHORITY)
    if concerned:
        yield Demand("choose the authority of", enterprise(view), _SET_ENTERPRISE)


_BY_TYPE: dict[ObjectType, Callable[[OwnChange, View], Iterator[Demand]]] = {
    ObjectType.MACHINE: _machine,
    ObjectType.QUEUE: _queue,
    ObjectType.SITE: _site,
}
