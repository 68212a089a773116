"""The effects of a multiplexer for the session below, and its events for the layer above."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mqis.protocol.multiplexer.multiplexed import MultiplexedConnection
from mqis.wire.cmp.packet import Packet
from mqis.wire.errors import MqisError

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


# --- Errors raised to the layer above -------------------------------------------------------------
# Misuse is a ``ValueError``.


class LimitLevel(Enum):
    """The level whose limit a message has reached."""

    CONNECTION = "connection"
    SESSION = "session"
    PROCESS = "process"


class NotOpen(MqisError):
    """The connection or session does not exist, or its state does not allow the operation."""


class Congested(MqisError):
    """Too much waits to be sent; the event ``Writable`` follows when there is room again."""

    def __init__(self, level: LimitLevel) -> None:
        super().__init__(f"too much is waiting to be sent on this {level.value}")
        self.level = level

    def __reduce__(self) -> tuple[type[Congested], tuple[LimitLevel]]:
        return type(self), (self.level,)


# --- The counters of a multiplexer ----------------------------------------------------------------


@dataclass(slots=True)
class MultiplexerStatistics:
    """Counts since the start of the session."""

    boxcars_sent: int = 0
    messages_sent: int = 0
    boxcars_received: int = 0
    messages_received: int = 0
    #: Boxcars whose header was wrong.
    refused: int = 0
    #: Messages with an unknown tag or past the end, and all that follow in the boxcar.
    discarded: int = 0
    #: Messages that had no connection in the right state.
    ignored: int = 0
    #: Requests beyond the granted slots, for which the opener waits for ever (E-CMP-13).
    over_allocated: int = 0
