"""Deleted objects, of which a tombstone is left (MS-MQMQ 2.3.13)."""

from __future__ import annotations

from mqis.protocol.directory.types.ldap import FIND, AttributeSyntax, Ldap, Unkept
from mqis.protocol.directory.types.property_row import PropertyRow
from mqis.protocol.directory.types.row_columns import IGNORE, UNLISTED, Takes
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId as P

# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    PropertyRow(P.D_SEQNUM, IGNORE, UNLISTED, Takes.NOTHING, readable=False,
        ldap=Unkept(bytes(8))),
    PropertyRow(P.D_PARTITIONID, IGNORE, UNLISTED, Takes.NOTHING, readable=False,
        ldap=Unkept(Guid.NULL)),
    PropertyRow(P.D_SCOPE, IGNORE, UNLISTED, Takes.NOTHING, readable=False,
        ldap=Unkept(1)),
    PropertyRow(P.D_OBJTYPE, IGNORE, UNLISTED, Takes.NOTHING, readable=False),
    PropertyRow(P.D_IDENTIFIER, IGNORE, UNLISTED, Takes.NOTHING, readable=False,
        ldap=Ldap("objectGUID", AttributeSyntax.GUID, FIND)),
)
# fmt: on
