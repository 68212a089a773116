"""Entries of a small Active Directory for tests of the mapping."""

from __future__ import annotations

from mqis.protocol.activedirectory.forest import Forest
from mqis.protocol.activedirectory.view import EntryView, References
from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName

ROOT = DistinguishedName.parse("DC=corp,DC=example")
FOREST = Forest(ROOT.child("CN", "Configuration"), ROOT, ROOT)
COMPUTER = DistinguishedName.parse("CN=SRV1,OU=Berlin,DC=corp,DC=example")
MACHINE = COMPUTER.child("CN", "msmq")
ID = Guid.parse("b92cc7c8-0b1e-434b-b7ad-a1b791e457dd")
SITE1 = Guid.parse("11111111-2222-3333-4444-555555555555")
SITE2 = Guid.parse("66666666-7777-8888-9999-aaaaaaaaaaaa")
GATE = Guid.parse("0a0a0a0a-0b0b-0c0c-0d0d-0e0e0e0e0e0e")
NAMES = {
    SITE1: FOREST.site("Berlin"),
    SITE2: FOREST.site("Paris"),
    GATE: DistinguishedName.parse("CN=msmq,CN=GW,CN=Computers,DC=corp,DC=example"),
}
REFERENCES = References(NAMES)


def entry(name: DistinguishedName | str, ldap_class: str, **attributes: object) -> LdapEntry:
    """An entry; an underscore in a keyword stands for a hyphen, a value or a tuple for values."""
    rows: list[tuple[str, tuple[bytes, ...]]] = [
        ("objectClass", (b"top", ldap_class.encode())),
        ("objectGUID", (ID.raw,)),
    ]
    for key, given in attributes.items():
        values = given if isinstance(given, tuple) else (given,)
        octets = tuple(v if isinstance(v, bytes) else str(v).encode() for v in values)
        rows.append((key.replace("_", "-"), octets))
    return LdapEntry(str(name), tuple(rows))


COMPUTER_ENTRY = LdapEntry(
    str(COMPUTER),
    (
        ("objectClass", (b"computer",)),
        ("dNSHostName", (b"srv1.corp.example",)),
        ("objectSid", (bytes.fromhex("0105000000000005150000000100000002000000030000004d040000"),)),
    ),
)


def view(found: LdapEntry, **more: object) -> EntryView:
    more.setdefault("references", REFERENCES)
    return EntryView(found, FOREST, **more)  # type: ignore[arg-type]
