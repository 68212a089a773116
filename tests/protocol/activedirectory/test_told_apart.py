"""Attributes of one kind are told apart: every value differs, and one flag is set at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mqis.protocol.activedirectory.changing import PropertyWrite, plan_deletion, plan_write
from mqis.protocol.activedirectory.creating import (
    EntryCreation,
    plan_after_creation,
    plan_creation,
)
from mqis.protocol.activedirectory.reading import read_properties
from mqis.protocol.activedirectory.steps import PlanFacts, PlanStep
from mqis.protocol.activedirectory.view import References
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.certificates import UserSignCerts, digest_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import PropVariant, Value
from tests import distinct
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

OTHER_GATE = Guid.parse("0f0f0f0f-0b0b-0c0c-0d0d-0e0e0e0e0e0e")
REFERENCES = References(
    {
        **NAMES,
        OTHER_GATE: DistinguishedName.parse("CN=msmq,CN=GW2,CN=Computers,DC=corp,DC=example"),
    }
)
FACTS = PlanFacts(COMPUTER_ENTRY, REFERENCES)
QUEUE = MACHINE.child("CN", "Orders")
LISTED = distinct.certificates(3, 1, 2)
DIGESTS = tuple(digest_of(entry.certificate) for entry in LISTED.certificates)
Attributes = dict[str, tuple[bytes, ...]]


def typed(given: Mapping[P, Value]) -> dict[int, PropVariant]:
    return {int(propid): prop(propid, value) for propid, value in given.items()}


def created(object_type: ObjectType, path: str, given: Mapping[P, Value]) -> Attributes:
    made = EntryCreation(object_type, path, typed(given), sites_allowed=True)
    step = plan_creation(made, FOREST, FACTS)
    assert isinstance(step.change, AddEntry)
    return dict(step.change.attributes)


def written(object_type: ObjectType, found: LdapEntry, given: Mapping[P, Value]) -> Attributes:
    *_, step = plan_write(
        PropertyWrite(object_type, view(found, references=REFERENCES), typed(given))
    )
    assert isinstance(step.change, ModifyEntry)
    return {change.attribute: change.values for change in step.change.changes}


def read(object_type: ObjectType, found: LdapEntry, *wanted: P) -> tuple[Value, ...]:
    properties = read_properties(view(found, references=REFERENCES), object_type, wanted)
    return tuple(properties[propid].value for propid in wanted)


def names_of(steps: tuple[PlanStep, ...], kind: type[AddEntry | DeleteEntry]) -> list[str]:
    """The settings entries that steps add or delete, in order."""
    named = (step.change.name for step in steps if isinstance(step.change, kind))
    return [name for name in named if name.startswith("CN=MSMQ Settings,")]


# --- queues ---------------------------------------------------------------------------------------

QUEUE_FLAGS = {
    P.Q_JOURNAL: "mSMQJournal",
    P.Q_AUTHENTICATE: "mSMQAuthenticate",
    P.Q_TRANSACTION: "mSMQTransactional",
}


@pytest.mark.req("MQDSSM-2.2.2-01", "MQDSSM-3.1.6.1.2.2-02")
@pytest.mark.parametrize("one", QUEUE_FLAGS)
def test_one_flag_of_a_queue(one: P) -> None:
    made = created(ObjectType.QUEUE, "SRV1\\q", {flag: int(flag is one) for flag in QUEUE_FLAGS})
    shown = {name: made[name] == (b"TRUE",) for name in QUEUE_FLAGS.values()}
    assert shown == {name: flag is one for flag, name in QUEUE_FLAGS.items()}
    found = entry(QUEUE, "mSMQQueue", **{QUEUE_FLAGS[one]: "TRUE"})
    flags = read(ObjectType.QUEUE, found, *QUEUE_FLAGS)
    assert flags == tuple(int(flag is one) for flag in QUEUE_FLAGS)


@pytest.mark.req("MQDSSM-2.2.2-01", "MQDSSM-3.1.6.1.2.2-02", "MQDSSM-3.1.6.7.2.2-02")
def test_numbers_and_texts_of_a_queue() -> None:
    given: dict[P, Value] = {
        P.Q_QUOTA: 11, P.Q_JOURNAL_QUOTA: 12, P.Q_BASEPRIORITY: 13,
        P.Q_LABEL: "a label", P.Q_MULTICAST_ADDRESS: "234.1.1.1:99",
    }  # fmt: skip
    stored = {
        "mSMQQueueQuota": (b"11",), "mSMQQueueJournalQuota": (b"12",), "mSMQBasePriority": (b"13",),
        "mSMQLabelEx": (b"a label",), "MSMQ-MulticastAddress": (b"234.1.1.1:99",),
    }  # fmt: skip
    made = created(ObjectType.QUEUE, "SRV1\\q", given)
    assert {name: made[name] for name in stored} == stored
    assert written(ObjectType.QUEUE, entry(QUEUE, "mSMQQueue"), given) == stored
    found = LdapEntry(str(QUEUE), (("objectClass", (b"mSMQQueue",)), *stored.items()))
    assert read(ObjectType.QUEUE, found, *given) == tuple(given.values())


@pytest.mark.req("MQDSSM-2.2.2-01", "MQDSSM-2.2.2-02", "MQDSSM-3.1.6.11.1-03")
@pytest.mark.parametrize(
    ("object_type", "name", "ldap_class", "times"),
    [
        (ObjectType.QUEUE, QUEUE, "mSMQQueue", (P.Q_CREATE_TIME, P.Q_MODIFY_TIME)),
        (
            ObjectType.MACHINE, MACHINE, "mSMQConfiguration", (P.QM_CREATE_TIME, P.QM_MODIFY_TIME),
        ),
    ],
)  # fmt: skip
def test_times(
    object_type: ObjectType, name: DistinguishedName, ldap_class: str, times: tuple[P, P]
) -> None:
    stamps = {"whenCreated": "20240102030405.0Z", "whenChanged": "20240203040506.0Z"}
    found = entry(name, ldap_class, **stamps)
    assert read(object_type, found, *times) == (1_704_164_645, 1_706_933_106)


# --- machines -------------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1.6.1.1.2-02", "MQDSSM-3.1.6.7.1.2-01", "MQDSSM-2.2.2-02")
@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({P.QM_SERVICE: 0x01}, (b"1", b"TRUE", b"FALSE", b"FALSE", b"FALSE")),
        ({P.QM_SERVICE: 0x04}, (b"4", b"FALSE", b"TRUE", b"FALSE", b"FALSE")),
        ({P.QM_SERVICE_DEPCLIENTS: 1}, (b"0", b"FALSE", b"FALSE", b"TRUE", b"FALSE")),
        ({P.QM_FOREIGN: 1}, (b"0", b"FALSE", b"FALSE", b"FALSE", b"TRUE")),
    ],
    ids=["routing", "directory", "dependent clients", "foreign"],
)
def test_one_service_of_a_machine(given: dict[P, Value], stored: tuple[bytes, ...]) -> None:
    names = (
        "mSMQServiceType", "mSMQRoutingServices", "mSMQDsServices", "mSMQDependentClientServices",
        "mSMQForeign",
    )  # fmt: skip
    none: dict[P, Value] = {P.QM_SERVICE: 0, P.QM_SERVICE_DEPCLIENTS: 0, P.QM_FOREIGN: 0}
    whole = {**none, **given}
    made = created(ObjectType.MACHINE, "SRV1", {P.QM_SITE_IDS: (SITE1,), **whole})
    assert tuple(made[name][0] for name in names) == stored
    before = entry(MACHINE, "mSMQConfiguration", mSMQSites=SITE1.raw)
    changed = written(ObjectType.MACHINE, before, whole)
    assert tuple(changed[name][0] for name in names) == stored
    found = entry(MACHINE, "mSMQConfiguration", **dict(zip(names, stored, strict=True)))
    flags = P.QM_SERVICE_ROUTING, P.QM_SERVICE_DSSERVER, P.QM_SERVICE_DEPCLIENTS, P.QM_FOREIGN
    shown = read(ObjectType.MACHINE, found, *flags)
    assert shown == tuple(int(value == b"TRUE") for value in stored[1:])


@pytest.mark.req(
    "MQDSSM-3.1.6.1.1.2-02", "MQDSSM-3.1.6.1.1.6-01", "MQDSSM-3.1.6.11.1.3-01", "MQDSSM-2.2.2-02",
    "MQDSSM-3.1.6.7.1.2-01",
)  # fmt: skip
def test_numbers_and_lists_of_a_machine() -> None:
    given: dict[P, Value] = {
        P.QM_QUOTA: 21, P.QM_JOURNAL_QUOTA: 22, P.QM_MACHINE_TYPE: "version",
        P.QM_OUTFRS: (GATE,), P.QM_INFRS: (OTHER_GATE,), P.QM_ENCRYPT_PKS: b"encryption keys",
    }  # fmt: skip
    stored = {
        "mSMQQuota": (b"21",), "mSMQJournalQuota": (b"22",), "mSMQComputerTypeEx": (b"version",),
        "mSMQOutRoutingServers": (str(REFERENCES.names[GATE]).encode(),),
        "mSMQInRoutingServers": (str(REFERENCES.names[OTHER_GATE]).encode(),),
        "mSMQEncryptKey": (b"encryption keys",),
    }  # fmt: skip
    made = created(ObjectType.MACHINE, "SRV1", {P.QM_SITE_IDS: (SITE1,), **given})
    assert {name: made[name] for name in stored} == stored
    before = entry(MACHINE, "mSMQConfiguration", mSMQSites=SITE1.raw)
    assert written(ObjectType.MACHINE, before, given) == stored
    found = LdapEntry(str(MACHINE), (("objectClass", (b"mSMQConfiguration",)), *stored.items()))
    assert read(ObjectType.MACHINE, found, *given) == tuple(given.values())


SETTINGS = [f"CN=MSMQ Settings,CN=SRV1,CN=Servers,{NAMES[site]}" for site in (SITE1, SITE2)]


@pytest.mark.req("MQDSSM-3.1.6.1.1.3-02")
def test_settings_in_every_site_of_a_machine() -> None:
    given: dict[P, Value] = {P.QM_SITE_IDS: (SITE1, SITE2), P.QM_SERVICE: 0x01}
    made = EntryCreation(ObjectType.MACHINE, "SRV1", typed(given))
    steps = plan_after_creation(made, ID, FACTS)
    assert names_of(steps, AddEntry) == names_of(steps, DeleteEntry) == SETTINGS


@pytest.mark.req("MQDSSM-3.1.6.2.1.3-01")
def test_settings_in_every_site_are_deleted() -> None:
    sites = (SITE1.raw, SITE2.raw)
    found = entry(MACHINE, "mSMQConfiguration", mSMQSites=sites, mSMQRoutingServices="TRUE")
    assert names_of(plan_deletion(ObjectType.MACHINE, view(found)), DeleteEntry) == SETTINGS


# --- certificates ---------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1.6.1.1.9-01", "MQDSSM-3.1.6.1.1.9-02", "MQDSSM-3.1.6.7.1.3-02")
def test_every_certificate_of_a_machine_has_its_digest() -> None:
    stored = {"mSMQSignCertificates": (LISTED.to_bytes(),), "mSMQDigests": DIGESTS}
    given: dict[P, Value] = {P.QM_SITE_IDS: (SITE1,), P.QM_SIGN_PKS: LISTED.to_bytes()}
    made = EntryCreation(ObjectType.MACHINE, "SRV1", typed(given))
    (step,) = plan_after_creation(made, ID, FACTS)
    assert isinstance(step.change, ModifyEntry)
    assert {change.attribute: change.values for change in step.change.changes} == stored
    before = entry(MACHINE, "mSMQConfiguration", mSMQSites=SITE1.raw)
    given = {P.QM_SIGN_PKS: LISTED.to_bytes(), P.QM_SIGN_PK: b"another"}
    assert written(ObjectType.MACHINE, before, given) == stored


@pytest.mark.req("MQDSSM-3.1.6.1.1.9-02")
def test_a_certificate_of_a_machine_cannot_take_the_digest_of_another() -> None:
    first, *others = LISTED.certificates
    forged = UserSignCerts((replace(first, digest=others[0].digest), *others[1:]))
    given: dict[P, Value] = {P.QM_SITE_IDS: (SITE1,), P.QM_SIGN_PKS: forged.to_bytes()}
    made = EntryCreation(ObjectType.MACHINE, "SRV1", typed(given))
    with pytest.raises(DirectoryError, match="is not the MD5 of the certificate"):
        list(plan_after_creation(made, ID, FACTS))
    before = entry(MACHINE, "mSMQConfiguration", mSMQSites=SITE1.raw)
    with pytest.raises(DirectoryError, match="is not the MD5 of the certificate"):
        written(ObjectType.MACHINE, before, {P.QM_SIGN_PKS: forged.to_bytes()})


@pytest.mark.req("MQDSSM-3.1.6.7.6.2-01", "MQDSSM-3.1.6.7.6.4-01")
def test_every_certificate_of_a_user_has_its_digest() -> None:
    user = entry("CN=alice,CN=Users,DC=corp,DC=example", "user")
    added = written(ObjectType.USER, user, {P.U_SIGN_CERT: LISTED.to_bytes()})
    assert added == {"mSMQSignCertificates": (LISTED.to_bytes(),), "mSMQDigests": DIGESTS}


# --- sites and links ------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-2.2.2-03", "MQDSSM-3.1.6.1.3.2-01", "MQDSSM-3.1.6.7.4.2-01")
@pytest.mark.parametrize(("foreign", "stub"), [(1, 0), (0, 1)])
def test_a_site(foreign: int, stub: int) -> None:
    given: dict[P, Value] = {
        P.S_INTERVAL1: 31, P.S_INTERVAL2: 32, P.S_FOREIGN: foreign, P.S_NT4_STUB: stub
    }  # fmt: skip
    stored = {
        "mSMQInterval1": (b"31",), "mSMQInterval2": (b"32",),
        "mSMQSiteForeign": (b"TRUE" if foreign else b"FALSE",), "mSMQNt4Stub": (b"%d" % stub,),
    }  # fmt: skip
    made = created(ObjectType.SITE, "Rom", given)
    assert {name: made[name] for name in stored} == stored
    place = FOREST.site("Rom")
    assert written(ObjectType.SITE, entry(place, "site"), given) == stored
    found = LdapEntry(str(place), (("objectClass", (b"site",)), *stored.items()))
    assert read(ObjectType.SITE, found, *given) == tuple(given.values())


@pytest.mark.req(
    "MQDSSM-2.2.2-03", "MQDSSM-3.1.6.1.4.4-01", "MQDSSM-3.1.6.1.4.6-01", "MQDSSM-3.1.6.7.5.2-01"
)  # fmt: skip
@pytest.mark.parametrize("ends", [(SITE1, SITE2), (SITE2, SITE1)])
def test_the_ends_of_a_link(ends: tuple[Guid, Guid]) -> None:
    given: dict[P, Value] = {
        P.L_NEIGHBOR1: ends[0], P.L_NEIGHBOR2: ends[1], P.L_ACTUAL_COST: 41,
        P.L_GATES: (GATE, OTHER_GATE), P.L_DESCRIPTION: "a link",
    }  # fmt: skip
    stored = {
        "mSMQSite1": (str(NAMES[ends[0]]).encode(),), "mSMQSite2": (str(NAMES[ends[1]]).encode(),),
        "mSMQCost": (b"41",), "description": (b"a link",),
        "mSMQSiteGates": tuple(str(REFERENCES.names[g]).encode() for g in (GATE, OTHER_GATE)),
    }  # fmt: skip
    made = created(ObjectType.ROUTINGLINK, "", given)
    assert {name: made[name] for name in stored} == stored
    place = FOREST.link(*ends)
    assert written(ObjectType.ROUTINGLINK, entry(place, "mSMQSiteLink"), given) == stored
    found = LdapEntry(str(place), (("objectClass", (b"mSMQSiteLink",)), *stored.items()))
    assert read(ObjectType.ROUTINGLINK, found, *given) == tuple(given.values())
