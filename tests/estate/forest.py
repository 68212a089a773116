"""A forest of two domains, corp.example and its child berlin.corp.example, sound in all.

The child has a routing server that is a gate and has settings in the shared configuration, and a
user whose certificates were migrated. A domain controller of corp.example has the entries of its
domain and of the configuration; a global catalogue has all.
"""

from __future__ import annotations

from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.security.sid import Sid
from tests.estate.planted import (
    BERLIN,
    OU,
    PARIS,
    ROM,
    ROOT,
    certified,
    computer,
    cross_reference,
    guid,
    link,
    machine,
    made,
    settings,
    sound,
    standing,
)  # fmt: skip

CHILD = f"DC=berlin,{ROOT}"
CHILD_OU = f"OU=Messaging,{CHILD}"
CHILD_SID = Sid.parse("S-1-5-21-7-8-9")
_PEOPLE = "top", "person", "organizationalPerson", "user"


def in_child(entry: AddEntry) -> AddEntry:
    """An entry of the first domain's organizational unit, moved to that of the child."""
    rows = (
        (name, tuple(value.replace(OU.encode(), CHILD_OU.encode()) for value in values))
        for name, values in entry.attributes
    )
    return AddEntry(entry.name.replace(OU, CHILD_OU), tuple(rows))


def _link(one: Guid, two: Guid, *gates: str) -> AddEntry:
    plain = link(one, two)
    values = tuple(gate.encode() for gate in gates)
    return AddEntry(plain.name, (*plain.attributes, ("mSMQSiteGates", values)))


def migrated(name: str, sid: Sid) -> AddEntry:
    given = {"mSMQUserSid": sid.to_bytes(), **certified(200)}
    return made(f"CN={name},{OU}", "top", "mSMQMigratedUser", **given)


def child_user(rid: int) -> Sid:
    return Sid(5, (*CHILD_SID.sub_authorities, rid))


def configuration() -> list[AddEntry]:
    """The entries of the configuration that concern the child."""
    return [
        cross_reference("BERLIN", CHILD),
        *(in_child(entry) for entry in settings("SRVB", ROM, guid(90), refers="SRVB")),
        _link(ROM, PARIS, f"CN=msmq,CN=SRVB,{CHILD_OU}"),
    ]


def parent() -> list[AddEntry]:
    """The first domain: the sound estate, and certificates of a user of the child."""
    return [*standing(), *sound(), migrated("carla", child_user(1200))]


def child() -> list[AddEntry]:
    """The entries of the child domain."""
    sid = {"objectSid": child_user(1200).to_bytes()}
    guest = {"objectSid": child_user(501).to_bytes()}
    return [
        made(CHILD, "top", "domain", "domainDNS", objectSid=CHILD_SID.to_bytes()),
        made(CHILD_OU, "top", "organizationalUnit"),
        in_child(computer("SRVB", "10.3.0.7")),
        in_child(machine("SRVB", 90, ROM, routing=True)),
        made(f"CN=carla,{CHILD_OU}", *_PEOPLE, sAMAccountName="carla", **sid),
        made(f"CN=Guest,CN=Users,{CHILD}", *_PEOPLE, sAMAccountName="Guest", **guest),
    ]


def faults_of_two_domains() -> dict[str, list[AddEntry]]:
    """Things of the child that are gone indeed; only who looks there can know."""
    return {
        "bad_gate": [_link(PARIS, BERLIN, f"CN=msmq,CN=NONE,{CHILD_OU}", f"CN=msmq,CN=SRV1,{OU}")],
        "left_settings": settings("GONE", PARIS, guid(91)),
        "unknown_user": [migrated("dora", child_user(1300))],
    }
