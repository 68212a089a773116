"""Change notifications to queue managers (MS-MQDS 3.1.1.16, 3.1.4.4, 3.1.4.9; MS-MQCN 3.3.5.2).

The directory service and one queue manager share a machine. That queue manager sees changes of its
objects itself; any other is sent a change notification. Computer names compare without regard to
case.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, DirectoryObject, Scope, name_key
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.paths import QueuePath
from mqis.protocol.directory.types.catalogue import DEFAULTS, by_type
from mqis.wire.guid import Guid
from mqis.wire.mqcn import ChangeNotification, NotificationCommand, NotificationUpdate
from mqis.wire.mqds.catalogue import PROPERTIES, pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType


class Notice(Enum):
    """The kinds of change notification."""

    QUEUE_CREATION = "QueueCreation"
    QUEUE_UPDATE = "QueueUpdate"
    QUEUE_DELETION = "QueueDeletion"
    QUEUE_MANAGER_UPDATE = "QueueManagerUpdate"


@dataclass(frozen=True, slots=True)
class LocalQueueManager:
    """The queue manager that this server is co-located with."""

    computer_name: str
    identifier: Guid


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """One notification to send, about the object as it is now, or as it was.

    ``changed`` are the stored properties that an update has set.
    """

    kind: Notice
    obj: DirectoryObject
    changed: tuple[int, ...] = ()


def notice_of(local: LocalQueueManager, change: OwnChange) -> ChangeNotice | None:
    """Returns the notice that a change needs; None if no other queue manager is concerned.

    In the text a client asks for the notification of a deletion (3.3.4.5). Clients of servers with
    their own store do not know that call, so every deletion is notified.
    """
    notice = {
        ChangeKind.CREATE: notice_of_create,
        ChangeKind.UPDATE: notice_of_update,
        ChangeKind.DELETE: notice_of_delete,
    }[change.kind](local, change.obj)
    updated = change.kind is ChangeKind.UPDATE
    return replace(notice, changed=change.changed) if notice and updated else notice


def notice_of_create(local: LocalQueueManager, obj: DirectoryObject) -> ChangeNotice | None:
    """A new queue of another computer (MQDS-3.1.4.4-18)."""
    if obj.type is ObjectType.QUEUE and _elsewhere(local, obj):
        return ChangeNotice(Notice.QUEUE_CREATION, obj)
    return None


def notice_of_update(local: LocalQueueManager, obj: DirectoryObject) -> ChangeNotice | None:
    """A changed queue of another computer, or another queue manager (3.1.4.9)."""
    if obj.type is ObjectType.QUEUE and _elsewhere(local, obj):
        return ChangeNotice(Notice.QUEUE_UPDATE, obj)
    if obj.type is ObjectType.MACHINE and obj.id != local.identifier:
        return ChangeNotice(Notice.QUEUE_MANAGER_UPDATE, obj)
    return None


def notice_of_delete(local: LocalQueueManager, obj: DirectoryObject) -> ChangeNotice | None:
    """A queue of another computer that is gone."""
    if obj.type is ObjectType.QUEUE and _elsewhere(local, obj):
        return ChangeNotice(Notice.QUEUE_DELETION, obj)
    return None


def _elsewhere(local: LocalQueueManager, queue: DirectoryObject) -> bool:
    computer = QueuePath.parse(queue.path or "").computer
    return name_key(computer) != name_key(local.computer_name)


# --- the message ----------------------------------------------------------------------------------

_COMMANDS = {
    Notice.QUEUE_CREATION: NotificationCommand.CREATE,
    Notice.QUEUE_UPDATE: NotificationCommand.UPDATE,
    Notice.QUEUE_MANAGER_UPDATE: NotificationCommand.UPDATE,
    Notice.QUEUE_DELETION: NotificationCommand.DELETE,
}
#: The properties in the notification of a new queue; never PROPID_Q_ADS_PATH.
CREATED: tuple[PropId, ...] = by_type(lambda row: row.notified.created)[ObjectType.QUEUE]
_ALWAYS = by_type(lambda row: row.notified.always)
_CHANGED = by_type(lambda row: row.notified.changed)
_NOTHING: dict[VarType, Value] = {
    VarType.BLOB: b"",
    VarType.LPWSTR: "",
    VarType.CLSID: Guid.NULL,
    VarType.VECTOR_CLSID: (),
}


def machine_of_notice(notice: ChangeNotice) -> tuple[str, Guid | None]:
    """Returns the name of the machine to notify, and its queue manager if the object says which."""
    obj = notice.obj
    if obj.type is ObjectType.MACHINE:
        return obj.path or "", obj.id
    owner = obj.value(PropId.Q_QMID)
    return QueuePath.parse(obj.path or "").computer, owner if isinstance(owner, Guid) else None


def notification_of(notice: ChangeNotice, master: Guid) -> ChangeNotification:
    """Builds the message; ``master`` is the directory server that sends it."""
    created = notice.kind is Notice.QUEUE_CREATION
    update = NotificationUpdate(
        _COMMANDS[notice.kind],
        notice.obj.path if created else None,
        None if created else notice.obj.id,
        master,
        _properties(notice),
    )
    return ChangeNotification((update,))


def _properties(notice: ChangeNotice) -> tuple[tuple[int, PropVariant], ...]:
    if notice.kind is Notice.QUEUE_DELETION:
        return deleted_queue()
    if notice.kind is Notice.QUEUE_CREATION:
        return _values(notice.obj, CREATED)
    changed = (p for p in _CHANGED[notice.obj.type] if p in notice.changed)
    return _values(notice.obj, (*_ALWAYS[notice.obj.type], *changed))


def deleted_queue() -> tuple[tuple[int, PropVariant], ...]:
    """The same for every scope of the queue: MQDS_ENTERPRISESCOPE, MQDS_QUEUE."""
    return (
        pair(PropId.D_SCOPE, int(Scope.ENTERPRISE)),
        pair(PropId.D_OBJTYPE, int(ObjectType.QUEUE)),
    )


def _values(obj: DirectoryObject, propids: Iterable[PropId]) -> tuple[tuple[int, PropVariant], ...]:
    return tuple((propid, _value(obj, propid)) for propid in propids)


def _value(obj: DirectoryObject, propid: PropId) -> PropVariant:
    if propid is IDENTIFIER_PROPERTY[obj.type]:
        return PropVariant(VarType.CLSID, obj.id)
    entry = PROPERTIES[propid]
    found = obj.properties.get(propid)
    if found is not None and found.vt is entry.vt:
        return found
    return DEFAULTS.get(propid) or PropVariant(entry.vt, _NOTHING.get(entry.vt, 0))
