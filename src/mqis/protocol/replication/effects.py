"""Effects: what the driver has to do once the transaction that decided it is committed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class Send:
    """Put a message into another machine's replication queue, under this identifier."""

    machine: str
    identifier: MessageIdentifier
    message: QueuedMessage


@dataclass(frozen=True, slots=True)
class RequestAnswered:
    """A change that was forwarded for a caller here has its result."""

    request: int
    hresult: int


@dataclass(frozen=True, slots=True)
class Changed:
    """Objects of these types are different now; whoever computes from them computes again."""

    object_types: frozenset[ObjectType]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message or a part of it was not taken; nothing has changed by it."""

    sender: str
    reason: RefusalReason
    #: For people; no program reads it.
    text: str
    #: The session that it came by; 0: none.
    session: int = 0


@dataclass(frozen=True, slots=True)
class Recovered:
    """A restored authority serves again.

    ``unique`` are the objects that only its own store had: nobody else has seen their last change.
    """

    partition: str
    unique: tuple[str, ...]
    asked: tuple[str, ...]
    silent: tuple[str, ...]


# --- for those who watch, and only if ``Replication.watched`` ------------------------------------


@dataclass(frozen=True, slots=True)
class ChangeApplied:
    """A change that another authority made is here."""

    sender: str
    partition: Guid
    seq: SequenceNumber


@dataclass(frozen=True, slots=True)
class RequestDecided:
    """The outcome of a change that another server requested; without changes it was refused."""

    requester: str
    number: int
    result: int
    changes: tuple[OwnChange, ...]


@dataclass(frozen=True, slots=True)
class RequestPassedOn:
    """A backup controller's request went on to the authority, or to who knows it."""

    requester: str
    number: int
    machine: str


Effect = (
    Send
    | RequestAnswered
    | Changed
    | Refusal
    | Recovered
    | ChangeApplied
    | RequestDecided
    | RequestPassedOn
)


# --- The reasons for which replication refuses a message, or a change in one ----------------------
# A refusal carries one of these and a text. Programs use the reason: it labels a metric and decides
# how loud the log line is. The text is for people; it names servers and numbers that came over the
# network, so no program may read anything out of it.


class RefusalReason(StrEnum):
    """The values are labels of ``mqis_replication_refusals_total``."""

    MALFORMED = "malformed"
    UNREACHABLE = "unreachable"
    IMPERSONATION = "impersonation"
    STRANGER = "stranger"
    REPLAYED = "replayed"
    CLOCK = "clock"
    OWN_PARTITION = "own_partition"
    WRONG_SOURCE = "wrong_source"
    UNKNOWN_PARTITION = "unknown_partition"
    UNSOLICITED = "unsolicited"
    INCONSISTENT = "inconsistent"
    OUTDATED = "outdated"
    #: The directory refused a change; the text is the directory's.
    NOT_APPLIED = "not_applied"


#: Reasons that also occur among well-behaved servers: messages cross each other, or come late.
HARMLESS = frozenset(
    {
        RefusalReason.UNSOLICITED,
        RefusalReason.OUTDATED,
        RefusalReason.UNKNOWN_PARTITION,
        RefusalReason.UNREACHABLE,
        RefusalReason.NOT_APPLIED,
    }
)


class Objection(NamedTuple):
    """The arguments of a refusal, from a function that only checks."""

    reason: RefusalReason
    text: str
