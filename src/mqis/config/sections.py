"""The sections of the configuration: what each key may be, and the comment above it.

A section is a frozen dataclass whose fields carry ``about``; ``Config`` lists the sections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mqis.config.checks import (
    about,
    as_address,
    as_flag,
    as_host,
    as_ipv4,
    as_port,
    as_sids,
    as_store_url,
    as_text,
    as_texts,
    between,
    one_of,
)
from mqis.config.monitoring import MonitoringSection
from mqis.config.replication import ReplicationSection
from mqis.protocol.authentication import AuthLevel
from mqis.protocol.directory.allowance import Allowance
from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.wire.security.sid import ADMINISTRATORS, Sid


class Role(StrEnum):
    """What a server is in the enterprise (MC-MQDSRP 1.3.1)."""

    PEC = "pec"
    PSC = "psc"
    BSC = "bsc"
    NONE = "none"


class Gss(StrEnum):
    """How the server proves itself in S_DSValidateServer."""

    NEGOTIATE = "negotiate"
    NONE = "none"


class MinLevel(StrEnum):
    """Authentication levels at which an identity may count (MS-RPCE 2.2.1.1.8)."""

    CONNECT = "connect"
    PACKET = "packet"
    INTEGRITY = "integrity"
    PRIVACY = "privacy"

    @property
    def number(self) -> AuthLevel:
        return AuthLevel[self.name]


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ServerSection:
    """This server's own place in the enterprise."""

    name: str = field(
        default="", metadata=about(as_text, "The name of this computer in the directory.")
    )
    role: Role = field(
        default=Role.NONE,
        metadata=about(
            one_of(Role),
            "pec: the primary enterprise controller, authority of the enterprise partition; psc: "
            "the primary site controller, authority of its site; bsc: a backup that replicates "
            "from them; none: a directory on its own.",
        ),
    )
    site: str = field(
        default="", metadata=about(as_text, "The name of the site that this server stands in.")
    )


@dataclass(frozen=True, slots=True)
class StoreSection:
    """Where the directory is kept."""

    url: str = field(
        default="sqlite:mqis.db",
        metadata=about(
            as_store_url,
            "sqlite:PATH is one file, relative to this one; postgresql://user@host/database is a "
            "database; memory: forgets everything at the end.",
        ),
    )
    remembered: int = field(
        default=16_384,
        metadata=about(
            between(64, 10_000_000),
            "So many objects that were read last are kept in memory, about 4 kB each.",
        ),
    )
    timeout_s: int = field(
        default=2,
        metadata=about(
            between(1, 60),
            "A PostgreSQL server that answers nothing for so many seconds counts as lost: calls "
            "fail at once until it answers again. A call that holds all others waits half as long.",
        ),
    )


@dataclass(frozen=True, slots=True)
class EnterpriseSection:
    """The enterprise that this server belongs to."""

    name: str = field(default="", metadata=about(as_text, "Its name, the same on every server."))


@dataclass(frozen=True, slots=True)
class RpcSection:
    """Where 'mqis serve' listens."""

    listen: str = field(
        default="127.0.0.1",
        metadata=about(
            as_address, "The address of this computer to listen at; 0.0.0.0 is all of them."
        ),
    )
    port: int = field(
        default=0,
        metadata=about(
            as_port,
            "The TCP port of the directory. 0: one that is free, which clients learn from the "
            "endpoint mapper; a fixed one is 2879 by custom.",
        ),
    )
    mapper: bool = field(
        default=True,
        metadata=about(
            as_flag,
            "Whether to run an endpoint mapper; without it clients have to be told the port.",
        ),
    )
    mapper_port: int = field(
        default=135,
        metadata=about(
            as_port,
            "The TCP port of the endpoint mapper. Clients of others look at 135, which wants root "
            "or CAP_NET_BIND_SERVICE. 0: one that is free.",
        ),
    )
    max_connections: int = field(
        default=1024,
        metadata=about(between(1, 1_000_000), "Connections at a time; more are refused."),
    )
    max_connections_per_address: int = field(
        default=256,
        metadata=about(
            between(1, 1_000_000),
            "Of these, how many of one address; this computer's own programs are not counted.",
        ),
    )
    connection_rate: int = field(
        default=50,
        metadata=about(
            between(1, 1_000_000),
            "New connections a second of one address, in the long run; so many passwords can be "
            "tried. This computer's own programs are not counted.",
        ),
    )
    connection_burst: int = field(
        default=200,
        metadata=about(between(1, 1_000_000), "New connections of one address at once."),
    )
    memory_mb: int = field(
        default=256,
        metadata=about(
            between(1, 1_000_000),
            "Megabytes that the requests, open lookups and unread answers of all callers may take. "
            "Callers who have not logged on get half of it together, one address half, one "
            "connection three eighths. This computer's own programs are counted too.",
        ),
    )
    max_handles: int = field(
        default=8192,
        metadata=about(
            between(1, 1_000_000),
            "Context handles of all callers: half of them for those who have not logged on, an "
            "eighth for one address, one in 32 for one connection.",
        ),
    )
    max_lookups: int = field(
        default=1024,
        metadata=about(
            between(1, 1_000_000),
            "Open lookups of all callers: half of them for those who have not logged on, a quarter "
            "for one address, one in 16 for one connection.",
        ),
    )


