"""Checks that a store answers from its cache as its tables would."""

from __future__ import annotations

from mqis.sim.server import SimServer
from mqis.sim.violation import Violation
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType


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
