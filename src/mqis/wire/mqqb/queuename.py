"""Queue names inside a UserHeader (MS-MQMQ 2.2.18.1.5, 2.2.18.1.7, 2.2.19.2).

The header's flags give the kind of each name, and the kind determines its layout:

    nothing                              none, or the same as the administration queue
    u32 PrivateQueueIdentifier           private on the host of source, destination or admin queue
    16  PublicQueueIdentifier            public
    16  SourceQueueManager, u32 id       private on another host
    u16 Count, DirectFormatName, pad     direct: ``OS:HOST\\private$\\name`` without ``DIRECT=``
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer


class QueueKind(IntEnum):
    """The kinds of queue name in Flags.DQ, AQ and RQ."""

    NONE = 0
    SAME_AS_ADMIN = 1
    PRIVATE_AT_SOURCE = 2
    PRIVATE_AT_DESTINATION = 3
    PRIVATE_AT_ADMIN = 4
    PUBLIC = 5
    PRIVATE = 6
    DIRECT = 7


_K = QueueKind
# Indexed by number instead of kept as sets: hashing an enumeration takes longer than the decoding.
_HAS_ID = (False, False, True, True, True, False, True, False)
_HAS_GUID = (False, False, False, False, False, True, True, False)
#: The kinds that a destination and an administration queue may have; a response queue has any.
DESTINATION_KINDS = (True, False, False, True, False, True, False, True)
ADMIN_KINDS = (True, False, True, True, False, True, True, True)


@dataclass(frozen=True, slots=True)
class QueueName:
    """A queue by direct name, private number or GUID, depending on its kind."""

    kind: QueueKind
    direct: str = ""
    private_id: int = 0
    guid: Guid = Guid.NULL

    NONE: ClassVar[QueueName]
    SAME_AS_ADMIN: ClassVar[QueueName]

    def __post_init__(self) -> None:
        if self.direct and self.kind is not _K.DIRECT:
            raise ValueError(f"{self.kind.name} has no direct name")
        if self.private_id and not _HAS_ID[self.kind]:
            raise ValueError(f"{self.kind.name} has no private queue number")
        if self.guid and not _HAS_GUID[self.kind]:
            raise ValueError(f"{self.kind.name} has no GUID")

    @classmethod
    def of_direct(cls, name: str) -> QueueName:
        return cls(_K.DIRECT, direct=name)

    @classmethod
    def at_source(cls, private_id: int) -> QueueName:
        return cls(_K.PRIVATE_AT_SOURCE, private_id=private_id)

    @classmethod
    def at_destination(cls, private_id: int) -> QueueName:
        return cls(_K.PRIVATE_AT_DESTINATION, private_id=private_id)

    @classmethod
    def decode(cls, reader: Reader, kind: QueueKind, start: int) -> QueueName:
        """Decodes a name; ``start`` is the offset of its header, from which padding is counted."""
        if kind is _K.NONE:
            return cls.NONE
        if kind is _K.DIRECT:
            return cls(kind, _direct(reader, start))
        guid = reader.guid() if _HAS_GUID[kind] else Guid.NULL
        return cls(kind, "", reader.u32() if _HAS_ID[kind] else 0, guid)

    def encode(self, writer: Writer, start: int) -> None:
        if self.kind is not _K.NONE:
            writer.bytes(self.octets())
            writer.bytes(bytes(-(len(writer) - start) % 4))

    def octets(self) -> bytes:
        """The name without padding, as it enters signatures."""
        writer = Writer()
        if self.kind is _K.DIRECT:
            data = self.direct.encode("utf-16-le", "surrogatepass")
            writer.u16(len(data) + 2)
            writer.utf16z(self.direct)
        if _HAS_GUID[self.kind]:
            writer.guid(self.guid)
        if _HAS_ID[self.kind]:
            writer.u32(self.private_id)
        return writer.getvalue()


def _direct(reader: Reader, start: int) -> str:
    at = reader.offset
    count = reader.u16()
    if count < 2 or count % 2:
        raise reader.error(f"a direct format name cannot have {count} bytes", at)
    text = reader.bytes(count, "DirectFormatName").decode("utf-16-le", "surrogatepass")
    if text.find("\0") != len(text) - 1:
        raise reader.error("DirectFormatName does not end at its first zero", at + 2)
    reader.bytes(-(reader.offset - start) % 4, "padding of DirectFormatName")
    return text[:-1]


QueueName.NONE = QueueName(_K.NONE)
QueueName.SAME_AS_ADMIN = QueueName(_K.SAME_AS_ADMIN)
