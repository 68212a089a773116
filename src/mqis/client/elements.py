"""The data elements of MS-MQDMPR 3.1.1: the directory's objects as clients see them.

Each element is a frozen dataclass with the specification's attributes in Python spelling. An
attribute that is None is not populated: it was not requested, the server had no value, or nobody
set it. Binary structures (descriptors, keys, certificates, SIDs) stay encoded; ``mqis.wire`` has
their decoders.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from mqis.protocol.directory.objects import Scope
from mqis.wire.guid import Guid
from mqis.wire.mqds.keys import BASE_PROVIDER, ENHANCED_AES_PROVIDER, ENHANCED_PROVIDER
from mqis.wire.mqds.objecttype import ObjectType

__all__ = [
    "ELEMENTS",
    "ConnectedNetwork",
    "CryptographicProvider",
    "DirectoryElement",
    "DirectoryServerType",
    "Enterprise",
    "NetworkProtocol",
    "OperatingSystemType",
    "PrivacyLevel",
    "Queue",
    "QueueManager",
    "RoutingLink",
    "Scope",
    "Site",
    "User",
]


class OperatingSystemType(IntEnum):
    """The values of PROPID_QM_OS (MS-MQDS 3.2.6.1.1.2), where OTHER is called Unknown."""

    OTHER = 0x000
    FOREIGN = 0x100
    WIN95 = 0x200
    WIN_CLIENT = 0x300
    WIN_SERVER = 0x400
    WIN_ENT = 0x500


class DirectoryServerType(IntEnum):
    """The bits of PROPID_QM_SERVICE (3.2.6.1.1.1)."""

    STANDALONE = 0x0
    BACKUP_SITE_CONTROLLER = 0x2
    PRIMARY_SITE_CONTROLLER = 0x4
    PRIMARY_ENTERPRISE_CONTROLLER = 0x8


class PrivacyLevel(IntEnum):
    """The encryption that a queue requires, by PROPID_Q_PRIV_LEVEL (3.2.6.1.2.1)."""

    NONE = 0
    OPTIONAL = 1
    BODY = 2


class NetworkProtocol(IntEnum):
    """The values of PROPID_CN_PROTOCOLID (MS-MQMQ 2.3.5.1)."""

    IP = 1
    IPX = 3
    FOREIGN = 5


class CryptographicProvider(Enum):
    """The provider names in PROPID_E_CSP_NAME (3.2.6.3.3.2)."""

    BASE = BASE_PROVIDER
    ENHANCED = ENHANCED_PROVIDER
    ENHANCED_AES = ENHANCED_AES_PROVIDER


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryElement:
    """The base of all elements (MS-MQDMPR 3.1.1)."""

    identifier: Guid | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueManager(DirectoryElement):
    """A machine that runs Message Queuing (3.1.1.1)."""

    computer_name: str | None = None
    qualified_computer_name: str | None = None
    queue_manager_version: str | None = None
    operating_system_type: OperatingSystemType | None = None
    operating_system_version: str | None = None
    #: Seconds since 1970, like all times here.
    create_time: int | None = None
    modify_time: int | None = None
    queue_manager_quota: int | None = None
    journal_quota: int | None = None
    foreign_system: bool | None = None
    full_path: str | None = None
    site_identifier_list: tuple[Guid, ...] | None = None
    connected_network_identifier_list: tuple[Guid, ...] | None = None
    out_routing_server_identifier_list: tuple[Guid, ...] | None = None
    in_routing_server_identifier_list: tuple[Guid, ...] | None = None
    out_routing_server_full_path_list: tuple[str, ...] | None = None
    in_routing_server_full_path_list: tuple[str, ...] | None = None
    directory_server: bool | None = None
    #: Undefined unless ``directory_server`` is true.
    directory_server_type: DirectoryServerType | None = None
    remote_access_server: bool | None = None
    routing_server: bool | None = None
    supporting_server: bool | None = None
    #: MQDSPUBLICKEYS (``wire.mqds.keys.PublicKeys``).
    public_encryption_key_list: bytes | None = None
    public_signing_key_list: bytes | None = None
    #: A self-relative descriptor (``wire.security.descriptor.SecurityDescriptor``).
    security: bytes | None = None
    clustered: bool | None = None
    sequence_number: bytes | None = None
    partition_identifier: Guid | None = None
    #: TA_ADDRESS structures (``wire.mqds.machine_address.AddressList``).
    computer_network_address_collection: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(DirectoryElement):
    """A public queue (3.1.1.2)."""

    pathname: str | None = None
    qualified_pathname: str | None = None
    label: str | None = None
    type: Guid | None = None
    create_time: int | None = None
    modify_time: int | None = None
    journaling: bool | None = None
    quota: int | None = None
    journal_quota: int | None = None
    base_priority: int | None = None
    authentication: bool | None = None
    privacy_level: PrivacyLevel | None = None
    transactional: bool | None = None
    scope: Scope | None = None
    multicast_address: str | None = None
    security: bytes | None = None
    full_path: str | None = None
    directory_path: str | None = None
    sequence_number: bytes | None = None
    partition_identifier: Guid | None = None
    queue_manager_identifier: Guid | None = None
    pathname_suffix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Enterprise(DirectoryElement):
    """The enterprise, of which there is one (3.1.1.6)."""

    name: str | None = None
    weakened_security: bool | None = None
    #: No property carries this: reading it alone gives AttributeNotFound.
    non_ldap_capable_queue_manager_notification: bool | None = None
    #: Seconds.
    default_time_to_live: int | None = None
    old_directory: bool | None = None
    cryptographic_provider: CryptographicProvider | None = None
    security: bytes | None = None
    sequence_number: bytes | None = None
    enterprise_controller_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(DirectoryElement):
    """A site (3.1.1.7)."""

    name: str | None = None
    primary_site_controller: str | None = None
    #: Seconds.
    intra_site_replication_interval: int | None = None
    inter_site_replication_interval: int | None = None
    full_path: str | None = None
    foreign_site: bool | None = None
    public_signing_key_list: bytes | None = None
    migrated_from_msmq10: bool | None = None
    security: bytes | None = None
    site_gate_identifier_list: tuple[Guid, ...] | None = None
    do_nothing: int | None = None
    sequence_number: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingLink(DirectoryElement):
    """A link between two sites (3.1.1.8)."""

    description: str | None = None
    full_path: str | None = None
    #: The cost for routing, 1 to 999,999; ``cost`` adds 999,999 for each foreign end.
    actual_cost: int | None = None
    cost: int | None = None
    site1_identifier: Guid | None = None
    site2_identifier: Guid | None = None
    site1_full_path: str | None = None
    site2_full_path: str | None = None
    site_gate_identifier_list: tuple[Guid, ...] | None = None
    sequence_number: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedNetwork(DirectoryElement):
    """A network that machines are connected to (3.1.1.9)."""

    name: str | None = None
    network_protocol: NetworkProtocol | None = None
    security: bytes | None = None
    sequence_number: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class User(DirectoryElement):
    """A user and its signing certificates (3.1.1.15)."""

    #: A SID (``wire.security.sid.Sid``).
    security_identifier: bytes | None = None
    #: The MD5 of each certificate, in the form of a GUID.
    certificate_digest_list: tuple[Guid, ...] | None = None
    #: MQUSERSIGNCERTS (``wire.mqds.certificates.UserSignCerts``).
    certificates: bytes | None = None
    sequence_number: bytes | None = None


#: The elements of the protocol and their object types (3.2.1.1, which omits User).
ELEMENTS: dict[type[DirectoryElement], ObjectType] = {
    QueueManager: ObjectType.MACHINE,
    Queue: ObjectType.QUEUE,
    Enterprise: ObjectType.ENTERPRISE,
    Site: ObjectType.SITE,
    RoutingLink: ObjectType.ROUTINGLINK,
    ConnectedNetwork: ObjectType.CN,
    User: ObjectType.USER,
}
