"""Faults: the status codes of fault PDUs, and the errors that carry them."""

from __future__ import annotations

from enum import IntEnum

from mqis.protocol.errors import ProtocolError
from mqis.wire.ndr import stream as ndr
from mqis.wire.rpc.pdu_bodies import NakReason


class FaultStatus(IntEnum):
    """The status codes that this implementation sends; others are passed on as numbers."""

    ACCESS_DENIED = 0x0000_0005
    NO_CALL_ACTIVE = 0x0000_06BD
    IN_NULL_CONTEXT = 0x0000_06EF
    NULL_REF_POINTER = ndr.NULL_REF_POINTER
    ENUM_OUT_OF_RANGE = ndr.ENUM_OUT_OF_RANGE
    BYTE_COUNT_TOO_SMALL = 0x0000_06F6
    BAD_STUB_DATA = ndr.BAD_STUB_DATA
    SEC_PKG_ERROR = 0x0000_0721
    INVALID_TAG = ndr.INVALID_TAG
    INVALID_BOUND = 0x1C00_0007
    CANCEL = 0x1C00_000D
    UNSPEC = 0x1C00_0012
    CONTEXT_MISMATCH = 0x1C00_001A
    REMOTE_NO_MEMORY = 0x1C00_001B
    UNSUPPORTED_AUTHN_LEVEL = 0x1C00_001D
    OP_RNG_ERROR = 0x1C01_0002
    UNK_IF = 0x1C01_0003
    PROTO_ERROR = 0x1C01_000B
    OUT_ARGS_TOO_BIG = 0x1C01_0013
    SERVER_TOO_BUSY = 0x1C01_0014
    #: SEC_E_CONTEXT_EXPIRED: the caller has to log on again.
    CONTEXT_EXPIRED = 0x8009_0317


def status_name(status: int) -> str:
    try:
        return FaultStatus(status).name.lower()
    except ValueError:
        return f"0x{status:08x}"


class RpcFault(ProtocolError):
    """A fault: raised by a handler to send one, and by a client that received one."""

    def __init__(self, status: int, detail: str = "") -> None:
        super().__init__(f"{detail or 'the call failed'} (fault {status_name(status)})")
        self.status = int(status)
        self.detail = detail

    def __reduce__(self) -> tuple[type[RpcFault], tuple[int, str]]:
        return type(self), (self.status, self.detail)


class RpcConnectionError(ProtocolError):
    """The association has ended: refused, broken by the peer, or closed."""

    #: True if the text has the address of the peer, so that nobody writes it before the text again.
    names_peer = False


class BindFaultError(RpcConnectionError):
    """The server answered a bind, or a later leg of its authentication, with a fault."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the server refused the bind: {RpcFault(status)}")
        self.status = int(status)

    def __reduce__(self) -> tuple[type[BindFaultError], tuple[int]]:
        return type(self), (self.status,)


# --- A server's refusals of a client's errors: a bind_nak, a fault, or a silent disconnect --------


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
