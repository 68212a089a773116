"""MS-MQCN: notifications from a directory service to a queue manager about its own objects."""

from mqis.wire.mqcn.notification import (
    NOTIFY_QUEUE_ID,
    ChangeNotification,
    NotificationCommand,
    NotificationUpdate,
)
from mqis.wire.mqcn.notification_message import (
    NotificationBody,
    NotificationEvent,
    decode_notification,
)

__all__ = [
    "NOTIFY_QUEUE_ID",
    "ChangeNotification",
    "NotificationBody",
    "NotificationCommand",
    "NotificationEvent",
    "NotificationUpdate",
    "decode_notification",
]
