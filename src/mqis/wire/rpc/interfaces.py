"""Interfaces and transfer syntaxes by UUID and version (p_syntax_id_t)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mqis.wire.guid import Guid
from mqis.wire.ndr import Parameters
from mqis.wire.rpc.pdu_header import Fields
from mqis.wire.writer import Writer


@dataclass(frozen=True, slots=True)
class SyntaxId:
    """An interface or transfer syntax. The version on the wire is a u32, minor in the high half."""

    uuid: Guid
    major: int
    minor: int = 0

    @classmethod
    def decode(cls, fields: Fields) -> SyntaxId:
        uuid, version = fields.guid(), fields.u32()
        return cls(uuid, version & 0xFFFF, version >> 16)

    def encode(self, writer: Writer) -> None:
        writer.guid(self.uuid)
        writer.u16(self.major)
        writer.u16(self.minor)

    def __hash__(self) -> int:
        """The UUID's hash alone: versions hardly differ, and every call looks one up."""
        return hash(self.uuid.raw)

    def __str__(self) -> str:
        return f"{self.uuid} v{self.major}.{self.minor}"


NO_SYNTAX = SyntaxId(Guid.NULL, 0)
NDR20 = SyntaxId(Guid.parse("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2)
NDR64 = SyntaxId(Guid.parse("71710533-beba-4937-8319-b5dbef9ccc36"), 1)

#: Bind-time features (MS-RPCE 2.2.2.14): the last eight bytes of the UUID are a bit mask.
FEATURES = Guid.parse("6cb71c2c-9812-4540-0000-000000000000").raw[:8]
SECURITY_CONTEXT_MULTIPLEXING = 0x01
KEEP_CONNECTION_ON_ORPHAN = 0x02


def feature_bits(syntax: SyntaxId) -> int | None:
    """The features that a pseudo syntax requests; None for a real transfer syntax."""
    if syntax.uuid.raw[:8] != FEATURES or syntax.major != 1:
        return None
    return int.from_bytes(syntax.uuid.raw[8:], "little")


# --- RPC interfaces as their IDL declares them: operations by number, with their stubs ------------

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
