"""The facts that the checks of an estate judge, whatever source they come from.

Names stand for themselves in Active Directory and are compared by ``name_of``; a store has no such
names, so there an identifier takes their place. An attribute that the account may not read is
absent, as one without values is: fields that end in ``_seen`` tell the two apart, where another
attribute of the same entry does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from mqis.protocol.activedirectory.estate.findings import EstateCheck
from mqis.protocol.activedirectory.estate.sight import EstateSight
from mqis.protocol.activedirectory.recipients import AliasTarget
from mqis.wire.guid import Guid
from mqis.wire.security.descriptor import SecurityDescriptor

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network


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
    #: The attributes of ``routing``, of ``serves`` and of ``sites`` could be read.
    routing_seen: bool = True
    serves_seen: bool = True
    sites_seen: bool = True


@dataclass(frozen=True, slots=True)
class QueueFact:
    """A queue. ``descriptor`` is kept only if everyone may use the queue."""

    where: str
    machine: str
    open_for: str = ""
    descriptor: SecurityDescriptor | None = None
    descriptor_seen: bool = True


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
    routing: bool = False
    machine_seen: bool = True


@dataclass(frozen=True, slots=True)
class SubnetFact:
    network: IpNetwork
    site: str


@dataclass(frozen=True, slots=True)
class CertificatesFact:
    """The certificates of a user. ``expired`` are the days since, of those that have expired.

    ``listed`` is the value of the attribute, ``left`` the one without them; ``expired_digests`` are
    the values of mSMQDigests that go with them.
    """

    where: str
    sid: bytes = b""
    migrated: bool = False
    expired: tuple[int, ...] = ()
    listed: tuple[bytes, ...] = ()
    left: tuple[bytes, ...] = ()
    expired_digests: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class AliasFact:
    """A queue alias; ``fault`` says why its format name is none."""

    where: str
    target: AliasTarget | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class ListFact:
    """A group; ``members`` are names as they are written."""

    where: str
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class EstateFacts:
    """Everything that a source tells about an estate."""

    accounts: list[AccountFact] = field(default_factory=list)
    machines: list[MachineFact] = field(default_factory=list)
    queues: list[QueueFact] = field(default_factory=list)
    sites: list[SiteFact] = field(default_factory=list)
    links: list[LinkFact] = field(default_factory=list)
    settings: list[SettingsFact] = field(default_factory=list)
    #: Server entries of sites that were seen, each with the name of its computer (serverReference);
    #: empty if it names none.
    servers: dict[str, str] = field(default_factory=dict)
    subnets: list[SubnetFact] = field(default_factory=list)
    certificates: list[CertificatesFact] = field(default_factory=list)
    aliases: list[AliasFact] = field(default_factory=list)
    lists: list[ListFact] = field(default_factory=list)
    #: The groups that queues, aliases and lists say that they are members of.
    member_of: set[str] = field(default_factory=set)
    #: The identifiers of queues.
    queue_ids: set[bytes] = field(default_factory=set)
    #: The SIDs of users that exist.
    sids: set[bytes] = field(default_factory=set)
    #: Entries that could not be read, and why.
    unreadable: list[str] = field(default_factory=list)
    sight: EstateSight = field(default_factory=EstateSight)
    #: The reason why a check cannot be made.
    untold: dict[EstateCheck, str] = field(default_factory=dict)
