"""The Connection object (MS-CMP 3.1.1.1)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from mqis.wire.cmp.packet import Packet

Sink = Callable[[int, bytes], None]


class Notification(Protocol):
    """The Incoming Message Notification Interface (3.1.7.4): the callbacks of a connection's owner.

    MS-DTCO has only the first two and treats a denial as a message; the third is needed all the
    same, since a denial is no message that MS-CMP could pass on.
    """

    def received(self, connection: MultiplexedConnection, packet: Packet) -> None:
        """Handles a user message (3.1.7.4.1); the packet's data is a view, see ``Packet``."""

    def disconnected(self, connection: MultiplexedConnection) -> None:
        """Handles the end of the connection (3.1.7.4.2); no further call follows."""

    def denied(self, connection: MultiplexedConnection, reason: int) -> None:
        """Handles a denial (3.1.7.4.3); the connection still has to be disconnected."""


class ConnectionState(Enum):
    """The state of a connection. The text has only one flag, Accepted.

        outgoing   WAITING -> OPEN -> (DENIED ->) DISCONNECTING -> GONE
        incoming   UNDECIDED -> OPEN or REFUSED -> GONE

    and from any state to GONE when the session ends.
    """

    WAITING = "waiting for a slot"
    OPEN = "open"
    DENIED = "denied by the partner"
    DISCONNECTING = "disconnecting"
    UNDECIDED = "neither accepted nor denied yet"
    REFUSED = "denied here"
    GONE = "gone"


#: Accepted = true (3.1.4.2, 3.1.5.5): messages from the partner are handed on.
ACCEPTED = (ConnectionState.OPEN, ConnectionState.DENIED, ConnectionState.DISCONNECTING)


class MultiplexedConnection:
    """One connection, seen from either end. The layer above sets ``interface`` and ``sink`` only.

    ``id`` is None until it has a slot. Connections compare by identity, since ids are reused.
    """

    __slots__ = (
        "id",
        "interface",
        "outgoing",
        "paused",
        "queued",
        "sink",
        "state",
        "type",
        "unread",
    )

    def __init__(
        self,
        connection_type: int,
        state: ConnectionState,
        *,
        outgoing: bool,
        connection_id: int | None = None,
        interface: Notification | None = None,
    ) -> None:
        self.id = connection_id
        self.type = connection_type
        self.state = state
        self.outgoing = outgoing
        #: The Incoming Message Notification Interface, set by the layer above.
        self.interface = interface
        #: Called with type and body of a user message inside ``receive``, unless the message has to
        #: wait; no event is made of it. Set by the layer above, too; it may call the multiplexer,
        #: but must not raise.
        self.sink: Sink | None = None
        #: Bytes waiting to be sent, and to be read.
        self.queued = 0
        self.unread = 0
        self.paused = False

    def __repr__(self) -> str:
        direction = "outgoing" if self.outgoing else "incoming"
        return f"<{direction} connection {self.id}, type 0x{self.type:x}, {self.state.value}>"

    @property
    def accepted(self) -> bool:
        return self.state in ACCEPTED
