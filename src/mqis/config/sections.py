"""The sections of the configuration, with the check and the comment of each key.

A section is a frozen dataclass whose fields carry ``about``; ``Config`` lists the sections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mqis.config.checks import (
    about,
    as_address,
    as_catalogs,
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
from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.protocol.directory.guard import Allowance
from mqis.wire.security.sid import ADMINISTRATORS, Sid


class ConfiguredRole(StrEnum):
    """The role of a server in the enterprise (MC-MQDSRP 1.3.1)."""

    PEC = "pec"
    PSC = "psc"
    BSC = "bsc"
    NONE = "none"


class Gss(StrEnum):
    """The ways in which the server authenticates itself in S_DSValidateServer."""

    NEGOTIATE = "negotiate"
    NONE = "none"


class ActingAs(StrEnum):
    """Whose rights decide in an Active Directory: the server's account's, or each caller's own."""

    SERVER = "server"
    CALLER = "caller"


class MinLevel(StrEnum):
    """Authentication levels from which a caller's identity counts (MS-RPCE 2.2.1.1.8)."""

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
    """This server's name, role and site."""

    name: str = field(
        default="", metadata=about(as_text, "The name of this computer in the directory.")
    )
    role: ConfiguredRole = field(
        default=ConfiguredRole.NONE,
        metadata=about(
            one_of(ConfiguredRole),
            "pec: the primary enterprise controller, authority of the enterprise partition; psc: "
            "the primary site controller, authority of its site; bsc: a backup that replicates "
            "from them; none: a directory on its own.",
        ),
    )
    site: str = field(default="", metadata=about(as_text, "The name of the site of this server."))
    global_catalogs: tuple[str, ...] = field(
        default=(),
        metadata=about(
            as_catalogs,
            'Active Directory domains with their global catalog servers: "DOMAIN SERVER ..." each. '
            "A client that asks for those of a domain gets this list (S_DSGetGCListInDomain).",
        ),
    )
    unicode_names: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Clients may create queues and machines whose names have any visible character, and "
            "blanks inside those of queues. Without it, ASCII without blanks and semicolons, as "
            "MS-MQMQ specifies. Names that exist are found, shown and replicated in any case.",
        ),
    )


@dataclass(frozen=True, slots=True)
class StoreSection:
    """The store of the directory."""

    url: str = field(
        default="sqlite:mqis.db",
        metadata=about(
            as_store_url,
            "sqlite:PATH: a file, relative to this one; postgresql://user@host/database: a "
            "database; ldaps://HOST: an Active Directory, see docs/pass-through.md; memory: "
            "kept in memory only, lost when the server ends.",
        ),
    )
    remembered: int = field(
        default=65_536,
        metadata=about(
            between(64, 10_000_000),
            "The number of recently read objects and answers to keep in memory, 1 to 4 kB each: "
            "half of them objects, an eighth answers to callers that have not logged on.",
        ),
    )
    timeout_s: int = field(
        default=2,
        metadata=about(
            between(1, 60),
            "Seconds without an answer after which a PostgreSQL server counts as lost: calls fail "
            "at once until it answers again. A call that blocks all others waits half as long. A "
            "domain controller has as long to accept a connection, five times as long to answer.",
        ),
    )
    user: str = field(
        default="",
        metadata=about(
            as_text,
            "The account for an Active Directory, such as mqis@corp.example. What it may not read "
            "or write there, no caller can. Empty: no logon.",
        ),
    )
    password_file: str = field(
        default="",
        metadata=about(
            as_text,
            "A file whose first line is the password of that account; without it the environment "
            "variable MQIS_LDAP_PASSWORD is used.",
        ),
    )
    keytab: str = field(
        default="",
        metadata=about(
            as_text,
            "A keytab with the key of that account: the logon to an Active Directory is by "
            "Kerberos without a password. It is read anew for each logon; needs mqis[kerberos].",
        ),
    )
    ticket_cache: str = field(
        default="",
        metadata=about(
            as_text,
            "A cache of Kerberos tickets, such as FILE:/run/mqis/krb5cc, that another program "
            "keeps fresh: the logon to an Active Directory is by these; needs mqis[kerberos].",
        ),
    )
    simple: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Log on to an Active Directory by a simple bind, which sends the password itself, "
            "inside TLS only. False: by Kerberos or NTLM; the server never gets the password.",
        ),
    )
    ca_file: str = field(
        default="",
        metadata=about(
            as_text,
            "The certificate authorities that domain controllers are checked with, as PEM; empty: "
            "those of this computer.",
        ),
    )
    server_name: str = field(
        default="",
        metadata=about(
            as_text,
            "The name in the certificate of the domain controller, if the URL has another one.",
        ),
    )
    sites: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Let callers create and delete sites of an Active Directory, and change their "
            "permissions. Sites are its own replication topology.",
        ),
    )
    acting_as: ActingAs = field(
        default=ActingAs.SERVER,
        metadata=about(
            one_of(ActingAs),
            "Whose rights decide in an Active Directory. server: mqis checks the caller, and the "
            "account of store.user acts; caller: the server acts with the caller's Kerberos ticket "
            "(constrained delegation), and Active Directory decides by itself.",
        ),
    )
    caller_connections: int = field(
        default=64,
        metadata=about(
            between(4, 4096),
            "Connections to an Active Directory with store.acting_as = caller: one for each logon "
            "that is in use, a minute longer if there is room. One user has an eighth of them.",
        ),
    )


