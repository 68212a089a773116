"""Which changes a queue manager has to be told of (MS-MQDS 3.1.1.16, 3.1.4.4, 3.1.4.9).

The directory service and one queue manager share a machine. What is changed for that one it sees
itself; any other is sent a change notification (MS-MQCN). Computer names compare without regard to
case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.paths import QueuePath
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType


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
    """What has to be told about a change, if somebody has to be told.

    The text has a deletion told when the client says that it may be (3.3.4.5); clients of servers
    with their own store do not know that call, so the deletion itself is told as well.
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
