"""One queue manager's routing table through time (MS-MQBR 3.1.2, 3.1.3, 3.1.6).

It is built at the start, again every hour, and at once when the directory changes something that it
depends on. A directory that cannot be read leaves the table as it is and is asked again soon
(E-MQBR-09). A finished table takes the place of the old one; nobody ever sees half of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mqis.protocol.ports import Change
from mqis.protocol.routing.changes import with_changes
from mqis.protocol.routing.directorydata import READ_ERRORS
from mqis.protocol.routing.nexthops import Decision, is_site_gate, next_hops
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.table import EMPTY, RoutingTable, roots_of
from mqis.protocol.routing.update import update_table
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid

#: QueueManager Query Timer (3.1.3).
QUERY_PERIOD_S = 3600.0
#: How soon a directory that could not be read is asked again.
RETRY_S = 60.0


def routing_table(
    snapshot: Snapshot, machine: Guid, previous: RoutingTable = EMPTY
) -> RoutingTable:
    """RoutingTable Initialization (3.1.3.1), from an earlier table where that is cheaper."""
    if not is_site_gate(snapshot, machine) or not snapshot.sites or not snapshot.links:
        return EMPTY
    graph = snapshot.graph
    roots = roots_of(graph, snapshot.machines[machine].sites)
    return update_table(previous, graph, roots)


class RoutingTableKeeper:
    """The table of ``machine``. ``read`` takes a snapshot of the directory, or raises."""

    def __init__(self, machine: Guid, read: Callable[[], Snapshot], now: float) -> None:
        self._machine = machine
        self._read = read
        self._due = now
        self._is_read = False
        self.snapshot = Snapshot({}, {}, {})
        self.table = EMPTY
        #: Why the directory could not be read the last time; None if it could.
        self.error: MqisError | None = None
        #: Tables that were computed since the start, and readings of the directory that failed.
        self.builds = 0
        self.failures = 0
        self.handle_timer(now)

    def next_timer(self) -> float:
        return self._due

    def handle_timer(self, now: float) -> bool:
        """Rebuild if it is time to; whether the table is another one now."""
        if now < self._due:
            return False
        try:
            snapshot = self._read()
        except READ_ERRORS as error:
            self.failed(error, now)
            return False
        return self.refreshed(snapshot, now)

    def refreshed(self, snapshot: Snapshot, now: float) -> bool:
        """The directory as somebody has read it elsewhere; whether the table is another one now."""
        self.error = None
        self._due = now + QUERY_PERIOD_S
        return self._swap(snapshot, routing_table(snapshot, self._machine))

    def failed(self, error: MqisError, now: float) -> None:
        """It could not be read: the table stays, and the next attempt is soon."""
        self.error = error
        self.failures += 1
        self._due = now + RETRY_S

    def changed(self, changes: Iterable[Change]) -> bool:
        """What the directory committed, in its order; whether the table is another one now.

        Changes that arrive while the directory could never be read wait for it to be read.
        """
        if not self._is_read:
            return False
        snapshot = with_changes(self.snapshot, changes)
        if snapshot is self.snapshot:
            return False
        return self._swap(snapshot, routing_table(snapshot, self._machine, self.table))

    def next_hops(self, destination: Guid) -> Decision:
        """Where this queue manager sends a message to, or ``NoRouteError``."""
        return next_hops(self.snapshot, self.table, self._machine, destination)

    def _swap(self, snapshot: Snapshot, table: RoutingTable) -> bool:
        different = not table.same_rows(self.table)
        self._is_read = True
        self.builds += 1
        self.snapshot, self.table = snapshot, table
        return different
