"""The Incoming Message Notification Interface (MS-CMP 3.1.7.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mqis.wire.cmp.packet import Packet

if TYPE_CHECKING:
    from mqis.protocol.multiplexer.connection import Connection


class Notification(Protocol):
    """What a connection's owner is told. ``notify`` in ``events`` calls it.

    MS-DTCO has only the first two and takes a refusal for a message; a third is needed all the
    same, since a refusal is no message that MS-CMP could pass on.
    """

    def received(self, connection: Connection, packet: Packet) -> None:
        """3.1.7.4.1: ``packet`` with its fields and data; the data is a view, see ``Packet``."""

    def disconnected(self, connection: Connection) -> None:
        """3.1.7.4.2: the last that is heard of the connection."""

    def denied(self, connection: Connection, reason: int) -> None:
        """3.1.7.4.3: the connection still has to be disconnected."""
