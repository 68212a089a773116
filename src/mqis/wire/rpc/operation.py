"""An interface as its IDL has it: operations by number, their stubs by type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mqis.wire.ndr import Parameters
from mqis.wire.rpc.syntax import NDR20, NDR64, SyntaxId

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Operation(Generic[Q, R]):
    """One method: its [in] and its [out] parameters."""

    opnum: int
    name: str
    request: Parameters[Q]
    response: Parameters[R]


@dataclass(frozen=True, slots=True)
class InterfaceDescription:
    """A whole interface; callbacks are numbered apart from the operations."""

    name: str
    syntax: SyntaxId
    operations: tuple[Operation[Any, Any], ...]
    #: The numbers that the IDL takes up, which can be more than there are operations.
    opnums: int
    callbacks: tuple[Operation[Any, Any], ...] = ()
    transfer_syntaxes: tuple[SyntaxId, ...] = (NDR64, NDR20)
    strict_context_handles: bool = False
