"""Queues (MS-MQMQ 2.3.1)."""

from __future__ import annotations

from mqis.protocol.directory.types.computing import given_name, security_information
from mqis.protocol.directory.types.ldap import ALL, FIND, MAKE, NONE, AttributeSyntax, Ldap, Unkept
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
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value

PRIVACY_LEVELS = {0: "none", 1: "optional", 2: "body"}
SCOPES = {0: "site", 1: "enterprise"}
MAX_LABEL = 124


def _label(value: Value) -> Value:
    """Windows counts UTF-16 units, of which a character beyond the BMP has two."""
    if isinstance(value, str) and len(value.encode("utf-16-le", "surrogatepass")) > 2 * MAX_LABEL:
        raise ValueError(f"a label has at most {MAX_LABEL} UTF-16 units")
    return value


# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    PropertyRow(P.Q_INSTANCE, IGNORE, INVALID, Takes.NOTHING,
        role=PropertyRole.IDENTIFIER, notified=NotificationPlace(created=2),
        ldap=Ldap("objectGUID", AttributeSyntax.GUID, FIND)),
    PropertyRow(P.Q_TYPE, APPLY, APPLY, Takes.NOTHING,
        default=Guid.NULL, indexed=True, replicated=3, notified=NotificationPlace(created=1),
        ldap=Ldap("mSMQQueueType", AttributeSyntax.GUID, ALL, Guid.NULL)),
    PropertyRow(P.Q_PATHNAME, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.NAME, lasting=True, replicated=10,
        notified=NotificationPlace(created=11)),
    PropertyRow(P.Q_JOURNAL, APPLY, APPLY, Takes.NOTHING,
        default=0, meaning=ValueMeaning.FLAG, replicated=5,
        notified=NotificationPlace(created=4, changed=1),
        ldap=Ldap("mSMQJournal", AttributeSyntax.FLAG, ALL, 0)),
    PropertyRow(P.Q_QUOTA, APPLY, APPLY, Takes.NOTHING,
        default=UNLIMITED, meaning=ValueMeaning.QUOTA, replicated=6,
        notified=NotificationPlace(created=5, changed=2),
        ldap=Ldap("mSMQQueueQuota", AttributeSyntax.UNSIGNED, ALL, UNLIMITED)),
    PropertyRow(P.Q_BASEPRIORITY, APPLY, APPLY, Takes.NOTHING,
        default=0, replicated=4, notified=NotificationPlace(created=3, changed=3),
        ldap=Ldap("mSMQBasePriority", AttributeSyntax.SIGNED_16, ALL, 0)),
    PropertyRow(P.Q_JOURNAL_QUOTA, APPLY, APPLY, Takes.NOTHING,
        default=UNLIMITED, meaning=ValueMeaning.QUOTA, replicated=7,
        notified=NotificationPlace(created=6, changed=4),
        ldap=Ldap("mSMQQueueJournalQuota", AttributeSyntax.UNSIGNED, ALL, UNLIMITED)),
    PropertyRow(P.Q_LABEL, APPLY, APPLY, Takes.NOTHING,
        default="", check=_label, indexed=True, replicated=11,
        notified=NotificationPlace(created=12),
        ldap=Ldap("mSMQLabelEx", AttributeSyntax.TEXT, ALL, "")),
    PropertyRow(P.Q_CREATE_TIME, INVALID, INVALID, Takes.NOTHING,
        role=PropertyRole.CREATE_TIME, meaning=ValueMeaning.TIME, lasting=True, replicated=8,
        notified=NotificationPlace(created=7),
        ldap=Ldap("whenCreated", AttributeSyntax.TIME, FIND)),
    PropertyRow(P.Q_MODIFY_TIME, INVALID, INVALID, Takes.NOTHING,
        role=PropertyRole.MODIFY_TIME, meaning=ValueMeaning.TIME, replicated=9,
        notified=NotificationPlace(created=8),
        ldap=Ldap("whenChanged", AttributeSyntax.TIME, FIND)),
    PropertyRow(P.Q_AUTHENTICATE, APPLY, APPLY, Takes.NOTHING,
        default=0, meaning=ValueMeaning.FLAG, replicated=12,
        notified=NotificationPlace(created=13, changed=6),
        ldap=Ldap("mSMQAuthenticate", AttributeSyntax.FLAG, ALL, 0)),
    PropertyRow(P.Q_PRIV_LEVEL, APPLY, APPLY, Takes.NOTHING,
        default=1, meaning=ValueMeaning.WORD, words=PRIVACY_LEVELS, replicated=13,
        notified=NotificationPlace(created=14, changed=7),
        ldap=Ldap("mSMQPrivacyLevel", AttributeSyntax.PRIVACY, ALL, 1)),
    # Not in the write table of Active Directory: a queue stays what it was made.
    PropertyRow(P.Q_TRANSACTION, APPLY, APPLY, Takes.NOTHING,
        default=0, meaning=ValueMeaning.FLAG, replicated=14,
        notified=NotificationPlace(created=15),
        ldap=Ldap("mSMQTransactional", AttributeSyntax.FLAG, MAKE, 0)),
    PropertyRow(P.Q_SCOPE, APPLY, APPLY, Takes.NOTHING,
        default=1, meaning=ValueMeaning.WORD, words=SCOPES, replicated=1,
        notified=NotificationPlace(created=9),
        ldap=Unkept(1)),
    PropertyRow(P.Q_QMID, IGNORE, APPLY, Takes.PLACE,
        refers_to=ObjectType.MACHINE, names_owner=True, replicated=2,
        notified=NotificationPlace(always=1)),
    # The partition follows from the site: no client moves objects between authorities.
    PropertyRow(P.Q_PARTITIONID, IGNORE, IGNORE, Takes.ENTERPRISE,
        role=PropertyRole.PARTITION),
    PropertyRow(P.Q_SEQNUM, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.SEQUENCE, readable=False, meaning=ValueMeaning.SEQUENCE),
    PropertyRow(P.Q_HASHKEY, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=16),
    PropertyRow(P.Q_LABEL_HASHKEY, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=17),
    PropertyRow(P.Q_FULL_PATH, IGNORE, UNLISTED, Takes.NOTHING, computed=given_name(P.Q_FULL_PATH)),
    PropertyRow(P.Q_NAME_SUFFIX, APPLY, APPLY, Takes.NOTHING,
        ldap=Ldap("mSMQQueueNameExt", AttributeSyntax.TEXT, NONE, "")),
    PropertyRow(P.Q_PATHNAME_DNS, IGNORE, IGNORE, Takes.NOTHING,
        computed=given_name(P.Q_PATHNAME_DNS)),
    PropertyRow(P.Q_MULTICAST_ADDRESS, IGNORE, UNLISTED, Takes.NOTHING, readable=False,
        ldap=Ldap("MSMQ-MulticastAddress", AttributeSyntax.TEXT, ALL, "")),
    PropertyRow(P.Q_ADS_PATH, IGNORE, UNLISTED, Takes.NOTHING, readable=False, reserved=True),
    PropertyRow(P.Q_SECURITY, IGNORE, UNLISTED, Takes.PERMISSIONS,
        role=PropertyRole.SECURITY, readable=False, meaning=ValueMeaning.DESCRIPTOR, replicated=15,
        notified=NotificationPlace(created=10, changed=5),
        ldap=Ldap("nTSecurityDescriptor", AttributeSyntax.DESCRIPTOR, NONE)),
    PropertyRow(P.Q_OBJ_SECURITY, IGNORE, UNLISTED, Takes.PERMISSIONS,
        readable=False, alias_of=P.Q_SECURITY, meaning=ValueMeaning.DESCRIPTOR, extended=True),
    PropertyRow(P.Q_SECURITY_INFORMATION, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, computed=security_information(P.Q_SECURITY)),
)
# fmt: on