@dataclass(frozen=True, slots=True)
class EnterpriseSection:
    """The enterprise that this server belongs to."""

    name: str = field(default="", metadata=about(as_text, "Its name, the same on every server."))


@dataclass(frozen=True, slots=True)
class RpcSection:
    """The RPC endpoint and the endpoint mapper of 'mqis serve'."""

    listen: str = field(
        default="127.0.0.1",
        metadata=about(
            as_address, "The address of this computer to listen at; 0.0.0.0: all addresses."
        ),
    )
    port: int = field(
        default=0,
        metadata=about(
            as_port,
            "The TCP port of the directory. 0: a free one, which clients learn from the endpoint "
            "mapper; a fixed one is usually 2879.",
        ),
    )
    mapper: bool = field(
        default=True,
        metadata=about(
            as_flag,
            "Run an endpoint mapper; without it, clients have to be configured with the port.",
        ),
    )
    mapper_port: int = field(
        default=135,
        metadata=about(
            as_port,
            "The TCP port of the endpoint mapper. Other clients expect 135, which needs root or "
            "CAP_NET_BIND_SERVICE. 0: a free one.",
        ),
    )
    max_connections: int = field(
        default=1024,
        metadata=about(
            between(1, 1_000_000),
            "Open connections at most. A quarter of them is kept for callers who have logged on. "
            "If the others are taken, a new connection closes one that has not logged on: of the "
            "address that has most of them, the one that has waited longest.",
        ),
    )
    max_connections_per_address: int = field(
        default=256,
        metadata=about(
            between(1, 1_000_000),
            "Open connections from one address at most; programs on this computer do not count. "
            "One more closes the connection of that address that has not logged on and has waited "
            "longest.",
        ),
    )
    connection_rate: int = field(
        default=50,
        metadata=about(
            between(1, 1_000_000),
            "New connections per second from one address, on average; this also limits how many "
            "passwords can be tried. Programs on this computer do not count.",
        ),
    )
    connection_burst: int = field(
        default=200,
        metadata=about(between(1, 1_000_000), "New connections from one address at once."),
    )
    memory_mb: int = field(
        default=256,
        metadata=about(
            between(1, 1_000_000),
            "Megabytes that the requests, open lookups, security contexts and unread answers of "
            "all callers may take, besides 30 kB for each connection. "
            "Anonymous callers together may take half of it, one address half, one connection "
            "three eighths. Programs on this computer count too.",
        ),
    )
    max_handles: int = field(
        default=8192,
        metadata=about(
            between(1, 1_000_000),
            "Context handles of all callers; anonymous callers may have half of them, one address "
            "an eighth, one connection one in 32.",
        ),
    )
    max_lookups: int = field(
        default=1024,
        metadata=about(
            between(1, 1_000_000),
            "Open lookups of all callers; anonymous callers may have half of them, one address a "
            "quarter, one connection one in 16.",
        ),
    )


