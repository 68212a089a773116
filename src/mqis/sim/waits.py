"""Names circular waits: servers that wait for each other's copy of one partition.

A server waits for another one while it recovers a partition and the other has not sent its copy,
during a full synchronisation, and while a sync request is open. Some of these servers answer nobody
about the partition meanwhile. So a circle of them never ends, and only these waits can form one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mqis.protocol.directory.objects import Partition, PurgeState, name_key
from mqis.sim.simulated_server import SimServer
from mqis.wire.guid import Guid


@dataclass(frozen=True, slots=True)
class Wait:
    """One server waits for another one, because of a partition."""

    server: str
    other: str
    partition: Guid
    reason: str

    def __str__(self) -> str:
        return f"{self.server} waits for {self.other} ({self.reason})"


def waits_of(server: SimServer) -> Iterator[Wait]:
    """The servers that a server waits for, for which partition, and why."""
    if server.node is None:
        return
    memory = server.node.replication.memory
    for partition, running in memory.recoveries.items():
        for survivor in running.survivors.values():
            if not survivor.complete:
                reason = "it recovers the partition and needs the other's copy"
                yield Wait(server.name, survivor.name, partition, reason)
    with server.disk.store.read() as view:
        states = view.partitions()
    for state in states:
        asked = memory.progress(state.id).asked
        if asked is not None and not asked.probe and state.id not in memory.recoveries:
            yield Wait(server.name, asked.machine, state.id, _reason(state))


def _reason(state: Partition) -> str:
    if state.purge_state is PurgeState.NORMAL:
        return f"it asks for changes above {state.last_seq.value}"
    return "it is in a full synchronisation and has no complete copy"


def circular_waits(servers: Iterable[SimServer]) -> list[tuple[Wait, ...]]:
    """Returns a circle for each partition that has one: each server in it waits for the next."""
    by_partition: dict[Guid, dict[str, list[Wait]]] = {}
    for server in servers:
        for wait in waits_of(server):
            edges = by_partition.setdefault(wait.partition, {})
            edges.setdefault(name_key(wait.server), []).append(wait)
    circles = (find_circle(edges) for _, edges in sorted(by_partition.items()))
    return [circle for circle in circles if circle]


def find_circle(edges: dict[str, list[Wait]]) -> tuple[Wait, ...]:
    """A circle by depth-first search; empty if there is none."""
    ended: set[str] = set()

    def search(name: str, path: list[Wait]) -> tuple[Wait, ...]:
        for start, wait in enumerate(path):
            if name_key(wait.server) == name:
                return tuple(path[start:])
        if name in ended:
            return ()
        for wait in edges.get(name, []):
            if found := search(name_key(wait.other), [*path, wait]):
                return found
        ended.add(name)
        return ()

    return next((found for name in sorted(edges) if (found := search(name, []))), ())


def describe_circle(circle: tuple[Wait, ...]) -> str:
    return f"partition {circle[0].partition}: " + ", ".join(str(wait) for wait in circle)
