"""The trust in change requests of other servers.

The rights of a caller are checked by the server that he called, which then asks the authority in
its own name: nothing in the protocol proves to the authority who the caller was. So a request is
believed for what ordinary callers may do. What gives power over others (``powers``) has to be
asked of the authority itself, which then checks the caller's rights. Exceptions:

- The PEC is believed in everything: it names all other authorities anyway.
- A PSC is believed about its own site object as well, whose authority it is.
- A backup controller is believed about the key and the address of its own machine, and about
  permissions of queues and plain machines of its own site.

A request that one server brings in the name of another is believed for what the weaker of the two
is; who may bring one for another is ``admission``'s to say (E48). ``Settings.forwarded_powers``
lifts all of this.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    SECURITY_PROPERTY,
    DirectoryObject,
    name_key,
)
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.ownership import site_of
from mqis.protocol.directory.powers import ServerKind, differing, server_kind
from mqis.protocol.directory.types.catalogue import POWERS, ids_where
from mqis.protocol.directory.types.row_columns import Takes
from mqis.protocol.directory.user_certificates import with_digests
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import ChangeRequest

#: What a server says of its own machine when it starts.
_OWN = ids_where(lambda row: row.announced)


class Standing(IntEnum):
    """The degree of trust in a server."""

    BACKUP = 0
    PRIMARY = 1
    ENTERPRISE = 2


def standing_of(view: View, name: str) -> Standing:
    """The trust in a server, from the partitions whose authority has its name."""
    wanted = name_key(name)
    owned = [state.id for state in view.partitions() if name_key(state.owner) == wanted]
    if ENTERPRISE_PARTITION in owned:
        return Standing.ENTERPRISE
    return Standing.PRIMARY if owned else Standing.BACKUP


@dataclass(frozen=True, slots=True)
class Requester:
    """The server that a request is believed for, the weaker one of its author and its bearer."""

    name: str
    standing: Standing

    @classmethod
    def of(cls, work: Work, sender: Sender, request: ChangeRequest) -> Requester:
        names = [request.requester, *([sender.name] if sender.name is not None else [])]
        return min((cls(name, standing_of(work.tx, name)) for name in names), key=_rank)

    def check(self, work: Work, change: OwnChange) -> None:
        """Refuse what has to be asked of the authority itself."""
        _check_digests(change)
        check_identity(work.tx, change)
        if work.settings.forwarded_powers or self.standing is Standing.ENTERPRISE:
            return
        if self._is_about_own_site(work, change) or not self._is_beyond(work, change):
            return
        name = change.obj.path or change.obj.id
        raise DirectoryError(
            HResult.MQ_ERROR_ACCESS_DENIED,
            f"{self.name} may not have {change.obj.type.label} {name} changed so: what gives power "
            "over others is asked of the authority itself",
        )

    def _is_about_own_site(self, work: Work, change: OwnChange) -> bool:
        state = work.partition(change.obj.id) if change.obj.type is ObjectType.SITE else None
        return state is not None and name_key(state.owner) == name_key(self.name)

    def _is_beyond(self, work: Work, change: OwnChange) -> bool:
        object_type = change.obj.type
        if object_type in (ObjectType.ENTERPRISE, ObjectType.ROUTINGLINK):
            return True
        if object_type is ObjectType.MACHINE and self._is_beyond_of_machine(work, change):
            return True
        if object_type is ObjectType.SITE and _names_authority(change):
            return True
        permissions = SECURITY_PROPERTY.get(object_type)
        if change.kind is not ChangeKind.UPDATE or permissions not in differing(change):
            return False
        return not self._is_in_own_site(work, change.obj.partition)

    def _is_beyond_of_machine(self, work: Work, change: OwnChange) -> bool:
        """Servers are made, changed and deleted by others alone, but for a server's own key."""
        before = _kind(work, change.before)
        after = ServerKind.NONE if change.kind is ChangeKind.DELETE else _kind(work, change.obj)
        if not before | after:
            return False
        if change.kind is not ChangeKind.UPDATE:
            return True
        touched = differing(change)
        if name_key(change.obj.path or "") == name_key(self.name) and touched <= _OWN:
            return bool(after & ~_as_backup(before))
        return any(POWERS.get(PropId(p)) in _OF_SERVERS for p in touched if p in POWERS)

    def _is_in_own_site(self, work: Work, partition: Guid) -> bool:
        machine = work.tx.find(ObjectType.MACHINE, self.name)
        return machine is not None and machine.partition == partition