@dataclass(frozen=True, slots=True)
class SecuritySection:
    """Accounts, administrators, authentication and limits of users."""

    accounts: str = field(
        default="accounts.toml",
        metadata=about(
            as_text,
            "The accounts file, relative to this file; 'mqis account' edits it. Changes take "
            "effect within a second or two, also for users who have logged on.",
            live=True,
        ),
    )
    domain: str = field(
        default="",
        metadata=about(
            as_text,
            "The domain that clients log on to; accounts without a domain belong to it.",
        ),
    )
    administrators: tuple[Sid, ...] = field(
        default=(ADMINISTRATORS,),
        metadata=about(
            as_sids,
            "SIDs of accounts or groups that may do everything. S-1-5-32-544 is the group "
            "Administrators: 'mqis account add NAME --group S-1-5-32-544' adds a member.",
            live=True,
        ),
    )
    gss: Gss = field(
        default=Gss.NEGOTIATE,
        metadata=about(
            one_of(Gss),
            "Authentication of the server and signatures of its answers. negotiate: by NTLM, or "
            "Kerberos if there is a keytab; none: not at all, signatures are zeros.",
        ),
    )
    keytab: str = field(
        default="",
        metadata=about(
            as_text,
            "The keytab with the Kerberos key of this server, relative to this file; needs "
            "mqis[kerberos].",
        ),
    )
    anonymous: bool = field(
        default=True,
        metadata=about(
            as_flag,
            "Treat anonymous callers as members of Everyone, so that they may read what Everyone "
            "may.",
            live=True,
        ),
    )
    challenge_machines: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Require machines to sign a challenge before they change their own properties. Few "
            "clients can, so leave it off.",
            live=True,
        ),
    )
    machine_policy: MachinePolicy = field(
        default=MachinePolicy.OWNER,
        metadata=about(
            one_of(MachinePolicy),
            "The users with full control of a new machine. owner: only its owner; everyone: all, "
            "as MS-MQDS specifies.",
            live=True,
        ),
    )
    max_owned: int = field(
        default=Allowance().max_owned,
        metadata=about(
            between(1, 100_000_000),
            "Objects that one account may have created, whoever owns them now, unless it is an "
            "administrator's.",
            live=True,
        ),
    )
    max_certificates: int = field(
        default=Allowance().max_certificates,
        metadata=about(
            between(1, 1024), "Certificates that a user may have in the directory.", live=True
        ),
    )
    max_certificate_bytes: int = field(
        default=Allowance().max_certificate_bytes,
        metadata=about(
            between(1024, 1 << 30), "Bytes that a user's certificates may have together.", live=True
        ),
    )
    max_changes_per_hour: int = field(
        default=Allowance().max_changes,
        metadata=about(
            between(1, 1_000_000_000),
            "Changes that one account may make in an hour, unless it is an administrator's. All "
            "anonymous callers together count as one account.",
            live=True,
        ),
    )
    max_written_mb_per_hour: int = field(
        default=Allowance().max_written_bytes >> 20,
        metadata=about(
            between(1, 1_000_000),
            "Megabytes that the changes of one account may write in an hour, unless it is an "
            "administrator's: about what each of them adds to the journal of every server.",
            live=True,
        ),
    )
    min_level: MinLevel = field(
        default=MinLevel.INTEGRITY,
        metadata=about(
            one_of(MinLevel),
            "The authentication level from which a caller's identity counts: integrity or privacy. "
            "Below it, the caller is anonymous. connect and packet are for clients that cannot do "
            "better: they allow relay attacks, in which an attacker passes on a user's logon and "
            "acts as the user.",
        ),
    )
    names: tuple[str, ...] = field(
        default=(),
        metadata=about(
            as_texts,
            "Further names and addresses under which clients reach this server: DNS aliases, the "
            "outside address of a tunnel. A logon that names another server is refused. Always "
            "accepted: server.name and the host name, alone and in security.domain and the DNS "
            "domain, and the address that a client connected to.",
        ),
    )
    logon_failures: int = field(
        default=5,
        metadata=about(
            between(1, 1_000_000),
            "Failed logons of one account from one address before it has to wait: a second, then "
            "twice as long after each further failure, at most logon_wait_s.",
        ),
    )
    logon_failures_per_address: int = field(
        default=50,
        metadata=about(
            between(1, 1_000_000),
            "The same for all accounts together from one address (for IPv6 the /64); programs on "
            "this computer wait by account only.",
        ),
    )
    logon_failures_per_connection: int = field(
        default=3,
        metadata=about(
            between(1, 1_000_000), "Failed logons on one connection before it is closed."
        ),
    )
    logon_lifetime_s: int = field(
        default=43_200,
        metadata=about(
            between(60, 2_592_000),
            "Seconds that a logon is valid; calls are then refused until the user logs on again. "
            "A logon by Kerberos also ends with its ticket.",
            live=True,
        ),
    )
    logon_wait_s: int = field(
        default=300,
        metadata=about(
            between(1, 86_400),
            "The longest wait, in seconds; one failure is forgotten after each such time.",
        ),
    )


