"""A change as a queue manager is told of it (MS-MQCN 3.3.5.2)."""

from __future__ import annotations

from collections.abc import Iterable

from mqis.protocol.directory.notification import ChangeNotice, Notice
from mqis.protocol.directory.objects import DirectoryObject, Scope
from mqis.protocol.directory.paths import QueuePath
from mqis.wire.guid import Guid
from mqis.wire.mqcn import ChangeNotification, NotificationCommand, NotificationUpdate
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType

_P = PropId
_COMMANDS = {
    Notice.QUEUE_CREATION: NotificationCommand.CREATE,
    Notice.QUEUE_UPDATE: NotificationCommand.UPDATE,
    Notice.QUEUE_MANAGER_UPDATE: NotificationCommand.UPDATE,
    Notice.QUEUE_DELETION: NotificationCommand.DELETE,
}
#: What a creation tells, and never PROPID_Q_ADS_PATH.
CREATED = (
    _P.Q_TYPE,
    _P.Q_INSTANCE,
    _P.Q_BASEPRIORITY,
    _P.Q_JOURNAL,
    _P.Q_QUOTA,
    _P.Q_JOURNAL_QUOTA,
    _P.Q_CREATE_TIME,
    _P.Q_MODIFY_TIME,
    _P.Q_SCOPE,
    _P.Q_SECURITY,
    _P.Q_PATHNAME,
    _P.Q_LABEL,
    _P.Q_AUTHENTICATE,
    _P.Q_PRIV_LEVEL,
    _P.Q_TRANSACTION,
)
#: What an update tells always, and what besides if it was changed.
_ALWAYS = {
    Notice.QUEUE_UPDATE: (_P.Q_QMID,),
    Notice.QUEUE_MANAGER_UPDATE: (_P.QM_MACHINE_ID, _P.QM_FOREIGN),
}
_CHANGED = {
    Notice.QUEUE_UPDATE: (
        _P.Q_JOURNAL,
        _P.Q_QUOTA,
        _P.Q_BASEPRIORITY,
        _P.Q_JOURNAL_QUOTA,
        _P.Q_SECURITY,
        _P.Q_AUTHENTICATE,
        _P.Q_PRIV_LEVEL,
    ),
    Notice.QUEUE_MANAGER_UPDATE: (
        _P.QM_QUOTA,
        _P.QM_JOURNAL_QUOTA,
        _P.QM_SECURITY,
        _P.QM_ADDRESS,
        _P.QM_CNS,
        _P.QM_MACHINE_TYPE,
        _P.QM_OS,
    ),
}
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
    changed = (p for p in _CHANGED[notice.kind] if p in notice.changed)
    return _values(notice.obj, (*_ALWAYS[notice.kind], *changed))


def deleted_queue() -> tuple[tuple[int, PropVariant], ...]:
    """Whatever the scope of the queue was: MQDS_ENTERPRISESCOPE, MQDS_QUEUE."""
    return (
        (PropId.D_SCOPE, PropVariant(VarType.UI1, int(Scope.ENTERPRISE))),
        (PropId.D_OBJTYPE, PropVariant(VarType.UI1, int(ObjectType.QUEUE))),
    )


def _values(obj: DirectoryObject, propids: Iterable[PropId]) -> tuple[tuple[int, PropVariant], ...]:
    return tuple((propid, _value(obj, propid)) for propid in propids)


def _value(obj: DirectoryObject, propid: PropId) -> PropVariant:
    if propid in (PropId.Q_INSTANCE, PropId.QM_MACHINE_ID):
        return PropVariant(VarType.CLSID, obj.id)
    entry = PROPERTIES[propid]
    found = obj.properties.get(propid)
    if found is not None and found.vt is entry.vt:
        return found
    return entry.default or PropVariant(entry.vt, _NOTHING.get(entry.vt, 0))
