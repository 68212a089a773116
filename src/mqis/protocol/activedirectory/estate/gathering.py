"""Facts of an estate from the entries of its directory, in any order."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address, ip_network

from mqis.protocol.activedirectory import codecs
from mqis.protocol.activedirectory.entry import BadAttribute, LdapEntry
from mqis.protocol.activedirectory.estate.access import open_for
from mqis.protocol.activedirectory.estate.facts import (
    AccountFact,
    CertificatesFact,
    EstateFacts,
    IpAddress,
    LinkFact,
    MachineFact,
    QueueFact,
    SettingsFact,
    SiteFact,
    SubnetFact,
    name_of,
)
from mqis.protocol.activedirectory.estate.findings import EstateCheck
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.certificates import UserSignCerts, digest_of
from mqis.wire.security.descriptor import SecurityDescriptor

#: The attributes to ask of entries of the domain, and of the configuration.
DOMAIN_ATTRIBUTES = (
    "objectClass", "objectGUID", "objectSid", "sAMAccountName", "userAccountControl", "dNSHostName",
    "networkAddress", "servicePrincipalName", "mSMQSites", "mSMQServiceType", "mSMQRoutingServices",
    "mSMQDsServices", "mSMQDependentClientServices", "mSMQForeign", "mSMQEncryptKey",
    "mSMQSignCertificates", "mSMQUserSid", "nTSecurityDescriptor",
)  # fmt: skip
CONFIGURATION_ATTRIBUTES = (
    "objectClass", "objectGUID", "siteObject", "cn", "mSMQSiteForeign", "mSMQSite1", "mSMQSite2",
    "mSMQSiteGates", "mSMQQMID",
)  # fmt: skip

_DISABLED = 0x2
_DAY_S = 86_400
#: Returns the moment at which a certificate expires, in seconds since 1970; None if unreadable.
Expiry = Callable[[bytes], int | None]


class EstateGathering:
    """Adds entries to facts. An entry that cannot be read is noted and breaks nothing else."""

    def __init__(self, now: int, expiry: Expiry) -> None:
        self.facts = EstateFacts()
        self._now = now
        self._expiry = expiry
        self._descriptors = 0

    def add(self, entry: LdapEntry) -> None:
        """Takes what concerns message queuing, and ignores all else."""
        try:
            self._add(entry)
        except (BadAttribute, WireError, ValueError) as error:
            reason = str(error)
            named = reason if entry.name in reason else f"{entry.name}: {reason}"
            self.facts.unreadable.append(named)

    def finish(self) -> EstateFacts:
        """Returns the facts, with the checks that they do not suffice for."""
        facts, untold = self.facts, self.facts.untold
        if not any(account.is_computer for account in facts.accounts):
            untold |= dict.fromkeys(_OF_COMPUTERS, "the source has no computers")
        if not facts.sites:
            untold[EstateCheck.SITE_WITHOUT_ROUTER] = "the source has no sites"
        if facts.queues and not self._descriptors:
            untold[EstateCheck.OPEN_QUEUE] = "the source has no security descriptors"
        if not facts.subnets:
            untold[EstateCheck.ADDRESS_OUTSIDE_SITE] = "the source has no subnets"
        elif not any(account.addresses for account in facts.accounts):
            untold[EstateCheck.ADDRESS_OUTSIDE_SITE] = "the source has no addresses of computers"
        if not facts.sids and any(found.migrated for found in facts.certificates):
            untold[EstateCheck.UNKNOWN_USER] = "the source has no users"
        return facts

    def _add(self, entry: LdapEntry) -> None:
        if entry.values("isDeleted"):
            return
        facts = self.facts
        if entry.is_of("mSMQConfiguration"):
            facts.machines.append(_machine(entry))
        elif entry.is_of("mSMQQueue"):
            facts.queues.append(self._queue(entry))
        elif entry.is_of("mSMQSiteLink"):
            facts.links.append(_link(entry))
        elif entry.is_of("mSMQSettings"):
            facts.settings.append(_settings(entry))
        elif entry.is_of("site"):
            facts.sites.append(SiteFact(entry.name, _guid(entry), _flag(entry, "mSMQSiteForeign")))
        elif entry.is_of("subnet"):
            self._subnet(entry)
        elif entry.is_of("mSMQMigratedUser"):
            facts.certificates.append(self._certificates(entry, "mSMQUserSid", migrated=True))
        elif entry.is_of("user"):
            self._account(entry)

    def _account(self, entry: LdapEntry) -> None:
        """A computer is a user by its class; so are people and service accounts."""
        is_computer = entry.is_of("computer")
        flags = entry.text("userAccountControl")
        self.facts.accounts.append(
            AccountFact(
                entry.name,
                is_computer,
                bool(int(flags) & _DISABLED) if flags else False,
                entry.text("sAMAccountName").removesuffix("$"),
                entry.text("dNSHostName"),
                tuple(value.decode() for value in entry.values("servicePrincipalName")),
                _addresses(entry),
            )
        )
        if is_computer:  # its certificates are those of the queue manager
            return
        self.facts.sids.update(entry.values("objectSid"))
        if entry.values("mSMQSignCertificates"):
            self.facts.certificates.append(self._certificates(entry, "objectSid"))

    def _queue(self, entry: LdapEntry) -> QueueFact:
        machine = name_of(str(DistinguishedName.parse(entry.name).parent))
        octets = entry.values("nTSecurityDescriptor")
        if not octets:
            return QueueFact(entry.name, machine)
        self._descriptors += 1
        opened = open_for(octets[0])
        kept = SecurityDescriptor.from_bytes(octets[0]) if opened else None
        return QueueFact(entry.name, machine, opened, kept)

    def _subnet(self, entry: LdapEntry) -> None:
        site = entry.text("siteObject")
        if site:
            network = ip_network(DistinguishedName.parse(entry.name).leaf)
            self.facts.subnets.append(SubnetFact(network, name_of(site)))

    def _certificates(
        self, entry: LdapEntry, sid: str, *, migrated: bool = False
    ) -> CertificatesFact:
        values, owner = entry.values("mSMQSignCertificates"), entry.values(sid)
        data = values[0] if values else b""
        listed = UserSignCerts.from_property(data, Guid.NULL).certificates if data else ()
        moments = [(found, self._expiry(found.certificate)) for found in listed]
        expired = [moment for _, moment in moments if moment is not None and moment < self._now]
        left = [found for found, moment in moments if moment is None or moment >= self._now]
        return CertificatesFact(
            entry.name,
            owner[0] if owner else b"",
            migrated,
            tuple((self._now - moment) // _DAY_S for moment in expired),
            (UserSignCerts(tuple(left)).to_bytes(),) if left else (),
            tuple(dict.fromkeys(digest_of(found.certificate) for found in left)),
        )


_OF_COMPUTERS = (
    EstateCheck.NO_COMPUTER,
    EstateCheck.DISABLED_COMPUTER,
    EstateCheck.SERVICE_NAME_MISSING,
    EstateCheck.SERVICE_NAME_DOUBLED,
)


def _machine(entry: LdapEntry) -> MachineFact:
    keys = entry.values("mSMQEncryptKey")
    routing = _flag(entry, "mSMQRoutingServices")
    serving = _flag(entry, "mSMQDsServices") or _flag(entry, "mSMQDependentClientServices")
    return MachineFact(
        entry.name,
        _guid(entry),
        name_of(str(DistinguishedName.parse(entry.name).parent)),
        tuple(Guid(value) for value in entry.values("mSMQSites") if len(value) == 16),
        routing,
        routing or serving,
        _flag(entry, "mSMQForeign"),
        keys[0] if keys else b"",
    )


def _guid(entry: LdapEntry) -> Guid:
    found = entry.guid
    if found is None:
        raise BadAttribute(entry.name, "objectGUID", "is missing, or has not 16 octets")
    return found


def _flag(entry: LdapEntry, attribute: str) -> bool:
    values = entry.values(attribute)
    return bool(values) and codecs.FLAG.decode(values) == 1


def _addresses(entry: LdapEntry) -> tuple[IpAddress, ...]:
    """The addresses of a computer; the attribute holds any text, and other text is skipped."""
    found: list[IpAddress] = []
    for value in entry.values("networkAddress"):
        try:
            found.append(ip_address(value.decode()))
        except ValueError:
            continue
    return tuple(found)


def _link(entry: LdapEntry) -> LinkFact:
    ends = (entry.text(end) for end in ("mSMQSite1", "mSMQSite2"))
    gates = tuple(value.decode() for value in entry.values("mSMQSiteGates"))
    return LinkFact(entry.name, tuple(name_of(end) for end in ends if end), gates)


def _settings(entry: LdapEntry) -> SettingsFact:
    values = entry.values("mSMQQMID")
    machine = Guid(values[0]) if values and len(values[0]) == 16 else None
    return SettingsFact(entry.name, DistinguishedName.parse(entry.name).parent.leaf, machine)
