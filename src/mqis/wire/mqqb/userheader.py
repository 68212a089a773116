"""UserHeader (MS-MQMQ 2.2.19.2): source, queues, times, and the list of headers that follow.

 0  16   SourceQueueManager
16  16   QueueManagerAddress, null for a direct name
32  u32  TimeToBeReceived in seconds
36  u32  SentTime, Unix seconds
40  u32  MessageID
44  u32  Flags: 0-4 hops, 5-6 delivery, 8-9 journaling, 10-12 DQ, 13-15 AQ, 16-18 RQ,
         19 SecurityHeader, 20 TransactionHeader, 21 MessagePropertiesHeader,
         22 ConnectorType, 23 MultiQueueFormatHeader, 28 SoapHeader
48       DestinationQueue, AdminQueue, ResponseQueue, ConnectorType (16)
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import INFINITE, pack
from mqis.wire.mqqb.queuename import ADMIN_KINDS, DESTINATION_KINDS, QueueKind, QueueName
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

#: The highest RC: the number of routing servers that have forwarded a message.
MAX_HOPS: Final = 0x1D

_FORM = Struct("<16s16sIIII")
_KINDS = tuple(QueueKind)
_RECOVERABLE, _JOURNAL_NEGATIVE, _JOURNAL_POSITIVE, _CONNECTOR = 1 << 5, 1 << 8, 1 << 9, 1 << 22


class Parts:
    """The flags of the headers in a message; plain integers, since every message tests them all."""

    SECURITY: Final = 1 << 19
    TRANSACTION: Final = 1 << 20
    PROPERTIES: Final = 1 << 21
    MULTI_QUEUE: Final = 1 << 23
    SOAP: Final = 1 << 28
    ALL: Final = SECURITY | TRANSACTION | PROPERTIES | MULTI_QUEUE | SOAP


@dataclass(frozen=True, slots=True)
class UserHeader:
    """The addresses and the identity of a message."""

    source: Guid
    message_id: int
    destination: QueueName
    address: Guid = Guid.NULL
    time_to_be_received: int = INFINITE
    sent_time: int = 0
    admin: QueueName = QueueName.NONE
    response: QueueName = QueueName.NONE
    recoverable: bool = False
    hops: int = 0
    journal_negative: bool = False
    journal_positive: bool = False
    connector_type: Guid | None = None

    def __post_init__(self) -> None:
        if not DESTINATION_KINDS[self.destination.kind]:
            raise ValueError(f"a destination queue cannot be {self.destination.kind.name}")
        if not ADMIN_KINDS[self.admin.kind]:
            raise ValueError(f"an administration queue cannot be {self.admin.kind.name}")
        if not 0 <= self.hops < 32:
            raise ValueError(f"{self.hops} hops do not fit in five bits")

    @classmethod
    def decode(cls, reader: Reader) -> tuple[UserHeader, int]:
        """Decodes the header; returns it with the ``Parts`` that follow it."""
        start = reader.offset
        source, address, lifetime, sent, message_id, flags = _FORM.unpack(
            reader.bytes(48, "UserHeader")
        )
        at = start + 44
        if flags & 0x40:
            raise reader.error("the delivery mode is neither express nor recoverable", at)
        kinds = _KINDS[flags >> 10 & 7], _KINDS[flags >> 13 & 7], _KINDS[flags >> 16 & 7]
        if not DESTINATION_KINDS[kinds[0]]:
            raise reader.error(f"a destination queue cannot be {kinds[0].name}", at)
        if not ADMIN_KINDS[kinds[1]]:
            raise reader.error(f"an administration queue cannot be {kinds[1].name}", at)
        destination, admin, response = [QueueName.decode(reader, k, start) for k in kinds]
        header = cls(
            Guid(source),
            message_id,
            destination,
            Guid(address),
            lifetime,
            sent,
            admin,
            response,
            bool(flags & _RECOVERABLE),
            flags & 0x1F,
            bool(flags & _JOURNAL_NEGATIVE),
            bool(flags & _JOURNAL_POSITIVE),
            reader.guid() if flags & _CONNECTOR else None,
        )
        return header, flags & Parts.ALL

    def encode(self, writer: Writer, parts: int) -> None:
        start = len(writer)
        flags = (
            parts
            | self.hops
            | (_RECOVERABLE if self.recoverable else 0)
            | (_JOURNAL_NEGATIVE if self.journal_negative else 0)
            | (_JOURNAL_POSITIVE if self.journal_positive else 0)
            | self.destination.kind << 10
            | self.admin.kind << 13
            | self.response.kind << 16
            | (0 if self.connector_type is None else _CONNECTOR)
        )
        writer.bytes(
            pack(
                _FORM,
                self.source.raw,
                self.address.raw,
                self.time_to_be_received,
                self.sent_time,
                self.message_id,
                flags,
            )
        )
        for name in (self.destination, self.admin, self.response):
            name.encode(writer, start)
        if self.connector_type is not None:
            writer.guid(self.connector_type)
