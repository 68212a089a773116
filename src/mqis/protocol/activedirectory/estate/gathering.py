"""Facts of an estate from the entries of its directory, in any order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address, ip_network

from mqis.protocol.activedirectory import codecs
from mqis.protocol.activedirectory.estate.facts import (
    AccountFact,
    AliasFact,
    CertificatesFact,
    EstateFacts,
    IpAddress,
    LinkFact,
    ListFact,
    MachineFact,
    QueueFact,
    SettingsFact,
    SiteFact,
    SubnetFact,
)
from mqis.protocol.activedirectory.estate.findings import EstateCheck
from mqis.protocol.activedirectory.estate.open_queues import open_for
from mqis.protocol.activedirectory.estate.sight import SeenKind, name_of, parent_of
from mqis.protocol.activedirectory.recipients import (
    FORMAT_NAME,
    MEMBER,
    RecipientKind,
    alias_target,
    recipient_kind,
)
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
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
    "mSMQSignCertificates", "mSMQDigests", "mSMQUserSid", "nTSecurityDescriptor", "memberOf",
    FORMAT_NAME,
)  # fmt: skip
CONFIGURATION_ATTRIBUTES = (
    "objectClass", "objectGUID", "siteObject", "cn", "mSMQSiteForeign", "mSMQSite1", "mSMQSite2",
    "mSMQSiteGates", "mSMQQMID", "mSMQServices", "mSMQRoutingService", "serverReference", "nCName",
    "systemFlags",
)  # fmt: skip

_DISABLED = 0x2
#: systemFlags of a crossRef: the naming context is a domain (MS-ADTS 2.2.10).
_NTDS_DOMAIN = 0x2
_DAY_S = 86_400
#: Returns the moment at which a certificate expires, in seconds since 1970; None if unreadable.
Expiry = Callable[[bytes], int | None]


class EstateGathering:
    """Adds entries to facts. An entry that cannot be read is noted and breaks nothing else."""

    def __init__(self, now: int, expiry: Expiry) -> None:
        self.facts = EstateFacts()
        self._now = now
        self._expiry = expiry

    def add(self, entry: LdapEntry) -> None:
        """Takes what concerns message queuing, and ignores all else."""
        try:
            self._add(entry)
        except (BadAttribute, WireError, ValueError) as error:
            reason = str(error)
            named = reason if entry.name in reason else f"{entry.name}: {reason}"
            self.facts.unreadable.append(named)
            self._damaged(entry.name)

    def finish(self) -> EstateFacts:
        """Returns the facts, with the checks that they do not suffice for."""
        facts, untold = self.facts, self.facts.untold
        if not any(account.is_computer for account in facts.accounts):
            untold |= dict.fromkeys(_OF_COMPUTERS, "the source has no computers")
        if not facts.sites:
            untold[EstateCheck.SITE_WITHOUT_ROUTER] = "the source has no sites"
            untold[EstateCheck.MACHINE_WITHOUT_SITE] = "the source has no sites"
        if not facts.subnets:
            untold[EstateCheck.ADDRESS_OUTSIDE_SITE] = "the source has no subnets"
        elif not any(account.addresses for account in facts.accounts):
            untold[EstateCheck.ADDRESS_OUTSIDE_SITE] = "the source has no addresses of computers"
        return facts

    def _damaged(self, name: str) -> None:
        with suppress(WireError):
            self.facts.sight.damaged.add(name_of(name))

    def _add(self, entry: LdapEntry) -> None:
        if entry.values("isDeleted"):
            return
        self._interpret(entry)
        self._recipient(entry)
        if entry.is_of("mSMQQueue"):  # nothing stands below one
            self.facts.sight.listed.add(parent_of(entry.name))
        elif entry.values("objectClass"):
            self.facts.sight.see(entry.name, kind_of(entry))

    def _interpret(self, entry: LdapEntry) -> None:
        facts = self.facts
        if entry.is_of("mSMQConfiguration"):
            facts.machines.append(_machine(entry))
        elif entry.is_of("mSMQQueue"):
            facts.queues.append(self._queue(entry))
            facts.queue_ids.update(entry.values("objectGUID"))
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
        elif entry.is_of("server"):
            reference = entry.text("serverReference")
            facts.servers[name_of(entry.name)] = name_of(reference) if reference else ""
        elif entry.is_of("crossRef"):
            if int(entry.text("systemFlags") or 0) & _NTDS_DOMAIN and entry.text("nCName"):
                facts.sight.forest.add(name_of(entry.text("nCName")))
        elif entry.is_of("domainDNS"):
            facts.sight.see_domain(entry.name)

    def _recipient(self, entry: LdapEntry) -> None:
        kind = recipient_kind(entry)
        if kind is RecipientKind.ALIAS:
            self.facts.aliases.append(_alias(entry))
        elif kind is RecipientKind.LIST:
            members = tuple(value.decode() for value in entry.values(MEMBER))
            self.facts.lists.append(ListFact(entry.name, members))
        if kind is not None:
            self.facts.member_of.update(value.decode() for value in entry.values("memberOf"))

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
        for sid in entry.values("objectSid"):
            self.facts.sids.add(sid)
            self.facts.sight.see_account(sid)
        if entry.values("mSMQSignCertificates"):
            self.facts.certificates.append(self._certificates(entry, "objectSid"))

    def _queue(self, entry: LdapEntry) -> QueueFact:
        machine = parent_of(entry.name)
        octets = entry.values("nTSecurityDescriptor")
        if not octets:
            return QueueFact(entry.name, machine, descriptor_seen=False)
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
        kept = {digest_of(found.certificate) for found in left}
        gone = {digest_of(found.certificate) for found in listed} - kept
        return CertificatesFact(
            entry.name,
            owner[0] if owner else b"",
            migrated,
            tuple((self._now - moment) // _DAY_S for moment in expired),
            values,
            (UserSignCerts(tuple(left)).to_bytes(),) if left else (),
            tuple(digest for digest in entry.values("mSMQDigests") if digest in gone),
        )


_OF_COMPUTERS = (
    EstateCheck.NO_COMPUTER,
    EstateCheck.DISABLED_COMPUTER,
    EstateCheck.SERVICE_NAME_MISSING,
    EstateCheck.SERVICE_NAME_DOUBLED,
    EstateCheck.COMPUTER_NAME_DOUBLED,
)
_SERVICE_FLAGS = ("mSMQRoutingServices", "mSMQDsServices", "mSMQDependentClientServices")


def kind_of(entry: LdapEntry) -> SeenKind:
    """The kind of an entry whose classes could be read."""
    if entry.is_of("mSMQConfiguration"):
        return SeenKind.MACHINE
    if recipient_kind(entry) is not None:
        return SeenKind.RECIPIENT
    return SeenKind.COMPUTER if entry.is_of("computer") else SeenKind.OTHER


def _machine(entry: LdapEntry) -> MachineFact:
    keys = entry.values("mSMQEncryptKey")
    routing = _flag(entry, "mSMQRoutingServices")
    service_type = entry.text("mSMQServiceType")
    sites = entry.values("mSMQSites")
    return MachineFact(
        entry.name,
        _guid(entry),
        parent_of(entry.name),
        tuple(Guid(value) for value in sites if len(value) == 16),
        routing,
        any(_flag(entry, name) for name in _SERVICE_FLAGS) or int(service_type or 0) != 0,
        _flag(entry, "mSMQForeign"),
        keys[0] if keys else b"",
        routing_seen=bool(entry.values("mSMQRoutingServices")),
        serves_seen=bool(service_type) or all(entry.values(name) for name in _SERVICE_FLAGS),
        sites_seen=bool(service_type) or any(entry.values(name) for name in _SERVICE_FLAGS),
    )


def _alias(entry: LdapEntry) -> AliasFact:
    try:
        return AliasFact(entry.name, alias_target(entry))
    except BadAttribute as error:
        return AliasFact(entry.name, fault=error.reason)


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
    others = ("mSMQQMID", "mSMQServices", "mSMQRoutingService")
    return SettingsFact(
        entry.name,
        DistinguishedName.parse(entry.name).parent.leaf,
        machine,
        _flag(entry, "mSMQRoutingService"),
        machine_seen=any(entry.values(name) for name in others),
    )
