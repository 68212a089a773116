"""What a queue manager asks of its driver, and what it tells its application."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.queueing.message import Message
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.queuename import QueueName

# --- for the driver -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a TCP connection to a machine, then call ``connected`` or ``connect_failed``."""

    connection: int
    machine: str


@dataclass(frozen=True, slots=True)
class Write:
    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """Close a connection behind what was written, or give up connecting."""

    connection: int


Effect = Connect | Write | Close

# --- for the application --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message for the replication queue; session 0 is this queue manager itself."""

    identifier: MessageIdentifier
    body: bytes
    priority: int
    authenticated: bool
    session: int


@dataclass(frozen=True, slots=True)
class Notified:
    """A message for the notification queue: what a directory server tells us (MS-MQCN)."""

    identifier: MessageIdentifier
    body: bytes
    authenticated: bool
    session: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message for another queue of this machine, by its public or private name.

    ``peer`` is who brought it, which need not be who sent it; session 0 is this queue manager.
    """

    identifier: MessageIdentifier
    queue: QueueName
    body: bytes
    priority: int
    message_class: int
    authenticated: bool
    hops: int
    peer: Guid
    session: int


@dataclass(frozen=True, slots=True)
class Relayed:
    """Somebody else's message went on to the next hop, perhaps not for the first time."""

    identifier: MessageIdentifier
    target: Guid
    #: Who brought it.
    peer: Guid
    next_hop: Guid
    machine: str
    #: As it went out: the machines that have passed it on, this one included.
    hops: int
    session: int


@dataclass(frozen=True, slots=True)
class Stranded:
    """There is nobody to send a message to now. It waits here until there is, or its time is up."""

    identifier: MessageIdentifier
    target: Guid
    reason: str


@dataclass(frozen=True, slots=True)
class Nacked:
    """An own message did not arrive: its time or room ran out here, or the other side says so.

    ``message`` is what was sent, never what an acknowledgement brought back (E50).
    """

    identifier: MessageIdentifier
    machine: str
    message: Message
    message_class: int
    local: bool
    #: Here and below: it went, or was to go, by way of next hops, and may be somebody else's.
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Dropped:
    """The same for a message whose sender did not ask to be told: for journals only."""

    identifier: MessageIdentifier
    machine: str
    message: Message
    message_class: int
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A message went out on a session, perhaps not for the first time."""

    identifier: MessageIdentifier
    machine: str
    session: int
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The other queue manager has these messages."""

    identifiers: tuple[MessageIdentifier, ...]
    machine: str
    session: int
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A message came and was not delivered."""

    identifier: MessageIdentifier
    session: int
    #: For people; no program reads it.
    reason: str
    duplicate: bool = False

    @classmethod
    def as_duplicate(cls, identifier: MessageIdentifier, session: int) -> Refused:
        return cls(identifier, session, "duplicate", duplicate=True)


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """``machine`` is who was connected to; accepted sessions know an address only."""

    session: int
    peer: Guid
    machine: str | None
    address: str


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """Also for attempts that led to no session; then there is perhaps no peer.

    ``refused``: this side did not want the peer that connected.
    """

    session: int
    peer: Guid | None
    machine: str | None
    reason: str
    address: str = ""
    refused: bool = False


Event = (
    Delivered
    | Notified
    | Arrived
    | Relayed
    | Stranded
    | Nacked
    | Dropped
    | Written
    | Acknowledged
    | Refused
    | SessionOpened
    | SessionClosed
)
