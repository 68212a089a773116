"""Plans of writes: what is read first, and the operations in order."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from mqis.protocol.activedirectory.changing import PropertyWrite, plan_deletion, plan_write
from mqis.protocol.activedirectory.creating import (
    EntryCreation,
    plan_after_creation,
    plan_creation,
    reverse_link,
)
from mqis.protocol.activedirectory.reading import read_properties
from mqis.protocol.activedirectory.servers import MachineServices
from mqis.protocol.activedirectory.steps import PlanFacts, PlanStep
from mqis.protocol.activedirectory.view import References
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.security.masks import MachineRights
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry, ModifyKind
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.certificates import UserSignCerts, digest_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.security.acl import Acl, ObjectAce, PlainAce, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE, Sid
from tests.protocol.activedirectory.helpers import (
    COMPUTER,
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
    view,
)

ALICE = Sid.parse("S-1-5-21-1-2-3-1001")
FACTS = PlanFacts(COMPUTER_ENTRY, REFERENCES)
CERTIFICATES = UserSignCerts.wrap(b"a certificate", SITE1).to_bytes()
DIGEST = digest_of(b"a certificate")


def creation(object_type: ObjectType, path: str, **more: object) -> EntryCreation:
    given: dict[P, Value] = more.pop("properties", {})  # type: ignore[assignment]
    return EntryCreation(object_type, path, props(given), **more)  # type: ignore[arg-type]


def typed(given: Mapping[P, Value]) -> dict[int, PropVariant]:
    return {int(propid): prop(propid, value) for propid, value in given.items()}


def added(step: PlanStep) -> AddEntry:
    assert isinstance(step.change, AddEntry)
    return step.change


def rows(change: AddEntry) -> dict[str, tuple[bytes, ...]]:
    return dict(change.attributes)


def replaced(step: PlanStep) -> dict[str, tuple[bytes, ...]]:
    assert isinstance(step.change, ModifyEntry)
    assert all(change.kind is ModifyKind.REPLACE for change in step.change.changes)
    return {change.attribute: change.values for change in step.change.changes}


def changed(step: PlanStep) -> list[tuple[ModifyKind, str, tuple[bytes, ...]]]:
    assert isinstance(step.change, ModifyEntry)
    return [(change.kind, change.attribute, change.values) for change in step.change.changes]


# --- creating -------------------------------------------------------------------------------------


@pytest.mark.req(
    "MQDSSM-3.1.6.1.2.2-01", "MQDSSM-3.1.6.1.2.2-02", "MQDSSM-3.1.6.1.2.2-04",
    "MQDSSM-3.1.6.12-03", "MQDSSM-2.2.2-08",
)  # fmt: skip
def test_a_queue() -> None:
    made = creation(
        ObjectType.QUEUE, "SRV1\\Orders",
        properties={P.Q_LABEL: "x", P.Q_JOURNAL: 1, P.Q_QUOTA: 0xFFFFFFFF, P.Q_SCOPE: 1,
                    P.Q_MULTICAST_ADDRESS: "", P.Q_INSTANCE: SITE1, P.Q_TRANSACTION: 1},
    )  # fmt: skip
    assert made.needs().computer == "SRV1"
    step = plan_creation(made, FOREST, FACTS)
    assert added(step).name == str(MACHINE.child("CN", "Orders"))
    assert rows(added(step)) == {
        "objectClass": (b"mSMQQueue",), "mSMQJournal": (b"TRUE",), "mSMQQueueQuota": (b"-1",),
        "mSMQLabelEx": (b"x",), "mSMQTransactional": (b"TRUE",),
    }  # fmt: skip
    assert not step.accepted
    assert plan_after_creation(made, ID, FACTS) == ()


@pytest.mark.req("MQDSSM-3.1.6.1-03")
def test_an_identifier_is_written_only_if_asked_for() -> None:
    made = creation(ObjectType.QUEUE, "SRV1\\q", identifier=SITE2)
    assert rows(added(plan_creation(made, FOREST, FACTS)))["objectGUID"] == (SITE2.raw,)


@pytest.mark.req("MQDSSM-3.1.6.1.2.5-03", "MQDSSM-3.1.6.1.2.5-04")
def test_a_queue_with_a_long_name() -> None:
    name = "a=b," + "x" * 90
    change = added(plan_creation(creation(ObjectType.QUEUE, f"SRV1\\{name}"), FOREST, FACTS))
    assert rows(change)["mSMQQueueNameExt"] == (name[55:].encode(),)
    made = LdapEntry(change.name, (*change.attributes, ("objectGUID", (ID.raw,))))
    read = read_properties(view(made), ObjectType.QUEUE, [P.Q_PATHNAME])
    assert read[P.Q_PATHNAME].value == f"srv1\\{name}"


@pytest.mark.req("MQDSSM-3.1.6.1.2.2-03")
def test_the_rights_of_a_queue_are_translated() -> None:
    given = SecurityDescriptor(owner=ALICE, dacl=Acl((allow(EVERYONE, 0x24),)))
    made = creation(ObjectType.QUEUE, "SRV1\\q", properties={P.Q_SECURITY: given.to_bytes()})
    sent = rows(added(plan_creation(made, FOREST, FACTS)))["nTSecurityDescriptor"][0]
    found = SecurityDescriptor.from_bytes(sent).dacl
    assert SecurityDescriptor.from_bytes(sent).owner == ALICE
    assert found is not None
    assert [(type(ace), getattr(ace, "mask", 0)) for ace in found.aces] == [
        (PlainAce, 0x14), (ObjectAce, 0x100),
    ]  # fmt: skip
    broken = creation(ObjectType.QUEUE, "SRV1\\q", properties={P.Q_SECURITY: b"x"})
    with pytest.raises(DirectoryError, match="security descriptor"):
        plan_creation(broken, FOREST, FACTS)


SERVER = {
    P.QM_SITE_IDS: (SITE1, SITE2, GATE), P.QM_SERVICE: 0x05, P.QM_OUTFRS: (GATE, ID),
    P.QM_SIGN_PKS: CERTIFICATES, P.QM_ENCRYPT_PKS: b"k", P.QM_ENCRYPT_PK: b"other",
}  # fmt: skip
FOUND = PlanFacts(COMPUTER_ENTRY, References({s: NAMES[s] for s in (SITE1, SITE2)}))


@pytest.mark.req(
    "MQDSSM-3.1.6.1.1.2-01", "MQDSSM-3.1.6.1.1.2-02", "MQDSSM-3.1.6.1.1.2-03",
    "MQDSSM-3.1.6.1.1.6-01", "MQDSSM-3.1.6.1.1.2-04",
)  # fmt: skip
def test_a_machine() -> None:
    made = creation(ObjectType.MACHINE, "SRV1", properties={**SERVER, P.QM_QUOTA: 7})
    assert made.needs().names == {SITE1, SITE2, GATE, ID}
    step = plan_creation(made, FOREST, FACTS)
    assert added(step).name == str(MACHINE)
    assert step.accepted == {68}
    found = rows(added(step))
    found.pop("nTSecurityDescriptor")
    assert found == {
        "objectClass": (b"mSMQConfiguration",), "mSMQServiceType": (b"5",),
        "mSMQRoutingServices": (b"TRUE",), "mSMQDsServices": (b"TRUE",), "mSMQQuota": (b"7",),
        "mSMQSites": (SITE1.raw, SITE2.raw, GATE.raw), "mSMQEncryptKey": (b"k",),
        "mSMQOutRoutingServers": (str(NAMES[GATE]).encode(),),
    }  # fmt: skip


@pytest.mark.req(
    "MQDSSM-3.1.6.1.1.3-01", "MQDSSM-3.1.6.1.1.3-02", "MQDSSM-3.1.6.1.1.3-04",
    "MQDSSM-3.1.6.1.1.9-01", "MQDSSM-3.1.6.1.1.9-02",
)  # fmt: skip
def test_certificates_and_settings_of_a_new_server() -> None:
    made = creation(ObjectType.MACHINE, "SRV1", properties=SERVER)
    certificates, *settings = plan_after_creation(made, ID, FOUND)
    assert certificates.change.name == str(COMPUTER)
    assert replaced(certificates) == {
        "mSMQSignCertificates": (CERTIFICATES,), "mSMQDigests": (DIGEST,)
    }  # fmt: skip
    assert len(settings) == 2 * 4  # a site that was not found is skipped
    last = added(settings[3])
    assert last.name == f"CN=MSMQ Settings,CN=SRV1,CN=Servers,{NAMES[SITE1]}"
    assert rows(last) == {
        "objectClass": (b"mSMQSettings",), "mSMQQMID": (ID.raw,), "mSMQServices": (b"5",),
        "mSMQRoutingService": (b"TRUE",), "mSMQDsService": (b"TRUE",),
        "mSMQDependentClientService": (b"FALSE",),
    }  # fmt: skip


@pytest.mark.req("MQDSSM-3.1.6.1.1.3-03", "MQDSSM-3.1.6.1.1.3-05")
def test_entries_above_the_settings_are_made_and_old_settings_replaced() -> None:
    made = creation(ObjectType.MACHINE, "SRV1", properties=SERVER)
    _, container, server, old, new, *_ = plan_after_creation(made, ID, FOUND)
    assert added(container).name == f"CN=Servers,{NAMES[SITE1]}"
    assert rows(added(container)) == {"objectClass": (b"serversContainer",)}
    assert added(server).name == f"CN=SRV1,CN=Servers,{NAMES[SITE1]}"
    assert rows(added(server)) == {
        "objectClass": (b"server",), "serverReference": (str(COMPUTER).encode(),)
    }  # fmt: skip
    assert container.accepted == server.accepted == {68}
    assert old == PlanStep(DeleteEntry(added(new).name), frozenset({32}))
    assert not new.accepted


@pytest.mark.req("MQDSSM-3.1.6.20.1-02")
def test_a_machine_without_services_has_no_settings() -> None:
    plain = creation(ObjectType.MACHINE, "SRV1", properties={P.QM_SITE_ID: SITE1})
    assert plan_after_creation(plain, ID, FACTS) == ()
    assert rows(added(plan_creation(plain, FOREST, FACTS)))["mSMQSites"] == (SITE1.raw,)


def machine_dacl(made: EntryCreation, facts: PlanFacts) -> SecurityDescriptor:
    change = added(plan_creation(made, FOREST, facts))
    octets = rows(change)["nTSecurityDescriptor"]
    made_entry = LdapEntry(change.name, change.attributes)
    read = read_properties(view(made_entry), ObjectType.MACHINE, [P.QM_SECURITY])
    assert octets
    return SecurityDescriptor.from_bytes(read[P.QM_SECURITY].value)  # type: ignore[arg-type]


@pytest.mark.req(
    "MQDSSM-3.1.6.1.1.8-01", "MQDSSM-3.1.6.1.1.8-02", "MQDSSM-3.1.6.1.1.8-03",
    "MQDSSM-3.1.6.1.1.8-04",
)  # fmt: skip
def test_the_descriptor_of_a_machine() -> None:
    full, world = MachineRights.MACHINE_GENERIC_ALL, MachineRights.MACHINE_WORLD_RIGHTS
    computer = Sid.from_bytes(COMPUTER_ENTRY.values("objectSid")[0])
    base = {P.QM_SITE_ID: SITE1, P.QM_FOREIGN: 0}
    found = machine_dacl(
        creation(ObjectType.MACHINE, "SRV1", properties=base, creator=ALICE), FACTS
    )
    assert found.owner == computer
    trusted = (allow(computer, int(full)), allow(ALICE, int(full)))
    assert found.dacl == Acl((allow(EVERYONE, int(world)), *trusted))
    same = creation(ObjectType.MACHINE, "SRV1", properties=base, creator=computer)
    assert machine_dacl(same, FACTS).dacl == Acl((allow(EVERYONE, int(world)), trusted[0]))
    given = SecurityDescriptor(owner=ALICE, dacl=Acl((allow(EVERYONE, 0xF0000),)))
    foreign = {**base, P.QM_FOREIGN: 1, P.QM_SECURITY: given.to_bytes()}
    bare = PlanFacts(LdapEntry(str(COMPUTER), ()), REFERENCES)
    found = machine_dacl(creation(ObjectType.MACHINE, "SRV1", properties=foreign), bare)
    assert found.owner is None
    wide = allow(EVERYONE, int(MachineRights.MACHINE_GENERIC_WRITE))
    assert found.dacl == Acl((wide, trusted[1]))  # foreign, then the given owner
    broken = PlanFacts(LdapEntry(str(COMPUTER), (("objectSid", (b"x",)),)), REFERENCES)
    assert machine_dacl(creation(ObjectType.MACHINE, "SRV1", properties=base), broken).owner is None


@pytest.mark.req("MQDSSM-3.1.6.1.3.2-01", "MQDSSM-3.1.6.1.3.2-02", "MQDSSM-3.1.6.1.3.2-03")
def test_a_site_only_if_it_is_allowed() -> None:
    given = {P.S_INTERVAL1: 3, P.S_FOREIGN: 1, P.S_NT4_STUB: 1}
    with pytest.raises(DirectoryError, match="allow it"):
        plan_creation(creation(ObjectType.SITE, "Rom", properties=given), FOREST, FACTS)
    made = creation(ObjectType.SITE, "Rom", properties=given, sites_allowed=True)
    change = added(plan_creation(made, FOREST, FACTS))
    assert change.name == "CN=Rom,CN=Sites,CN=Configuration,DC=corp,DC=example"
    assert rows(change) == {
        "objectClass": (b"site",), "mSMQInterval1": (b"3",), "mSMQSiteForeign": (b"TRUE",),
        "mSMQNt4Stub": (b"1",),
    }  # fmt: skip


@pytest.mark.req("MQDSSM-3.1.6.1.3.4-03")
@pytest.mark.departs("MQDSSM-3.1.6.1.3.4-01", "MQDSSM-3.1.6.1.3.4-02")
def test_a_site_gets_no_descriptor_of_ours() -> None:
    made = creation(ObjectType.SITE, "Rom", sites_allowed=True)
    assert "nTSecurityDescriptor" not in rows(added(plan_creation(made, FOREST, FACTS)))


LINK = {P.L_NEIGHBOR1: SITE1, P.L_NEIGHBOR2: SITE2, P.L_ACTUAL_COST: 7, P.L_GATES: (GATE, ID)}


@pytest.mark.req(
    "MQDSSM-3.1.6.1.4.2-01", "MQDSSM-3.1.6.1.4.2-02", "MQDSSM-3.1.6.1.4.4-01",
    "MQDSSM-3.1.6.1.4.6-01",
)  # fmt: skip
def test_a_link() -> None:
    made = creation(ObjectType.ROUTINGLINK, "", properties={**LINK, P.L_DESCRIPTION: "d"})
    assert made.needs().names == {SITE1, SITE2, GATE, ID}
    change = added(plan_creation(made, FOREST, FACTS))
    assert change.name == str(FOREST.link(SITE1, SITE2))
    assert rows(change) == {
        "objectClass": (b"mSMQSiteLink",), "mSMQSite1": (str(NAMES[SITE1]).encode(),),
        "mSMQSite2": (str(NAMES[SITE2]).encode(),), "description": (b"d",), "mSMQCost": (b"7",),
        "mSMQSiteGates": (str(NAMES[GATE]).encode(),),
    }  # fmt: skip
    with pytest.raises(DirectoryError, match="no site"):
        plan_creation(made, FOREST, PlanFacts())


@pytest.mark.req("MQDSSM-3.1.6.1.4.2-03")
def test_a_link_in_the_other_direction() -> None:
    made = creation(ObjectType.ROUTINGLINK, "", properties=LINK)
    assert reverse_link(made, FOREST) == FOREST.link(SITE2, SITE1)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        *(pytest.param(creation(ObjectType.ROUTINGLINK, "",
                                properties={p: v for p, v in LINK.items() if p != absent}),
                       "both of its sites", marks=pytest.mark.req("MQDSSM-3.1.6.1.4.1-01"))
          for absent in (P.L_NEIGHBOR1, P.L_NEIGHBOR2, P.L_ACTUAL_COST)),
        *(pytest.param(creation(ObjectType.MACHINE, "SRV1", properties=given), "at least one site",
                       marks=pytest.mark.req("MQDSSM-3.1.6.1.1.1-01"))
          for given in ({}, {P.QM_CNS: (SITE1,)})),
        *(pytest.param(creation(ObjectType.QUEUE, path), "not the path",
                       marks=pytest.mark.req("MQDSSM-3.1.6.1.2.1-01"))
          for path in ("noqueue", "\\noqueue", "SRV1\\")),
        *(pytest.param(creation(object_type, "x", sites_allowed=True), f"makes no {name}",
                       marks=pytest.mark.req("MQDSSM-3.1.6.1-01"))
          for object_type, name in ((ObjectType.USER, "user"), (ObjectType.CN, "network"))),
        *(pytest.param(creation(ObjectType.ENTERPRISE, "x", sites_allowed=allowed),
                       "makes no enterprise",
                       marks=pytest.mark.req("MQDSSM-2.2.3-01", "MQDSSM-2.2.3-02"))
          for allowed in (False, True)),
        pytest.param(creation(ObjectType.SITE, "x" * 65, sites_allowed=True), "more than 64",
                     marks=pytest.mark.req("MQDSSM-2.2.2-09")),
        (creation(ObjectType.QUEUE, "SRV1\\q", properties={P.Q_LABEL: "\ud800"}), "Q_LABEL"),
    ],
)  # fmt: skip
def test_refused_creations(made: EntryCreation, reason: str) -> None:
    with pytest.raises(DirectoryError, match=reason):
        plan_creation(made, FOREST, FACTS)


def test_a_computer_that_is_not_there() -> None:
    with pytest.raises(DirectoryError, match="no computer SRV1"):
        plan_creation(creation(ObjectType.QUEUE, "SRV1\\q"), FOREST, PlanFacts())
    assert creation(ObjectType.SITE, "x").needs().computer == ""


# --- writing --------------------------------------------------------------------------------------


def stored(**attributes: object) -> LdapEntry:
    return entry(MACHINE, "mSMQConfiguration", mSMQSites=SITE1.raw, **attributes)


def write(
    object_type: ObjectType,
    found: LdapEntry,
    given: Mapping[P, Value],
    *,
    sites_allowed: bool = False,
) -> tuple[PlanStep, ...]:
    return plan_write(PropertyWrite(object_type, view(found), typed(given), sites_allowed))


QUEUE = entry(MACHINE.child("CN", "q"), "mSMQQueue")


@pytest.mark.req(
    "MQDSSM-3.1.6.7-02", "MQDSSM-3.1.6.7.2.2-01", "MQDSSM-3.1.6.16-01", "MQDSSM-2.2.2-08"
)
def test_properties_of_a_queue() -> None:
    given: dict[P, Value] = {P.Q_LABEL: "", P.Q_QUOTA: 5, P.Q_TRANSACTION: 1, P.Q_PATHNAME: "x"}
    given[P.Q_SECURITY] = SecurityDescriptor(owner=ALICE).to_bytes()
    step, _ = write(ObjectType.QUEUE, QUEUE, given)  # the descriptor after it
    assert step.change.name == str(MACHINE.child("CN", "q"))
    assert replaced(step) == {"mSMQQueueQuota": (b"5",), "mSMQLabelEx": ()}


@pytest.mark.req("MQDSSM-3.1.6.7-03")
def test_nothing_to_write_is_no_operation() -> None:
    assert write(ObjectType.QUEUE, QUEUE, {}) == ()
    assert write(ObjectType.QUEUE, QUEUE, {P.Q_SCOPE: 1}) == ()


@pytest.mark.req("MQDSSM-3.1.6.7.1.3-01", "MQDSSM-3.1.6.17-02")
def test_a_descriptor_is_an_operation_of_its_own() -> None:
    only_owner = SecurityDescriptor(owner=ALICE).to_bytes()
    label, security = write(ObjectType.QUEUE, QUEUE, {P.Q_LABEL: "x", P.Q_SECURITY: only_owner})
    assert "nTSecurityDescriptor" not in replaced(label)
    assert isinstance(security.change, ModifyEntry)
    assert security.change.descriptor_parts == 1
    assert set(replaced(security)) == {"nTSecurityDescriptor"}
    site = entry(FOREST.site("Rom"), "site")
    with pytest.raises(DirectoryError, match="topology"):
        write(ObjectType.SITE, site, {P.S_SECURITY: only_owner})
    assert write(ObjectType.SITE, site, {P.S_SECURITY: only_owner}, sites_allowed=True)


@pytest.mark.req("MQDSSM-3.1.6.7.1.2-03", "MQDSSM-3.1.6.7.1.2-01")
def test_services_that_are_not_given_stay() -> None:
    found = stored(mSMQServiceType=0x12, mSMQDsServices="TRUE")
    *_, last = write(ObjectType.MACHINE, found, {P.QM_SERVICE_ROUTING: 1, P.QM_QUOTA: 9})
    assert replaced(last) == {
        "mSMQServiceType": (b"19",), "mSMQRoutingServices": (b"TRUE",),
        "mSMQDsServices": (b"TRUE",), "mSMQQuota": (b"9",),
    }  # fmt: skip


@pytest.mark.req(
    "MQDSSM-3.1.6.7.1.9-01", "MQDSSM-3.1.6.7.1.9-02", "MQDSSM-3.1.6.7.1.9-03",
    "MQDSSM-3.1.6.7.1.9-04", "MQDSSM-3.1.6.7.1.9-05",
)  # fmt: skip
def test_settings_follow_the_services() -> None:
    settings = f"CN=MSMQ Settings,CN=SRV1,CN=Servers,{NAMES[SITE1]}"
    becomes = write(ObjectType.MACHINE, stored(), {P.QM_SERVICE_DEPCLIENTS: 1})
    assert added(becomes[-2]).name == settings
    assert rows(added(becomes[-2]))["mSMQDependentClientService"] == (b"TRUE",)
    ends = write(ObjectType.MACHINE, stored(mSMQRoutingServices="TRUE"), {P.QM_SERVICE: 0})
    assert [step.change for step in ends[:-1]] == [DeleteEntry(settings)]
    router = stored(mSMQRoutingServices="TRUE", mSMQServiceType=1)
    changes = write(ObjectType.MACHINE, router, {P.QM_SERVICE_DSSERVER: 1})
    assert rows(added(changes[-2]))["mSMQDsService"] == (b"TRUE",)
    assert len(write(ObjectType.MACHINE, router, {P.QM_QUOTA: 1})) == 1
    unknown = entry(MACHINE, "mSMQConfiguration", mSMQSites=ID.raw, mSMQRoutingServices="TRUE")
    assert len(write(ObjectType.MACHINE, unknown, {P.QM_SERVICE: 0})) == 1


@pytest.mark.req("MQDSSM-3.1.6.7.1.9-06")
def test_settings_move_with_the_machine() -> None:
    router = stored(mSMQRoutingServices="TRUE", mSMQServiceType=1)
    given: dict[int, Value] = {P.QM_SITE_IDS: (SITE2,)}
    asked = PropertyWrite(ObjectType.MACHINE, view(router), {**props(given)})
    assert asked.needs() == {SITE1, SITE2}
    moved = plan_write(asked)
    assert replaced(moved[-1]) == {"mSMQSites": (SITE2.raw,)}
    assert moved[0].change == DeleteEntry(f"CN=MSMQ Settings,CN=SRV1,CN=Servers,{NAMES[SITE1]}")
    assert moved[-2].change.name == f"CN=MSMQ Settings,CN=SRV1,CN=Servers,{NAMES[SITE2]}"
    first = write(ObjectType.MACHINE, stored(), {P.QM_SITE_ID: SITE2})
    assert replaced(first[0]) == {"mSMQSites": (SITE2.raw, SITE1.raw)}
    assert PropertyWrite(ObjectType.QUEUE, view(QUEUE), {}).needs() == frozenset()


@pytest.mark.req("MQDSSM-3.1.6.7.1.3-02")
def test_certificates_of_a_machine_are_at_its_computer() -> None:
    (step,) = write(ObjectType.MACHINE, stored(), {P.QM_SIGN_PK: CERTIFICATES})
    assert step.change.name == str(COMPUTER)
    assert replaced(step)["mSMQDigests"] == (DIGEST,)
    (keys,) = write(ObjectType.MACHINE, stored(), {P.QM_SIGN_PKS: b"\x0c\x00\x00\x00keys"})
    assert replaced(keys)["mSMQDigests"] == ()
    (none,) = write(ObjectType.MACHINE, stored(), {P.QM_SIGN_PKS: b""})
    assert replaced(none) == {"mSMQSignCertificates": (), "mSMQDigests": ()}


@pytest.mark.req("MQDSSM-3.1.6.7.6.2-01", "MQDSSM-3.1.6.7.6.4-01")
def test_certificates_of_a_user() -> None:
    user = entry("CN=alice,CN=Users,DC=corp,DC=example", "user")
    forged: dict[P, Value] = {P.U_SIGN_CERT: CERTIFICATES, P.U_DIGEST: (Guid.NULL,)}
    (step,) = write(ObjectType.USER, user, forged)
    listed, digests = "mSMQSignCertificates", "mSMQDigests"
    assert changed(step) == [
        (ModifyKind.ADD, listed, (CERTIFICATES,)), (ModifyKind.ADD, digests, (DIGEST,)),
    ]  # fmt: skip
    held = typed({P.U_SIGN_CERT: CERTIFICATES, P.U_DIGEST: (Guid(DIGEST),)})
    (gone,) = plan_write(
        PropertyWrite(ObjectType.USER, view(user), typed({P.U_SIGN_CERT: b""}), read=held)
    )
    assert changed(gone) == [
        (ModifyKind.DELETE, listed, (CERTIFICATES,)), (ModifyKind.DELETE, digests, (DIGEST,)),
    ]  # fmt: skip
    assert plan_write(PropertyWrite(ObjectType.USER, view(user), held, read=held)) == ()
    assert write(ObjectType.USER, user, {P.U_DIGEST: (Guid.NULL,)}) == ()
    with pytest.raises(DirectoryError, match="U_SIGN_CERT"):
        write(ObjectType.USER, user, {P.U_SIGN_CERT: b"junk"})


@pytest.mark.req(
    "MQDSSM-3.1.6.7.3.2-01", "MQDSSM-3.1.6.7.3.2-02", "MQDSSM-3.1.6.7.4.2-01",
    "MQDSSM-3.1.6.7.5.2-01", "MQDSSM-3.1.6.7.5.6-01",
)  # fmt: skip
def test_other_types() -> None:
    enterprise = entry(FOREST.enterprise, "mSMQEnterpriseSettings")
    (step,) = write(
        ObjectType.ENTERPRISE, enterprise,
        {P.E_LONG_LIVE: 9, P.E_NAMESTYLE: 1, P.E_VERSION: 3, P.E_CSP_NAME: "x"},
    )  # fmt: skip
    assert step.change.name == str(FOREST.enterprise)
    assert replaced(step) == {
        "mSMQNameStyle": (b"TRUE",), "mSMQLongLived": (b"9",), "mSMQVersion": (b"3",)
    }  # fmt: skip
    site = entry(FOREST.site("Rom"), "site")
    (step,) = write(ObjectType.SITE, site, {P.S_INTERVAL2: 4, P.S_PATHNAME: "x"})
    assert replaced(step) == {"mSMQInterval2": (b"4",)}
    link = entry(FOREST.link(SITE1, SITE2), "mSMQSiteLink")
    (step,) = write(ObjectType.ROUTINGLINK, link, {P.L_ACTUAL_COST: 5, P.L_GATES: (ID,)})
    assert replaced(step) == {"mSMQCost": (b"5",), "mSMQSiteGates": ()}


@pytest.mark.req("MQDSSM-3.1.6.7.5.4-01")
def test_a_link_to_an_unknown_site_is_not_written() -> None:
    link = entry(FOREST.link(SITE1, SITE2), "mSMQSiteLink")
    for ends in ((ID, SITE2), (SITE1, ID), (ID, ID)):
        given = dict(zip((P.L_NEIGHBOR1, P.L_NEIGHBOR2), ends, strict=True))
        with pytest.raises(DirectoryError, match="no site"):
            write(ObjectType.ROUTINGLINK, link, given)


@pytest.mark.req("MQDSSM-3.1.6.7-01")
def test_connected_networks_are_not_written() -> None:
    with pytest.raises(DirectoryError, match="keeps no"):
        write(ObjectType.CN, QUEUE, {P.CN_NAME: "x"})


def test_a_machine_without_an_identifier() -> None:
    nameless = LdapEntry(str(MACHINE), (("mSMQSites", (SITE1.raw, b"short")),))
    with pytest.raises(BadAttribute, match="objectGUID: is missing") as caught:
        write(ObjectType.MACHINE, nameless, {P.QM_SERVICE: 1})
    copied = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(copied, ProtocolError)
    assert str(copied) == str(caught.value)


# --- deleting -------------------------------------------------------------------------------------


@pytest.mark.req(
    "MQDSSM-3.1.6.2.2.2-01", "MQDSSM-3.1.6.2.4.2-01", "MQDSSM-3.1.6.2.3.2-01", "MQDSSM-3.1.6.2-01"
)  # fmt: skip
def test_leaves() -> None:
    for object_type, name in (
        (ObjectType.QUEUE, MACHINE.child("CN", "q")),
        (ObjectType.SITE, FOREST.site("Rom")),
        (ObjectType.ROUTINGLINK, FOREST.link(SITE1, SITE2)),
    ):
        found = view(entry(name, "any"))
        assert plan_deletion(object_type, found, sites_allowed=True) == (
            PlanStep(DeleteEntry(str(name))),
        )


@pytest.mark.req(
    "MQDSSM-3.1.6.2.1.2-01", "MQDSSM-3.1.6.2.1.2-02", "MQDSSM-3.1.6.2.1.3-01",
    "MQDSSM-3.1.6.2.1.3-02", "MQDSSM-3.1.6.2.1.3-03",
)  # fmt: skip
def test_a_machine_goes_with_its_queues_and_settings() -> None:
    whole, settings = plan_deletion(ObjectType.MACHINE, view(stored(mSMQRoutingServices="TRUE")))
    assert whole == PlanStep(DeleteEntry(str(MACHINE), tree=True))
    assert settings.change == DeleteEntry(f"CN=MSMQ Settings,CN=SRV1,CN=Servers,{NAMES[SITE1]}")
    assert settings.accepted == {32}
    for flag in ("mSMQDsServices", "mSMQDependentClientServices"):
        assert plan_deletion(ObjectType.MACHINE, view(stored(**{flag: "TRUE"})))[1:] == (settings,)
    assert len(plan_deletion(ObjectType.MACHINE, view(stored()))) == 1


@pytest.mark.req("MQDSSM-3.1.6.2-01")
def test_users_and_the_enterprise_are_not_deleted() -> None:
    for object_type in (ObjectType.USER, ObjectType.ENTERPRISE, ObjectType.CN):
        with pytest.raises(DirectoryError, match="cannot be deleted"):
            plan_deletion(object_type, view(QUEUE))


# --- service bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "bits", "directory_server"),
    [
        ({P.QM_SERVICE: 0x09}, 0x09, True),
        ({P.QM_SERVICE: 0x04, P.QM_SERVICE_DSSERVER: 1}, 0x04, True),
        ({P.QM_SERVICE: 0x04, P.QM_SERVICE_DSSERVER: 0}, 0, False),
        ({P.QM_SERVICE_DSSERVER: 1}, 0, True),
        ({P.QM_SERVICE_ROUTING: 1, P.QM_SERVICE: 0x10}, 0x11, False),
        ({}, 0, False),
    ],
)
@pytest.mark.req("MQDSSM-3.1.6.1.1.5-01")
def test_service_bits(given: dict[P, Value], bits: int, directory_server: bool) -> None:
    found = MachineServices().with_properties(typed(given))
    assert found.attributes.bits == bits
    assert found.attributes.directory_server is directory_server
