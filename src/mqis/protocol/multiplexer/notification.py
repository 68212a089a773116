"""The Incoming Message Notification Interface (MS-CMP 3.1.7.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mqis.wire.cmp.packet import Packet

if TYPE_CHECKING:
    from mqis.protocol.multiplexer.connection import MultiplexedConnection


class Notification(Protocol):
    """The callbacks of a connection's owner, called by ``events.notify``.

    MS-DTCO has only the first two and treats a denial as a message; the third is needed all the
    same, since a denial is no message that MS-CMP could pass on.
    """

    def received(self, connection: MultiplexedConnection, packet: Packet) -> None:
        """Handles a user message (3.1.7.4.1); the packet's data is a view, see ``Packet``."""

    def disconnected(self, connection: MultiplexedConnection) -> None:
        """Handles the end of the connection (3.1.7.4.2); no further call follows."""

    def denied(self, connection: MultiplexedConnection, reason: int) -> None:
        """Handles a denial (3.1.7.4.3); the connection still has to be disconnected."""
