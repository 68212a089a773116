"""Routing for the transport: an implementation of ``queueing.Router`` and ``queueing.Peers``."""

from __future__ import annotations

from collections.abc import Callable, Container

from mqis.protocol.queueing.forwarding import NextHop
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.routing.breakage import Breakage, NoRouteError, RouteFault
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.wire.guid import Guid
from mqis.wire.mqqb.queuename import QueueKind, QueueName


def _no_owner(_queue: Guid) -> Guid | None:
    return None


class DirectoryRouter:
    """Routes by a keeper's snapshot. ``owner_of`` reads the queue manager of a public queue."""

    def __init__(
        self,
        machine: Guid,
        keeper: RoutingTableKeeper,
        owner_of: Callable[[Guid], Guid | None] = _no_owner,
        private_queues: Container[int] = (),
    ) -> None:
        self._machine = machine
        self._keeper = keeper
        self._owner_of = owner_of
        self._private_queues = private_queues

    # --- Router -----------------------------------------------------------------------------------

    @property
    def forwards(self) -> bool:
        found = self._keeper.snapshot.machines.get(self._machine)
        return found is not None and found.routing_server

    def knows(self, machine: Guid) -> bool:
        return machine in self._keeper.snapshot.machines

    def next_hops(self, target: Guid) -> tuple[NextHop, ...]:
        """The next hops, without those that are not in the directory."""
        machines = self._keeper.snapshot.machines
        listed = self._keeper.next_hops(target).hops
        found = tuple(NextHop(hop, machines[hop].name) for hop in listed if hop in machines)
        if listed and not found:
            raise NoRouteError(Breakage(RouteFault.NO_HOP, listed[0]))
        return found

    def owner_of(self, queue: Guid) -> Guid | None:
        return self._owner_of(queue)

    def has_queue(self, name: QueueName) -> bool:
        if name.kind is QueueKind.PUBLIC:
            return self._owner_of(name.guid) == self._machine
        return name.private_id in self._private_queues

    # --- Peers ------------------------------------------------------------------------------------

    def admits(self, guid: Guid, machine: str | None, address: str) -> bool:
        """Admits machines of the directory; one that this side connected to must have that name."""
        found = self._keeper.snapshot.machines.get(guid)
        if found is None:
            return False
        return machine is None or canonical(found.name) == canonical(machine)
