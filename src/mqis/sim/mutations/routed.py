"""Mutations that put a plausible bug into routed queues; the world ``queues`` finds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import DuplicateTable
from mqis.protocol.queueing.outgoing import Outgoing
from mqis.protocol.queueing.routed_messages import QueueingRoutes

_Any = Callable[..., Any]


def _behind_the_detour(settle: _Any) -> _Any:
    def settled(
        manager: QueueingMachine, connection: int, link: Any, now: float, *, lost: bool = False
    ) -> None:
        destination, session = link.destination, link.session
        if session.closed is None or destination is None:
            settle(manager, connection, link, now, lost=lost)
            return
        manager._drop_link(connection, link, lost=lost)
        manager._fail(destination, now)
        destination.queue.requeue(session.unacknowledged())
        manager._advance(destination, now)

    return settled


def _unseen(_seen: _Any) -> _Any:
    return lambda _table, _identifier, _now: False


def _expired_only(handle_timer: _Any) -> _Any:
    def handled(routes: QueueingRoutes, now: float) -> None:
        routes._trial_due = now + 60.0  # later than now, each time
        handle_timer(routes, now)

    return handled


def _forgotten(_strand: _Any) -> _Any:
    def stranded(_routes: QueueingRoutes, _outgoing: Outgoing, _now: float) -> None: ...

    return stranded


Q01 = ((QueueingMachine, "_settle", _behind_the_detour),)
Q02 = ((DuplicateTable, "seen", _unseen),)
Q03 = ((QueueingRoutes, "handle_timer", _expired_only),)
Q04 = ((QueueingRoutes, "_strand", _forgotten),)

BUGS = {
    "Q01": ("what a failed hop had not acknowledged is requeued behind the detour", Q01),
    "Q02": ("a queue takes the same message twice", Q02),
    "Q03": ("messages without a next hop are not tried again", Q03),
    "Q04": ("messages without a next hop are dropped in silence", Q04),
}
