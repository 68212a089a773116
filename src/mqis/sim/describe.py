"""Bodies of messages in the words of a trace."""

from __future__ import annotations

from mqis.wire.errors import WireError
from mqis.wire.mqdsrp.describing import TRACE, operation_name
from mqis.wire.mqdsrp.describing import describe as describe_message
from mqis.wire.mqdsrp.layout import operation_in
from mqis.wire.mqdsrp.messages import decode_message


def operation_of(body: bytes) -> str:
    """The name of the message's operation; part of the digest of a run."""
    return operation_name(operation_in(body))


def describe(body: bytes) -> str:
    """The message in one line, or the reason why it cannot be decoded."""
    try:
        return describe_message(decode_message(body), TRACE)
    except WireError as error:
        return f"damaged: {error}"
