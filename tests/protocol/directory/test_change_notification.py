"""The notification of a change that a queue manager gets (MS-MQCN 3.3.5.2)."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.change_notification import (
    CREATED,
    ChangeNotice,
    LocalQueueManager,
    Notice,
    machine_of_notice,
    notice_of,
    notification_of,
)
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NotificationCommand, NotificationUpdate
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.builders import guid, machine, queue

MASTER = Guid(b"m" * 16)


def told(notice: ChangeNotice) -> NotificationUpdate:
    [update] = notification_of(notice, MASTER).updates
    assert update.master == MASTER
    return update


def orders() -> DirectoryObject:
    return queue(7, "c14\\orders")


def test_a_creation_goes_by_path_with_all_that_the_text_lists() -> None:
    update = told(ChangeNotice(Notice.QUEUE_CREATION, orders()))
    assert (update.command, update.path, update.guid) == (
        NotificationCommand.CREATE,
        orders().path,
        None,
    )
    values = dict(update.properties)
    assert tuple(values) == CREATED
    assert len(CREATED) == 15
    assert PropId.Q_ADS_PATH not in values
    assert values[PropId.Q_INSTANCE].value == orders().id
    assert values[PropId.Q_PATHNAME].value == orders().path


def test_an_update_goes_by_guid_with_what_was_changed() -> None:
    changed = (PropId.Q_QUOTA, PropId.Q_LABEL, PropId.Q_MODIFY_TIME)
    update = told(ChangeNotice(Notice.QUEUE_UPDATE, orders(), changed))
    assert (update.command, update.path, update.guid) == (
        *(NotificationCommand.UPDATE, None, orders().id),
    )
    assert [propid for propid, _ in update.properties] == [PropId.Q_QMID, PropId.Q_QUOTA]


def test_a_machine_hears_of_itself() -> None:
    obj = machine(3)
    changed = (PropId.QM_QUOTA, PropId.QM_SIGN_PKS, PropId.QM_OS)
    notice = ChangeNotice(Notice.QUEUE_MANAGER_UPDATE, obj, changed)
    update = told(notice)
    assert update.guid == obj.id
    assert [propid for propid, _ in update.properties] == [
        *(PropId.QM_MACHINE_ID, PropId.QM_FOREIGN, PropId.QM_QUOTA, PropId.QM_OS),
    ]
    assert machine_of_notice(notice) == (obj.path, obj.id)


def test_a_deletion_names_the_scope_and_the_type() -> None:
    notice = ChangeNotice(Notice.QUEUE_DELETION, orders())
    update = told(notice)
    assert (update.command, update.guid) == (NotificationCommand.DELETE, orders().id)
    assert update.properties == (
        pair(PropId.D_SCOPE, 1),
        pair(PropId.D_OBJTYPE, ObjectType.QUEUE),
    )


def test_the_machine_of_a_queue_is_told() -> None:
    notice = ChangeNotice(Notice.QUEUE_DELETION, orders())
    name, owner = machine_of_notice(notice)
    assert name == "c14"
    assert owner == orders().value(PropId.Q_QMID)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ChangeKind.CREATE, ChangeNotice(Notice.QUEUE_CREATION, orders())),
        (ChangeKind.UPDATE, ChangeNotice(Notice.QUEUE_UPDATE, orders(), (PropId.Q_QUOTA,))),
        (ChangeKind.DELETE, ChangeNotice(Notice.QUEUE_DELETION, orders())),
    ],
)
def test_which_notice_a_change_makes(kind: ChangeKind, expected: ChangeNotice) -> None:
    change = OwnChange(kind, orders(), orders(), (PropId.Q_QUOTA,))
    assert notice_of(LocalQueueManager("c15", guid(1)), change) == expected
    assert notice_of(LocalQueueManager("C14", guid(1)), change) is None
