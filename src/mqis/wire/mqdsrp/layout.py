"""Byte offsets of the fixed fields of replication messages (MC-MQDSRP 2.2.4 to 2.2.6).

For readers that look at a few fields of very many bodies and do not decode them. ``messages`` and
``change`` describe the whole layout.
"""

from __future__ import annotations

from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import MessageOperation, Sync0
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber

# --- messages, from the start of the body ---------------------------------------------------------

OPERATION_AT = 17

PROPAGATION_COUNT_AT = 19
PROPAGATION_CHANGES_AT = 21
#: The count of a heartbeat, which stands behind the changes of every propagation.
HEARTBEAT_COUNT_SIZE = 2

SYNC_REQUEST_PARTITION_AT = 18
SYNC_REQUEST_IS_SYNC0_AT = 58

SYNC_REPLY_PARTITION_AT = 18
SYNC_REPLY_FROM_AT = 34
SYNC_REPLY_TO_AT = 42
SYNC_REPLY_COUNT_AT = 58
SYNC_REPLY_COMPLETE_AT = 62
SYNC_REPLY_CHANGES_AT = 66

PSC_ACK_PARTITION_AT = 34
PSC_ACK_SEQ_AT = 50

# --- a change, from its start ---------------------------------------------------------------------

CHANGE_USE_GUID_AT = 1
#: The path with its 16-bit zero, or the GUID.
CHANGE_NAME_AT = 2
CHANGE_GUID_SIZE = 16
PATH_END_SIZE = 2

# --- a change, from its PartitionID, which stands behind the name ---------------------------------

CHANGE_PREVIOUS_SEQ_AT = 16
CHANGE_SEQ_AT = 24
CHANGE_PURGED_SEQ_AT = 32
CHANGE_PROPERTY_COUNT_AT = 40
CHANGE_PROPERTY_IDS_AT = 41
PROPERTY_ID_SIZE = 4


def operation_in(body: bytes) -> int:
    """The number of the operation; ``IndexError`` for bytes that are too short for a message."""
    return body[OPERATION_AT]


def is_partial_reply(body: bytes) -> bool:
    """Returns whether this is a sync reply of a full synchronisation that others follow."""
    more = body[SYNC_REPLY_COMPLETE_AT : SYNC_REPLY_COMPLETE_AT + 1]
    return operation_in(body) == MessageOperation.SYNC_REPLY and more == bytes([Sync0.MORE])


def asked_from(body: bytes) -> tuple[Guid, SequenceNumber]:
    """The partition that a sync request asks for, and the number from which it does."""
    reader = Reader(body, SYNC_REQUEST_PARTITION_AT)
    return reader.guid(), SequenceNumber.decode(reader)
