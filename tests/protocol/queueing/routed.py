"""Enterprises of queue managers that route, joined without sockets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqis.protocol.queueing.events import Arrived, Relayed, Written
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import PrivateQueue, PublicQueue, QueuedMessage
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.protocol.routing.router import DirectoryRouter
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from tests.protocol.queueing.wires import UNIX_TIME, Wires

#: Private queues that all machines have.
QUEUE, ADMIN = 20, 21


def routing_manager(
    snapshot: Snapshot,
    machine: Guid,
    owners: Mapping[Guid, Guid] | None = None,
    limits: QueueingLimits | None = None,
    **options: Any,
) -> QueueingMachine:
    keeper = RoutingTableKeeper(machine, lambda: snapshot, 0.0)
    router = DirectoryRouter(machine, keeper, (owners or {}).get, (QUEUE, ADMIN))
    name = snapshot.machines[machine].name
    ids = MessageIdCounter(0)
    return QueueingMachine(
        machine, name, ids, limits=limits, **{"peers": router, "router": router} | options
    )


class Enterprise(Wires):
    """Every machine of a snapshot; ``views`` are those that know another directory."""

    def __init__(
        self,
        snapshot: Snapshot,
        owners: Mapping[Guid, Guid] | None = None,
        views: Mapping[Guid, Snapshot] | None = None,
        limits: QueueingLimits | None = None,
    ) -> None:
        views = views or {}
        self.snapshot = snapshot
        super().__init__(
            *(
                routing_manager(views.get(machine, snapshot), machine, owners, limits)
                for machine in snapshot.machines
            )
        )

    def name(self, machine: Guid) -> str:
        return canonical(self.snapshot.machines[machine].name)

    def post(
        self,
        source: Guid,
        queue: PrivateQueue | PublicQueue,
        body: bytes = b"hello",
        *,
        lifetime_s: int = 1200,
    ) -> MessageIdentifier:
        message = QueuedMessage(
            body, lifetime_s=lifetime_s, acknowledge=True, queue=queue, admin=ADMIN
        )
        return self.managers[self.name(source)].send_routed(message, self.now, UNIX_TIME)

    def travelled(self, identifier: MessageIdentifier) -> list[Guid]:
        """The machines that had a message, in order, as recorded by those that forwarded it."""
        self.drain()
        by_name = {self.name(machine): machine for machine in self.snapshot.machines}
        passed: dict[tuple[Guid, int], Guid] = {}
        for name, events in self.events.items():
            for event in events:
                if isinstance(event, Written) and event.identifier == identifier:
                    passed[by_name[name], 0] = by_name[canonical(event.machine)]
                elif isinstance(event, Relayed) and event.identifier == identifier:
                    passed[by_name[name], event.hops] = event.next_hop
        path = [identifier.source]
        while (path[-1], len(path) - 1) in passed:
            path.append(passed[path[-1], len(path) - 1])
        return path

    def arrivals(self, identifier: MessageIdentifier) -> list[tuple[str, Arrived]]:
        return [
            (name, event)
            for name in self.managers
            for event in self.of(name, Arrived)
            if event.identifier == identifier
        ]
