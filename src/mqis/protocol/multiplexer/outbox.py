"""User messages on their way out, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.protocol.multiplexer.budget import Budget, Waiter
from mqis.protocol.multiplexer.connection import Connection
from mqis.protocol.multiplexer.errors import Congested, Level
from mqis.protocol.multiplexer.limits import QUEUED_OVERHEAD, Limits
from mqis.protocol.multiplexer.queue import BoxcarQueue


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
        #: Those who were told that there is no room, in order, and what it was wanted for.
        self._blocked: dict[Connection, int] = {}

    def send(self, connection: Connection, message_type: int, data: bytes) -> None:
        cost = QUEUED_OVERHEAD + len(data)
        limits, budget = self._limits, self._budget
        session, own, process = self.queued + cost, connection.queued + cost, budget.queued + cost
        if (
            session > limits.session_queued_bytes
            or own > limits.connection_queued_bytes
            or process > budget.queued_bytes
        ):
            self._check_room(connection, cost)
        self.queued, connection.queued, budget.queued = session, own, process
        if connection.id is None:
            self._early.setdefault(connection, []).append((message_type, data))
        else:
            self._queue.add_user_message(connection, connection.id, message_type, data, cost)

    def opened(self, connection: Connection, connection_id: int) -> None:
        for message_type, data in self._early.pop(connection, ()):
            cost = QUEUED_OVERHEAD + len(data)
            self._queue.add_user_message(connection, connection_id, message_type, data, cost)

    # --- room -------------------------------------------------------------------------------------

    def _check_room(self, connection: Connection, cost: int) -> None:
        if (level := self._congestion(connection, cost)) is not None:
            self._blocked[connection] = cost
            raise Congested(level)

    def _congestion(self, connection: Connection, cost: int, promised: int = 0) -> Level | None:
        """The level that has no room. One message is always allowed where nothing waits.

        ``promised`` is what other connections of the session are about to take.
        """
        limits, budget, shared = self._limits, self._budget, cost + promised
        if self.queued and self.queued + shared > limits.session_queued_bytes:
            return Level.SESSION
        if budget.queued and budget.queued + shared > budget.queued_bytes:
            budget.wait_to_send(self._waiter)
            return Level.PROCESS
        if connection.queued and connection.queued + cost > limits.connection_queued_bytes:
            return Level.CONNECTION
        return None

    def arrived(self) -> None:
        """The boxcar in flight is at the partner's."""
        costs = self._queue.arrived().costs
        for connection, cost in costs.items():
            connection.queued -= cost
        self._release(sum(costs.values()))

    def _release(self, cost: int) -> None:
        self.queued -= cost
        self._budget.release_queued(cost)

    def unblock(self) -> Iterator[Connection]:
        """Those who may try again: as many as find room, so that they are not refused in turn.

        Who does not use it keeps nobody waiting for long: there is another boxcar under way, and
        when there is none, all are told.
        """
        more_to_come = self._queue.in_flight or len(self._queue) > 0
        promised = 0
        for connection, cost in list(self._blocked.items()):
            level = self._congestion(connection, 1, promised)
            if level is None:
                del self._blocked[connection]
                promised += cost if more_to_come else 0
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
        early, connection.queued = connection.queued, 0
        self._release(early)

    def clear(self) -> None:
        """The session is down. Connections that have no id yet end by ``never_opened``."""
        self._queue.clear()
        self._blocked.clear()
        self._budget.forget(self._waiter)
        early = sum(connection.queued for connection in self._early)
        lost, self.queued = self.queued - early, early
        self._budget.release_queued(lost)
