"""The places of objects in Active Directory (MS-MQDSSM 2.2.1): containers and names.

CN=QUEUE,CN=msmq,CN=COMPUTER,...                   queue, below the machine's entry
CN=msmq,CN=COMPUTER,CN=Computers,ROOT              machine; computers stand anywhere
CN=SITE,CN=Sites,CONFIGURATION                     site, which Active Directory uses itself
CN=MsmqServices,CN=Services,CONFIGURATION          enterprise; routing links stand below it
CN=MSMQ Settings,CN=COMPUTER,CN=Servers,CN=SITE... settings of a server, one for each site
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.activedirectory.queuename import split_name
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType

#: The LDAP class of each type; connected networks are made of sites (MS-MQDS 3.1.6.12).
LDAP_CLASSES: dict[ObjectType, str] = {
    ObjectType.QUEUE: "mSMQQueue",
    ObjectType.MACHINE: "mSMQConfiguration",
    ObjectType.SITE: "site",
    ObjectType.CN: "site",
    ObjectType.ENTERPRISE: "mSMQEnterpriseSettings",
    ObjectType.USER: "user",
    ObjectType.ROUTINGLINK: "mSMQSiteLink",
}
SETTINGS_CLASS = "mSMQSettings"
MACHINE_NAME = "msmq"
SETTINGS_NAME = "MSMQ Settings"
#: The digits of the greatest number of 64 bits.
_MOST_DIGITS = 20

#: What to ask of the entry without a name (rootDSE) when a connection begins.
ROOT_ATTRIBUTES = (
    "configurationNamingContext",
    "rootDomainNamingContext",
    "defaultNamingContext",
    "schemaNamingContext",
    "dnsHostName",
    "supportedControl",
    "highestCommittedUSN",
)


@dataclass(frozen=True, slots=True)
class Forest:
    """The naming contexts of a server, and the names that follow from them."""

    configuration: DistinguishedName
    root: DistinguishedName
    domain: DistinguishedName

    @classmethod
    def of(cls, root_entry: LdapEntry) -> Forest:
        """Reads the naming contexts from the rootDSE."""
        names = []
        for attribute in ROOT_ATTRIBUTES[:3]:
            text = root_entry.text(attribute)
            if not text:
                raise ProtocolError(
                    f"the server names no {attribute}: it is no Active Directory domain controller"
                )
            names.append(DistinguishedName.parse(text))
        return cls(*names)

    @property
    def schema(self) -> DistinguishedName:
        return self.configuration.child("CN", "Schema")

    @property
    def sites(self) -> DistinguishedName:
        return self.configuration.child("CN", "Sites")

    @property
    def enterprise(self) -> DistinguishedName:
        return self.configuration.child("CN", "Services").child("CN", "MsmqServices")

    def search_base(self, object_type: ObjectType) -> DistinguishedName:
        """The entry below which objects of a type are searched (E-MQDSSM-05)."""
        if object_type in (ObjectType.SITE, ObjectType.CN):
            return self.sites
        if object_type is ObjectType.ENTERPRISE:
            return self.enterprise.parent
        if object_type is ObjectType.ROUTINGLINK:
            return self.enterprise
        return self.domain

    def site(self, name: str) -> DistinguishedName:
        return self.sites.child("CN", name)

    def link(self, site1: Guid, site2: Guid) -> DistinguishedName:
        """A link is called by the 64 digits of its sites' GUIDs, the first site first."""
        return self.enterprise.child("CN", site1.big_endian.hex() + site2.big_endian.hex())


def change_number(text: str) -> int:
    """The number of a change (uSN), of 64 bits; ``ProtocolError`` for anything else."""
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise ProtocolError(f"highestCommittedUSN is {text[:40]!r}, not a number")
    return int(text)


def machine_name(computer: DistinguishedName) -> DistinguishedName:
    return computer.child("CN", MACHINE_NAME)


def queue_name(computer: DistinguishedName, queue: str) -> DistinguishedName:
    return machine_name(computer).child("CN", split_name(queue)[0])


def server_name(site: DistinguishedName, computer: str) -> DistinguishedName:
    return site.child("CN", "Servers").child("CN", computer)


def settings_name(site: DistinguishedName, computer: str) -> DistinguishedName:
    return server_name(site, computer).child("CN", SETTINGS_NAME)
