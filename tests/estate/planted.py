"""A small sound estate as entries of Active Directory, and one planted fault of each kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from mqis.protocol.activedirectory.recipients import FORMAT_NAME
from mqis.protocol.activedirectory.rights import to_active_directory
from mqis.protocol.security.masks import QueueRights, generic_mapping
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.mqds.certificates import UserSignCerts, digest_of
from mqis.wire.mqds.keys import KeyAlgorithm, RsaPublicKey, key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS, AUTHENTICATED_USERS, EVERYONE, Sid

ROOT = "DC=corp,DC=example"
CONFIGURATION = f"CN=Configuration,{ROOT}"
SITES = f"CN=Sites,{CONFIGURATION}"
SERVICES = f"CN=MsmqServices,CN=Services,{CONFIGURATION}"
OU = f"OU=Messaging,{ROOT}"
LOST = f"CN=LostAndFound,{ROOT}"
DOMAIN = Sid.parse("S-1-5-21-1-2-3")
NOBODY = Sid.parse("S-1-5-21-1-2-3-9999")


def guid(number: int) -> Guid:
    return Guid(bytes([number]) * 16)


BERLIN, PARIS, ROM, WIEN, OSLO = (guid(n) for n in (1, 2, 3, 4, 5))
SITE_NAMES = {BERLIN: "Berlin", PARIS: "Paris", ROM: "Rom", WIEN: "Wien", OSLO: "Oslo"}


def made(name: str, *classes: str, **attributes: object) -> AddEntry:
    """An entry; a value is text, octets, a GUID or a tuple of them."""
    rows = [("objectClass", tuple(each.encode() for each in classes))]
    for key, given in attributes.items():
        values = given if isinstance(given, tuple) else (given,)
        rows.append((key, tuple(_octets(value) for value in values)))
    return AddEntry(name, tuple(rows))


def _octets(value: object) -> bytes:
    if isinstance(value, Guid):
        return value.raw
    return value if isinstance(value, bytes) else str(value).encode()


@cache
def certificate(days: int) -> bytes:
    """A certificate that is valid for so many days more."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"user {days}")])
    end = datetime.now(UTC) + timedelta(days=days)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, end - timedelta(500), end)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def cross_reference(name: str, domain: str) -> AddEntry:
    """The entry by which a forest knows a domain of it."""
    at = f"CN={name},CN=Partitions,{CONFIGURATION}"
    return made(at, "top", "crossRef", nCName=domain, systemFlags=3)


def standing() -> list[AddEntry]:
    """The entries that a forest of one domain has from the beginning."""
    people = "top", "person", "organizationalPerson", "user"
    guest = Sid(5, (*DOMAIN.sub_authorities, 501)).to_bytes()
    at = f"CN=Enterprise Configuration,CN=Partitions,{CONFIGURATION}"
    return [
        made(ROOT, "top", "domain", "domainDNS", objectSid=DOMAIN.to_bytes()),
        made(LOST, "top", "lostAndFound"),
        made(f"CN=Guest,CN=Users,{ROOT}", *people, sAMAccountName="Guest", objectSid=guest),
        made(at, "top", "crossRef", nCName=CONFIGURATION, systemFlags=1),
        cross_reference("CORP", ROOT),
    ]


def site(id_: Guid) -> AddEntry:
    return made(f"CN={SITE_NAMES[id_]},{SITES}", "top", "site", objectGUID=id_)


def subnet(network: str, id_: Guid) -> AddEntry:
    at = f"CN={SITE_NAMES[id_]},{SITES}"
    return made(f"CN={network},CN=Subnets,{SITES}", "top", "subnet", siteObject=at)


def computer(name: str, address: str, *, flags: int = 4096, names: bool = True) -> AddEntry:
    host = f"{name.lower()}.corp.example"
    spns = {"servicePrincipalName": (f"HOST/{name}", f"HOST/{host}")} if names else {}
    classes = "top", "person", "organizationalPerson", "user", "computer"
    return made(
        f"CN={name},{OU}",
        *classes,
        sAMAccountName=f"{name}$",
        userAccountControl=flags,
        dNSHostName=host,
        networkAddress=address,
        **spns,
    )


def keys(number: int) -> bytes:
    """The public keys of a queue manager, which no other one has."""
    return key_list(RsaPublicKey(KeyAlgorithm.CALG_RSA_KEYX, 65537, (1 << 1023) + number, 1024))