@dataclass(frozen=True, slots=True)
class DiscoverySection:
    """Answers to clients that look for a server by broadcast (MS-MQSD)."""

    enabled: bool = field(
        default=False, metadata=about(as_flag, "Answer clients that look for servers.")
    )
    listen: str = field(
        default="127.0.0.1",
        metadata=about(
            as_ipv4,
            "The IPv4 address to listen at, together with the broadcast address of its network; "
            "0.0.0.0: all addresses.",
        ),
    )
    port: int = field(
        default=1801,
        metadata=about(as_port, "The UDP port. Other clients expect 1801. 0: a free one."),
    )
    networks: tuple[str, ...] = field(
        default=(),
        metadata=about(
            as_texts,
            "Names or GUIDs of the connected networks of this server. Empty: those that the "
            "directory lists for its machine; a server without any does not answer.",
        ),
    )
    own_enterprise_only: bool = field(
        default=False,
        metadata=about(as_flag, "Ignore clients of other enterprises."),
    )
    rate: int = field(
        default=10,
        metadata=about(between(1, 1_000_000), "Answers per second to one address, on average."),
    )
    burst: int = field(
        default=20, metadata=about(between(1, 1_000_000), "Answers to one address at once.")
    )
    total_rate: int = field(
        default=500,
        metadata=about(
            between(1, 1_000_000),
            "Answers per second to all addresses together, on average; twice as many at once.",
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
    """Checks a table of machine names and addresses."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a section, not {value!r}")
    for name, address in value.items():
        try:
            as_host(address)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return tuple(value.items())


@dataclass(frozen=True, slots=True)
class HostsSection:
    """Addresses of machines that neither the directory nor DNS knows: name = "address:port"."""

    #: All keys of the section: each is the name of a machine.
    entries: tuple[tuple[str, str], ...] = field(
        default=(),
        metadata=about(as_hosts, 'ber-dir1 = "10.0.2.1" or "10.0.2.1:1801".', live=True),
    )


@dataclass(frozen=True, slots=True)
class LogSection:
    """The log on the standard error, one line per event."""

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
