"""What a server writes down of its replication: one record for everything that happens.

A record is a message as it stood on the wire, or one change of one object. Its fixed part tells
enough to follow a change from server to server without reading a body.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber


class RecordKind(IntEnum):
    #: The body is a replication message (MC-MQDSRP 2.2.6); ``operation`` is its Operation.
    MESSAGE = 1
    #: The body, if there is one, is a DirectoryChange; ``operation`` is its Command.
    CHANGE = 2


class RecordState(IntEnum):
    """What has become of the message or change at this moment."""

    #: A change that this server made as the authority; the body has all properties that were set.
    LOCAL = 1
    #: A message that this server has decided to send, in the transaction that decided it.
    QUEUED = 2
    #: It went out on a session, perhaps not for the first time.
    WRITTEN = 3
    #: The other queue manager has it.
    ACKNOWLEDGED = 4
    #: It did not arrive: its time or room ran out, or the other side refused it (``reason``).
    EXPIRED = 5
    #: A message came in.
    RECEIVED = 6
    #: A change is in this replica now; no body, the message that brought it has it.
    APPLIED = 7
    #: A message or change was not taken, and ``reason`` says why.
    REFUSED = 8


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One thing that happened; the server and the number of the record are its place's."""

    #: Microseconds since 1970.
    time_us: int
    kind: RecordKind
    state: RecordState
    #: The other server by name, or what is known of it; empty for a local change.
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
