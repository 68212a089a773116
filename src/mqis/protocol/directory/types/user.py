"""Users, whose certificates the directory keeps (MS-MQMQ 2.3.6)."""

from __future__ import annotations

from mqis.protocol.directory.types.ldap import CHANGE, FIND, AttributeSyntax, Ldap
from mqis.protocol.directory.types.property_row import PropertyRow
from mqis.protocol.directory.types.row_columns import (
    APPLY,
    IGNORE,
    UNLISTED,
    PropertyRole,
    Takes,
    ValueMeaning,
)
from mqis.wire.mqds.propid import PropId as P

# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    # 3.1.4.4 takes the SID of a new user from it, although no table lists it.
    PropertyRow(P.U_SID, APPLY, UNLISTED, Takes.SELF,
        meaning=ValueMeaning.SID, lasting=True, indexed=True, replicated=1,
        ldap=Ldap("objectSid", AttributeSyntax.SID, FIND)),
    PropertyRow(P.U_SIGN_CERT, APPLY, APPLY, Takes.SELF,
        required=True, meaning=ValueMeaning.CERTIFICATES, replicated=3,
        ldap=Ldap("mSMQSignCertificates", AttributeSyntax.OCTETS, CHANGE, b"")),
    PropertyRow(P.U_PARTITIONID, IGNORE, UNLISTED, Takes.NOTHING,
        role=PropertyRole.PARTITION, readable=False),
    PropertyRow(P.U_SEQNUM, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.SEQUENCE, readable=False, meaning=ValueMeaning.SEQUENCE),
    PropertyRow(P.U_DIGEST, APPLY, APPLY, Takes.SELF, required=True, indexed=True, replicated=2,
        ldap=Ldap("mSMQDigests", AttributeSyntax.GUIDS, CHANGE, ())),
    PropertyRow(P.U_ID, IGNORE, UNLISTED, Takes.NOTHING, role=PropertyRole.IDENTIFIER,
        ldap=Ldap("objectGUID", AttributeSyntax.GUID, FIND)),
)
# fmt: on
