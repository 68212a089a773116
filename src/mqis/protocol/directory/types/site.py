"""Sites (MS-MQMQ 2.3.3)."""

from __future__ import annotations

from mqis.protocol.directory.types.computing import given_name, security_information
from mqis.protocol.directory.types.ldap import ALL, FIND, NONE, AttributeSyntax, Ldap, Unkept
from mqis.protocol.directory.types.property_row import PropertyRow
from mqis.protocol.directory.types.row_columns import (
    APPLY,
    IGNORE,
    INVALID,
    UNLISTED,
    PropertyRole,
    Takes,
    ValueMeaning,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P

# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    PropertyRow(P.S_PATHNAME, IGNORE, INVALID, Takes.NOTHING,
        role=PropertyRole.NAME, lasting=True, replicated=4,
        ldap=Ldap("cn", AttributeSyntax.TEXT, FIND)),
    PropertyRow(P.S_SITEID, APPLY, INVALID, Takes.NOTHING, role=PropertyRole.IDENTIFIER,
        ldap=Ldap("objectGUID", AttributeSyntax.GUID, FIND)),
    PropertyRow(P.S_GATES, APPLY, APPLY, Takes.SITE,
        default=(), refers_to=ObjectType.MACHINE, replicated=1),
    # Note <120>: nobody else could name the authority of the site.
    PropertyRow(P.S_PSC, APPLY, APPLY, Takes.ENTERPRISE,
        default="", replicated=5,
        ldap=Unkept("")),
    PropertyRow(P.S_INTERVAL1, APPLY, APPLY, Takes.NOTHING, default=2, replicated=2,
        ldap=Ldap("mSMQInterval1", AttributeSyntax.UNSIGNED_16, ALL, 2)),
    PropertyRow(P.S_INTERVAL2, APPLY, APPLY, Takes.NOTHING, default=10, replicated=3,
        ldap=Ldap("mSMQInterval2", AttributeSyntax.UNSIGNED_16, ALL, 10)),
    PropertyRow(P.S_PARTITIONID, IGNORE, UNLISTED, Takes.NOTHING,
        role=PropertyRole.PARTITION, readable=False),
    PropertyRow(P.S_SEQNUM, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.SEQUENCE, readable=False, meaning=ValueMeaning.SEQUENCE),
    PropertyRow(P.S_FULL_NAME, IGNORE, UNLISTED, Takes.NOTHING, computed=given_name(P.S_FULL_NAME)),
    # The text wants it on every site, but only migrated ones have it (E-MQDSSM-11).
    PropertyRow(P.S_NT4_STUB, APPLY, APPLY, Takes.NOTHING, default=0, meaning=ValueMeaning.FLAG,
        ldap=Ldap("mSMQNt4Stub", AttributeSyntax.STUB, ALL, 0)),
    PropertyRow(P.S_FOREIGN, APPLY, APPLY, Takes.NOTHING, default=0, meaning=ValueMeaning.FLAG,
        ldap=Ldap("mSMQSiteForeign", AttributeSyntax.ANY_FLAG, ALL, 0)),
    # It reads as zero, and that a write has no effect is a MUST (8.2.8).
    PropertyRow(P.S_DONOTHING, IGNORE, IGNORE, Takes.NOTHING, default=0, reserved=True),
    PropertyRow(P.S_SECURITY, INVALID, UNLISTED, Takes.PERMISSIONS,
        role=PropertyRole.SECURITY, readable=False, meaning=ValueMeaning.DESCRIPTOR, replicated=7,
        ldap=Ldap("nTSecurityDescriptor", AttributeSyntax.DESCRIPTOR, NONE)),
    PropertyRow(P.S_PSC_SIGNPK, APPLY, UNLISTED, Takes.ENTERPRISE,
        readable=False, default=b"", meaning=ValueMeaning.KEYS, replicated=6),
    PropertyRow(P.S_SECURITY_INFORMATION, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, computed=security_information(P.S_SECURITY)),
)
# fmt: on
