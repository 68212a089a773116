"""The decoder for both versions of the Change Notification Message (MS-MQCN 2.2.4)."""

from __future__ import annotations

from mqis.wire.mqcn.notification import ChangeNotification
from mqis.wire.mqcn.queuemanager import VERSION, NotificationBody
from mqis.wire.reader import Reader


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
