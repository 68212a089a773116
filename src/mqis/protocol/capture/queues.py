"""The private queues of queue managers whose messages are decoded. To add one, add a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mqis.protocol.capture.replication import notification, replication
from mqis.protocol.capture.row import Meaning
from mqis.protocol.queueing.names import MQIS_QUEUE, MQIS_QUEUE_ID, NOTIFY_QUEUE
from mqis.wire.mqcn.notification import NOTIFY_QUEUE_ID


class QueueProtocol(NamedTuple):
    """A private queue: its path after the machine's name, and its number on every machine."""

    name: str
    queue: str
    private_id: int
    decode: Callable[[bytes], Meaning]


QUEUES: tuple[QueueProtocol, ...] = (
    QueueProtocol("mqdsrp", MQIS_QUEUE, MQIS_QUEUE_ID, replication),
    QueueProtocol("mqcn", NOTIFY_QUEUE, NOTIFY_QUEUE_ID, notification),
)
