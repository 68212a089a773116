"""BaseHeader (MS-MQMQ 2.2.19.1): the first sixteen bytes of every packet, with its size.

 0  u8   VersionNumber, 0x10
 1  u8   Reserved
 2  u16  Flags: 0-2 priority, 3 internal, 4 session header, 5 debug header, 8 trace
 4  u32  Signature, "LIOR"
 8  u32  PacketSize, padding included, at most 4 MiB
12  u32  TimeToReachQueue in seconds

PacketSize does not count the session header that follows a user message. It does count the one in
a SessionAck packet, as the example of MS-MQQB 4.1.8 shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error
from typing import Final

from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

VERSION: Final = 0x10
SIGNATURE: Final = 0x524F494C
BASE_SIZE: Final = 16
SESSION_SIZE: Final = 16
MAX_PACKET: Final = 0x00400000
#: TimeToReachQueue and TimeToBeReceived of a message that never expires.
INFINITE: Final = 0xFFFFFFFF
MAX_PRIORITY: Final = 7
DEFAULT_PRIORITY: Final = 3

_FORM = Struct("<BBHIII")
_INTERNAL, _SESSION, _DEBUG, _TRACE = 0x08, 0x10, 0x20, 0x100


@dataclass(frozen=True, slots=True)
class BaseHeader:
    """The kind of a packet and its length."""

    size: int
    priority: int = DEFAULT_PRIORITY
    internal: bool = False
    session: bool = False
    debug: bool = False
    trace: bool = False
    time_to_reach_queue: int = INFINITE

    def __post_init__(self) -> None:
        if not 0 <= self.priority <= MAX_PRIORITY:  # 8 would be the internal bit (E49)
            raise ValueError(f"a priority is 0 to {MAX_PRIORITY}, not {self.priority}")

    @property
    def length(self) -> int:
        """The packet's size with the bytes that PacketSize does not count."""
        return self.size + (SESSION_SIZE if self.session and not self.internal else 0)

    @classmethod
    def decode(cls, reader: Reader) -> BaseHeader:
        at = reader.offset
        version, _, flags, signature, size, lifetime = _FORM.unpack(
            reader.bytes(BASE_SIZE, "BaseHeader")
        )
        if version != VERSION:
            raise reader.error(f"packet version 0x{version:02x}, only 0x{VERSION:02x} is known", at)
        if signature != SIGNATURE:
            raise reader.error(f"0x{signature:08x} is not the signature of a packet", at + 4)
        if not BASE_SIZE <= size <= MAX_PACKET:
            raise reader.error(f"PacketSize {size} is not {BASE_SIZE} to {MAX_PACKET}", at + 8)
        return cls(
            size,
            flags & 7,
            bool(flags & _INTERNAL),
            bool(flags & _SESSION),
            bool(flags & _DEBUG),
            bool(flags & _TRACE),
            lifetime,
        )

    def encode(self, writer: Writer) -> None:
        flags = (
            self.priority
            | (_INTERNAL if self.internal else 0)
            | (_SESSION if self.session else 0)
            | (_DEBUG if self.debug else 0)
            | (_TRACE if self.trace else 0)
        )
        lifetime = self.time_to_reach_queue
        writer.bytes(pack(_FORM, VERSION, 0, flags, SIGNATURE, self.size, lifetime))


# --- The packing of a header's fixed part in one step: a message has forty of these fields --------


def pack(form: Struct, *values: int | bytes) -> bytes:
    """Packs the values; raises ``ValueError`` if one does not fit, as a ``Writer`` does."""
    try:
        return form.pack(*values)
    except struct_error as error:
        raise ValueError(f"{values} do not fit in their fields: {error}") from None
