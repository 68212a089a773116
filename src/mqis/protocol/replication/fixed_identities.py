"""Names, identifiers and places that no change request may choose.

A client cannot rename a machine, put a queue into another partition than its machine's, or give a
new object the identifier of another one: the directory service has no call for it. A request from
another server carries every stored property, so the authority checks the same things again. A
server's name is what its messages are believed by, a name that two partitions have is set aside by
every replica, and an identifier that two partitions use is set aside likewise.
"""

from __future__ import annotations

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.ownership import site_of
from mqis.protocol.directory.powers import differing
from mqis.protocol.directory.types.catalogue import ids_where
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

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
