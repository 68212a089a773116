"""Objects of another directory: identifiers translated, tombstones put back."""

from __future__ import annotations

import pytest

from mqis.protocol.activedirectory.publishing import Renumbering, reanimation
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import ProtocolError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyKind
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.activedirectory.helpers import GATE, ID, SITE1, SITE2

NEW = Guid(b"n" * 16)


def made(object_type: ObjectType, given: dict[int, Value]) -> DirectoryObject:
    return DirectoryObject(object_type, ID, SITE1, SequenceNumber.MIN, props(given))


def test_identifiers_are_translated_where_an_object_names_others() -> None:
    here = Renumbering()
    here.note(SITE1, NEW)
    link = made(
        ObjectType.ROUTINGLINK, {P.L_NEIGHBOR1: SITE1, P.L_NEIGHBOR2: SITE2, P.L_GATES: (GATE,)}
    )
    found = here.translated(link)
    assert found.value(P.L_NEIGHBOR1) == NEW
    assert (found.value(P.L_NEIGHBOR2), found.value(P.L_GATES)) == (SITE2, (GATE,))
    machine = made(ObjectType.MACHINE, {P.QM_SITE_IDS: (SITE2, SITE1), P.QM_PATHNAME: "srv1"})
    assert here.translated(machine).value(P.QM_SITE_IDS) == (SITE2, NEW)
    user = made(ObjectType.USER, {P.U_SIGN_CERT: b""})
    assert here.translated(user) is user


def test_a_tombstone_gets_its_place_and_attributes_back() -> None:
    entry = AddEntry(
        "CN=q,CN=msmq",
        (
            ("objectClass", (b"mSMQQueue",)),
            ("objectGUID", (ID.raw,)),
            ("nTSecurityDescriptor", (b"x",)),
            ("mSMQLabelEx", (b"*)(",)),
        ),
    )
    change = reanimation("CN=q\\0ADEL:1,CN=Deleted Objects", entry)
    assert change.name == "CN=q\\0ADEL:1,CN=Deleted Objects"
    assert [(c.kind, c.attribute, c.values) for c in change.changes] == [
        (ModifyKind.DELETE, "isDeleted", ()),
        (ModifyKind.REPLACE, "distinguishedName", (b"CN=q,CN=msmq",)),
        (ModifyKind.REPLACE, "mSMQLabelEx", (b"*)(",)),
    ]
    with pytest.raises(ProtocolError, match="only an entry that could be made"):
        reanimation("CN=q", DeleteEntry("CN=q"))
