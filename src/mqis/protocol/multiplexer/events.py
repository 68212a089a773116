"""What a multiplexer asks of the session below, and what it tells the layer above."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.multiplexer.connection import Connection
from mqis.wire.cmp.packet import Packet

# --- for the session below ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendBoxcar:
    """Call SendReceive, then ``boxcar_delivered`` or ``session_down``. Never two at a time."""

    data: bytes
    count: int

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class NegotiateResources:
    """Ask for so many connections (RT_CONNECTIONS), then ``resources_granted`` or ``_refused``."""

    count: int


@dataclass(frozen=True, slots=True)
class ReleaseCall:
    """The partner's SendReceive, for which ``receive`` said False, may return success now."""


@dataclass(frozen=True, slots=True)
class TearDown:
    """End the session: a forced teardown when it was idle, else a problem teardown."""

    problem: bool
    reason: str


Effect = SendBoxcar | NegotiateResources | ReleaseCall | TearDown

# --- for the layer above --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    """An own connection has its id, and its request stands in a boxcar. Nobody acknowledges one."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """An own connection found no slot. It was never there, and nothing else comes for it."""

    connection: Connection
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectionRequested:
    """The partner opened a connection of ``connection.type``: ``accept`` or ``deny`` it."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class Denied:
    """The partner denied an own connection, which still has to be disconnected."""

    connection: Connection
    reason: int


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A user message. Its body is a view: copy it to keep it, or the whole boxcar stays."""

    connection: Connection
    packet: Packet

    @property
    def message_type(self) -> int:
        return self.packet.user_msg_type

    @property
    def body(self) -> bytes | memoryview:
        return self.packet.data


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The end of a connection: of an orderly one, or because the session ended."""

    connection: Connection
    session_down: bool


@dataclass(frozen=True, slots=True)
class Writable:
    """``send`` was refused for want of room, and there is some again."""

    connection: Connection


Event = (
    Opened
    | ConnectFailed
    | ConnectionRequested
    | Denied
    | MessageReceived
    | Disconnected
    | Writable
)
