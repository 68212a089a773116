"""How a server answers what a client does wrong: a bind_nak, a fault, or no word at all."""

from __future__ import annotations

from mqis.protocol.rpc.faults import FaultStatus
from mqis.wire.rpc.bodies import NakReason


class Nak(Exception):
    """Refuse the bind and end the connection."""

    def __init__(self, reason: NakReason) -> None:
        super().__init__(reason)
        self.reason = reason


class FaultAnswer(Exception):
    """Answer with a fault; ``final`` ends the connection."""

    def __init__(
        self,
        status: FaultStatus,
        *,
        context_id: int = 0,
        executed: bool = False,
        final: bool = True,
        call_id: int | None = None,
    ) -> None:
        super().__init__(status)
        self.status = status
        self.context_id = context_id
        self.executed = executed
        self.final = final
        #: Whose fault it is, if not that of the PDU at hand.
        self.call_id = call_id


class Disconnect(Exception):
    """Say nothing and end the connection."""


def denied(context_id: int) -> FaultAnswer:
    return FaultAnswer(FaultStatus.ACCESS_DENIED, context_id=context_id, executed=True)
