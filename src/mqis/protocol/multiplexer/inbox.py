"""Events that the layer above has not taken yet, and their cost in bytes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from mqis.protocol.multiplexer.events import Event, MessageReceived, Writable
from mqis.protocol.multiplexer.held_bytes import ByteBudget
from mqis.protocol.multiplexer.limits import UNREAD_OVERHEAD, SessionLimits
from mqis.protocol.multiplexer.multiplexed import MultiplexedConnection
from mqis.wire.cmp.packet import Packet


@dataclass(slots=True)
class _Entry:
    event: Event
    cost: int
    #: Charged to the session besides: bytes of the boxcar that belong to no event.
    pinned: int = 0


class Inbox:
    """One queue for the session, and a separate one for each paused connection.

    A message in the queue is a view into its boxcar, which keeps the whole boxcar in memory: bytes
    that belong to no event are charged to the last one, so that a partner cannot fill the memory
    with boxcars that count as a few bytes. Messages of paused connections are copied.
    """

    def __init__(self, limits: SessionLimits, budget: ByteBudget) -> None:
        self._limits = limits
        self._budget = budget
        self._queue: deque[_Entry] = deque()
        self._aside: dict[MultiplexedConnection, deque[_Entry]] = {}
        self.unread = 0
        #: Connections beyond their limit.
        self._connections_over = 0
        self._slack = 0
        self._last: _Entry | None = None

    @property
    def session_full(self) -> bool:
        """True if the session or one of its connections exceeds its limit."""
        return self._connections_over > 0 or self.unread > self._limits.session_unread_bytes

    @property
    def process_full(self) -> bool:
        return self._budget.unread > self._budget.unread_bytes

    # --- costs ------------------------------------------------------------------------------------

    def charge(self, connection: MultiplexedConnection, cost: int) -> None:
        limit = self._limits.connection_unread_bytes
        self._connections_over += connection.unread <= limit < connection.unread + cost
        connection.unread += cost
        self.unread += cost
        self._budget.unread += cost

    def discharge(self, connection: MultiplexedConnection, cost: int, pinned: int = 0) -> None:
        limit = self._limits.connection_unread_bytes
        self._connections_over -= connection.unread - cost <= limit < connection.unread
        connection.unread -= cost
        self.unread -= cost + pinned
        self._budget.release_unread(cost + pinned)

    # --- in ---------------------------------------------------------------------------------------

    def begin(self, boxcar_size: int) -> None:
        self._slack, self._last = boxcar_size, None

    def end(self) -> None:
        """Ends a boxcar; charges the bytes of it that belong to no event to the last event."""
        if self._last is not None and self._slack > 0:
            self._last.pinned = self._slack
            self.unread += self._slack
            self._budget.unread += self._slack
        self._last = None

    def put(self, event: Event) -> None:
        connection = event.connection
        if connection.paused and not isinstance(event, Writable):
            entry = _Entry(*_own(event))
            self._aside.setdefault(connection, deque()).append(entry)
        else:
            entry = _Entry(event, cost_of(event))
            self._queue.append(entry)
            if isinstance(event, MessageReceived) and isinstance(event.body, memoryview):
                self._slack -= len(event.body)
                self._last = entry
        self.charge(connection, entry.cost)

    # --- out --------------------------------------------------------------------------------------

    def take(self) -> Event | None:
        if not self._queue:
            return None
        entry = self._queue.popleft()
        self.discharge(entry.event.connection, entry.cost, entry.pinned)
        return entry.event

    def resume(self, connection: MultiplexedConnection) -> None:
        self._queue.extend(self._aside.pop(connection, ()))


def cost_of(event: Event) -> int:
    return UNREAD_OVERHEAD + (len(event.body) if isinstance(event, MessageReceived) else 0)


def with_own_data(packet: Packet) -> Packet:
    """A copy that does not keep the boxcar in memory."""
    return packet._replace(data=bytes(packet.data))


def _own(event: Event) -> tuple[Event, int]:
    if isinstance(event, MessageReceived):
        event = MessageReceived(event.connection, with_own_data(event.packet))
    return event, cost_of(event)
