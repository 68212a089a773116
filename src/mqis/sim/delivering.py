"""Checks that a queue manager delivers the messages of a session in the order they were sent."""

from __future__ import annotations

from mqis.protocol.queueing.events import Delivered
from mqis.sim.violation import Violation
from mqis.wire.guid import Guid


class DeliveryOrder:
    """The last message of each session and priority that one queue manager has delivered.

    A sender numbers its messages in the order in which it sends them. A message that is sent again
    comes in a later session.
    """

    def __init__(self, *, checked: bool = True) -> None:
        self._checked = checked
        self._last: dict[tuple[int, Guid, int], int] = {}

    def delivered(self, machine: str, event: Delivered) -> None:
        if not self._checked or event.session == 0:
            return
        source, ordinal = event.identifier.source, event.identifier.ordinal
        key = event.session, source, event.priority
        last = self._last.get(key, 0)
        if ordinal <= last:
            raise Violation(
                "order of delivery", f"{machine} gets message {ordinal} of {source} after {last}"
            )
        self._last[key] = ordinal
