"""Odd entries and incomplete sources: what cannot be told is said, and nothing breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.activedirectory.estate.examining import examine_estate
from mqis.protocol.activedirectory.estate.facts import EstateFacts, LinkFact
from mqis.protocol.activedirectory.estate.findings import EstateCheck, ldif_of
from mqis.protocol.activedirectory.estate.open_queues import closed, open_for
from mqis.protocol.activedirectory.rights import PEEK, RECEIVE, RECEIVE_JOURNAL
from mqis.protocol.activedirectory.rights import SEND as SEND_RIGHT
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, ModifyEntry, ModifyKind
from mqis.wire.mqds.certificates import UserSignCert, UserSignCerts, digest_of
from mqis.wire.security.acl import AceFlags, AceType, Acl, ObjectAce, allow
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS, ANONYMOUS, EVERYONE, NETWORK, Sid
from tests.estate.planted import (
    BERLIN,
    OU,
    PARIS,
    ROM,
    SITES,
    certificate,
    computer,
    faults,
    guid,
    keys,
    link,
    machine,
    made,
    queue,
    settings,
    sound,
    standing,
    user,
)  # fmt: skip
from tests.protocol.activedirectory.estate.test_checks import examined

SEND = 0x0000_0100


def without(*classes: str) -> list[AddEntry]:
    names = {each.encode() for each in classes}
    return [entry for entry in sound() if not names & set(entry.values("objectClass"))]


def changed(entry: AddEntry, **given: bytes) -> AddEntry:
    return replace_values(entry, **{key: (value,) for key, value in given.items()})


def replace_values(entry: AddEntry, **given: tuple[bytes, ...]) -> AddEntry:
    return AddEntry(entry.name, tuple({**dict(entry.attributes), **given}.items()))


@pytest.mark.parametrize(
    ("missing", "checks"),
    [
        (
            ("computer",),
            {
                "no_computer", "disabled_computer", "service_name_missing", "service_name_doubled",
                "address_outside_site",
            },
        ),
        (("site",), {"site_without_router"}),
        (("subnet",), {"address_outside_site"}),
        (("user",), {"unknown_user", "address_outside_site"}),
    ],
)  # fmt: skip
def test_a_source_says_what_it_cannot_tell(missing: tuple[str, ...], checks: set[str]) -> None:
    names = {each.encode() for each in missing}
    around = [entry for entry in standing() if not names & set(entry.values("objectClass"))]
    report = examined([*without(*missing), *faults()["unknown_user"]], around)
    untold = {limit.check for limit in report.limits}
    assert untold >= checks
    assert not untold & {finding.check for finding in report.findings}


def test_queues_without_descriptors_are_not_called_closed() -> None:
    bare = replace(queue("orders", "WS1", 32), attributes=(("objectClass", (b"mSMQQueue",)),))
    report = examined([*without("mSMQQueue"), bare])
    assert [limit.check for limit in report.limits] == [EstateCheck.OPEN_QUEUE.label]


@pytest.mark.parametrize(
    "entry",
    [
        made(f"CN=msmq,CN=X,{OU}", "mSMQConfiguration"),
        made(f"CN=msmq,CN=X,{OU}", "mSMQConfiguration", objectGUID=b"short"),
        changed(machine("WS1", 20, BERLIN), mSMQRoutingServices=b"maybe"),
        changed(computer("WS1", "10.1.0.9"), userAccountControl=b"many"),
        changed(computer("WS1", "10.1.0.9"), dNSHostName=b"\xff"),
        changed(queue("orders", "WS1", 32), nTSecurityDescriptor=b"\1\2"),
        changed(user("alice", 100), mSMQSignCertificates=b"\xff" * 8),
        made(f"CN=10.0.0.0_8,CN=Subnets,{SITES}", "subnet", siteObject=f"CN=Berlin,{SITES}"),
        made("no name", "mSMQQueue", objectGUID=guid(9)),
    ],
)
def test_an_entry_that_cannot_be_read_is_named_and_breaks_nothing(entry: AddEntry) -> None:
    report = examined([*sound(), entry])
    assert len(report.unreadable) == 1
    assert entry.name in report.unreadable[0]


def test_what_does_not_concern_message_queuing_is_ignored() -> None:
    dead = made(f"CN=msmq,CN=X,{OU}", "mSMQConfiguration", objectGUID=guid(9), isDeleted="TRUE")
    nowhere = made(f"CN=10.9.0.0/16,CN=Subnets,{SITES}", "subnet")
    odd = changed(computer("WS9", "the blue cable"), sAMAccountName=b"WS9$")
    report = examined([*sound(), dead, nowhere, odd, made("DC=x", "domainDNS")])
    assert (report.findings, report.unreadable) == ((), ())


def test_equal_keys_and_equal_identities_betray_clones() -> None:
    key = changed(machine("WS9", 50, BERLIN), mSMQEncryptKey=keys(20))
    twin = [computer("WS8", "10.1.0.8"), machine("WS8", 20, BERLIN)]
    report = examined([*sound(), computer("WS9", "10.1.0.7"), key, *twin])
    found = sorted(finding.detail for finding in report.findings)
    assert [text.partition(" as")[0] for text in found] == [
        "the same encryption key", "the same encryption key", "the same objectGUID"
    ]  # fmt: skip
    assert {finding.check for finding in report.findings} == {
        EstateCheck.CLONED_QUEUE_MANAGER.label
    }


@pytest.mark.parametrize(
    ("gate", "fault"),
    [
        (f"CN=msmq\\0ADEL:{guid(7)},CN=Deleted Objects,DC=corp,DC=example", "is deleted"),
        (f"CN=msmq,CN=NONE,{OU}", "does not exist"),
        (f"CN=msmq,CN=WS1,{OU}", "is no routing server"),
        (f"CN=msmq,CN=SRV3,{OU}", "is in neither site"),
    ],
)
def test_gates_that_cannot_route(gate: str, fault: str) -> None:
    bad = changed(link(BERLIN, PARIS), mSMQSiteGates=gate.encode())
    report = examined([*without("mSMQSiteLink"), link(BERLIN, ROM, "SRV1", "SRV3"), bad])
    (finding,) = report.findings
    assert finding.check == EstateCheck.BAD_GATE.label
    assert finding.detail.endswith(fault)


def test_a_store_shows_that_a_site_of_a_link_does_not_exist() -> None:
    facts = EstateFacts(links=[LinkFact("CN=l", ("cn=a", "cn=b"), ())])
    facts.sight.everything = True
    (finding,) = examine_estate(facts).findings
    assert finding.check == EstateCheck.LINK_TO_NOWHERE.label
    assert finding.detail.count("does not exist") == 2


def test_a_link_whose_sites_have_no_router_takes_a_person() -> None:
    facts = EstateFacts(links=[LinkFact("CN=l", ("cn=a", "cn=b"), ())])
    (finding,) = examine_estate(facts).findings
    assert finding.check == EstateCheck.LINK_WITHOUT_GATES.label
    assert ldif_of(finding) == ""


def test_settings_of_servers() -> None:
    nobody = [settings("A", PARIS, guid(99)), settings("WS1", BERLIN, guid(20))]
    nameless = [changed(entry, mSMQQMID=b"") for entry in settings("B", ROM, guid(99))]
    report = examined([*sound(), *nobody[0], *nobody[1], *nameless])
    assert sorted(finding.detail for finding in report.findings) == [
        f"CN=msmq,CN=WS1,{OU} is no server any more",
        f"queue manager {guid(99)} is gone",
        "they name no queue manager",
    ]
    assert examined([*sound(), *settings("SRV1", PARIS, guid(17))]).findings == ()


def test_one_site_alone_needs_no_routing_server() -> None:
    entries = [*without("site", "mSMQSiteLink"), *(e for e in sound() if "CN=Paris" in e.name)]
    plain = [e for e in entries if "mSMQConfiguration" not in str(e.values("objectClass"))]
    report = examined([*plain, machine("WS1", 20, PARIS)])
    assert not [f for f in report.findings if f.check == EstateCheck.SITE_WITHOUT_ROUTER.label]


def test_a_server_outside_its_site_is_moved_by_hand() -> None:
    facts_of = [*sound(), computer("SRV8", "10.2.0.8"), machine("SRV8", 60, BERLIN, routing=True)]
    (finding,) = examined(facts_of).findings
    assert (finding.check, ldif_of(finding)) == (EstateCheck.ADDRESS_OUTSIDE_SITE.label, "")
    other = made(f"CN=10.9.0.0/16,CN=Subnets,{SITES}", "subnet", siteObject=f"CN=Away,{SITES}")
    entries = [*sound(), other, computer("WS8", "10.9.0.8"), machine("WS8", 60, BERLIN)]
    (finding,) = examined(entries).findings
    assert ldif_of(finding) == ""
    unknown = [*sound(), computer("WS8", "192.168.0.1"), machine("WS8", 60, BERLIN)]
    assert examined(unknown).findings == ()


def test_rights_of_everyone_are_taken_away_unless_they_are_inherited() -> None:
    mine = allow(ADMINISTRATORS, 0x000F_01FF)
    everyone = allow(EVERYONE, SEND)
    given = SecurityDescriptor(ADMINISTRATORS, None, Acl((mine, everyone)))
    assert open_for(given.to_bytes()) == "send to it, receive from it and receive from its journal"
    left = closed(given)
    assert left == SecurityDescriptor(ADMINISTRATORS, None, Acl((mine,)))
    inherited = replace(everyone, flags=AceFlags.INHERITED)
    assert closed(replace(given, dacl=Acl((mine, inherited)))) is None
    assert closed(SecurityDescriptor(ADMINISTRATORS)) is None
    nothing = SecurityDescriptor(ADMINISTRATORS, None, None, None, Control.DACL_PRESENT)
    assert closed(nothing) is None
    report = examined(
        [*sound(), changed(queue("q", "WS1", 61), nTSecurityDescriptor=nothing.to_bytes())]
    )
    (finding,) = report.findings
    assert (finding.check, ldif_of(finding)) == (EstateCheck.OPEN_QUEUE.label, "")


READING = 0x0002_0014  # permissions, properties, contents


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (READING, READING),
        (READING | SEND, READING),
        (0x000F_01FF, 0x0003_00FF),  # the rest but the permissions and the owner
        (0x1000_0000, 0x0003_00FF),  # GENERIC_ALL
    ],
)
@pytest.mark.parametrize("trustee", [EVERYONE, ANONYMOUS])
def test_a_closed_queue_is_still_read(given: int, left: int, trustee: Sid) -> None:
    mine = allow(ADMINISTRATORS, 0x000F_01FF)
    sending = ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, SEND, trustee, SEND_RIGHT)
    other = ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, SEND, trustee, guid(9))
    opened = Acl((allow(trustee, given), sending, other, mine))
    (found,) = examined(
        [
            *sound(),
            changed(
                queue("q", "WS1", 61),
                nTSecurityDescriptor=SecurityDescriptor(ADMINISTRATORS, None, opened).to_bytes(),
            ),
        ]
    ).findings
    (change,) = found.repair
    assert isinstance(change, ModifyEntry)
    written = SecurityDescriptor.from_bytes(change.changes[0].values[0])
    assert written.dacl == Acl((allow(trustee, left), other, mine))
    assert open_for(written.to_bytes()) == ""


def test_an_entry_for_what_stands_below_opens_nothing_and_stays() -> None:
    below = replace(allow(EVERYONE, SEND), flags=AceFlags.INHERIT_ONLY)
    given = SecurityDescriptor(ADMINISTRATORS, None, Acl((allow(EVERYONE, SEND), below)))
    assert closed(given) == SecurityDescriptor(ADMINISTRATORS, None, Acl((below,)))


def test_an_inherited_right_to_read_hinders_no_repair() -> None:
    reading = replace(allow(EVERYONE, READING), flags=AceFlags.INHERITED)
    given = SecurityDescriptor(ADMINISTRATORS, None, Acl((allow(EVERYONE, SEND), reading)))
    assert closed(given) == SecurityDescriptor(ADMINISTRATORS, None, Acl((reading,)))


def test_a_repair_that_leaves_the_queue_open_is_not_proposed() -> None:
    """Anonymous users come from the network, too; those rights may be meant for others."""
    given = Acl((allow(EVERYONE, SEND), allow(NETWORK, SEND)))
    assert closed(SecurityDescriptor(ADMINISTRATORS, None, given)) is None


@pytest.mark.parametrize(
    ("right", "words"),
    [
        (SEND_RIGHT, "send to it"),
        (RECEIVE, "receive from it"),
        (PEEK, "peek at its messages"),
        (RECEIVE_JOURNAL, "receive from its journal"),
    ],
)
@pytest.mark.parametrize("trustee", [EVERYONE, ANONYMOUS])
def test_each_right_on_messages_opens_a_queue(right: Guid, words: str, trustee: Sid) -> None:
    ace = ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, SEND, trustee, right)
    given = SecurityDescriptor(ADMINISTRATORS, None, Acl((ace,)))
    assert open_for(given.to_bytes()) == words
    report = examined(
        [*sound(), changed(queue("q", "WS1", 61), nTSecurityDescriptor=given.to_bytes())]
    )
    (finding,) = report.findings
    assert (finding.check, finding.detail) == ("open_queue", f"everyone may {words}")


def test_valid_certificates_of_the_same_value_stay() -> None:
    """Values of an attribute can be added and deleted, and a value may hold several."""
    old, new = certificate(-10), certificate(100)
    both = UserSignCerts(tuple(UserSignCert.of(each, Guid.NULL) for each in (old, new)))
    given = replace_values(
        user("bob", -10),
        mSMQSignCertificates=(both.to_bytes(),),
        mSMQDigests=(digest_of(old), digest_of(new)),
    )
    (finding,) = examined([*sound(), given]).findings
    assert finding.check == "certificate_expired"
    assert [
        (change.kind, change.attribute, change.values)
        for modified in finding.repair
        if isinstance(modified, ModifyEntry)
        for change in modified.changes
    ] == [
        (ModifyKind.DELETE, "mSMQSignCertificates", (both.to_bytes(),)),
        (ModifyKind.ADD, "mSMQSignCertificates", (UserSignCerts.wrap(new, Guid.NULL).to_bytes(),)),
        (ModifyKind.DELETE, "mSMQDigests", (digest_of(old),)),
    ]
