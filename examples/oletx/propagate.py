"""CONNTYPE_PARTNERTM_PROPAGATE (MS-DTCO 2.2.9.1.1.1): messages, and both ends of the exchange."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from mqis.protocol.cmpo.nameobject import NameObject
from mqis.runtime.oletx.application_connection import OleTxConnection
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

CONNTYPE_PARTNERTM_PROPAGATE = 0x101
DESCRIPTION_SIZE = 40


class Mtag(IntEnum):
    """The messages of this connection type that the example needs."""

    PROPAGATE = 0x2001
    PROPAGATED = 0x2002
    DUPLICATE = 0x2003


class IsolationLevel(IntEnum):
    """The isolation level of a transaction (OLETX_ISOLATION_LEVEL)."""

    UNSPECIFIED = 0xFFFFFFFF
    CHAOS = 0x00000010
    READ_UNCOMMITTED = 0x00000100
    READ_COMMITTED = 0x00001000
    REPEATABLE_READ = 0x00010000
    SERIALIZABLE = 0x00100000


@dataclass(frozen=True, slots=True)
class Propagate(Structure):
    """PARTNERTM_PROPAGATE_MTAG_PROPAGATE: guidTx, isoLevel, szDesc in 40 bytes with its zero."""

    NAME: ClassVar[str] = "PARTNERTM_PROPAGATE_MTAG_PROPAGATE"

    transaction: Guid
    isolation: int
    description: str

    @classmethod
    def decode(cls, reader: Reader) -> Propagate:
        transaction, isolation = reader.guid(), reader.u32()
        at = reader.offset
        text, zero, _ = reader.bytes(DESCRIPTION_SIZE).partition(b"\0")
        if not zero:
            raise WireError("szDesc is not terminated by a zero", at)
        return cls(transaction, isolation, text.decode("latin-1"))

    def encode(self, writer: Writer) -> None:
        text = self.description.encode("latin-1")
        if len(text) >= DESCRIPTION_SIZE or b"\0" in text:
            raise ValueError(
                f"the description is too long: it has at most {DESCRIPTION_SIZE - 1} characters"
            )
        writer.guid(self.transaction)
        writer.u32(self.isolation)
        writer.bytes(text.ljust(DESCRIPTION_SIZE, b"\0"))


class Subordinate:
    """Accepts transactions from partners; ``accept`` is a handler for the connection type."""

    def __init__(self) -> None:
        self.transactions: dict[Guid, Propagate] = {}

    async def accept(self, connection: OleTxConnection) -> None:
        async for message in connection:
            if message.type == Mtag.PROPAGATE:
                await connection.send(self._enlist(Propagate.from_bytes(message.body)))

    def _enlist(self, asked: Propagate) -> Mtag:
        known = self.transactions.setdefault(asked.transaction, asked)
        return Mtag.PROPAGATED if known is asked else Mtag.DUPLICATE


async def propagate(endpoint: OleTxEndpoint, partner: NameObject, transaction: Propagate) -> Mtag:
    """Asks a partner to take part in a transaction.

    The request for the connection and the message share a boxcar, as in 4.1.2.
    """
    async with endpoint.open(partner, CONNTYPE_PARTNERTM_PROPAGATE) as connection:
        connection.send_nowait(Mtag.PROPAGATE, transaction.to_bytes())
        answer = await connection.receive()
    if answer is None:
        raise ConnectionError(f"{partner} ended the connection")
    return Mtag(answer.type)
