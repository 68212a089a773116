"""MessagePropertiesHeader (MS-MQMQ 2.2.19.3): the properties of a message, and its body.

 0  u8   Flags: 0 PA, 1 PR, 2 NA, 3 NR         32  u32  MessageSize
 1  u8   LabelLength, units with the zero      36  u32  AllocationBodySize
 2  u16  MessageClass                          40  u32  PrivacyLevel
 4  20   CorrelationID                         44  u32  HashAlgorithm
24  u32  BodyType                              48  u32  EncryptionAlgorithm
28  u32  ApplicationTag                        52  u32  ExtensionSize
56       Label, ExtensionData, MessageBody, padded to four bytes together
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final

from mqis.wire.mqqb.baseheader import pack
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

_FORM = Struct("<BBH20sIIIIIIII")
MAX_LABEL_UNITS: Final = 250
MD5: Final = 0x00008003
RC4: Final = 0x00006801
NO_CORRELATION: Final = bytes(20)


class Acknowledge:
    """The flags for the administration acknowledgements that the sender requests."""

    NEGATIVE_ARRIVAL: Final = 0x04


class MessageClass(IntEnum):
    """MESSAGE_CLASS_VALUES (MS-MQMQ 2.2.18.1.6); unknown numbers are kept."""

    NORMAL = 0x0000
    REPORT = 0x0001
    ACK_REACH_QUEUE = 0x0002
    ORDER_ACK = 0x00FF
    ACK_RECEIVE = 0x4000
    NACK_BAD_DST_Q = 0x8000
    NACK_DELETED = 0x8001
    NACK_REACH_QUEUE_TIMEOUT = 0x8002
    NACK_Q_EXCEED_QUOTA = 0x8003
    NACK_ACCESS_DENIED = 0x8004
    NACK_HOP_COUNT_EXCEEDED = 0x8005
    NACK_BAD_SIGNATURE = 0x8006
    NACK_BAD_ENCRYPTION = 0x8007
    NACK_NOT_TRANSACTIONAL_Q = 0x8009
    NACK_NOT_TRANSACTIONAL_MSG = 0x800A
    NACK_UNSUPPORTED_CRYPTO_PROVIDER = 0x800B
    NACK_Q_DELETED = 0xC000
    NACK_Q_PURGED = 0xC001
    NACK_RECEIVE_TIMEOUT = 0xC002
    NACK_RECEIVE_REJECTED = 0xC004


def is_nack(message_class: int) -> bool:
    """Returns whether bit 15 is set, which marks all negative classes, unknown ones included."""
    return bool(message_class & 0x8000)


@dataclass(frozen=True, slots=True)
class MessageProperties:
    """The properties and body of a message. ``label`` includes its zero, or is empty."""

    body: bytes = b""
    message_class: int = MessageClass.NORMAL
    acknowledge: int = 0
    correlation_id: bytes = NO_CORRELATION
    label: str = ""
    extension: bytes = b""
    body_type: int = 0
    application_tag: int = 0
    allocation_body_size: int | None = None
    privacy_level: int = 0
    hash_algorithm: int = MD5
    encryption_algorithm: int = RC4

    def __post_init__(self) -> None:
        if len(self.correlation_id) != 20:
            raise ValueError(f"a CorrelationID has 20 bytes, not {len(self.correlation_id)}")
        if not 0 <= self.acknowledge < 16:
            raise ValueError(f"acknowledgements are four bits, not 0x{self.acknowledge:x}")
        if self.label and len(self.label_octets) > 2 * MAX_LABEL_UNITS:
            raise ValueError(f"a label has at most {MAX_LABEL_UNITS} units")

    @property
    def label_octets(self) -> bytes:
        return self.label.encode("utf-16-le", "surrogatepass")

    @classmethod
    def decode(cls, reader: Reader) -> MessageProperties:
        start = reader.offset
        (
            flags,
            label_units,
            message_class,
            correlation_id,
            body_type,
            tag,
            size,
            allocated,
            privacy,
            hash_algorithm,
            encryption_algorithm,
            extension_size,
        ) = _FORM.unpack(reader.bytes(56, "MessagePropertiesHeader"))
        if label_units > MAX_LABEL_UNITS:
            raise reader.error(f"a label of {label_units} units is too long", start + 1)
        label = reader.bytes(2 * label_units, "Label").decode("utf-16-le", "surrogatepass")
        extension = reader.bytes(extension_size, "ExtensionData")
        body = reader.bytes(size, "MessageBody")
        reader.bytes(-(reader.offset - start) % 4, "padding of MessageBody")
        return cls(
            body,
            message_class,
            flags & 0x0F,
            correlation_id,
            label,
            extension,
            body_type,
            tag,
            None if allocated == size else allocated,
            privacy,
            hash_algorithm,
            encryption_algorithm,
        )

    def encode(self, writer: Writer) -> None:
        start, label = len(writer), self.label_octets
        size, allocated = len(self.body), self.allocation_body_size
        writer.bytes(
            pack(
                _FORM,
                self.acknowledge,
                len(label) // 2,
                self.message_class,
                self.correlation_id,
                self.body_type,
                self.application_tag,
                size,
                size if allocated is None else allocated,
                self.privacy_level,
                self.hash_algorithm,
                self.encryption_algorithm,
                len(self.extension),
            )
        )
        writer.bytes(label)
        writer.bytes(self.extension)
        writer.bytes(self.body)
        writer.bytes(bytes(-(len(writer) - start) % 4))
