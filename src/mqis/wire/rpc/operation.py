"""RPC interfaces as their IDL declares them: operations by number, with their stubs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mqis.wire.ndr import Parameters
from mqis.wire.rpc.syntax import NDR20, NDR64, SyntaxId

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Operation(Generic[Q, R]):
    """A method: its [in] and its [out] parameters."""

    opnum: int
    name: str
    request: Parameters[Q]
    response: Parameters[R]


@dataclass(frozen=True, slots=True)
class InterfaceDescription:
    """An interface; its callbacks have opnums of their own."""

    name: str
    syntax: SyntaxId
    operations: tuple[Operation[Any, Any], ...]
    #: The number of opnums in the IDL, which can be greater than the number of operations.
    opnums: int
    callbacks: tuple[Operation[Any, Any], ...] = ()
    transfer_syntaxes: tuple[SyntaxId, ...] = (NDR64, NDR20)
    strict_context_handles: bool = False
