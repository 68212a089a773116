"""SecurityHeader (MS-MQMQ 2.2.20.6): the sender of a message, and the signature over it.

 0  u16  Flags: 0-3 ST, 5 EB encrypted, 6 DE default provider, 7 AI, 8-11 AS
 2  u16  SenderIdSize            8  u32  SenderCertSize
 4  u16  EncryptionKeySize      12  u32  ProviderInfoSize
 6  u16  SignatureSize          16       the five fields, each padded to four bytes

AI is documented to tell whether there is any data, yet the example of MS-MQQB 4.1.7 has data
without it: mqis goes by the sizes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from mqis.wire.mqqb.baseheader import pack
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

_FORM = Struct("<HHHHII")
_ENCRYPTED, _DEFAULT_PROVIDER, _SECURITY_INFO = 0x20, 0x40, 0x80


class SenderIdType(IntEnum):
    """ST, the type of SenderId; unknown numbers are kept."""

    NONE = 0
    SID = 1
    QUEUE_MANAGER = 2


@dataclass(frozen=True, slots=True)
class SecurityHeader:
    sender_id_type: int = SenderIdType.NONE
    sender_id: bytes = b""
    encryption_key: bytes = b""
    signature: bytes = b""
    sender_cert: bytes = b""
    provider_info: bytes = b""
    encrypted: bool = False
    default_provider: bool = False
    security_info: bool = False
    authentication_type: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.sender_id_type < 16 and 0 <= self.authentication_type < 16):
            raise ValueError("sender id type and authentication type have four bits each")

    @classmethod
    def decode(cls, reader: Reader) -> SecurityHeader:
        start = reader.offset
        flags, sender_id, key, signature, cert, provider = _FORM.unpack(
            reader.bytes(16, "SecurityHeader")
        )
        return cls(
            flags & 0x0F,
            _padded(reader, sender_id, start),
            _padded(reader, key, start),
            _padded(reader, signature, start),
            _padded(reader, cert, start),
            _padded(reader, provider, start),
            bool(flags & _ENCRYPTED),
            bool(flags & _DEFAULT_PROVIDER),
            bool(flags & _SECURITY_INFO),
            flags >> 8 & 0x0F,
        )

    def encode(self, writer: Writer) -> None:
        start = len(writer)
        flags = (
            self.sender_id_type
            | (_ENCRYPTED if self.encrypted else 0)
            | (_DEFAULT_PROVIDER if self.default_provider else 0)
            | (_SECURITY_INFO if self.security_info else 0)
            | self.authentication_type << 8
        )
        fields = (
            self.sender_id,
            self.encryption_key,
            self.signature,
            self.sender_cert,
            self.provider_info,
        )
        writer.bytes(pack(_FORM, flags, *map(len, fields)))
        for field in fields:
            if field:
                writer.bytes(field)
                writer.bytes(bytes(-(len(writer) - start) % 4))


def _padded(reader: Reader, size: int, start: int) -> bytes:
    if not size:
        return b""
    data = reader.bytes(size, "SecurityData")
    reader.bytes(-(reader.offset - start) % 4, "padding of SecurityData")
    return data