def machine(name: str, number: int, at: Guid, *, routing: bool = False) -> AddEntry:
    flag = "TRUE" if routing else "FALSE"
    return made(
        f"CN=msmq,CN={name},{OU}",
        "top",
        "mSMQConfiguration",
        objectGUID=guid(number),
        mSMQSites=at,
        mSMQRoutingServices=flag,
        mSMQServiceType=int(routing),
        mSMQEncryptKey=keys(number),
    )


def settings(server: str, at: Guid, machine_id: Guid, refers: str = "") -> list[AddEntry]:
    """Settings of a server; the entry above them refers to a computer, if one is given."""
    servers = f"CN=Servers,CN={SITE_NAMES[at]},{SITES}"
    reference = {"serverReference": f"CN={refers},{OU}"} if refers else {}
    return [
        made(f"CN={server},{servers}", "top", "server", **reference),
        made(
            f"CN=MSMQ Settings,CN={server},{servers}",
            "top",
            "mSMQSettings",
            mSMQQMID=machine_id,
            mSMQRoutingService="TRUE",
            mSMQServices=1,
        ),
    ]


def queue(name: str, host: str, number: int, trustee: Sid = AUTHENTICATED_USERS) -> AddEntry:
    return queue_at(f"CN={name},CN=msmq,CN={host},{OU}", number, trustee)


def queue_at(name: str, number: int, trustee: Sid) -> AddEntry:
    rights = int(QueueRights.QUEUE_GENERIC_WRITE)
    full = generic_mapping(ObjectType.QUEUE).all
    dacl = Acl((allow(trustee, rights), allow(ADMINISTRATORS, full)))
    plain = SecurityDescriptor(ADMINISTRATORS, ADMINISTRATORS, dacl)
    octets = to_active_directory(plain, ObjectType.QUEUE).to_bytes()
    return made(name, "top", "mSMQQueue", objectGUID=guid(number), nTSecurityDescriptor=octets)


def link(one: Guid, two: Guid, *gates: str) -> AddEntry:
    ends = [f"CN={SITE_NAMES[end]},{SITES}" for end in (one, two)]
    named = {"mSMQSiteGates": tuple(f"CN=msmq,CN={gate},{OU}" for gate in gates)} if gates else {}
    name = one.big_endian.hex() + two.big_endian.hex()
    return made(
        f"CN={name},{SERVICES}",
        "top",
        "mSMQSiteLink",
        mSMQSite1=ends[0],
        mSMQSite2=ends[1],
        mSMQCost=1,
        **named,
    )


def alias(name: str, format_name: str) -> AddEntry:
    return made(f"CN={name},{OU}", "top", "msMQ-Custom-Recipient", **{FORMAT_NAME: format_name})


def _member_of(entry: AddEntry, *lists: str) -> AddEntry:
    """With the names of lists, which a directory adds by itself."""
    names = tuple(f"CN={name},{OU}".encode() for name in lists)
    return AddEntry(entry.name, (*entry.attributes, ("memberOf", names)))


def distribution_list(name: str, number: int, *members: str) -> AddEntry:
    return made(f"CN={name},{OU}", "top", "group", objectGUID=guid(number), member=members)


def user(name: str, days: int) -> AddEntry:
    classes = "top", "person", "organizationalPerson", "user"
    sid = Sid(5, (21, 1, 2, 3, 2000 + days)).to_bytes()
    given = {"sAMAccountName": name, "objectSid": sid}
    return made(f"CN={name},{OU}", *classes, **given, **certified(days))


def certified(days: int) -> dict[str, object]:
    listed = UserSignCerts.wrap(certificate(days), Guid.NULL)
    return {"mSMQSignCertificates": listed.to_bytes(), "mSMQDigests": digest_of(certificate(days))}


def _renamed(entry: AddEntry, name: str) -> AddEntry:
    return AddEntry(name, entry.attributes)