@dataclass(frozen=True, slots=True)
class SecuritySection:
    """Who may do what."""

    accounts: str = field(
        default="accounts.toml",
        metadata=about(
            as_text,
            "The file with those who may log on, relative to this one; 'mqis account' keeps it. "
            "Changes in it count at once.",
            live=True,
        ),
    )
    domain: str = field(
        default="",
        metadata=about(
            as_text,
            "The domain that callers are told they log on to; accounts without one belong to it.",
        ),
    )
    administrators: tuple[Sid, ...] = field(
        default=(ADMINISTRATORS,),
        metadata=about(
            as_sids,
            "SIDs of accounts or groups that may do everything. S-1-5-32-544 is the group "
            "Administrators: 'mqis account add NAME --group S-1-5-32-544' makes one of them.",
            live=True,
        ),
    )
    gss: Gss = field(
        default=Gss.NEGOTIATE,
        metadata=about(
            one_of(Gss),
            "How the server proves itself and signs its answers. negotiate: by NTLM, or Kerberos "
            "where there is a keytab; none: not at all, signatures are zeros.",
        ),
    )
    keytab: str = field(
        default="",
        metadata=about(
            as_text,
            "The Kerberos key of this server, relative to this file; needs mqis[kerberos].",
        ),
    )
    anonymous: bool = field(
        default=True,
        metadata=about(
            as_flag,
            "Whether callers without an identity count as Everyone, and so read what Everyone may.",
            live=True,
        ),
    )
    challenge_machines: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Whether machines have to sign a challenge before they change their own properties. "
            "Few clients can, so leave it off.",
            live=True,
        ),
    )
    machine_policy: MachinePolicy = field(
        default=MachinePolicy.OWNER,
        metadata=about(
            one_of(MachinePolicy),
            "Who has full control of a new machine: its owner, or everyone, as MS-MQDS has it.",
            live=True,
        ),
    )
    max_owned: int = field(
        default=Allowance().max_owned,
        metadata=about(
            between(1, 100_000_000),
            "So many objects may have one account as their owner, unless it is an administrator's.",
            live=True,
        ),
    )
    max_certificates: int = field(
        default=Allowance().max_certificates,
        metadata=about(
            between(1, 1024), "So many certificates a user may have in the directory.", live=True
        ),
    )
    max_certificate_bytes: int = field(
        default=Allowance().max_certificate_bytes,
        metadata=about(
            between(1024, 1 << 30), "So many bytes all of them may have together.", live=True
        ),
    )
    min_level: MinLevel = field(
        default=MinLevel.INTEGRITY,
        metadata=about(
            one_of(MinLevel),
            "The protection that a call needs for its caller's identity to count: integrity or "
            "privacy. Below it the caller is anonymous. connect and packet are for clients that "
            "cannot do better: somebody who gets a user to log on elsewhere can then pass that "
            "logon on and act as the user.",
        ),
    )
    names: tuple[str, ...] = field(
        default=(),
        metadata=about(
            as_texts,
            "Further names and addresses under which clients reach this server: DNS aliases, the "
            "outside address of a tunnel. A logon that names another server is refused. Known "
            "without being listed: server.name and the host name, alone and in security.domain "
            "and the DNS domain, and the address that a client connected to.",
        ),
    )
    logon_failures: int = field(
        default=5,
        metadata=about(
            between(1, 1_000_000),
            "Failed logons of one account from one address, after which it has to wait: a second, "
            "twice as long after each further one, at most logon_wait_s.",
        ),
    )
    logon_failures_per_address: int = field(
        default=50,
        metadata=about(
            between(1, 1_000_000),
            "The same for all accounts together from one address (of IPv6 the /64); programs of "
            "this computer wait by account only.",
        ),
    )
    logon_failures_per_connection: int = field(
        default=3,
        metadata=about(
            between(1, 1_000_000), "Failed logons on one connection, after which it is closed."
        ),
    )
    logon_wait_s: int = field(
        default=300,
        metadata=about(
            between(1, 86_400),
            "The longest wait, in seconds; after each such time one failure is forgotten.",
        ),
    )


