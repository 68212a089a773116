"""Bodies of messages in the words of a trace."""

from __future__ import annotations

from mqis.wire.errors import WireError
from mqis.wire.mqdsrp.describing import TRACE, operation_name
from mqis.wire.mqdsrp.describing import describe as describe_message
from mqis.wire.mqdsrp.layout import operation_in
from mqis.wire.mqdsrp.messages import decode_message
from mqis.wire.mqqb.packet import UserMessage, decode_packet


def operation_of(body: bytes) -> str:
    """The name of the message's operation; part of the digest of a run."""
    return operation_name(operation_in(body))


def describe(body: bytes) -> str:
    """The message in one line, or the reason why it cannot be decoded."""
    try:
        return describe_message(decode_message(body), TRACE)
    except WireError as error:
        return f"damaged: {error}"


# --- Decodes the packets of a simulated network ---------------------------------------------------


def message_in(packet: bytes) -> UserMessage | None:
    """The message in a packet; None if the bytes are something else or damaged."""
    try:
        found = decode_packet(packet)
    except WireError:
        return None
    return found if isinstance(found, UserMessage) else None
