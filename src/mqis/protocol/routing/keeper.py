"""One queue manager's routing table, kept up to date (MS-MQBR 3.1.2, 3.1.3, 3.1.6).

It is built at the start, again every hour, and at once when the directory changes something that it
depends on. If the directory cannot be read, the table stays and the read is retried soon
(E-MQBR-09). A finished table replaces the old one as a whole.
"""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.routing.directorydata import READ_ERRORS
from mqis.protocol.routing.nexthops import Decision, is_site_gate, next_hops
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.table import EMPTY, RoutingTable, roots_of
from mqis.protocol.routing.update import update_table
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid

#: QueueManager Query Timer (3.1.3).
QUERY_PERIOD_S = 3600.0
#: Seconds until a failed read of the directory is retried.
RETRY_S = 60.0


def routing_table(
    snapshot: Snapshot, machine: Guid, previous: RoutingTable = EMPTY
) -> RoutingTable:
    """RoutingTable Initialization (3.1.3.1), updating an earlier table where that is faster."""
    if not is_site_gate(snapshot, machine) or not snapshot.sites or not snapshot.links:
        return EMPTY
    graph = snapshot.graph
    roots = roots_of(graph, snapshot.machines[machine].sites)
    return update_table(previous, graph, roots)


class RoutingTableKeeper:
    """Keeps the table of ``machine``. ``read`` takes a snapshot of the directory, or raises."""

    def __init__(self, machine: Guid, read: Callable[[], Snapshot], now: float) -> None:
        self._machine = machine
        self._read = read
        self._due = now
        self.snapshot = Snapshot({}, {}, {})
        self.table = EMPTY
        #: The error of the last read of the directory; None if it succeeded.
        self.error: MqisError | None = None
        #: Tables computed since the start, and failed reads of the directory.
        self.builds = 0
        self.failures = 0
        self.handle_timer(now)

    def next_timer(self) -> float:
        return self._due

    def handle_timer(self, now: float) -> bool:
        """Rebuilds the table if that is due; returns whether it has changed."""
        if now < self._due:
            return False
        try:
            snapshot = self._read()
        except READ_ERRORS as error:
            self.failed(error, now)
            return False
        return self.refreshed(snapshot, now)

    def refreshed(self, snapshot: Snapshot, now: float) -> bool:
        """Rebuilds the table from a snapshot read elsewhere; returns whether it has changed."""
        self.error = None
        self._due = now + QUERY_PERIOD_S
        return self._swap(snapshot, routing_table(snapshot, self._machine, self.table))

    def failed(self, error: MqisError, now: float) -> None:
        """Notes a failed read: keeps the table and schedules a retry."""
        self.error = error
        self.failures += 1
        self._due = now + RETRY_S

    def next_hops(self, destination: Guid) -> Decision:
        """The next hops of a message from this queue manager; ``NoRouteError`` if there is none."""
        return next_hops(self.snapshot, self.table, self._machine, destination)

    def _swap(self, snapshot: Snapshot, table: RoutingTable) -> bool:
        different = not table.same_rows(self.table)
        self.builds += 1
        self.snapshot, self.table = snapshot, table
        return different