_OF_SERVERS = (Takes.ROLE, Takes.SERVER, Takes.PLACE, Takes.PERMISSIONS)


def _rank(requester: Requester) -> Standing:
    return requester.standing


def _kind(work: Work, machine: DirectoryObject | None) -> ServerKind:
    return ServerKind.NONE if machine is None else server_kind(machine, work.tx)


def _as_backup(kind: ServerKind) -> ServerKind:
    """The roles that a server may claim: its own, and for a primary controller that of a backup."""
    return kind | ServerKind.CONTROLLER if kind & ServerKind.PRIMARY else kind


def _names_authority(change: OwnChange) -> bool:
    if change.kind is ChangeKind.DELETE:
        return bool(change.obj.value(PropId.S_PSC))
    powers = (PropId.S_PSC, PropId.S_PSC_SIGNPK, PropId.S_GATES)
    return not differing(change).isdisjoint(powers)


def _check_digests(change: OwnChange) -> None:
    """A certificate's digest is checked by the authority too."""
    if change.obj.type is ObjectType.USER and change.kind is not ChangeKind.DELETE:
        with_digests(change.obj.properties, {})


# --- Names, identifiers and places that no change request may choose ------------------------------
# A client cannot rename a machine, put a queue into another partition than its machine's, or give a
# new object the identifier of another one: the directory service has no call for it. A request from
# another server carries every stored property, so the authority checks the same things again. A
# server's name is what its messages are believed by, a name that two partitions have is set aside
# by every replica, and an identifier that two partitions use is set aside likewise.

#: Given when an object is made, and never again.
_LASTING = ids_where(lambda row: row.lasting)


def check_identity(view: View, change: OwnChange) -> None:
    """Refuse a change that no client of any server can have asked for."""
    obj = change.obj
    if change.kind is ChangeKind.UPDATE and not _LASTING.isdisjoint(differing(change)):
        raise _refused(f"{_label(obj)} keeps its name and identity")
    if change.kind is ChangeKind.CREATE:
        if not _is_free(view, obj):
            raise _refused(f"the identifier of {_label(obj)} is another object's")
        if not _is_in_place(view, obj):
            raise _refused(f"{_label(obj)} does not belong into partition {obj.partition}")


def _is_free(view: View, obj: DirectoryObject) -> bool:
    """Returns whether no object of another type or partition has, or had, the identifier.

    An object that this partition had may come back, whatever other authorities say to have deleted.
    """
    others = (t for t in ObjectType if t not in (obj.type, ObjectType.DELETEDOBJECT))
    if any(view.get(other, obj.id) is not None for other in others):
        return False
    gone = [(dead.object_type, dead.partition) for dead in view.tombstones(obj.id)]
    return not gone or (obj.type, obj.partition) in gone


def _is_in_place(view: View, obj: DirectoryObject) -> bool:
    """A queue lies where its machine does, a machine where its site is."""
    if obj.type is ObjectType.MACHINE:
        return site_of(obj.properties) == obj.partition
    if obj.type is not ObjectType.QUEUE:
        return True
    machine = obj.value(PropId.Q_QMID)
    host = view.get(ObjectType.MACHINE, machine) if isinstance(machine, Guid) else None
    return host is not None and host.partition == obj.partition


def _label(obj: DirectoryObject) -> str:
    return f"{obj.type.label} {obj.path or obj.id}"


def _refused(reason: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_ACCESS_DENIED, f"no server may ask for this: {reason}")
