"""The effects of a queue manager for its driver, and its events for the application."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.queuename import QueueName

# --- for the driver -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connect:
    """Tells the driver to connect to a machine, and to call ``connected`` or ``connect_failed``."""

    connection: int
    machine: str


@dataclass(frozen=True, slots=True)
class Write:
    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """Tells the driver to close a connection after its writes, or to give up connecting."""

    connection: int


Effect = Connect | Write | Close

# --- for the application --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message for the replication queue; session 0: from this queue manager itself."""

    identifier: MessageIdentifier
    body: bytes
    priority: int
    authenticated: bool
    session: int


@dataclass(frozen=True, slots=True)
class Notified:
    """A message for the notification queue: a change that a directory server reports (MS-MQCN)."""

    identifier: MessageIdentifier
    body: bytes
    authenticated: bool
    session: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message for another queue of this machine, by its public or private name.

    ``peer`` is the neighbour that brought it, perhaps not its sender; session 0: this machine.
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
    """Another machine's message was sent to the next hop, perhaps not for the first time."""

    identifier: MessageIdentifier
    target: Guid
    #: The neighbour that brought it.
    peer: Guid
    next_hop: Guid
    machine: str
    #: The hop count as sent: the machines that have passed it on, this one included.
    hops: int
    session: int


@dataclass(frozen=True, slots=True)
class Stranded:
    """A message has no reachable next hop. It waits here until there is one, or it expires."""

    identifier: MessageIdentifier
    target: Guid
    reason: str


@dataclass(frozen=True, slots=True)
class Nacked:
    """An own message did not arrive: it expired or found no room here, or the other side says so.

    ``message`` is the one that was sent, never the body of an acknowledgement (E50).
    """

    identifier: MessageIdentifier
    machine: str
    message: QueuedMessage
    message_class: int
    local: bool
    #: Here and below: it is routed by way of next hops, and may be another machine's.
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message did not arrive and its sender asked for no acknowledgement; for journals only."""

    identifier: MessageIdentifier
    machine: str
    message: QueuedMessage
    message_class: int
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A message was sent on a session, perhaps not for the first time."""

    identifier: MessageIdentifier
    machine: str
    session: int
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The other queue manager has acknowledged these messages."""

    identifiers: tuple[MessageIdentifier, ...]
    machine: str
    session: int
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A received message was refused."""

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
    """A session is open; ``machine`` is known if this side connected, else only the address."""

    session: int
    peer: Guid
    machine: str | None
    address: str


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """A session ended, or an attempt led to none; then ``peer`` may be None.

    ``refused``: this side refused the peer that connected.
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
