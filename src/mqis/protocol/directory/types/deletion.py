"""Deleted objects, of which a tombstone is left (MS-MQMQ 2.3.13)."""

from __future__ import annotations

from mqis.protocol.directory.types.columns import IGNORE, UNLISTED, Takes
from mqis.protocol.directory.types.row import PropertyRow
from mqis.wire.mqds.propid import PropId as P

# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    PropertyRow(P.D_SEQNUM, IGNORE, UNLISTED, Takes.NOTHING, readable=False),
    PropertyRow(P.D_PARTITIONID, IGNORE, UNLISTED, Takes.NOTHING, readable=False),
    PropertyRow(P.D_SCOPE, IGNORE, UNLISTED, Takes.NOTHING, readable=False),
    PropertyRow(P.D_OBJTYPE, IGNORE, UNLISTED, Takes.NOTHING, readable=False),
    PropertyRow(P.D_IDENTIFIER, IGNORE, UNLISTED, Takes.NOTHING, readable=False),
)
# fmt: on
