"""Every property of the directory and its place in Active Directory, one row each.

Beside ``protocol.directory.types``, which says what each property is. ``None`` where a default
stands means that the attribute has to be there (MS-MQDSSM 3.1.6.11).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from mqis.protocol.activedirectory import made
from mqis.protocol.activedirectory.codecs import (
    ANY_FLAG,
    ANY_GUID,
    FLAG,
    GUID,
    GUIDS,
    NAME,
    NAMES,
    OCTETS,
    PRIVACY,
    SID,
    SIGNED_16,
    STUB,
    SYSTEM,
    TEXT,
    TIME,
    UNSIGNED,
    UNSIGNED_16,
    VERSION,
)
from mqis.protocol.activedirectory.row import (
    AttributeRow,
    NameReference,
    Use,
    computed,
    constant,
    stored,
)
from mqis.protocol.directory.types.columns import UNLIMITED
from mqis.protocol.directory.types.enterprise import OLD_DIRECTORY
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P

_NONE = Use.NONE
_FIND = Use.FILTER
_MAKE = Use.CREATE | Use.FILTER
_ALL = Use.CREATE | Use.WRITE | Use.FILTER
_CHANGE = Use.WRITE | Use.FILTER
_STORE = Use.CREATE | Use.WRITE
_SECURITY = "nTSecurityDescriptor"
_ZERO_NUMBER = bytes(8)
_DEFAULT_QUOTA = 0x0010_0000
_FOUR_DAYS_S = 345_600


def _one(id: P, attribute: str) -> AttributeRow:  # noqa: A002
    row = computed(id, made.referred(attribute), attribute)
    return replace(row, uses=_ALL, reference=NameReference.ONE)


def _many(id: P, attribute: str) -> AttributeRow:  # noqa: A002
    row = computed(id, made.referred_list(attribute), attribute, instead=())
    return replace(row, uses=_STORE, reference=NameReference.MANY)


# fmt: off
_QUEUE = (
    stored(P.Q_INSTANCE, GUID, "objectGUID", None, _FIND),
    stored(P.Q_TYPE, GUID, "mSMQQueueType", Guid.NULL, _ALL),
    computed(P.Q_PATHNAME, made.queue_path, "mSMQQueueNameExt"),
    stored(P.Q_JOURNAL, FLAG, "mSMQJournal", 0, _ALL),
    stored(P.Q_QUOTA, UNSIGNED, "mSMQQueueQuota", UNLIMITED, _ALL),
    stored(P.Q_BASEPRIORITY, SIGNED_16, "mSMQBasePriority", 0, _ALL),
    stored(P.Q_JOURNAL_QUOTA, UNSIGNED, "mSMQQueueJournalQuota", UNLIMITED, _ALL),
    stored(P.Q_LABEL, TEXT, "mSMQLabelEx", "", _ALL),
    stored(P.Q_CREATE_TIME, TIME, "whenCreated", None, _FIND),
    stored(P.Q_MODIFY_TIME, TIME, "whenChanged", None, _FIND),
    stored(P.Q_AUTHENTICATE, FLAG, "mSMQAuthenticate", 0, _ALL),
    stored(P.Q_PRIV_LEVEL, PRIVACY, "mSMQPrivacyLevel", 1, _ALL),
    # Not in the write table: a queue stays what it was made.
    stored(P.Q_TRANSACTION, FLAG, "mSMQTransactional", 0, _MAKE),
    constant(P.Q_SCOPE, 1),
    computed(P.Q_QMID, made.parent, "parentGUID"),
    stored(P.Q_NAME_SUFFIX, TEXT, "mSMQQueueNameExt", "", _NONE),
    stored(P.Q_MULTICAST_ADDRESS, TEXT, "MSMQ-MulticastAddress", "", _ALL),
    stored(P.Q_SECURITY, made.descriptor(ObjectType.QUEUE), _SECURITY, None, _NONE),
)

_MACHINE = (
    stored(P.QM_SITE_ID, ANY_GUID, "mSMQSites", None, _FIND),
    stored(P.QM_MACHINE_ID, GUID, "objectGUID", None, _FIND),
    computed(P.QM_PATHNAME, made.computer_name),
    constant(P.QM_ADDRESS, b""),
    # Connected networks are made of sites.
    stored(P.QM_CNS, GUIDS, "mSMQSites", (), _NONE),
    _many(P.QM_OUTFRS, "mSMQOutRoutingServers"),
    _many(P.QM_INFRS, "mSMQInRoutingServers"),
    computed(P.QM_SERVICE, made.service_bits,
        "mSMQServiceType", "mSMQRoutingServices", "mSMQDsServices", instead=0),
    stored(P.QM_QUOTA, UNSIGNED, "mSMQQuota", _DEFAULT_QUOTA, _ALL),
    stored(P.QM_JOURNAL_QUOTA, UNSIGNED, "mSMQJournalQuota", UNLIMITED, _ALL),
    stored(P.QM_MACHINE_TYPE, TEXT, "mSMQComputerTypeEx", "", _ALL),
    stored(P.QM_CREATE_TIME, TIME, "whenCreated", None, _FIND),
    stored(P.QM_MODIFY_TIME, TIME, "whenChanged", None, _FIND),
    stored(P.QM_FOREIGN, FLAG, "mSMQForeign", 0, _ALL),
    stored(P.QM_OS, SYSTEM, "mSMQOSType", 0, _ALL),
    stored(P.QM_SITE_IDS, GUIDS, "mSMQSites", (), _ALL),
    stored(P.QM_SERVICE_ROUTING, FLAG, "mSMQRoutingServices", 0, _FIND),
    stored(P.QM_SERVICE_DSSERVER, FLAG, "mSMQDsServices", 0, _FIND),
    stored(P.QM_SERVICE_DEPCLIENTS, FLAG, "mSMQDependentClientServices", 0, _ALL),
    stored(P.QM_ENCRYPT_PKS, OCTETS, "mSMQEncryptKey", b"", _ALL),
    # Written to the computer's entry, with the digests of its certificates.
    computed(P.QM_SIGN_PKS, made.signing_keys, computer="mSMQSignCertificates", instead=b""),
    computed(P.QM_GROUP_IN_CLUSTER, made.clustered, computer="servicePrincipalName"),
    stored(P.QM_SECURITY, made.descriptor(ObjectType.MACHINE), _SECURITY, None, _NONE),
    stored(P.QM_ENCRYPT_PK, OCTETS, "mSMQEncryptKey", b"", _ALL),
)

_SITE = (
    stored(P.S_PATHNAME, TEXT, "cn", None, _FIND),
    stored(P.S_SITEID, GUID, "objectGUID", None, _FIND),
    computed(P.S_GATES, made.gates),
    constant(P.S_PSC, ""),
    stored(P.S_INTERVAL1, UNSIGNED_16, "mSMQInterval1", 2, _ALL),
    stored(P.S_INTERVAL2, UNSIGNED_16, "mSMQInterval2", 10, _ALL),
    # The text wants it on every site, but only migrated ones have it (E-MQDSSM-11).
    stored(P.S_NT4_STUB, STUB, "mSMQNt4Stub", 0, _ALL),
    stored(P.S_FOREIGN, ANY_FLAG, "mSMQSiteForeign", 0, _ALL),
    stored(P.S_SECURITY, made.descriptor(ObjectType.SITE), _SECURITY, None, _NONE),
    constant(P.S_PSC_SIGNPK, None),
)

_NETWORK = (
    computed(P.CN_PROTOCOLID, made.network_protocol, "mSMQSiteForeign"),
    stored(P.CN_NAME, TEXT, "cn", None, _FIND),
    stored(P.CN_GUID, GUID, "objectGUID", None, _FIND),
    stored(P.CN_SECURITY, made.descriptor(ObjectType.CN), _SECURITY, None, _NONE),
)

_ENTERPRISE = (
    computed(P.E_NAME, made.root_domain),
    stored(P.E_NAMESTYLE, FLAG, "mSMQNameStyle", 0, _CHANGE),
    # mSMQCSPName holds a Y or N of another meaning (E-MQDSSM-26).
    constant(P.E_CSP_NAME, None),
    constant(P.E_PECNAME, ""),
    stored(P.E_ID, GUID, "objectGUID", None, _FIND),
    stored(P.E_LONG_LIVE, UNSIGNED, "mSMQLongLived", _FOUR_DAYS_S, _CHANGE),
    stored(P.E_VERSION, VERSION, "mSMQVersion", OLD_DIRECTORY, _CHANGE),
    stored(P.E_SECURITY, made.descriptor(ObjectType.ENTERPRISE), _SECURITY, None, _NONE),
)

_USER = (
    stored(P.U_SID, SID, "objectSid", None, _FIND),
    stored(P.U_SIGN_CERT, OCTETS, "mSMQSignCertificates", b"", _CHANGE),
    stored(P.U_DIGEST, GUIDS, "mSMQDigests", (), _CHANGE),
    stored(P.U_ID, GUID, "objectGUID", None, _FIND),
)

_LINK = (
    _one(P.L_NEIGHBOR1, "mSMQSite1"),
    _one(P.L_NEIGHBOR2, "mSMQSite2"),
    stored(P.L_ID, GUID, "objectGUID", None, _FIND),
    stored(P.L_DESCRIPTION, TEXT, "description", "", _ALL),
    stored(P.L_ACTUAL_COST, UNSIGNED, "mSMQCost", None, _ALL),
    _many(P.L_GATES, "mSMQSiteGates"),
)

#: A store of our own has one name for each object (E-MQDS-08); a pass-through server shows these.
#: Objects are found by the full path with a read, not with a condition (3.1.6.3).
_NAMES = (
    computed(P.Q_FULL_PATH, made.full_path),
    computed(P.Q_PATHNAME_DNS, made.qualified_queue_path, "mSMQQueueNameExt",
        computer="dNSHostName"),
    computed(P.QM_FULL_PATH, made.full_path),
    computed(P.QM_PATHNAME_DNS, made.qualified_computer_name, computer="dNSHostName"),
    stored(P.QM_OUTFRS_DN, NAMES, "mSMQOutRoutingServers", (), _FIND),
    stored(P.QM_INFRS_DN, NAMES, "mSMQInRoutingServers", (), _FIND),
    computed(P.S_FULL_NAME, made.full_path),
    computed(P.L_FULL_PATH, made.full_path),
    stored(P.L_NEIGHBOR1_DN, NAME, "mSMQSite1", None, _FIND),
    stored(P.L_NEIGHBOR2_DN, NAME, "mSMQSite2", None, _FIND),
)

_DELETION = (
    constant(P.D_SEQNUM, _ZERO_NUMBER),
    constant(P.D_PARTITIONID, Guid.NULL),
    constant(P.D_SCOPE, 1),
    constant(P.D_OBJTYPE, None),
    stored(P.D_IDENTIFIER, GUID, "objectGUID", None, _FIND),
)
# fmt: on

#: The properties that an object of a store keeps, that a pass-through server shows, or by which
#: entries are found, by their number.
ATTRIBUTE_ROWS: dict[int, AttributeRow] = {
    row.id: row
    for rows in (_QUEUE, _MACHINE, _SITE, _DELETION, _NETWORK, _ENTERPRISE, _USER, _LINK, _NAMES)
    for row in rows
}
#: The names that Active Directory gives beside the path.
GIVEN_NAMES = frozenset(row.id for row in _NAMES)
#: Those of the object itself: not more than one object can have such a name.
UNIQUE_NAMES = frozenset(row.id for row in _NAMES if not row.uses)


@cache
def rows_of(object_type: ObjectType) -> tuple[AttributeRow, ...]:
    return tuple(row for row in ATTRIBUTE_ROWS.values() if row.object_type is object_type)
