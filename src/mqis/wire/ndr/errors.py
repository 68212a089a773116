"""What a decoder reports about a stub, with the status that a server faults with."""

from __future__ import annotations

from typing import Any

from mqis.wire.errors import WireError

#: RPC_X_NULL_REF_POINTER: a reference pointer that points nowhere.
NULL_REF_POINTER = 0x000006F4
#: RPC_X_ENUM_VALUE_OUT_OF_RANGE
ENUM_OUT_OF_RANGE = 0x000006F5
#: RPC_X_BAD_STUB_DATA: what [range], correlations and short stubs give (MS-RPCE 3.1.1.5.3).
BAD_STUB_DATA = 0x000006F7
#: nca_s_fault_invalid_tag: a union discriminant without an arm.
INVALID_TAG = 0x1C000006


class NdrError(WireError):
    """The stub is wrong: where, why, and the fault status that says so to the peer."""

    def __init__(self, reason: str, offset: int, status: int = BAD_STUB_DATA) -> None:
        super().__init__(reason, offset)
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (self.reason, self.offset, self.status)
