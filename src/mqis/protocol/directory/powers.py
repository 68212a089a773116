"""Properties that give power over others, and the right that each of them takes.

The right to write an object is not enough for what makes a server, names an authority, gives
somebody an identity or puts an object in somebody else's care: the owner of a workstation could
make it a controller, or register a certificate in another user's name. ``POWERS`` lists these
properties, ``ORDINARY`` all others, for which the right to create or write the object suffices.

``demands`` is the rule in force. It looks at what a change would make of an object, not at the
call that asks for it, so it holds on every way to a change: creation, update, deletion, keys that
are set like permissions, and requests that other servers forward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, Flag, auto

from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.service import Service, ServiceBits
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.security.masks import EnterpriseRights, MachineRights, SiteRights
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P


class Takes(Enum):
    """The right that a property takes beside the right to write its object."""

    ROLE = (
        "CREATE_BSC (controller) or CREATE_FRS (router, dependent-client server) at every site of "
        "the machine; SET_ENTERPRISE_PROPERTIES for a primary controller"
    )
    SERVER = "what the machine's role takes, if the machine is a server; nothing more if it is none"
    PLACE = "the right to create such an object at its new place"
    SITE = "SET_SITE_PROPERTIES"
    ENTERPRISE = "SET_ENTERPRISE_PROPERTIES"
    PERMISSIONS = "WRITE_DAC for the list, WRITE_OWNER for the owner; audit lists: administrators"
    SELF = "to be the user of that SID, or SET_ENTERPRISE_PROPERTIES; never an anonymous caller"
    NOBODY = "no client sets it: the server does"


#: Everything that gives power over others. docs/security.md has the same table.
POWERS: dict[P, Takes] = {
    P.QM_SERVICE: Takes.ROLE,
    P.QM_SERVICE_ROUTING: Takes.ROLE,
    P.QM_SERVICE_DSSERVER: Takes.ROLE,
    P.QM_SERVICE_DEPCLIENTS: Takes.ROLE,
    P.QM_SIGN_PK: Takes.SERVER,
    P.QM_SIGN_PKS: Takes.SERVER,
    P.QM_ENCRYPT_PK: Takes.SERVER,
    P.QM_ENCRYPT_PKS: Takes.SERVER,
    P.QM_ADDRESS: Takes.SERVER,
    P.QM_SITE_ID: Takes.PLACE,
    P.QM_SITE_IDS: Takes.PLACE,
    P.QM_PARTITIONID: Takes.ENTERPRISE,
    P.Q_QMID: Takes.PLACE,
    P.Q_PARTITIONID: Takes.ENTERPRISE,
    P.S_PSC: Takes.ENTERPRISE,
    P.S_PSC_SIGNPK: Takes.ENTERPRISE,
    P.S_GATES: Takes.SITE,
    P.L_NEIGHBOR1: Takes.ENTERPRISE,
    P.L_NEIGHBOR2: Takes.ENTERPRISE,
    P.L_COST: Takes.ENTERPRISE,
    P.L_ACTUAL_COST: Takes.ENTERPRISE,
    P.L_GATES: Takes.ENTERPRISE,
    P.E_NAMESTYLE: Takes.ENTERPRISE,
    P.E_CSP_NAME: Takes.ENTERPRISE,
    P.E_LONG_LIVE: Takes.ENTERPRISE,
    P.E_VERSION: Takes.ENTERPRISE,
    P.E_PECNAME: Takes.NOBODY,
    P.U_SID: Takes.SELF,
    P.U_SIGN_CERT: Takes.SELF,
    P.U_DIGEST: Takes.SELF,
    P.Q_SECURITY: Takes.PERMISSIONS,
    P.Q_OBJ_SECURITY: Takes.PERMISSIONS,
    P.QM_SECURITY: Takes.PERMISSIONS,
    P.QM_OBJ_SECURITY: Takes.PERMISSIONS,
    P.S_SECURITY: Takes.PERMISSIONS,
    P.CN_SECURITY: Takes.PERMISSIONS,
    P.E_SECURITY: Takes.PERMISSIONS,
}

#: For everything else the right to create or to write the object is enough, or nobody writes it.
ORDINARY: frozenset[P] = frozenset(
    {
        P.Q_INSTANCE,
        P.Q_TYPE,
        P.Q_PATHNAME,
        P.Q_JOURNAL,
        P.Q_QUOTA,
        P.Q_BASEPRIORITY,
        P.Q_JOURNAL_QUOTA,
        P.Q_LABEL,
        P.Q_CREATE_TIME,
        P.Q_MODIFY_TIME,
        P.Q_AUTHENTICATE,
        P.Q_PRIV_LEVEL,
        P.Q_TRANSACTION,
        P.Q_SCOPE,
        P.Q_SEQNUM,
        P.Q_HASHKEY,
        P.Q_LABEL_HASHKEY,
        P.Q_FULL_PATH,
        P.Q_NAME_SUFFIX,
        P.Q_PATHNAME_DNS,
        P.Q_MULTICAST_ADDRESS,
        P.Q_ADS_PATH,
        P.Q_SECURITY_INFORMATION,
        P.QM_MACHINE_ID,
        P.QM_PATHNAME,
        P.QM_ENCRYPTION_PK,
        P.QM_CNS,
        P.QM_OUTFRS,
        P.QM_INFRS,
        P.QM_HASHKEY,
        P.QM_SEQNUM,
        P.QM_QUOTA,
        P.QM_JOURNAL_QUOTA,
        P.QM_MACHINE_TYPE,
        P.QM_CREATE_TIME,
        P.QM_MODIFY_TIME,
        P.QM_FOREIGN,
        P.QM_OS,
        P.QM_FULL_PATH,
        P.QM_OUTFRS_DN,
        P.QM_INFRS_DN,
        P.QM_ENCRYPTION_PK_BASE,
        P.QM_ENCRYPTION_PK_ENHANCED,
        P.QM_PATHNAME_DNS,
        P.QM_SECURITY_INFORMATION,
        P.QM_OWNER_SID,
        P.QM_GROUP_IN_CLUSTER,
        P.QM_UPGRADE_DACL,
        P.S_PATHNAME,
        P.S_SITEID,
        P.S_INTERVAL1,
        P.S_INTERVAL2,
        P.S_PARTITIONID,
        P.S_SEQNUM,
        P.S_FULL_NAME,
        P.S_NT4_STUB,
        P.S_FOREIGN,
        P.S_DONOTHING,
        P.S_SECURITY_INFORMATION,
        P.CN_PROTOCOLID,
        P.CN_NAME,
        P.CN_GUID,
        P.CN_PARTITIONID,
        P.CN_SEQNUM,
        P.E_NAME,
        P.E_S_INTERVAL1,
        P.E_S_INTERVAL2,
        P.E_PARTITIONID,
        P.E_SEQNUM,
        P.E_ID,
        P.E_CRL,
        P.E_CSP_TYPE,
        P.E_ENCRYPT_ALG,
        P.E_SIGN_ALG,
        P.E_HASH_ALG,
        P.E_CIPHER_MODE,
        P.U_PARTITIONID,
        P.U_SEQNUM,
        P.U_ID,
        P.L_PARTITIONID,
        P.L_SEQNUM,
        P.L_ID,
        P.L_GATES_DN,
        P.L_NEIGHBOR1_DN,
        P.L_NEIGHBOR2_DN,
        P.L_DESCRIPTION,
        P.L_FULL_PATH,
        P.D_SEQNUM,
        P.D_PARTITIONID,
        P.D_SCOPE,
        P.D_OBJTYPE,
        P.D_IDENTIFIER,
    }
)

_CREATE_FRS, _CREATE_BSC = int(SiteRights.CREATE_FRS), int(SiteRights.CREATE_BSC)
_CREATE_MACHINE = int(SiteRights.CREATE_MACHINE)
_CREATE_QUEUE = int(MachineRights.CREATE_QUEUE)
_SET_ENTERPRISE = int(EnterpriseRights.SET_ENTERPRISE_PROPERTIES)
#: What decides whom a server's messages are believed of, and where messages for it go.
_OF_SERVERS = (P.QM_SIGN_PKS, P.QM_ENCRYPT_PKS, P.QM_ADDRESS)
_ROLE_PROPERTIES = (P.QM_SERVICE, P.QM_SERVICE_DSSERVER, P.QM_SERVICE_DEPCLIENTS)
_AUTHORITY = (P.S_PSC, P.S_PSC_SIGNPK)


class ServerKind(Flag):
    """What a machine does for others, by the right that it takes to make one."""

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
    """What a machine is to others: by its service bits, or because an authority has its name.

    Before a new server has a machine object, its site names it already. Whoever creates that
    object gives the server its key.
    """
    kind = ServerKind.PRIMARY if is_named_authority(machine.path or "", view) else ServerKind.NONE
    service = Service.of(machine)
    if service.role in (ServiceBits.PSC, ServiceBits.PEC):
        kind |= ServerKind.PRIMARY
    elif service.directory_server:
        kind |= ServerKind.CONTROLLER
    for_clients = machine.value(P.QM_SERVICE_DEPCLIENTS) == 1
    if service.routing or service.remote_access or for_clients:
        kind |= ServerKind.ROUTER
    return kind


def is_named_authority(name: str, view: View) -> bool:
    """Whether the enterprise or a site names this machine as its authority."""
    wanted = name_key(name)
    if any(name_key(state.owner) == wanted for state in view.partitions()):
        return True
    root = enterprise(view)
    named = [] if root is None else [root.value(P.E_PECNAME)]
    named += [site.value(P.S_PSC) for site in view.objects(ObjectType.SITE)]
    return any(isinstance(n, str) and name_key(n) == wanted for n in named)


def _machine(change: OwnChange, view: View) -> Iterator[Demand]:
    if change.kind is ChangeKind.UPDATE and not _concerns_others(change):
        return
    states = [state for state in (change.before, change.obj) if state is not None]
    kind = ServerKind.NONE
    for state in states:
        kind |= server_kind(state, view)
    before = set() if change.before is None else set(_sites(change.before))
    sites = dict.fromkeys(site for state in states for site in _sites(state))
    if change.kind is not ChangeKind.DELETE:
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
    others = (*_OF_SERVERS, *_ROLE_PROPERTIES, P.QM_SITE_IDS)
    return not differing(change).isdisjoint(others)


def _sites(machine: DirectoryObject) -> tuple[Guid, ...]:
    listed = machine.value(P.QM_SITE_IDS)
    return tuple(s for s in listed if isinstance(s, Guid)) if isinstance(listed, tuple) else ()


def _at(
    action: str, sites: Iterable[Guid], view: View, right: int = _CREATE_MACHINE
) -> Iterator[Demand]:
    for site in sites:
        yield Demand(action, view.get(ObjectType.SITE, site), right)


def _queue(change: OwnChange, view: View) -> Iterator[Demand]:
    if change.kind is not ChangeKind.UPDATE or P.Q_QMID not in differing(change):
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