def sound() -> list[AddEntry]:
    """An estate without faults, in an order in which a directory takes it."""
    return [
        made(OU, "top", "organizationalUnit"),
        *(site(id_) for id_ in (BERLIN, PARIS, ROM)),
        *(
            made(f"CN=Servers,CN={SITE_NAMES[id_]},{SITES}", "top", "serversContainer")
            for id_ in (BERLIN, PARIS, ROM)
        ),
        *(subnet(f"10.{n}.0.0/16", id_) for n, id_ in ((1, BERLIN), (2, PARIS), (3, ROM))),
        *(computer(f"SRV{n}", f"10.{n}.0.1") for n in (1, 2, 3)),
        computer("WS1", "10.1.0.9"),
        *(machine(f"SRV{n}", 16 + n, guid(n), routing=True) for n in (1, 2, 3)),
        machine("WS1", 20, BERLIN),
        *(
            entry
            for n in (1, 2, 3)
            for entry in settings(f"SRV{n}", guid(n), guid(16 + n), f"SRV{n}")
        ),
        _member_of(queue("orders", "WS1", 32), "all", "mixed"),
        link(BERLIN, PARIS, "SRV1", "SRV2"),
        link(BERLIN, ROM, "SRV1", "SRV3"),
        user("alice", 100),
        alias("to-orders", f"PUBLIC={guid(32)}"),
        alias("to-private", f"PRIVATE={guid(17)}\\0000000a"),
        alias("to-elsewhere", "DIRECT=HTTPS://host.example/msmq/orders"),
        distribution_list("all", 60, f"CN=orders,CN=msmq,CN=WS1,{OU}", f"CN=to-orders,{OU}"),
    ]


def faults() -> dict[str, list[AddEntry]]:
    """The entries that plant each fault, by the check that finds it."""
    accounts = "top", "person", "organizationalPerson", "user"
    return {
        "cloned_queue_manager": [
            computer("SRV9", "10.1.0.8"),
            *settings("SRV9", BERLIN, guid(17), refers="SRV9"),
        ],
        "no_computer": [
            made(
                f"CN=msmq,{LOST}",
                "top",
                "mSMQConfiguration",
                objectGUID=guid(40),
                mSMQSites=BERLIN,
            ),
            queue_at(f"CN=old,CN=msmq,{LOST}", 41, AUTHENTICATED_USERS),
        ],
        "disabled_computer": [computer("OLD", "10.1.0.2", flags=4098), machine("OLD", 42, BERLIN)],
        "queue_without_machine": [queue_at(f"CN=stray,{LOST}", 43, AUTHENTICATED_USERS)],
        "link_to_nowhere": [link(BERLIN, OSLO, "SRV1")],
        "link_without_gates": [link(PARIS, ROM)],
        "bad_gate": [link(ROM, PARIS, "WS1", "SRV3")],
        "site_without_router": [
            site(WIEN),
            computer("WS2", "10.4.0.1"),
            machine("WS2", 44, WIEN),
        ],
        "left_settings": settings("DEMOTED", PARIS, guid(99)),
        "service_name_missing": [
            computer("BARE", "10.1.0.3", names=False),
            machine("BARE", 45, BERLIN),
        ],
        "service_name_doubled": [
            made(f"CN=svc,{OU}", *accounts, sAMAccountName="svc", servicePrincipalName="HOST/WS1")
        ],
        "computer_name_doubled": [
            made(f"OU=Old,{ROOT}", "top", "organizationalUnit"),
            _renamed(computer("WS7", "10.1.0.7"), f"CN=WS1,OU=Old,{ROOT}"),
        ],
        "conflicting_entry": [queue(f"orders\\0ACNF:{guid(49)}", "WS1", 49)],
        "machine_without_site": [computer("WS6", "10.1.0.6"), machine("WS6", 48, guid(77))],
        "open_queue": [queue("open", "WS1", 46, EVERYONE)],
        "certificate_expired": [user("bob", -10)],
        "unknown_user": [
            made(
                f"CN=nobody,{OU}",
                "top",
                "mSMQMigratedUser",
                mSMQUserSid=NOBODY.to_bytes(),
                **certified(200),
            )
        ],
        "alias_to_nowhere": [alias("lost", f"PUBLIC={guid(98)}")],
        "bad_list_member": [
            distribution_list(
                "mixed", 61, f"CN=orders,CN=msmq,CN=WS1,{OU}", f"CN=Guest,CN=Users,{ROOT}"
            )
        ],
        "address_outside_site": [computer("WS3", "10.2.0.9"), machine("WS3", 47, BERLIN)],
    }
