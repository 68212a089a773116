"""Checks that a server whose commit failed has forgotten what the commit would have stored."""

from __future__ import annotations

from mqis.protocol.clock import Instant
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.memory import Memory
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.sim.run_trace import Violation
from mqis.sim.simulated_server import ServerEntropy, SimServer
from mqis.sim.simulated_stores import discarded
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType


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


# --- Checks that a store answers from its cache as its tables would -------------------------------


def check_cached(server: SimServer) -> None:
    """Compares every object of a store with a cache, found in both ways, with the tables."""
    store = server.disk.store
    if not isinstance(store, SqliteStore):
        return
    with store.read_afresh() as tables, store.read() as view:
        for kind in ObjectType:
            for obj in tables.objects(kind):
                found = view.get(kind, obj.id), view.find(kind, obj.path or "")
                if found != (obj, obj if obj.path else None):
                    raise Violation(
                        "cached answers are those of the tables",
                        f"{server.name} has another {kind.label} {obj.id} in its cache",
                    )
