"""The effects of a multiplexer for the session below, and its events for the layer above."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.multiplexer.connection import MultiplexedConnection
from mqis.wire.cmp.packet import Packet

# --- for the session below ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendBoxcar:
    """Is sent by SendReceive, one at a time; ``boxcar_delivered`` or ``session_down`` follows."""

    data: bytes
    count: int

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class AskForConnections:
    """A request for connections (RT_CONNECTIONS); ``resources_granted`` or ``_refused`` ends it."""

    count: int


@dataclass(frozen=True, slots=True)
class ReleaseCall:
    """Lets the partner's SendReceive, for which ``receive`` returned False, return success."""


@dataclass(frozen=True, slots=True)
class TearDown:
    """Ends the session: by a forced teardown if it was idle, else by a problem teardown."""

    problem: bool
    reason: str


Effect = SendBoxcar | AskForConnections | ReleaseCall | TearDown

# --- for the layer above --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """An own connection has its id; its request, which is never acknowledged, is in a boxcar."""

    connection: MultiplexedConnection


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """An own connection got no slot. It was never opened, and no other event follows."""

    connection: MultiplexedConnection
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectionRequested:
    """The partner opened a connection of ``connection.type``: ``accept`` or ``deny`` it."""

    connection: MultiplexedConnection


@dataclass(frozen=True, slots=True)
class Denied:
    """The partner denied an own connection, which still has to be disconnected."""

    connection: MultiplexedConnection
    reason: int


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A user message. Its body is a view: copy it to keep it, or the whole boxcar stays."""

    connection: MultiplexedConnection
    packet: Packet

    @property
    def body(self) -> bytes | memoryview:
        return self.packet.data


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The end of a connection: orderly, or because the session ended."""

    connection: MultiplexedConnection
    session_down: bool


@dataclass(frozen=True, slots=True)
class Writable:
    """There is room again, after ``send`` was refused for lack of it."""

    connection: MultiplexedConnection


Event = (
    ConnectionOpened
    | ConnectFailed
    | ConnectionRequested
    | Denied
    | MessageReceived
    | Disconnected
    | Writable
)
