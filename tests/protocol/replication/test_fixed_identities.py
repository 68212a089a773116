"""No change request may choose names, identifiers or places."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.trust import check_identity
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.builders import MACHINE, OTHER_SITE, machine, queue, site, tombstone, user

pytestmark = pytest.mark.req("SEC-2-06")


def check(change: OwnChange) -> None:
    store = MemoryStore()
    with store.write() as tx:
        tx.insert(machine())
        tx.bury(tombstone(0x1077))
        tx.bury(tombstone(0x1078))
        tx.bury(tombstone(0x1078, partition=OTHER_SITE))
        tx.bury(tombstone(0x1079, partition=OTHER_SITE))
        check_identity(tx, change)


def create(obj: DirectoryObject) -> OwnChange:
    return OwnChange(ChangeKind.CREATE, obj, changed=tuple(obj.properties))


def renamed(obj: DirectoryObject, propid: PropId, name: str) -> OwnChange:
    after = obj.with_properties({propid: PropVariant(VarType.LPWSTR, name)}, obj.seq)
    return OwnChange(ChangeKind.UPDATE, after, obj, (propid,))


@pytest.mark.parametrize(
    "change",
    [
        renamed(machine(), PropId.QM_PATHNAME, "PEC"),
        renamed(queue(), PropId.Q_PATHNAME, "machine\\other"),
        renamed(site(), PropId.S_PATHNAME, "elsewhere"),
    ],
)
def test_an_object_is_not_renamed(change: OwnChange) -> None:
    with pytest.raises(DirectoryError, match="keeps its name") as refused:
        check(change)
    assert refused.value.hresult == HResult.MQ_ERROR_ACCESS_DENIED


@pytest.mark.parametrize(
    "change",
    [
        renamed(queue(), PropId.Q_LABEL, "orders"),
        renamed(machine(path="PEC"), PropId.QM_PATHNAME, "PEC"),
        create(queue(5)),
        create(queue(0x1077)),
        create(queue(0x1078)),
        create(machine(5)),
        create(user(5)),
        OwnChange(ChangeKind.DELETE, queue(), queue()),
    ],
)
def test_what_a_client_can_want_is_asked_for(change: OwnChange) -> None:
    check(change)


@pytest.mark.parametrize(
    "new",
    [
        queue(0x2001),
        user(0x2001),
        machine(0x1077),
        queue(0x1079),
        replace(queue(0x1077), partition=OTHER_SITE),
    ],
)
def test_an_identifier_that_is_or_was_another_objects(new: DirectoryObject) -> None:
    with pytest.raises(DirectoryError, match="another object's"):
        check(create(new))


@pytest.mark.parametrize(
    "new",
    [
        queue(5, partition=OTHER_SITE),
        queue(5, machine=Guid(bytes(15) + b"\x09")),
        replace(queue(5), properties={}),
        machine(5, partition=OTHER_SITE),
    ],
)
def test_an_object_outside_the_partition_of_its_machine_or_site(new: DirectoryObject) -> None:
    assert machine().id == MACHINE
    with pytest.raises(DirectoryError, match="does not belong"):
        check(create(new))
