"""The envelope of all requests and answers (RFC 4511 4.1.1), and a stream of them.

LDAPMessage ::= SEQUENCE { messageID INTEGER (0 .. 2147483647), protocolOp CHOICE { ... },
    controls [0] SEQUENCE OF Control OPTIONAL }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from mqis.wire.errors import WireError
from mqis.wire.ldap import ber
from mqis.wire.ldap.ber import CONSTRUCTED, CONTEXT, SEQUENCE, BerReader
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry, RenameEntry
from mqis.wire.ldap.controls import LdapControl
from mqis.wire.ldap.requests import (
    Abandon,
    ExtendedRequest,
    LdapRequest,
    SaslBind,
    SearchRequest,
    Unbind,
    decode_bind,
)
from mqis.wire.ldap.responses import (
    AddResponse,
    BindResponse,
    DeleteResponse,
    ExtendedResponse,
    LdapResponse,
    ModifyResponse,
    RenameResponse,
    SearchDone,
    SearchEntry,
    SearchReference,
)

MAXIMUM_ID: Final = 0x7FFFFFFF
#: Longer messages are refused: Active Directory's own limit for an answer of one entry is lower.
MAXIMUM_MESSAGE: Final = 16 * 1024 * 1024
_CONTROLS: Final = CONTEXT | CONSTRUCTED
#: Octets in which tag and length of a message fit.
_START: Final = 6

LdapOperation = LdapRequest | LdapResponse

_OPERATIONS: Final[dict[int, Callable[[BerReader], LdapOperation]]] = {
    SaslBind.TAG: decode_bind,
    **{
        operation.TAG: operation.decode
        for operation in (
            Unbind,
            SearchRequest,
            ModifyEntry,
            AddEntry,
            DeleteEntry,
            RenameEntry,
            Abandon,
            ExtendedRequest,
            BindResponse,
            SearchEntry,
            SearchReference,
            SearchDone,
            ModifyResponse,
            AddResponse,
            DeleteResponse,
            RenameResponse,
            ExtendedResponse,
        )
    },
}


@dataclass(frozen=True, slots=True)
class LdapMessage:
    """One message in either direction."""

    id: int
    operation: LdapOperation
    controls: tuple[LdapControl, ...] = ()

    def encode(self) -> bytes:
        if not 0 <= self.id <= MAXIMUM_ID:
            raise ValueError(f"{self.id} is not the id of a message")
        controls = b""
        if self.controls:
            controls = ber.element(_CONTROLS, *(control.encode() for control in self.controls))
        return ber.sequence(ber.integer(self.id), self.operation.encode(), controls)

    @classmethod
    def decode(cls, data: bytes) -> LdapMessage:
        """Decodes one whole message."""
        outer = BerReader(data)
        reader = outer.enter("a message")
        outer.expect_end("a message")
        number = reader.integer("the id of a message")
        if not 0 <= number <= MAXIMUM_ID:
            raise reader.error(f"{number} is not the id of a message")
        operation = _decode_operation(reader)
        controls = _decode_controls(reader) if reader.tag == _CONTROLS else ()
        reader.expect_end("a message")
        return cls(number, operation, controls)


def _decode_operation(reader: BerReader) -> LdapOperation:
    tag = reader.tag
    decode = _OPERATIONS.get(tag)
    if decode is None:
        raise reader.error(
            "an operation is missing" if tag < 0 else f"no operation has tag {tag:02x}"
        )
    inside = reader.enter("an operation", tag)
    operation = decode(inside)
    inside.expect_end("an operation")
    return operation


def _decode_controls(reader: BerReader) -> tuple[LdapControl, ...]:
    rows, found = reader.enter("controls", _CONTROLS), []
    while rows.tag >= 0:
        found.append(LdapControl.decode(rows.enter("a control")))
    return tuple(found)


class MessageStream:
    """Splits what arrives on a connection into messages; no more than one message is kept."""

    def __init__(self, limit: int = MAXIMUM_MESSAGE) -> None:
        self._limit = limit
        self._buffer = bytearray()
        #: Bytes of the stream before the buffer, for the offsets of errors.
        self._before = 0

    @property
    def pending(self) -> int:
        """The number of bytes that belong to no complete message yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def messages(self) -> Iterator[tuple[LdapMessage, int]]:
        """Takes the complete messages out, each with its size."""
        while (size := self._size()) is not None and size <= len(self._buffer):
            data = bytes(self._buffer[:size])
            del self._buffer[:size]
            yield self._decode(data), size
            self._before += size

    def _decode(self, data: bytes) -> LdapMessage:
        try:
            return LdapMessage.decode(data)
        except WireError as error:
            raise WireError(error.reason, self._before + error.offset) from None

    def _size(self) -> int | None:
        """The size of the next message with its tag and length; None if too little has arrived."""
        start = self._buffer[:_START]
        if start[:1] not in (b"", bytes((SEQUENCE,))):
            raise WireError(f"a message begins with {start[0]:02x}, not 30: not LDAP", self._before)
        if len(start) < 2:
            return None
        size, long = 2 + start[1], start[1] & 0x7F
        if start[1] & 0x80:
            if not 0 < long <= _START - 2:
                raise WireError(f"a message has a length of {long} octets", self._before + 1)
            if len(start) < 2 + long:
                return None
            size = 2 + long + int.from_bytes(start[2 : 2 + long], "big")
        if size > self._limit:
            raise WireError(f"a message of {size} bytes; at most {self._limit}", self._before)
        return size
