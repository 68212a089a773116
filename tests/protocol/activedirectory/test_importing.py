"""Entries as objects of a store of our own, also where a dump lacks something."""

from __future__ import annotations

import pytest

from mqis.protocol.activedirectory.entry import BadAttribute, LdapEntry
from mqis.protocol.activedirectory.importing import (
    NO_SITE,
    ImportSources,
    gates_of_sites,
    guids_in,
    import_columns,
    imported_object,
    is_placed,
    network_of,
    readable_link,
    type_of,
    without_unfit,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from tests.protocol.activedirectory.helpers import (
    COMPUTER_ENTRY,
    FOREST,
    GATE,
    ID,
    MACHINE,
    NAMES,
    REFERENCES,
    SITE1,
    SITE2,
    entry,
)

SOURCES = ImportSources(FOREST, REFERENCES, {ID: (GATE,)})
QUEUE = entry(MACHINE.child("CN", "orders"), "mSMQQueue", mSMQLabelEx="*)(\\")


@pytest.mark.parametrize(
    ("ldap_class", "found"),
    [
        ("mSMQQueue", ObjectType.QUEUE),
        ("MSMQCONFIGURATION", ObjectType.MACHINE),
        ("site", ObjectType.SITE),
        ("mSMQEnterpriseSettings", ObjectType.ENTERPRISE),
        ("mSMQSiteLink", ObjectType.ROUTINGLINK),
        ("mSMQSettings", None),
        ("MSMQ-Group", None),
        ("organizationalUnit", None),
        ("user", None),
    ],
)
def test_the_class_tells_the_type(ldap_class: str, found: ObjectType | None) -> None:
    assert type_of(entry(MACHINE, ldap_class)) is found


def test_a_user_with_certificates_is_an_object_and_a_computer_never() -> None:
    assert type_of(entry(MACHINE, "user", mSMQDigests=b"d" * 16)) is ObjectType.USER
    computer = LdapEntry(
        "CN=x", (("objectClass", (b"user", b"computer")), ("mSMQDigests", (b"d",)))
    )
    assert type_of(computer) is None


def test_unknown_classes_are_refused() -> None:
    with pytest.raises(BadAttribute, match="'msmqtopic' is no class"):
        type_of(entry(MACHINE, "mSMQTopic"))
    with pytest.raises(BadAttribute, match="objectClass: is missing"):
        type_of(LdapEntry("CN=x", ()))


def test_a_queue_without_what_a_dump_lacks() -> None:
    found = imported_object(QUEUE, ObjectType.QUEUE, SOURCES)
    assert (found.id, found.path) == (ID, "srv1\\orders")
    assert found.value(P.Q_LABEL) == "*)(\\"
    lacking = {P.Q_SECURITY, P.Q_CREATE_TIME, P.Q_QMID, P.Q_NAME_SUFFIX, P.Q_MULTICAST_ADDRESS}
    assert not lacking & set(found.properties)
    times = entry(
        MACHINE.child("CN", "orders"),
        "mSMQQueue",
        whenCreated="20240301080000.0Z",
        MSMQ_MulticastAddress="234.1.1.1:8001",
    )
    whole = imported_object(times, ObjectType.QUEUE, SOURCES)
    assert whole.value(P.Q_CREATE_TIME) == 1_709_280_000
    assert whole.value(P.Q_MULTICAST_ADDRESS) == "234.1.1.1:8001"


def test_the_sites_of_a_machine_have_one_order() -> None:
    found = entry(MACHINE, "mSMQConfiguration", mSMQSites=(SITE2.raw, SITE1.raw))
    made = imported_object(found, ObjectType.MACHINE, SOURCES, COMPUTER_ENTRY)
    assert made.value(P.QM_SITE_IDS) == tuple(sorted((SITE1, SITE2))) == made.value(P.QM_CNS)
    assert is_placed(made)
    bare = imported_object(entry(MACHINE, "mSMQConfiguration"), ObjectType.MACHINE, SOURCES)
    assert bare.value(P.QM_SITE_IDS) == (NO_SITE,)
    assert bare.value(P.QM_CNS) == ()
    assert not is_placed(bare)


def test_values_that_a_store_refuses_are_left_out() -> None:
    found = entry(MACHINE, "mSMQConfiguration", mSMQSites=(SITE1.raw,))
    certificates = LdapEntry("CN=SRV1", (("mSMQSignCertificates", (b"no keys",)),))
    made = imported_object(found, ObjectType.MACHINE, SOURCES, certificates)
    kept, unfit = without_unfit(made)
    assert unfit == (P.QM_SIGN_PKS,)
    assert set(made.properties) - set(kept.properties) == {P.QM_SIGN_PKS}
    assert without_unfit(kept) == (kept, ())


def test_a_site_gets_its_gates_and_is_a_network_too() -> None:
    found = entry(FOREST.site("Berlin"), "site", mSMQSiteForeign="TRUE")  # no cn: it has a name
    site = imported_object(found, ObjectType.SITE, SOURCES)
    assert site.path == "Berlin"
    assert site.value(P.S_GATES) == (GATE,)
    network = network_of(site)
    assert (network.type, network.id, network.path) == (ObjectType.CN, ID, "Berlin")
    assert network.value(P.CN_PROTOCOLID) == 5
    plain = imported_object(entry(FOREST.site("B"), "site", cn="B"), ObjectType.SITE, SOURCES)
    assert network_of(plain).value(P.CN_PROTOCOLID) == 1


def test_bad_entries_are_one_error() -> None:
    with pytest.raises(BadAttribute, match="objectGUID: is missing"):
        imported_object(LdapEntry("CN=x", ()), ObjectType.QUEUE, SOURCES)
    with pytest.raises(BadAttribute, match="distinguishedName"):
        imported_object(LdapEntry("CN=x,,", QUEUE.attributes), ObjectType.QUEUE, SOURCES)
    wrong = entry(MACHINE.child("CN", "q"), "mSMQQueue", mSMQJournal="yes")
    with pytest.raises(BadAttribute, match="mSMQJournal") as caught:
        imported_object(wrong, ObjectType.QUEUE, SOURCES)
    assert (caught.value.attribute, "TRUE" in caught.value.reason) == ("mSMQJournal", True)


def test_gates_are_those_members_of_a_site_that_its_links_name() -> None:
    ends = {f"mSMQSite{n}": str(NAMES[s]) for n, s in ((1, SITE1), (2, SITE2))}
    named = entry("CN=l", "mSMQSiteLink", mSMQCost=1, mSMQSiteGates=str(NAMES[GATE]), **ends)
    link = readable_link(named, SOURCES)
    assert link is not None
    assert guids_in(link.value(P.L_GATES)) == (GATE,)
    assert gates_of_sites([link], {GATE: (SITE2, ID)}) == {SITE2: (GATE,)}
    assert gates_of_sites([link], {}) == {}
    assert readable_link(entry("CN=l", "mSMQSiteLink", mSMQCost=1), SOURCES) is None
    assert guids_in("text") == ()


def test_columns_name_each_attribute_once() -> None:
    columns = import_columns(ObjectType.QUEUE)
    assert len(columns) == len(set(columns))
    assert {"objectGUID", "objectClass", "nTSecurityDescriptor", "mSMQLabelEx"} <= set(columns)
