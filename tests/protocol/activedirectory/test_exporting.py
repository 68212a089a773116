"""Objects as entries of an Active Directory, and what those do not keep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.activedirectory.exporting import (
    ExportPlaces,
    computer_entry,
    exported_entry,
    is_worth_telling,
    routing_servers,
)
from mqis.protocol.activedirectory.reading import kept_of, read_object, shown_in
from mqis.protocol.activedirectory.view import EntryView
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.security.masks import MachineRights, QueueRights
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.activedirectory.helpers import FOREST, GATE, ID, ROOT, SITE1, SITE2

COMPUTERS = ROOT.child("CN", "Computers")
_PLAIN = ExportPlaces(FOREST, COMPUTERS)
PLACES = replace(
    _PLAIN,
    names={SITE1: FOREST.site("Berlin"), SITE2: FOREST.site("Paris"), GATE: _PLAIN.machine("GW")},
    gates={SITE1: (GATE,)},
)


def made(object_type: ObjectType, given: dict[int, Value], guid: Guid = ID) -> DirectoryObject:
    return DirectoryObject(object_type, guid, SITE1, SequenceNumber.MIN, props(given))


def permissions(mask: int) -> bytes:
    return SecurityDescriptor(dacl=Acl((allow(EVERYONE, mask),))).to_bytes()


MACHINE = made(
    ObjectType.MACHINE,
    {
        P.QM_PATHNAME: "srv1",
        P.QM_SITE_IDS: (SITE1,),
        P.QM_CNS: (SITE1,),
        P.QM_SERVICE: 1,
        P.QM_SECURITY: permissions(int(MachineRights.MACHINE_GENERIC_READ)),
        P.QM_OUTFRS: (GATE,),
        P.QM_SIGN_PKS: b"keys",
    },
)
QUEUE: dict[int, Value] = {
    P.Q_PATHNAME: "srv1\\*)(cn=*",
    P.Q_QMID: ID,
    P.Q_LABEL: "a",
    P.Q_SCOPE: 1,
}


def test_a_queue_comes_back_the_same() -> None:
    queue = made(ObjectType.QUEUE, QUEUE, SITE2)
    out = exported_entry(queue, PLACES)
    (record,) = out.records
    assert record.name == "CN=*)(cn\\=*,CN=msmq,CN=srv1,CN=Computers,DC=corp,DC=example"
    assert out.lost == ()
    written = LdapEntry(record.name, record.attributes)
    shown = shown_in(written, kept_of(ObjectType.QUEUE))
    back = read_object(EntryView(written, FOREST), ObjectType.QUEUE, SITE1, shown)
    assert (back.id, back.path, back.value(P.Q_LABEL)) == (SITE2, queue.path, "a")


def test_what_is_not_kept_is_told() -> None:
    lossy: dict[int, Value] = {
        **QUEUE,
        P.Q_SCOPE: 0,
        P.Q_CREATE_TIME: 5,
        P.Q_SECURITY: permissions(int(QueueRights.DELETE_MESSAGE)),
    }
    out = exported_entry(made(ObjectType.QUEUE, lossy), PLACES)
    assert set(out.lost) == {P.Q_SCOPE, P.Q_CREATE_TIME, P.Q_SECURITY}
    site = made(
        ObjectType.SITE, {P.S_PATHNAME: "Berlin", P.S_PSC: "srv1", P.S_PSC_SIGNPK: b""}, SITE1
    )
    assert exported_entry(site, PLACES).lost == (P.S_PSC,)
    assert is_worth_telling(P.S_PSC)
    assert not is_worth_telling(P.Q_HASHKEY)


def test_a_server_has_settings_and_keeps_its_permissions() -> None:
    out = exported_entry(MACHINE, PLACES)
    classes = [record.values("objectClass")[0] for record in out.records]
    assert classes == [b"mSMQConfiguration", b"serversContainer", b"server", b"mSMQSettings"]
    assert out.lost == ()
    assert routing_servers(MACHINE) == (GATE,)
    assert out.records[0].values("objectGUID") == (ID.raw,)
    bare = made(ObjectType.MACHINE, {P.QM_PATHNAME: "srv2", P.QM_SITE_IDS: (SITE1,)})
    (plain,) = exported_entry(bare, PLACES, with_computer=False).records
    assert plain.values("nTSecurityDescriptor") == ()
    assert computer_entry(bare, PLACES).values("mSMQSignCertificates") == ()


def test_the_signing_keys_are_with_the_disabled_account_of_the_computer() -> None:
    account = computer_entry(MACHINE, PLACES)
    assert account.values("sAMAccountName") == (b"srv1$",)
    assert account.values("userAccountControl") == (b"4098",)
    assert account.values("mSMQSignCertificates") == (b"keys",)
    assert P.QM_SIGN_PKS in exported_entry(MACHINE, PLACES, with_computer=False).lost


def test_a_link_gets_the_gates_of_its_sites() -> None:
    given: dict[int, Value] = {P.L_NEIGHBOR1: SITE1, P.L_NEIGHBOR2: SITE2, P.L_ACTUAL_COST: 1}
    (record,) = exported_entry(made(ObjectType.ROUTINGLINK, given), PLACES).records
    assert record.values("mSMQSiteGates") == (str(PLACES.names[GATE]).encode(),)
    with pytest.raises(DirectoryError, match="both of its sites"):
        exported_entry(made(ObjectType.ROUTINGLINK, {P.L_ACTUAL_COST: 1}), PLACES)


def test_a_running_server_gets_no_identifiers() -> None:
    places = replace(PLACES, identifiers=False)
    (record,) = exported_entry(made(ObjectType.QUEUE, QUEUE), places).records
    assert record.values("objectGUID") == ()


def test_a_damaged_descriptor_is_refused() -> None:
    broken = made(ObjectType.QUEUE, {**QUEUE, P.Q_SECURITY: b"x"})
    with pytest.raises(DirectoryError, match="security descriptor"):
        exported_entry(broken, PLACES)
