"""The network that routes are computed on: small, so every task gets all of it.

It is packed as JSON, which a table can hold and any task can read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.registry import step
from mqis.pipeline.transforms.current import OBJECT_COLUMNS, value, values
from mqis.pipeline.transforms.expressions import guid_text
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.routing.bulk.gates import Gates
from mqis.protocol.routing.bulk.sitegraph import SiteGraph, site_graph
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


@dataclass(frozen=True, slots=True)
class RoutingArrays:
    """The input of a task: the graph as arrays, and the names of sites, links and machines."""

    graph: SiteGraph
    gates: Gates
    sites: tuple[str, ...]
    links: tuple[str, ...]
    machines: tuple[str, ...]

    @property
    def failures(self) -> list[tuple[str, int]]:
        """The links and gates that may fail."""
        links = [("link", int(number)) for number in np.sort(self.graph.link)]
        gates = sorted({gate for gates in self.gates.of_site for gate in gates})
        return links + [("gate", gate) for gate in gates]

    @classmethod
    def of(cls, snapshot: Snapshot) -> RoutingArrays:
        graph, sites, links = site_graph(snapshot)
        gates, machines = Gates.of_snapshot(snapshot)
        names = tuple(snapshot.sites[site].name or str(site) for site in sites)
        known = {m.id: m.name for m in snapshot.machines.values()}
        return cls(
            graph,
            gates,
            names,
            tuple(_link_name(snapshot, names, link) for link in links),
            tuple(known[machine] for machine in machines),
        )


def _link_name(snapshot: Snapshot, names: tuple[str, ...], link: object) -> str:
    """The names of both ends, as links have no names."""
    found = snapshot.links[link]  # type: ignore[index]
    index = snapshot.graph.index
    ends = [names[index[s]] if s in index else str(s) for s in (found.site1, found.site2)]
    return " - ".join(sorted(ends))


@step
def routing_objects(held_objects: DataFrame) -> DataFrame:
    """Sites, links, machines that route, and machines that are named as gates but do not."""
    routes = F.coalesce(
        value(PropId.QM_SERVICE).cast("int").bitwiseAND(int(ServiceBits.ROUTING)) != 0, F.lit(False)
    )
    is_machine = F.col("type") == int(ObjectType.MACHINE)
    is_site = F.col("type") == int(ObjectType.SITE)
    is_link = F.col("type") == int(ObjectType.ROUTINGLINK)
    found = held_objects.filter(is_site | is_link | (is_machine & routes))
    gates = F.when(is_site, values(PropId.S_GATES)).otherwise(values(PropId.L_GATES))
    placed = held_objects.filter(is_site | is_link).select(F.explode(gates).alias("gate"))
    named = F.broadcast(placed.select(F.lower("gate").alias("gate")).distinct())
    others = held_objects.filter(is_machine & ~routes).withColumn("gate", guid_text("id"))
    others = others.join(named, "gate", "left_semi")
    return found.select(*OBJECT_COLUMNS).unionByName(others.select(*OBJECT_COLUMNS))


def packed(network: RoutingArrays) -> str:
    graph, gates = network.graph, network.gates
    arrays = (graph.link, graph.first, graph.second, graph.cost)
    return json.dumps(
        {
            "count": graph.count,
            "graph": [array.tolist() for array in arrays],
            "of_site": gates.of_site,
            "homes": gates.homes,
            "named_by": [[*pair, *sorted(links)] for pair, links in gates.named_by.items()],
            "sites": network.sites,
            "links": network.links,
            "machines": network.machines,
        }
    )


@lru_cache(maxsize=1)
def unpacked(text: str) -> RoutingArrays:
    """The network that ``packed`` has written; a task has the same one in every row."""
    known = json.loads(text)
    link, first, second, cost = known["graph"]
    graph = SiteGraph(
        known["count"],
        np.array(link, dtype=np.int64),
        np.array(first, dtype=np.int32),
        np.array(second, dtype=np.int32),
        np.array(cost, dtype=np.int64),
    )
    of_site, homes = (tuple(map(tuple, known[name])) for name in ("of_site", "homes"))
    named_by = {(site, gate): frozenset(links) for site, gate, *links in known["named_by"]}
    names = (tuple(known[name]) for name in ("sites", "links", "machines"))
    return RoutingArrays(graph, Gates(of_site, homes, named_by), *names)
