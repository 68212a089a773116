"""The rows of the mapping, and entries read as properties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.activedirectory.forest import LDAP_CLASSES
from mqis.protocol.activedirectory.reading import (
    columns_of,
    kept_of,
    read_object,
    read_properties,
    shown_of,
)
from mqis.protocol.activedirectory.rights import to_active_directory
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS, GIVEN_NAMES, KEPT, rows_of
from mqis.protocol.activedirectory.schema import needed_names
from mqis.protocol.activedirectory.servers import SERVER_ATTRIBUTES
from mqis.protocol.activedirectory.view import EntryView, References
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.ldap import Use
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid
from tests.protocol.activedirectory.helpers import (
    COMPUTER_ENTRY,
    FOREST,
    GATE,
    ID,
    MACHINE,
    NAMES,
    SITE1,
    SITE2,
    entry,
    view,
)

TIMES = {"whenCreated": b"20240102030405.0Z", "whenChanged": b"20240102030406.0Z"}
SECURED = SecurityDescriptor(
    owner=Sid.parse("S-1-5-21-9-9-9-1"), dacl=Acl((allow(Sid.parse("S-1-5-21-9-9-9-1"), 0x20),))
)


def descriptor(object_type: ObjectType) -> bytes:
    return to_active_directory(SECURED, object_type).to_bytes()


def values(found: dict[int, Any]) -> dict[int, Any]:
    return {propid: variant.value for propid, variant in found.items()}


def read_all(shown: EntryView, object_type: ObjectType) -> dict[int, Any]:
    return values(read_properties(shown, object_type, kept_of(object_type)))


def test_every_row_is_read_or_used() -> None:
    """A row that nothing keeps, shows or is found by would be there for tests alone."""
    shown = {propid for kind in ObjectType for propid in shown_of(kind)}
    assert KEPT <= ATTRIBUTE_ROWS.keys() <= ROWS.keys()
    assert shown - KEPT == GIVEN_NAMES
    for row in ATTRIBUTE_ROWS.values():
        assert row.id in shown or row.uses, row.id.name
        assert row.object_type is ROWS[row.id].object_type
        if row.uses:
            assert row.attributes
            assert row.codec or row.reference


@pytest.mark.req("MQDSSM-2.2.2-04", "MQDSSM-2.2.4-01")
def test_attributes_that_are_left_alone() -> None:
    used = {*needed_names(), *SERVER_ATTRIBUTES}
    left = {
        "mSMQSignCertificatesMig", "mSMQDigestsMig", "mSMQSiteGatesMig", "mSMQMigrated",
        "mSMQLabel", "mSMQOwnerID", "mSMQSiteID", "mSMQPrevSiteGates", "MSMQ-SecuredSource",
        "mSMQComputerType", "mSMQSiteName",
    }  # fmt: skip
    assert not used & left


QUEUE = MACHINE.child("CN", "Orders")


def queue(**more: object) -> LdapEntry:
    given_: dict[str, object] = {
        **TIMES,
        "parentGUID": GATE.raw,
        "nTSecurityDescriptor": descriptor(ObjectType.QUEUE),
        **more,
    }
    return entry(QUEUE, "mSMQQueue", **given_)


@pytest.mark.req(
    "MQDSSM-3.1.6.11.2-02", "MQDSSM-3.1.6.11.2.1-01", "MQDSSM-3.1.6.20.2-02",
    "MQDSSM-3.1.6.1.1.8-05",
)  # fmt: skip
def test_a_queue_with_defaults() -> None:
    found = read_all(view(queue(), computer=COMPUTER_ENTRY), ObjectType.QUEUE)
    assert found == {
        P.Q_TYPE: Guid.NULL, P.Q_PATHNAME: "srv1\\orders", P.Q_JOURNAL: 0,
        P.Q_QUOTA: 0xFFFFFFFF, P.Q_BASEPRIORITY: 0, P.Q_JOURNAL_QUOTA: 0xFFFFFFFF, P.Q_LABEL: "",
        P.Q_CREATE_TIME: 1_704_164_645, P.Q_MODIFY_TIME: 1_704_164_646, P.Q_AUTHENTICATE: 0,
        P.Q_PRIV_LEVEL: 1, P.Q_TRANSACTION: 0, P.Q_SCOPE: 1, P.Q_QMID: GATE,
        P.Q_NAME_SUFFIX: "", P.Q_MULTICAST_ADDRESS: "", P.Q_SECURITY: SECURED.to_bytes(),
    }  # fmt: skip


@pytest.mark.req("MQDSSM-2.2.2-01", "MQDSSM-3.1.6.1.2.2-02", "MQDSSM-3.1.6.7.2.2-02")
def test_a_queue_with_values() -> None:
    found = read_all(
        view(
            queue(
                mSMQQueueType=SITE1.raw,
                mSMQJournal="TRUE",
                mSMQQueueQuota=5,
                mSMQBasePriority=-3,
                mSMQQueueJournalQuota=-1,
                mSMQLabelEx="Aufträge",
                mSMQLabel="unused",
                mSMQAuthenticate="TRUE",
                mSMQPrivacyLevel=2,
                mSMQTransactional="TRUE",
                MSMQ_MulticastAddress="234.1.1.1:80",
            )
        ),
        ObjectType.QUEUE,
    )
    assert [
        found[p]
        for p in (
            P.Q_TYPE, P.Q_JOURNAL, P.Q_QUOTA, P.Q_BASEPRIORITY, P.Q_JOURNAL_QUOTA, P.Q_LABEL,
            P.Q_AUTHENTICATE, P.Q_PRIV_LEVEL, P.Q_TRANSACTION, P.Q_MULTICAST_ADDRESS,
        )
    ] == [SITE1, 1, 5, -3, 0xFFFFFFFF, "Aufträge", 1, 2, 1, "234.1.1.1:80"]  # fmt: skip


@pytest.mark.parametrize(
    ("object_type", "missing"),
    [
        pytest.param(ObjectType.QUEUE, ("whenCreated", "whenChanged", "nTSecurityDescriptor",
                     "objectGUID"), marks=pytest.mark.req("MQDSSM-3.1.6.11.2-01")),
        pytest.param(ObjectType.MACHINE, ("whenCreated", "whenChanged", "nTSecurityDescriptor",
                     "objectGUID"), marks=pytest.mark.req("MQDSSM-3.1.6.11.1-01")),
        pytest.param(ObjectType.SITE, ("cn", "nTSecurityDescriptor", "objectGUID"),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.4-01")),
        pytest.param(ObjectType.ENTERPRISE, ("nTSecurityDescriptor", "objectGUID"),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.3-01")),
        pytest.param(ObjectType.ROUTINGLINK, ("mSMQCost", "mSMQSite1", "mSMQSite2", "objectGUID"),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.5-01")),
        pytest.param(ObjectType.USER, ("objectSid", "objectGUID"),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.6-01")),
    ],
)  # fmt: skip
def test_an_attribute_that_is_needed(object_type: ObjectType, missing: tuple[str, ...]) -> None:
    whole = EXAMPLES[object_type]
    assert read_object(view(whole), object_type, SITE1, kept_of(object_type)).properties
    for attribute in missing:
        rows = tuple(row for row in whole.attributes if row[0] != attribute)
        with pytest.raises((BadAttribute, DirectoryError), match=attribute):
            read_object(view(LdapEntry(whole.name, rows)), object_type, SITE1, kept_of(object_type))


def machine(**more: object) -> LdapEntry:
    given_: dict[str, object] = {
        **TIMES,
        "nTSecurityDescriptor": descriptor(ObjectType.MACHINE),
        "mSMQSites": (SITE2.raw, SITE1.raw),
        **more,
    }
    return entry(MACHINE, "mSMQConfiguration", **given_)


@pytest.mark.req("MQDSSM-3.1.6.11.1-02", "MQDSSM-3.1.6.11.1.1-01", "MQDSSM-2.2.2-10")
@pytest.mark.departs("MQDSSM-3.1.6.11.1-05", "MQDSSM-3.1.6.3.2.1-01")
def test_a_machine_with_defaults() -> None:
    found = read_all(view(machine()), ObjectType.MACHINE)
    wanted = {
        P.QM_PATHNAME: "SRV1",
        P.QM_SITE_IDS: (SITE2, SITE1), P.QM_CNS: (SITE2, SITE1), P.QM_QUOTA: 0x100000,
        P.QM_JOURNAL_QUOTA: 0xFFFFFFFF, P.QM_MACHINE_TYPE: "", P.QM_OS: 0, P.QM_FOREIGN: 0,
        P.QM_SERVICE: 0, P.QM_SERVICE_DSSERVER: 0,
        P.QM_SERVICE_DEPCLIENTS: 0, P.QM_OUTFRS: (), P.QM_INFRS: (),
        P.QM_ENCRYPT_PKS: b"", P.QM_SIGN_PKS: b"", P.QM_ADDRESS: b"",
        P.QM_GROUP_IN_CLUSTER: 0,
    }  # fmt: skip
    assert {p: found[p] for p in wanted} == wanted


@pytest.mark.req(
    "MQDSSM-3.1.6.1.1.5-01", "MQDSSM-3.1.6.11.1.5-01", "MQDSSM-3.1.6.11.1.3-01",
    "MQDSSM-3.1.6.11.1.6-01",
)  # fmt: skip
def test_a_machine_with_values() -> None:
    computer = entry(
        COMPUTER_ENTRY.name, "computer",
        servicePrincipalName=("HOST/a", "HOST/MSClusterVirtualServer"), mSMQSignCertificates=b"xyz",
    )  # fmt: skip
    found = read_all(
            view(
                machine(
                    mSMQServiceType=0x1C, mSMQRoutingServices="TRUE", mSMQDsServices="TRUE",
                    mSMQOutRoutingServers=(str(NAMES[GATE]), "CN=gone,DC=corp"),
                    mSMQInRoutingServers=f"<GUID={GATE}>;CN=any,DC=x",
                ),
                computer=computer,
            ),
            ObjectType.MACHINE,
    )  # fmt: skip
    assert found[P.QM_SERVICE] == 0x01 | 0x08 | 0x10  # of two roles the highest
    assert found[P.QM_OUTFRS] == found[P.QM_INFRS] == (GATE,)
    assert (found[P.QM_GROUP_IN_CLUSTER], found[P.QM_SIGN_PKS]) == (1, b"xyz")


@pytest.mark.req("MQDSSM-3.1.6.11.1.5-01", "MQDSSM-3.1.6.3.2.2-01")
def test_a_role_without_the_directory_server_flag_does_not_count() -> None:
    read = read_properties(view(machine(mSMQServiceType=4)), ObjectType.MACHINE, [P.QM_SERVICE])
    assert read[P.QM_SERVICE].value == 0


def site(**more: object) -> LdapEntry:
    given_: dict[str, object] = {
        "cn": "Berlin",
        "nTSecurityDescriptor": descriptor(ObjectType.SITE),
        **more,
    }
    return entry(FOREST.site("Berlin"), "site", **given_)


@pytest.mark.req("MQDSSM-3.1.6.11.4-01", "MQDSSM-3.1.6.11.4-02", "MQDSSM-3.1.6.20.4-01")
@pytest.mark.departs("MQDSSM-3.1.6.3.5.1-01")
def test_a_site() -> None:
    found = read_all(view(site(), gates=(GATE,)), ObjectType.SITE)
    assert found[P.S_PATHNAME] == "Berlin"
    assert (found[P.S_INTERVAL1], found[P.S_INTERVAL2]) == (2, 10)
    assert (found[P.S_FOREIGN], found[P.S_NT4_STUB]) == (0, 0)
    assert (found[P.S_GATES], found[P.S_PSC]) == ((GATE,), "")
    assert P.S_PSC_SIGNPK not in found


def test_a_site_is_a_connected_network() -> None:
    shown = site(mSMQSiteForeign="TRUE")
    found = read_all(view(shown), ObjectType.CN)
    assert (found[P.CN_PROTOCOLID], found[P.CN_NAME]) == (5, "Berlin")
    plain = read_properties(view(site()), ObjectType.CN, [P.CN_PROTOCOLID])
    assert plain[P.CN_PROTOCOLID].value == 1


ENTERPRISE = entry(
    FOREST.enterprise,
    "mSMQEnterpriseSettings",
    nTSecurityDescriptor=descriptor(ObjectType.ENTERPRISE),
)


@pytest.mark.req("MQDSSM-3.1.6.11.3-01", "MQDSSM-3.1.6.11.3.1-01", "MQDSSM-3.1.6.4.3.4-01")
def test_the_enterprise() -> None:
    found = read_all(view(ENTERPRISE), ObjectType.ENTERPRISE)
    assert found[P.E_NAME] == "DC=corp,DC=example"
    child = replace(FOREST, domain=FOREST.root.child("DC", "north"))
    shown = read_all(EntryView(ENTERPRISE, child), ObjectType.ENTERPRISE)
    assert shown[P.E_NAME] == "DC=corp,DC=example"  # whatever domain the server is of
    assert (found[P.E_NAMESTYLE], found[P.E_LONG_LIVE], found[P.E_VERSION]) == (0, 345_600, 3)
    assert P.E_CSP_NAME not in found
    weak = entry(FOREST.enterprise, "mSMQEnterpriseSettings", mSMQNameStyle="TRUE", mSMQVersion=200)
    read = read_properties(view(weak), ObjectType.ENTERPRISE, [P.E_NAMESTYLE, P.E_VERSION])
    assert values(read) == {P.E_NAMESTYLE: 1, P.E_VERSION: 200}


def link(**more: object) -> LdapEntry:
    given_: dict[str, object] = {
        "mSMQCost": 7,
        "mSMQSite1": str(NAMES[SITE1]),
        "mSMQSite2": str(NAMES[SITE2]),
        **more,
    }
    return entry(FOREST.link(SITE1, SITE2), "mSMQSiteLink", **given_)


@pytest.mark.req(
    "MQDSSM-3.1.6.11.5.1-01", "MQDSSM-3.1.6.11.5.3-01", "MQDSSM-3.1.6.11.5-01", "MQDSSM-3.1.6.2-02"
)
def test_a_link() -> None:
    dead = f"<GUID={ID}>;CN=msmq\\0ADEL:{ID},CN=Deleted Objects,DC=corp,DC=example"
    second = f"<GUID={SITE2}>;CN=msmq,CN=GW2,CN=Computers,DC=corp,DC=example"
    shown = view(link(mSMQSiteGates=(dead, second, "CN=gone,DC=corp", str(NAMES[GATE]))))
    found = read_all(shown, ObjectType.ROUTINGLINK)
    assert (found[P.L_NEIGHBOR1], found[P.L_NEIGHBOR2]) == (SITE1, SITE2)
    assert found[P.L_ACTUAL_COST] == 7
    assert found[P.L_GATES] == (GATE, SITE2)
    with pytest.raises(BadAttribute, match="mSMQSite1: names no entry"):
        read_all(view(link(mSMQSite1=dead)), ObjectType.ROUTINGLINK)


USER = entry(
    "CN=alice,CN=Users,DC=corp,DC=example",
    "user",
    objectSid=Sid.parse("S-1-5-21-1-2-3-1001").to_bytes(),
)


@pytest.mark.req("MQDSSM-3.1.6.11.6-01")
def test_a_user() -> None:
    found = read_all(view(USER), ObjectType.USER)
    assert found[P.U_SID] == Sid.parse("S-1-5-21-1-2-3-1001").to_bytes()
    assert (found[P.U_SIGN_CERT], found[P.U_DIGEST]) == (b"", ())


EXAMPLES = {
    ObjectType.QUEUE: queue(),
    ObjectType.MACHINE: machine(),
    ObjectType.SITE: site(),
    ObjectType.CN: site(),
    ObjectType.ENTERPRISE: ENTERPRISE,
    ObjectType.USER: USER,
    ObjectType.ROUTINGLINK: link(),
}


@pytest.mark.req("MQDSSM-3.1.6.3-05")
def test_an_entry_of_another_class_is_not_found() -> None:
    with pytest.raises(DirectoryError, match="is not a queue") as refused:
        read_all(view(USER), ObjectType.QUEUE)
    assert refused.value.hresult == HResult.MQDS_OBJECT_NOT_FOUND


@pytest.mark.req("MQDSSM-3.1.6.10-01", "MQDSSM-3.1.6.14-02")
def test_columns() -> None:
    own, computer = columns_of([P.Q_PATHNAME, P.Q_SECURITY, P.Q_SCOPE])
    assert own == (
        "objectClass", "objectGUID", "distinguishedName", "mSMQQueueNameExt", "nTSecurityDescriptor"
    )  # fmt: skip
    assert computer == ("sAMAccountName",)
    assert columns_of([P.QM_SIGN_PKS])[1] == ("mSMQSignCertificates",)
    assert columns_of([P.QM_SERVICE])[0][3:] == (
        "mSMQServiceType", "mSMQRoutingServices", "mSMQDsServices"
    )  # fmt: skip


def test_attributes_of_the_computer() -> None:
    at_computer = {row.id for row in rows_of(ObjectType.MACHINE) if row.computer_attributes}
    assert at_computer == {
        P.QM_PATHNAME,
        P.QM_SIGN_PKS,
        P.QM_GROUP_IN_CLUSTER,
        P.QM_PATHNAME_DNS,
    }


def test_objects_for_a_store() -> None:
    for object_type, found in EXAMPLES.items():
        made = read_object(view(found), object_type, SITE1, kept_of(object_type))
        assert (made.id, made.partition, made.type) == (ID, SITE1, object_type)
        assert set(made.properties) <= KEPT
    nameless = LdapEntry(str(QUEUE), tuple(r for r in EXAMPLES[ObjectType.USER].attributes))
    rows = tuple(row for row in nameless.attributes if row[0] != "objectGUID")
    with pytest.raises(DirectoryError, match="without its objectGUID"):
        read_object(view(LdapEntry("CN=a", rows)), ObjectType.USER, SITE1, [P.U_SID])


ATTRIBUTES = sorted(
    {name for row in ATTRIBUTE_ROWS.values() for name in row.attributes} | {"objectClass"}
)
OCTETS = st.one_of(
    st.binary(max_size=24),
    st.sampled_from([b"TRUE", b"-1", b"7", ID.raw, b"CN=a,DC=b", b"20240102030405.0Z"]),
)


@given(
    st.sampled_from([*EXAMPLES]),
    st.text(st.sampled_from("CN=abc,\\\n;<GUID=>"), max_size=30),
    st.dictionaries(st.sampled_from(ATTRIBUTES), st.lists(OCTETS, max_size=3).map(tuple)),
)
def test_arbitrary_entries_are_one_error_or_properties(
    object_type: ObjectType, name: str, attributes: dict[str, tuple[bytes, ...]]
) -> None:
    attributes["objectClass"] = (LDAP_CLASSES[object_type].encode(),)
    hostile = view(LdapEntry(name, tuple(attributes.items())), references=References(NAMES))
    for row in rows_of(object_type):
        try:
            read_properties(hostile, object_type, [row.id])
        except (ProtocolError, WireError):
            continue


@given(st.sampled_from([*EXAMPLES]), st.data())
@pytest.mark.req("MQDSSM-2.2.2-02", "MQDSSM-2.2.2-03")
def test_written_and_read_back_is_the_same(object_type: ObjectType, data: st.DataObject) -> None:
    whole = EXAMPLES[object_type]
    rows = [row for row in rows_of(object_type) if row.uses & Use.WRITE and row.codec]
    read = read_properties(view(whole), object_type, [row.id for row in rows])
    for row in rows:
        kept = [r for r in whole.attributes if r[0] != row.attribute]
        octets = row.encode(read[row.id].value)
        again = LdapEntry(whole.name, (*kept, (row.attribute, octets)))
        assert read_properties(view(again), object_type, [row.id]) == {row.id: read[row.id]}


def test_a_row_that_is_not_written() -> None:
    with pytest.raises(ValueError, match="not written"):
        ATTRIBUTE_ROWS[P.Q_SCOPE].encode(1)


@pytest.mark.req("MQDSSM-3.1.6.11.1-01", "MQDSSM-3.1.6.11.2.1-01")
def test_a_machine_without_a_computer_above() -> None:
    for name, object_type, wanted in (
        ("CN=msmq", ObjectType.MACHINE, P.QM_PATHNAME),
        ("CN=q", ObjectType.QUEUE, P.Q_PATHNAME),
    ):
        with pytest.raises(BadAttribute):
            read_properties(view(entry(name, LDAP_CLASSES[object_type])), object_type, [wanted])
    with pytest.raises(BadAttribute, match="parentGUID"):
        read_properties(view(entry(QUEUE, "mSMQQueue")), ObjectType.QUEUE, [P.Q_QMID])
