"""A destination: the queue of messages for one machine, and the state of the connection to it.

IDLE        nothing to send and no session
CONNECTING  the driver opens a connection
ATTACHED    a session exists, open or being set up
WAITING     the last attempt failed; the next one follows when the retry timer expires
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mqis.protocol.clock import pause_after
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.outgoing import OutgoingQueue
from mqis.protocol.queueing.queue_session import QueueSession
from mqis.wire.guid import Guid


class DeliveryWay(Enum):
    IDLE = "idle"
    CONNECTING = "connecting"
    ATTACHED = "attached"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Depth:
    """The messages that wait for a machine, in flight included, and the time of the oldest."""

    machine: str
    messages: int
    bytes: int
    oldest: float | None
    #: True for messages sent by way of next hops.
    routed: bool


class Destination:
    """The queue, state and timers of one machine; the queue manager acts on them."""

    def __init__(
        self, key: str, machine: str, limits: QueueingLimits, guid: Guid = Guid.NULL
    ) -> None:
        """``guid`` is that of a next hop; it is unknown for direct names."""
        self.key = key
        self.machine = machine
        self.guid = guid
        self.queue = OutgoingQueue(limits)
        self.way = DeliveryWay.IDLE
        self.connection = 0
        self.session: QueueSession | None = None
        self._limits = limits
        self._failures = 0
        #: The time at which connecting times out, or at which the next attempt is due.
        self._due: float | None = None

    def connecting(self, connection: int, now: float) -> None:
        self.way = DeliveryWay.CONNECTING
        self.connection = connection
        self._due = now + self._limits.connect_timeout_s

    def attached(self, session: QueueSession) -> None:
        self.way = DeliveryWay.ATTACHED
        self.session = session
        self._due = None

    def opened(self) -> None:
        """Resets the back-off after a session has opened."""
        self._failures = 0

    def failed(self, now: float) -> None:
        """Forgets the session; schedules a retry if there is something to send."""
        self.session = None
        self.connection = 0
        if not self.queue.messages:
            self.way, self._due = DeliveryWay.IDLE, None
            return
        self._failures += 1
        pause_s = pause_after(self._failures, self._limits.retry_s, self._limits.retry_max_s)
        self.way, self._due = DeliveryWay.WAITING, now + pause_s

    def hurry(self, now: float) -> None:
        """Makes the next attempt due now, and resets the back-off."""
        self._due, self._failures = now, 0

    @property
    def disposable(self) -> bool:
        return self.way in (DeliveryWay.IDLE, DeliveryWay.WAITING) and not self.queue.messages

    def oldest(self) -> float | None:
        """The time of the oldest message that is not acknowledged; None if there is none."""
        in_flight = None if self.session is None else self.session.oldest()
        found = (since for since in (self.queue.oldest(), in_flight) if since is not None)
        return min(found, default=None)

    def is_due(self, now: float) -> bool:
        return self._due is not None and self._due <= now

    def next_timer(self) -> float | None:
        expiry = self.queue.next_expiry()
        if expiry is None or self._due is None:
            return self._due if expiry is None else expiry
        return min(expiry, self._due)
