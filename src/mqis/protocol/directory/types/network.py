"""Connected networks, CN for short (MS-MQMQ 2.3.4)."""

from __future__ import annotations

from mqis.protocol.directory.types.ldap import FIND, NONE, AttributeSyntax, Ldap
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

NETWORK_PROTOCOLS = {1: "IP", 3: "IPX", 5: "foreign"}


# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    # No read table lists it, but clients need the protocol that they may set (8.1.10).
    PropertyRow(P.CN_PROTOCOLID, APPLY, APPLY, Takes.NOTHING,
        default=1, meaning=ValueMeaning.WORD, words=NETWORK_PROTOCOLS, replicated=2),
    PropertyRow(P.CN_NAME, APPLY, APPLY, Takes.NOTHING, role=PropertyRole.NAME, replicated=1,
        ldap=Ldap("cn", AttributeSyntax.TEXT, FIND)),
    PropertyRow(P.CN_GUID, APPLY, UNLISTED, Takes.NOTHING, role=PropertyRole.IDENTIFIER,
        ldap=Ldap("objectGUID", AttributeSyntax.GUID, FIND)),
    PropertyRow(P.CN_PARTITIONID, IGNORE, UNLISTED, Takes.NOTHING,
        role=PropertyRole.PARTITION, readable=False),
    PropertyRow(P.CN_SEQNUM, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.SEQUENCE, readable=False, meaning=ValueMeaning.SEQUENCE),
    PropertyRow(P.CN_SECURITY, IGNORE, UNLISTED, Takes.PERMISSIONS,
        role=PropertyRole.SECURITY, readable=False, meaning=ValueMeaning.DESCRIPTOR, replicated=3,
        ldap=Ldap("nTSecurityDescriptor", AttributeSyntax.DESCRIPTOR, NONE)),
)
# fmt: on
