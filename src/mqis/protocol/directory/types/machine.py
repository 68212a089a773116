"""Queue managers, which the directory calls machines (MS-MQMQ 2.3.2)."""

from __future__ import annotations

from mqis.protocol.directory.types.computing import given_name, owner, security_information
from mqis.protocol.directory.types.ldap import ALL, FIND, KEEP, NONE, AttributeSyntax, Ldap, Unkept
from mqis.protocol.directory.types.machine_values import (
    check_site,
    check_sites,
    first_site,
    is_directory_server,
    is_router,
    key,
    machine_names,
    service_bits,
    store_directory_server,
    store_first_site,
    store_routing,
    store_service,
)
from mqis.protocol.directory.types.property_row import NotificationPlace, PropertyRow
from mqis.protocol.directory.types.row_columns import (
    APPLY,
    IGNORE,
    INVALID,
    UNLIMITED,
    UNLISTED,
    PropertyRole,
    Takes,
    ValueMeaning,
)
from mqis.wire.mqds.keys import BASE_PROVIDER, ENHANCED_PROVIDER
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P

#: PROPID_QM_OS (MS-MQDS 3.1.4.21.8.1.3).
OPERATING_SYSTEMS = {
    0x000: "unknown",
    0x100: "foreign",
    0x200: "Windows 95",
    0x300: "Windows client",
    0x400: "Windows server",
    0x500: "Windows enterprise server",
}


#: The quota of a machine whose entry in Active Directory has none.
DEFAULT_QUOTA = 0x0010_0000


# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    PropertyRow(P.QM_SITE_ID, APPLY, APPLY, Takes.PLACE,
        excludes=P.QM_SITE_IDS, computed=first_site, store=store_first_site, check=check_site,
        refers_to=ObjectType.SITE, names_owner=True, replicated=16,
        ldap=Ldap("mSMQSites", AttributeSyntax.ANY_GUID, FIND)),
    PropertyRow(P.QM_MACHINE_ID, APPLY, INVALID, Takes.NOTHING,
        role=PropertyRole.IDENTIFIER, notified=NotificationPlace(always=1),
        ldap=Ldap("objectGUID", AttributeSyntax.GUID, FIND)),
    PropertyRow(P.QM_PATHNAME, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.NAME, lasting=True, replicated=13),
    PropertyRow(P.QM_ENCRYPTION_PK, IGNORE, UNLISTED, Takes.NOTHING, computed=key(BASE_PROVIDER)),
    # Note <111>: else clients would find no address.
    PropertyRow(P.QM_ADDRESS, APPLY, APPLY, Takes.SERVER,
        default=b"", meaning=ValueMeaning.ADDRESSES, announced=True,
        replicated=7, notified=NotificationPlace(changed=4),
        ldap=Unkept(b"")),
    # The caller says it: notes <90> and <111>.
    # In Active Directory connected networks are made of sites.
    PropertyRow(P.QM_CNS, APPLY, APPLY, Takes.NOTHING,
        default=(), refers_to=ObjectType.CN,
        indexed=True, replicated=4, notified=NotificationPlace(changed=5),
        ldap=Ldap("mSMQSites", AttributeSyntax.GUIDS, NONE, ())),
    PropertyRow(P.QM_OUTFRS, APPLY, APPLY, Takes.NOTHING,
        default=(), refers_to=ObjectType.MACHINE, replicated=12,
        ldap=Ldap("mSMQOutRoutingServers", AttributeSyntax.NAMES, KEEP)),
    PropertyRow(P.QM_INFRS, APPLY, APPLY, Takes.NOTHING,
        default=(), refers_to=ObjectType.MACHINE, replicated=10,
        ldap=Ldap("mSMQInRoutingServers", AttributeSyntax.NAMES, KEEP)),
    # Note <88>: an update is how a server gets or loses its role.
    PropertyRow(P.QM_SERVICE, APPLY, APPLY, Takes.ROLE,
        default=0, computed=service_bits, also_stored=True,
        store=store_service, meaning=ValueMeaning.SERVICE, announced=True, replicated=14),
    # The partition follows from the site: no client moves objects between authorities.
    PropertyRow(P.QM_PARTITIONID, IGNORE, IGNORE, Takes.ENTERPRISE,
        role=PropertyRole.PARTITION, readable=False),
    PropertyRow(P.QM_HASHKEY, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=18),
    PropertyRow(P.QM_SEQNUM, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.SEQUENCE, readable=False, meaning=ValueMeaning.SEQUENCE),
    PropertyRow(P.QM_QUOTA, APPLY, APPLY, Takes.NOTHING,
        default=UNLIMITED, meaning=ValueMeaning.QUOTA, replicated=2,
        notified=NotificationPlace(changed=1),
        ldap=Ldap("mSMQQuota", AttributeSyntax.UNSIGNED, ALL, DEFAULT_QUOTA)),
    PropertyRow(P.QM_JOURNAL_QUOTA, APPLY, APPLY, Takes.NOTHING,
        default=UNLIMITED, meaning=ValueMeaning.QUOTA, replicated=3,
        notified=NotificationPlace(changed=2),
        ldap=Ldap("mSMQJournalQuota", AttributeSyntax.UNSIGNED, ALL, UNLIMITED)),
    PropertyRow(P.QM_MACHINE_TYPE, APPLY, APPLY, Takes.NOTHING,
        default="", replicated=5, notified=NotificationPlace(changed=6),
        ldap=Ldap("mSMQComputerTypeEx", AttributeSyntax.TEXT, ALL, "")),
    PropertyRow(P.QM_CREATE_TIME, INVALID, INVALID, Takes.NOTHING,
        role=PropertyRole.CREATE_TIME, meaning=ValueMeaning.TIME, lasting=True, replicated=8,
        ldap=Ldap("whenCreated", AttributeSyntax.TIME, FIND)),
    PropertyRow(P.QM_MODIFY_TIME, INVALID, INVALID, Takes.NOTHING,
        role=PropertyRole.MODIFY_TIME, meaning=ValueMeaning.TIME, announced=True, replicated=11,
        ldap=Ldap("whenChanged", AttributeSyntax.TIME, FIND)),
    PropertyRow(P.QM_FOREIGN, APPLY, APPLY, Takes.NOTHING,
        default=0, meaning=ValueMeaning.FLAG, replicated=1, notified=NotificationPlace(always=2),
        ldap=Ldap("mSMQForeign", AttributeSyntax.FLAG, ALL, 0)),
    PropertyRow(P.QM_OS, APPLY, APPLY, Takes.NOTHING,
        default=0, meaning=ValueMeaning.WORD, words=OPERATING_SYSTEMS, replicated=6,
        notified=NotificationPlace(changed=7),
        ldap=Ldap("mSMQOSType", AttributeSyntax.SYSTEM, ALL, 0)),
    PropertyRow(P.QM_FULL_PATH, IGNORE, UNLISTED, Takes.NOTHING,
        computed=given_name(P.QM_FULL_PATH)),
    # The documented client sends the list at create too.
    PropertyRow(P.QM_SITE_IDS, APPLY, APPLY, Takes.PLACE,
        check=check_sites, refers_to=ObjectType.SITE, indexed=True,
        travels_as=P.QM_SITE_ID,
        ldap=Ldap("mSMQSites", AttributeSyntax.GUIDS, ALL, ())),
    PropertyRow(P.QM_OUTFRS_DN, IGNORE, UNLISTED, Takes.NOTHING,
        computed=given_name(P.QM_OUTFRS_DN, machine_names(P.QM_OUTFRS)),
        ldap=Ldap("mSMQOutRoutingServers", AttributeSyntax.DN_LIST, FIND, ())),
    PropertyRow(P.QM_INFRS_DN, IGNORE, UNLISTED, Takes.NOTHING,
        computed=given_name(P.QM_INFRS_DN, machine_names(P.QM_INFRS)),
        ldap=Ldap("mSMQInRoutingServers", AttributeSyntax.DN_LIST, FIND, ())),
    PropertyRow(P.QM_SERVICE_ROUTING, APPLY, UNLISTED, Takes.ROLE,
        default=0, computed=is_router, store=store_routing, meaning=ValueMeaning.FLAG,
        ldap=Ldap("mSMQRoutingServices", AttributeSyntax.FLAG, FIND, 0)),
    PropertyRow(P.QM_SERVICE_DSSERVER, APPLY, APPLY, Takes.ROLE,
        default=0, computed=is_directory_server, also_stored=True, store=store_directory_server,
        meaning=ValueMeaning.FLAG, announced=True, travels_as=P.QM_SERVICE,
        ldap=Ldap("mSMQDsServices", AttributeSyntax.FLAG, FIND, 0)),
    PropertyRow(P.QM_SERVICE_DEPCLIENTS, APPLY, APPLY, Takes.ROLE,
        default=0, meaning=ValueMeaning.FLAG,
        ldap=Ldap("mSMQDependentClientServices", AttributeSyntax.FLAG, ALL, 0)),
    PropertyRow(P.QM_ENCRYPTION_PK_BASE, IGNORE, UNLISTED, Takes.NOTHING,
        computed=key(BASE_PROVIDER)),
    PropertyRow(P.QM_ENCRYPTION_PK_ENHANCED, IGNORE, UNLISTED, Takes.NOTHING,
        computed=key(ENHANCED_PROVIDER)),
    PropertyRow(P.QM_PATHNAME_DNS, IGNORE, IGNORE, Takes.NOTHING,
        computed=given_name(P.QM_PATHNAME_DNS)),
    PropertyRow(P.QM_OBJ_SECURITY, IGNORE, UNLISTED, Takes.PERMISSIONS,
        alias_of=P.QM_SECURITY, meaning=ValueMeaning.DESCRIPTOR, extended=True),
    PropertyRow(P.QM_SECURITY_INFORMATION, IGNORE, UNLISTED, Takes.NOTHING,
        computed=security_information(P.QM_SECURITY)),
    # Clients send 238 where the table prints the private 1203 (8.2.1).
    PropertyRow(P.QM_ENCRYPT_PKS, APPLY, APPLY, Takes.SERVER,
        default=b"", meaning=ValueMeaning.KEYS, announced=True, extended=True,
        ldap=Ldap("mSMQEncryptKey", AttributeSyntax.OCTETS, ALL, b"")),
    PropertyRow(P.QM_SIGN_PKS, APPLY, APPLY, Takes.SERVER,
        default=b"", meaning=ValueMeaning.KEYS, announced=True, extended=True),
    PropertyRow(P.QM_OWNER_SID, IGNORE, UNLISTED, Takes.NOTHING,
        computed=owner(P.QM_SECURITY), meaning=ValueMeaning.SID),
    PropertyRow(P.QM_GROUP_IN_CLUSTER, IGNORE, UNLISTED, Takes.NOTHING,
        unset=0, meaning=ValueMeaning.FLAG),
    PropertyRow(P.QM_SECURITY, IGNORE, UNLISTED, Takes.PERMISSIONS,
        role=PropertyRole.SECURITY, readable=False, meaning=ValueMeaning.DESCRIPTOR, replicated=17,
        notified=NotificationPlace(changed=3),
        ldap=Ldap("nTSecurityDescriptor", AttributeSyntax.DESCRIPTOR, NONE)),
    PropertyRow(P.QM_SIGN_PK, APPLY, UNLISTED, Takes.SERVER,
        readable=False, default=b"", alias_of=P.QM_SIGN_PKS, meaning=ValueMeaning.KEYS,
        replicated=15),
    PropertyRow(P.QM_ENCRYPT_PK, APPLY, INVALID, Takes.SERVER,
        readable=False, default=b"", alias_of=P.QM_ENCRYPT_PKS, meaning=ValueMeaning.KEYS,
        replicated=9,
        ldap=Ldap("mSMQEncryptKey", AttributeSyntax.OCTETS, ALL, b"")),
    PropertyRow(P.QM_UPGRADE_DACL, IGNORE, UNLISTED, Takes.NOTHING, readable=False, reserved=True),
)
# fmt: on
