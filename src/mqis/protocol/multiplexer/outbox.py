"""User messages that wait to be sent, and their cost in bytes."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.protocol.multiplexer.boxcar_queue import BoxcarQueue
from mqis.protocol.multiplexer.events import Congested, LimitLevel
from mqis.protocol.multiplexer.held_bytes import ByteBudget, Waiter
from mqis.protocol.multiplexer.limits import QUEUED_OVERHEAD, SessionLimits
from mqis.protocol.multiplexer.multiplexed import MultiplexedConnection


class Outbox:
    """Puts user messages into the boxcar queue, within the limits.

    ``waiter`` is woken when the process has room again.
    """

    def __init__(
        self, limits: SessionLimits, budget: ByteBudget, queue: BoxcarQueue, waiter: Waiter
    ) -> None:
        self._limits = limits
        self._budget = budget
        self._queue = queue
        self._waiter = waiter
        self.queued = 0
        #: Messages sent on connections that have no id yet.
        self._early: dict[MultiplexedConnection, list[tuple[int, bytes]]] = {}
        #: Connections that were refused room, in order, and the cost that they asked for.
        self._blocked: dict[MultiplexedConnection, int] = {}

    def send(self, connection: MultiplexedConnection, message_type: int, data: bytes) -> None:
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

    def opened(self, connection: MultiplexedConnection, connection_id: int) -> None:
        for message_type, data in self._early.pop(connection, ()):
            cost = QUEUED_OVERHEAD + len(data)
            self._queue.add_user_message(connection, connection_id, message_type, data, cost)

    # --- room -------------------------------------------------------------------------------------

    def _check_room(self, connection: MultiplexedConnection, cost: int) -> None:
        if (level := self._congestion(connection, cost)) is not None:
            self._blocked[connection] = cost
            raise Congested(level)

    def _congestion(
        self, connection: MultiplexedConnection, cost: int, promised: int = 0
    ) -> LimitLevel | None:
        """The level whose limit a message would exceed; if none waits, one is always allowed.

        ``promised`` bytes are expected to be taken by other connections of the session.
        """
        limits, budget, shared = self._limits, self._budget, cost + promised
        if self.queued and self.queued + shared > limits.session_queued_bytes:
            return LimitLevel.SESSION
        if budget.queued and budget.queued + shared > budget.queued_bytes:
            budget.wait_to_send(self._waiter)
            return LimitLevel.PROCESS
        if connection.queued and connection.queued + cost > limits.connection_queued_bytes:
            return LimitLevel.CONNECTION
        return None

    def arrived(self) -> None:
        """Handles the arrival of the boxcar in flight: releases its messages' cost."""
        costs = self._queue.arrived().costs
        for connection, cost in costs.items():
            connection.queued -= cost
        self._release(sum(costs.values()))

    def _release(self, cost: int) -> None:
        self.queued -= cost
        self._budget.release_queued(cost)

    def unblock(self) -> Iterator[MultiplexedConnection]:
        """The connections that may retry: only as many as there is room for.

        One that does not use its turn does not block others for long: the next boxcar that arrives
        unblocks more, and when none is under way, all may retry.
        """
        more_to_come = self._queue.in_flight or len(self._queue) > 0
        promised = 0
        for connection, cost in list(self._blocked.items()):
            level = self._congestion(connection, 1, promised)
            if level is None:
                del self._blocked[connection]
                promised += cost if more_to_come else 0
                yield connection
            elif level is not LimitLevel.CONNECTION:
                return

    # --- the end ----------------------------------------------------------------------------------

    def closed(self, connection: MultiplexedConnection) -> None:
        """Stops a connection's sending; queued messages are still sent."""
        self._blocked.pop(connection, None)

    def never_opened(self, connection: MultiplexedConnection) -> None:
        self.closed(connection)
        self._early.pop(connection, None)
        early, connection.queued = connection.queued, 0
        self._release(early)

    def clear(self) -> None:
        """Drops everything at the session's end; ``never_opened`` ends connections without id."""
        self._queue.clear()
        self._blocked.clear()
        self._budget.forget(self._waiter)
        early = sum(connection.queued for connection in self._early)
        lost, self.queued = self.queued - early, early
        self._budget.release_queued(lost)
