"""Checks that a server whose commit failed has forgotten what the commit would have stored."""

from __future__ import annotations

from mqis.protocol.clock import Instant
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.memory import Memory
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.sim.server import ServerEntropy, SimServer
from mqis.sim.stores import discarded
from mqis.sim.violation import Violation


def check_memory(server: SimServer, settings: ReplicationSettings, at: Instant) -> None:
    """Compares the memory of a server that has just started with that of a new process."""
    if server.node is None:
        return
    fresh = Replication(server.me, ServerEntropy("fresh"), settings, journaled=False)
    with discarded(server.disk.store) as tx:
        fresh.start(tx, at)
    expected, found = _facts(fresh.memory), _facts(server.node.replication.memory)
    wrong = [name for name, value in expected.items() if found[name] != value]
    if wrong:
        raise Violation(
            "nothing kept of a refused commit", f"{server.name} remembers {', '.join(wrong)}"
        )


def _facts(memory: Memory) -> dict[str, object]:
    partitions = memory.partitions
    return {
        "neighbours": {key: (n.site, n.intersite) for key, n in memory.neighbors.items()},
        "recoveries": set(memory.recoveries),
        "requests": set(memory.waiting),
        "quarantine": {id_: p.quarantine for id_, p in partitions.items() if p.quarantine},
        "pending changes": {id_ for id_, p in partitions.items() if p.pending},
        "replies in parts": {id_ for id_, p in partitions.items() if p.in_round or p.incomplete},
        "the PSC": memory.psc,
    }