@dataclass(frozen=True, slots=True)
class DiscoverySection:
    """How clients that broadcast find this server (MS-MQSD)."""

    enabled: bool = field(
        default=False, metadata=about(as_flag, "Whether to answer clients that look for servers.")
    )
    listen: str = field(
        default="127.0.0.1",
        metadata=about(
            as_ipv4,
            "The IPv4 address to listen at, and the broadcast address of its network with it; "
            "0.0.0.0 is all of them.",
        ),
    )
    port: int = field(
        default=1801,
        metadata=about(
            as_port, "The UDP port. Clients of others ask at 1801. 0: one that is free."
        ),
    )
    networks: tuple[str, ...] = field(
        default=(),
        metadata=about(
            as_texts,
            "Names or GUIDs of the connected networks that this server is on. Empty: those that "
            "the directory lists for its machine; a server without any does not answer.",
        ),
    )
    own_enterprise_only: bool = field(
        default=False,
        metadata=about(as_flag, "Whether to leave clients of other enterprises unanswered."),
    )
    rate: int = field(
        default=10,
        metadata=about(between(1, 1_000_000), "Answers a second to one address, in the long run."),
    )
    burst: int = field(
        default=20, metadata=about(between(1, 1_000_000), "Answers to one address at once.")
    )
    total_rate: int = field(
        default=500,
        metadata=about(
            between(1, 1_000_000),
            "Answers a second to all addresses together, in the long run; twice as many at once.",
        ),
    )
    max_reply: int = field(
        default=1400,
        metadata=about(
            between(512, 65_507),
            "Bytes of one answer. A request has 52 and its sender is easily forged, so an answer "
            "lists only as many servers as fit.",
        ),
    )


def as_hosts(value: object) -> tuple[tuple[str, str], ...]:
    """A table of machine names; every value is an address."""
    if not isinstance(value, Mapping):
        raise ValueError(f"is a section, got {value!r}")
    for name, address in value.items():
        try:
            as_host(address)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return tuple(value.items())


@dataclass(frozen=True, slots=True)
class HostsSection:
    """Where machines are, if neither the directory nor DNS tells: name = "address:port"."""

    #: Its keys are names of machines, so it has no others.
    entries: tuple[tuple[str, str], ...] = field(
        default=(),
        metadata=about(as_hosts, 'ber-dir1 = "10.0.2.1" or "10.0.2.1:1801".', live=True),
    )


@dataclass(frozen=True, slots=True)
class LogSection:
    """What a server tells on its standard error, one line an event."""

    level: LogLevel = field(
        default=LogLevel.INFO,
        metadata=about(one_of(LogLevel), "debug, info, warning or error.", live=True),
    )
    format: LogFormat = field(
        default=LogFormat.TEXT,
        metadata=about(one_of(LogFormat), "text for people, json for programs.", live=True),
    )


@dataclass(frozen=True, slots=True)
class Config:
    """All sections. A file may leave out any section and any key."""

    server: ServerSection = ServerSection()
    store: StoreSection = StoreSection()
    enterprise: EnterpriseSection = EnterpriseSection()
    rpc: RpcSection = RpcSection()
    security: SecuritySection = SecuritySection()
    discovery: DiscoverySection = DiscoverySection()
    replication: ReplicationSection = ReplicationSection()  # noqa: RUF009 -- frozen
    hosts: HostsSection = HostsSection()
    log: LogSection = LogSection()
    monitoring: MonitoringSection = MonitoringSection()  # noqa: RUF009 -- frozen
