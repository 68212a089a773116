"""Decodes the packets of a simulated network."""

from __future__ import annotations

from mqis.wire.errors import WireError
from mqis.wire.mqqb.packet import UserMessage, decode_packet


def message_in(packet: bytes) -> UserMessage | None:
    """The message in a packet; None if the bytes are something else or damaged."""
    try:
        found = decode_packet(packet)
    except WireError:
        return None
    return found if isinstance(found, UserMessage) else None
