"""What messages to the private queues of queue managers are. Another queue is another line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mqis.protocol.capture.replication import notification, replication
from mqis.protocol.capture.row import Meaning
from mqis.protocol.queueing.names import MQIS_QUEUE, MQIS_QUEUE_ID, NOTIFY_QUEUE
from mqis.wire.mqcn.notification import NOTIFY_QUEUE_ID


class QueueProtocol(NamedTuple):
    """``queue`` is the path behind the machine, ``private_id`` its number everywhere."""

    name: str
    queue: str
    private_id: int
    decode: Callable[[bytes], Meaning]


QUEUES: tuple[QueueProtocol, ...] = (
    QueueProtocol("mqdsrp", MQIS_QUEUE, MQIS_QUEUE_ID, replication),
    QueueProtocol("mqcn", NOTIFY_QUEUE, NOTIFY_QUEUE_ID, notification),
)
