"""Mutations that put a plausible bug into a queue manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqis.protocol.queueing.outgoing import Outgoing, OutgoingQueue

_Any = Callable[..., Any]


def _newest_first(push: _Any) -> _Any:
    def pushed(queue: OutgoingQueue, outgoing: Outgoing) -> None:
        push(queue, outgoing)
        queue._waiting[outgoing.message.priority].move_to_end(outgoing, last=False)

    return pushed


B28 = ((OutgoingQueue, "push", _newest_first),)

BUGS = {"B28": ("a queue manager sends the newest message first", B28)}
