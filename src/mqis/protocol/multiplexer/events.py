"""The effects of a multiplexer for the session below, and its events for the layer above."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.multiplexer.connection import Connection
from mqis.wire.cmp.packet import Packet

# --- for the session below ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendBoxcar:
    """A boxcar to send by SendReceive, one at a time; then ``boxcar_delivered`` or ``_failed``."""

    data: bytes
    count: int

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class NegotiateResources:
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


Effect = SendBoxcar | NegotiateResources | ReleaseCall | TearDown

# --- for the layer above --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    """An own connection has its id; its request, which is never acknowledged, is in a boxcar."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """An own connection got no slot. It was never opened, and no other event follows."""

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
    """The end of a connection: orderly, or because the session ended."""

    connection: Connection
    session_down: bool


@dataclass(frozen=True, slots=True)
class Writable:
    """There is room again, after ``send`` was refused for lack of it."""

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


def notify(event: Event) -> None:
    """Passes an event to its connection's interface, if it is one of the three kinds."""
    interface = event.connection.interface
    if interface is None:
        return
    if isinstance(event, MessageReceived):
        interface.received(event.connection, event.packet)
    elif isinstance(event, Denied):
        interface.denied(event.connection, event.reason)
    elif isinstance(event, Disconnected):
        interface.disconnected(event.connection)
