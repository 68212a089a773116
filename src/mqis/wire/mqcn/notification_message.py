"""The decoder for both versions of the Change Notification Message (MS-MQCN 2.2.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final, Self

from mqis.wire.guid import Guid
from mqis.wire.mqcn.notification import ChangeNotification
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer


def decode_notification(data: bytes) -> ChangeNotification | NotificationBody:
    """Decodes a message body, with or without the byte that follows a notification (3.3.5.3)."""
    if data[:1] == bytes([VERSION]):
        return NotificationBody.from_bytes(data)
    reader = Reader(data)
    notification = ChangeNotification.decode(reader)
    if reader.remaining == 1:
        reader.u8()
    reader.expect_end("the change notification")
    return notification


# --- Change Notification Message, version 2: from a queue manager (MS-MQCN 2.2.4, 2.2.5) ----------
# 0  u8   Version: 2
# 1  u8   NumberOfUpdateNotifications: 1
# 2       UTF-16: <Notification><Event>1</Event><ObjectGuid>..</ObjectGuid>
#         <DomainController>..</DomainController></Notification>, without line breaks

VERSION: Final = 2
#: An upper bound of the text's size.
_MAX_BYTES = 2 * 1024
_TEXT = re.compile(
    r"<Notification><Event>([1-4])</Event><ObjectGuid>([0-9A-Fa-f-]{36})</ObjectGuid>"
    r"<DomainController>([\x21-\x7e]{1,256})</DomainController></Notification>"
)
_SERVER = re.compile(r"[\x21-\x7e]{1,256}")


class NotificationEvent(IntEnum):
    QUEUE_CREATION = 1
    QUEUE_UPDATE = 2
    QUEUE_DELETION = 3
    MACHINE_UPDATE = 4


@dataclass(frozen=True, slots=True)
class NotificationBody(Structure):
    """The object that changed, and the directory server through which it was changed."""

    NAME: ClassVar[str] = "the change notification"

    event: NotificationEvent
    guid: Guid
    server: str

    def __post_init__(self) -> None:
        if not _SERVER.fullmatch(self.server):
            raise ValueError("a server name has 1 to 256 visible ASCII characters")

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        version, count = reader.u8(), reader.u8()
        if version != VERSION:
            raise reader.error(f"a queue manager sends version 2, not {version}", 0)
        if count != 1:
            raise reader.error(f"a queue manager sends one notification, not {count}", 1)
        if reader.remaining > _MAX_BYTES:
            raise reader.error(f"a notification of {reader.remaining} bytes is too long")
        raw = reader.bytes(reader.remaining // 2 * 2, "Notification Body")
        reader.bytes(reader.remaining, "what follows")  # a byte that means nothing (3.3.5.3)
        text = raw.decode("utf-16-le", "surrogatepass").rstrip("\0")
        found = _TEXT.fullmatch(text)
        if found is None:
            raise reader.error("the text is not a notification", 2)
        try:
            guid = Guid.parse(found[2])
        except ValueError:
            raise reader.error("ObjectGuid is not a GUID", 2) from None
        return cls(NotificationEvent(int(found[1])), guid, found[3])

    def encode(self, writer: Writer) -> None:
        writer.u8(VERSION)
        writer.u8(1)
        text = (
            f"<Notification><Event>{int(self.event)}</Event>"
            f"<ObjectGuid>{str(self.guid).strip('{}').upper()}</ObjectGuid>"
            f"<DomainController>{self.server}</DomainController></Notification>"
        )
        writer.bytes(text.encode("utf-16-le"))
