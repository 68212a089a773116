"""Entries as objects of a store of our own, also where a dump lacks something."""

from __future__ import annotations

import pytest

from mqis.protocol.activedirectory.importing import (
    NO_SITE,
    as_new,
    gates_of_link,
    gates_of_sites,
    is_placed,
    kept_objects,
    network_of,
    type_of,
    with_defaults,
)
from mqis.protocol.activedirectory.reading import kept_of, read_object, shown_in
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
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


def made(found: LdapEntry, object_type: ObjectType, **around: object) -> DirectoryObject:
    """The object of an entry of a dump, as a store keeps it."""
    propids = shown_in(found, kept_of(object_type))
    return kept_objects(
        read_object(view(found, **around), object_type, Guid.NULL, propids)
    )[0]  # fmt: skip


def test_a_queue_without_what_a_dump_lacks() -> None:
    found = as_new(made(QUEUE, ObjectType.QUEUE))
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
    whole = made(times, ObjectType.QUEUE)
    assert whole.value(P.Q_CREATE_TIME) == 1_709_280_000
    assert whole.value(P.Q_MULTICAST_ADDRESS) == "234.1.1.1:8001"


def test_a_machine_and_its_queues_are_called_by_the_account_of_the_computer() -> None:
    account = LdapEntry("CN=other", (("sAMAccountName", (b"SRV7$",)),))
    machine = made(entry(MACHINE, "mSMQConfiguration"), ObjectType.MACHINE, computer=account)
    assert machine.path == "SRV7"
    assert made(QUEUE, ObjectType.QUEUE, computer=account).path == "srv7\\orders"


def test_the_sites_of_a_machine_have_one_order() -> None:
    found = entry(MACHINE, "mSMQConfiguration", mSMQSites=(SITE2.raw, SITE1.raw))
    machine = made(found, ObjectType.MACHINE, computer=COMPUTER_ENTRY)
    assert machine.value(P.QM_SITE_IDS) == tuple(sorted((SITE1, SITE2))) == machine.value(P.QM_CNS)
    assert is_placed(machine)
    bare = made(entry(MACHINE, "mSMQConfiguration"), ObjectType.MACHINE)
    assert bare.value(P.QM_SITE_IDS) == (NO_SITE,)
    assert bare.value(P.QM_CNS) == ()
    assert not is_placed(bare)


def test_values_that_a_store_refuses_become_defaults() -> None:
    found = entry(MACHINE, "mSMQConfiguration", mSMQSites=(SITE1.raw,))
    certificates = LdapEntry("CN=SRV1", (("mSMQSignCertificates", (b"no keys",)),))
    machine = made(found, ObjectType.MACHINE, computer=certificates)
    kept, unfit = with_defaults(machine)
    assert unfit == (P.QM_SIGN_PKS,)
    assert kept.value(P.QM_SIGN_PKS) == b""
    assert with_defaults(kept) == (kept, ())


def test_a_site_gets_its_gates_and_is_a_network_too() -> None:
    found = entry(FOREST.site("Berlin"), "site", mSMQSiteForeign="TRUE", cn="Berlin")
    site = made(found, ObjectType.SITE, gates=(GATE,))
    assert site.path == "Berlin"
    assert site.value(P.S_GATES) == (GATE,)
    network = network_of(site)
    assert (network.type, network.id, network.path) == (ObjectType.CN, ID, "Berlin")
    assert network.value(P.CN_PROTOCOLID) == 5
    plain = made(entry(FOREST.site("B"), "site", cn="B"), ObjectType.SITE)
    assert network_of(plain).value(P.CN_PROTOCOLID) == 1


def test_gates_are_those_members_of_a_site_that_its_links_name() -> None:
    ends = {f"mSMQSite{n}": extended(guid) for n, guid in ((1, SITE1), (2, SITE2))}
    gates = extended(GATE), "CN=gone", "CN=damaged,,"
    link = entry("CN=l", "mSMQSiteLink", mSMQCost=1, mSMQSiteGates=gates, **ends)
    assert gates_of_link(link) == {GATE}
    assert gates_of_sites([link], {GATE: (SITE2, ID)}) == {SITE2: (GATE,)}
    assert gates_of_sites([link], {}) == {}
    assert gates_of_sites([entry("CN=l", "mSMQSiteLink", mSMQCost=1)], {GATE: (SITE2,)}) == {}
    assert guids_of("text") == ()


def extended(guid: Guid) -> str:
    return f"<GUID={guid}>;{NAMES[guid]}"
