"""Groups of sites between which messages find a route."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mqis.protocol.routing.bulk.columns import gate_columns
from mqis.protocol.routing.bulk.gates import Gates
from mqis.protocol.routing.bulk.sitegraph import site_graph
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid

#: Destinations that are computed at once, which bounds the memory.
_BLOCK = 128


def islands(snapshot: Snapshot, closed: Collection[Guid]) -> list[tuple[Guid, ...]]:
    """The groups, the largest first, without the ``closed`` sites.

    A site that has no gate and is not closed counts as if it had one.
    """
    graph, sites, _ = site_graph(snapshot)
    gates, _ = Gates.of_snapshot(snapshot)
    roots = [
        () if site in closed else own or (number,)
        for number, (site, own) in enumerate(zip(sites, gates.roots(), strict=True))
    ]
    arrives = np.zeros((graph.count, graph.count), dtype=bool)
    for begin in range(0, graph.count, _BLOCK):
        block = np.arange(begin, min(begin + _BLOCK, graph.count))
        arrives[:, block] = gate_columns(graph, roots, block).arrives
    _, labels = connected_components(csr_array(arrives & arrives.T), directed=False)
    groups: dict[int, list[Guid]] = {}
    for site, label in zip(sites, labels.tolist(), strict=True):
        if site not in closed:
            groups.setdefault(label, []).append(site)
    return sorted(map(tuple, groups.values()), key=lambda group: (-len(group), group[0]))
