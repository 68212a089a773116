"""A server's refusals of a client's errors: a bind_nak, a fault, or a silent disconnect."""

from __future__ import annotations

from mqis.protocol.rpc.faults import FaultStatus
from mqis.wire.rpc.bodies import NakReason


class Nak(Exception):
    """Refuses the bind and ends the connection."""

    def __init__(self, reason: NakReason) -> None:
        super().__init__(reason)
        self.reason = reason


class FaultAnswer(Exception):
    """Answers with a fault; ``final`` ends the connection."""

    def __init__(
        self,
        status: FaultStatus,
        *,
        context_id: int = 0,
        executed: bool = False,
        final: bool = True,
        call_id: int | None = None,
    ) -> None:
        self.status = status
        self.context_id = context_id
        self.executed = executed
        self.final = final
        #: The call that the fault is for, if it is not that of the current PDU.
        self.call_id = call_id


class Disconnect(Exception):
    """Ends the connection without an answer."""


def denied(context_id: int) -> FaultAnswer:
    return FaultAnswer(FaultStatus.ACCESS_DENIED, context_id=context_id, executed=True)
