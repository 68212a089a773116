"""The journal record: one entry in a server's log of its replication.

A record is a message as it was on the wire, or one change of one object. Its fixed fields suffice
to follow a change from server to server without decoding a body.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import Message, decode_message
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber


class RecordKind(IntEnum):
    #: The body is a replication message (MC-MQDSRP 2.2.6); ``operation`` is its Operation.
    MESSAGE = 1
    #: The body, if there is one, is a DirectoryChange; ``operation`` is its Command.
    CHANGE = 2


class RecordState(IntEnum):
    """The state of the message or change when the record was written."""

    #: This server made the change as the authority; the body has all properties that were set.
    LOCAL = 1
    #: This server decided to send the message, in the same transaction.
    QUEUED = 2
    #: The message went out on a session, perhaps not for the first time.
    WRITTEN = 3
    #: The other queue manager acknowledged the message.
    ACKNOWLEDGED = 4
    #: The message was not delivered: timeout, full quota or refusal (``reason``).
    EXPIRED = 5
    #: A message arrived.
    RECEIVED = 6
    #: The change was applied to this replica; the body is in the message that brought it.
    APPLIED = 7
    #: A message or change was refused, and ``reason`` says why.
    REFUSED = 8
    #: This server, the authority, gives out no number above ``previous_seq``, up to ``seq``.
    SKIPPED = 9


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One event; the server and the record's number follow from where the record is stored."""

    #: Microseconds since 1970.
    time_us: int
    kind: RecordKind
    state: RecordState
    #: The other server's name, or whatever identifies it. For a local change the user or server
    #: that asked for it; empty if nobody did.
    peer: str = ""
    message: MessageIdentifier | None = None
    session: int = 0
    operation: int = 0
    partition: Guid = Guid.NULL
    seq: SequenceNumber = SequenceNumber.MIN
    previous_seq: SequenceNumber = SequenceNumber.MIN
    object_type: int = 0
    object_id: Guid = Guid.NULL
    reason: str = ""
    body: bytes = b""


# --- The decoder for the body of a journal record -------------------------------------------------


def decode_body(record: JournalRecord) -> Message | DirectoryChange | None:
    """Decodes the message or change in the body; returns None if the record has no body."""
    if not record.body:
        return None
    if record.kind is RecordKind.MESSAGE:
        return decode_message(record.body)
    reader = Reader(record.body)
    change = DirectoryChange.decode(reader)
    reader.expect_end("the change")
    return change
