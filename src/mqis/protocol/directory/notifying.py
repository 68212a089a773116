"""A change as a queue manager is told of it (MS-MQCN 3.3.5.2)."""

from __future__ import annotations

from collections.abc import Iterable

from mqis.protocol.directory.notification import ChangeNotice, Notice
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, DirectoryObject, Scope
from mqis.protocol.directory.paths import QueuePath
from mqis.protocol.directory.types.catalogue import DEFAULTS, by_type
from mqis.wire.guid import Guid
from mqis.wire.mqcn import ChangeNotification, NotificationCommand, NotificationUpdate
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType

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
    """The machine that is told: its name, and its queue manager if the object says which."""
    obj = notice.obj
    if obj.type is ObjectType.MACHINE:
        return obj.path or "", obj.id
    owner = obj.value(PropId.Q_QMID)
    return QueuePath.parse(obj.path or "").computer, owner if isinstance(owner, Guid) else None


def notification_of(notice: ChangeNotice, master: Guid) -> ChangeNotification:
    """``master`` is the directory server that tells."""
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
    """Whatever the scope of the queue was: MQDS_ENTERPRISESCOPE, MQDS_QUEUE."""
    return (
        (PropId.D_SCOPE, PropVariant(VarType.UI1, int(Scope.ENTERPRISE))),
        (PropId.D_OBJTYPE, PropVariant(VarType.UI1, int(ObjectType.QUEUE))),
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
