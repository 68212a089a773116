"""The facts that the checks of an estate judge, whatever source they come from.

Names stand for themselves in Active Directory and are compared by ``name_of``; a store has no such
names, so there an identifier takes their place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from mqis.protocol.activedirectory.estate.findings import EstateCheck
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import ExtendedName
from mqis.wire.security.descriptor import SecurityDescriptor

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network


def name_of(text: str) -> str:
    """Equal for two spellings of a distinguished name."""
    return str(ExtendedName.parse(text).name).casefold()


@dataclass(frozen=True, slots=True)
class AccountFact:
    """A computer, or another account with service principal names."""

    where: str
    is_computer: bool
    disabled: bool = False
    #: The name without its dollar sign, and the DNS name.
    account: str = ""
    host: str = ""
    service_names: tuple[str, ...] = ()
    addresses: tuple[IpAddress, ...] = ()

    @property
    def needed_names(self) -> tuple[str, ...]:
        """Kerberos finds a queue manager by the names of its host."""
        return tuple(f"HOST/{name}" for name in (self.account, self.host) if name)


@dataclass(frozen=True, slots=True)
class MachineFact:
    """A queue manager: the entry ``msmq`` below its computer."""

    where: str
    id: Guid
    #: The name of the entry above it.
    computer: str
    sites: tuple[Guid, ...] = ()
    routing: bool = False
    serves: bool = False
    foreign: bool = False
    #: Its encryption keys, which are its own: equal ones betray a cloned image.
    keys: bytes = b""
    addresses: tuple[IpAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueFact:
    """A queue. ``descriptor`` is kept only if everyone may use the queue."""

    where: str
    machine: str
    open_for: str = ""
    descriptor: SecurityDescriptor | None = None


@dataclass(frozen=True, slots=True)
class SiteFact:
    where: str
    id: Guid
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class LinkFact:
    """A routing link. ``gates`` are names as they are written; a deleted one says so."""

    where: str
    sites: tuple[str, ...]
    gates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingsFact:
    """The settings of a server in a site: ``CN=MSMQ Settings,CN=SERVER,CN=Servers,CN=SITE``."""

    where: str
    server: str
    machine: Guid | None


@dataclass(frozen=True, slots=True)
class SubnetFact:
    network: IpNetwork
    site: str


@dataclass(frozen=True, slots=True)
class CertificatesFact:
    """The certificates of a user. ``expired`` are the days since, of those that have expired.

    ``left`` is the value of the attribute without them.
    """

    where: str
    sid: bytes = b""
    migrated: bool = False
    expired: tuple[int, ...] = ()
    left: tuple[bytes, ...] = ()
    left_digests: tuple[bytes, ...] = ()


@dataclass(slots=True)
class EstateFacts:
    """Everything that a source tells about an estate."""

    accounts: list[AccountFact] = field(default_factory=list)
    machines: list[MachineFact] = field(default_factory=list)
    queues: list[QueueFact] = field(default_factory=list)
    sites: list[SiteFact] = field(default_factory=list)
    links: list[LinkFact] = field(default_factory=list)
    settings: list[SettingsFact] = field(default_factory=list)
    subnets: list[SubnetFact] = field(default_factory=list)
    certificates: list[CertificatesFact] = field(default_factory=list)
    #: The SIDs of users that exist.
    sids: set[bytes] = field(default_factory=set)
    #: Entries that could not be read, and why.
    unreadable: list[str] = field(default_factory=list)
    #: Names in other domains than these were not read; empty: everything was.
    domains: tuple[str, ...] = ()
    #: The reason why a check cannot be made.
    untold: dict[EstateCheck, str] = field(default_factory=dict)
