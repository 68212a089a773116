"""User messages on their way out, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.protocol.multiplexer.budget import Budget, Waiter
from mqis.protocol.multiplexer.connection import Connection
from mqis.protocol.multiplexer.errors import Congested, Level
from mqis.protocol.multiplexer.limits import QUEUED_OVERHEAD, Limits
from mqis.protocol.multiplexer.queue import BoxcarQueue
from mqis.wire.cmp.packet import Packet


class Outbox:
    """Puts user messages into the boxcar queue, as far as there is room for them.

    ``waiter`` is woken when the process has room again.
    """

    def __init__(self, limits: Limits, budget: Budget, queue: BoxcarQueue, waiter: Waiter) -> None:
        self._limits = limits
        self._budget = budget
        self._queue = queue
        self._waiter = waiter
        self.queued = 0
        #: What was sent on connections that have no id yet.
        self._early: dict[Connection, list[tuple[int, bytes]]] = {}
        #: Those who were told that there is no room, in order.
        self._blocked: dict[Connection, None] = {}

    def send(self, connection: Connection, message_type: int, data: bytes) -> None:
        cost = QUEUED_OVERHEAD + len(data)
        if (level := self._congestion(connection, cost)) is not None:
            self._blocked[connection] = None
            raise Congested(level)
        connection.queued += cost
        self.queued += cost
        self._budget.queued += cost
        if connection.id is None:
            self._early.setdefault(connection, []).append((message_type, data))
        else:
            self._add(connection, connection.id, message_type, data)

    def opened(self, connection: Connection, connection_id: int) -> None:
        for message_type, data in self._early.pop(connection, ()):
            self._add(connection, connection_id, message_type, data)

    def _add(
        self, connection: Connection, connection_id: int, message_type: int, data: bytes
    ) -> None:
        """fIsMaster is 1 from the side that opened the connection (3.1.4.1)."""
        outgoing = connection.outgoing
        packet = Packet.user_message(connection_id, message_type, data, is_master=outgoing)
        self._queue.add(packet, connection, QUEUED_OVERHEAD + len(data))

    # --- room -------------------------------------------------------------------------------------

    def _congestion(self, connection: Connection, cost: int) -> Level | None:
        """The level that has no room. One message is always allowed where nothing waits."""
        limits, budget = self._limits, self._budget
        if self.queued and self.queued + cost > limits.session_queued_bytes:
            return Level.SESSION
        if budget.queued and budget.queued + cost > budget.queued_bytes:
            budget.wait_to_send(self._waiter)
            return Level.PROCESS
        if connection.queued and connection.queued + cost > limits.connection_queued_bytes:
            return Level.CONNECTION
        return None

    def arrived(self) -> None:
        """The boxcar in flight is at the partner's."""
        for connection, cost in self._queue.arrived().costs.items():
            self._release(connection, cost)

    def _release(self, connection: Connection, cost: int) -> None:
        connection.queued -= cost
        self.queued -= cost
        self._budget.release_queued(cost)

    def unblock(self) -> Iterator[Connection]:
        """Those who may try again."""
        for connection in list(self._blocked):
            level = self._congestion(connection, 1)
            if level is None:
                del self._blocked[connection]
                yield connection
            elif level is not Level.CONNECTION:
                return

    # --- the end ----------------------------------------------------------------------------------

    def closed(self, connection: Connection) -> None:
        """No more may be sent on it; what is queued still goes."""
        self._blocked.pop(connection, None)

    def never_opened(self, connection: Connection) -> None:
        self.closed(connection)
        self._early.pop(connection, None)
        self._release(connection, connection.queued)

    def clear(self) -> None:
        """The session is down. Connections that have no id yet end by ``never_opened``."""
        self._queue.clear()
        self._blocked.clear()
        self._budget.forget(self._waiter)
        early = sum(connection.queued for connection in self._early)
        lost, self.queued = self.queued - early, early
        self._budget.release_queued(lost)
