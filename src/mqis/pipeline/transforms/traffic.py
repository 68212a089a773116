"""The load of each link and gate if messages between queue managers follow the routes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import arrays, schemas
from mqis.pipeline.mapping import mapped
from mqis.pipeline.transforms.current import values
from mqis.pipeline.transforms.expressions import guid_text
from mqis.pipeline.transforms.network import RoutingArrays, unpacked
from mqis.protocol.routing.bulk.sitegraph import SiteGraph
from mqis.protocol.routing.bulk.some_destinations import gate_columns
from mqis.protocol.routing.routing_table import UNREACHABLE
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

_ARROW = arrays.schema_of(schemas.LOADS)
#: The number of destinations that are computed together.
_BLOCK = 64
Flows = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def demand(messages: DataFrame, directory: DataFrame) -> DataFrame:
    """Sums messages between machines to (source, destination, messages) between sites, by name.

    The site of a machine that is not in the directory is null.
    """
    sites = directory.filter(F.col("type") == int(ObjectType.SITE)).select(
        F.col("path").alias("name"), guid_text("id").alias("site_id")
    )
    site = F.lower(F.get(values(PropId.QM_SITE_IDS), 0))  # null for a machine in no site
    machines = directory.filter(F.col("type") == int(ObjectType.MACHINE)).select(
        F.lower("path").alias("machine"), site.alias("site_id")
    )
    placed = machines.join(F.broadcast(sites), "site_id", "left")
    # If two machines have the same name, which hygiene reports, one of them is chosen.
    known = placed.groupBy("machine").agg(F.min("name").alias("name"))
    ends = messages.select(
        F.lower("source").alias("s"), F.lower("destination").alias("d"), "messages"
    )
    joined = ends.join(
        known.select(F.col("machine").alias("s"), F.col("name").alias("source")), "s", "left"
    ).join(
        known.select(F.col("machine").alias("d"), F.col("name").alias("destination")), "d", "left"
    )
    return joined.groupBy("source", "destination").agg(F.sum("messages").alias("messages"))


def made_up(directory: DataFrame, seed: DataFrame) -> DataFrame:
    """Made-up messages: every machine sends up to 500 to each of three machines.

    ``seed`` is one row with a number.
    """
    machines = directory.filter(F.col("type") == int(ObjectType.MACHINE)).select("path")
    listed = machines.agg(F.array_sort(F.collect_list("path")).alias("all"))
    sending = (
        machines.crossJoin(F.broadcast(listed))
        .crossJoin(F.broadcast(seed))
        .select(
            F.col("path").alias("source"),
            *("all", "seed"),
            F.explode(F.sequence(F.lit(1), F.lit(3))).alias("n"),
        )
    )
    roll = F.xxhash64("source", "n", "seed")
    chosen = F.element_at("all", (F.pmod(roll, F.size("all")) + 1).cast("int"))
    count = F.pmod(F.shiftright(roll, 20), F.lit(500)) + 1
    return sending.select(
        "source", chosen.alias("destination"), count.cast("double").alias("messages")
    )


def loads(wanted: DataFrame, network: DataFrame) -> DataFrame:
    """The load of links and gates for a demand between sites (``schemas.LOADS``).

    ``network`` is one row of ``schemas.NETWORK`` with the name of a link that has ``failed``, or an
    empty one.
    """
    names = network.select(F.from_json("packed", "sites array<string>").alias("known"))
    numbered = names.select(F.posexplode("known.sites").alias("number", "site"))
    # Of sites with the same name, which hygiene reports, the last one counts.
    sites = numbered.groupBy("site").agg(F.max("number").alias("number"))
    ends = (
        wanted.join(F.broadcast(_renamed(sites, "source", "s")), "source")
        .join(F.broadcast(_renamed(sites, "destination", "d")), "destination")
        .filter("s != d")
        .select("s", "d", F.col("messages").cast("double").alias("messages"))
    )
    # One row for each block of destinations: it gets the network once.
    blocks = ends.groupBy(F.floor(F.col("d") / _BLOCK).alias("block")).agg(
        F.collect_list(F.struct("s", "d", "messages")).alias("flows")
    )
    whole = blocks.crossJoin(F.broadcast(network))
    carried = mapped(whole, ("flows", "packed", "failed"), _carry, schemas.LOADS)
    return carried.groupBy("kind", "name").agg(F.sum("messages").alias("messages"))


def _renamed(sites: DataFrame, site: str, number: str) -> DataFrame:
    return sites.select(F.col("site").alias(site), F.col("number").alias(number))


def _carry(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in range(batch.num_rows):
            flows, packed, failed = (column[row] for column in batch.columns)
            network = unpacked(packed.as_py())
            if failed.as_py():
                network = without_link(network, failed.as_py())
            yield _carried(network, flows.values)


def _carried(network: RoutingArrays, flows: pa.StructArray) -> pa.RecordBatch:
    """The loads that the flows of one block cause."""
    source, destination, messages = (flows.field(n).to_numpy() for n in ("s", "d", "messages"))
    destinations, column = np.unique(destination, return_inverse=True)
    flow = np.zeros((network.graph.count, len(destinations)))
    np.add.at(flow, (source, column), messages)
    found = _loads(network, destinations.astype(np.int64), flow)
    rows = [{"kind": kind, "name": name, "messages": load} for kind, name, load in found]
    return pa.RecordBatch.from_pylist(rows, schema=_ARROW)


def _loads(
    network: RoutingArrays, destinations: Ints, flow: Flows
) -> Iterator[tuple[str, str, float]]:
    """(kind, name, messages) of links, gates and what finds no way."""
    graph = network.graph
    routes = gate_columns(graph, network.gates.roots(), destinations)
    hop = np.where(routes.arrives, routes.hop, UNREACHABLE).astype(np.int32)
    lost = float(flow[hop == UNREACHABLE].sum())
    flow[hop == UNREACHABLE] = 0
    through = _flow_through(hop, flow)
    on_link = np.zeros(len(network.links))
    leaving = np.where(_is_end(hop), 0, through)
    np.add.at(on_link, _edges(network, hop), leaving.ravel())
    at_site = through.sum(axis=1)
    for number in np.flatnonzero(on_link).tolist():
        yield "link", network.links[number], float(on_link[number])
    for site, gates in enumerate(network.gates.of_site):
        if gates and at_site[site]:
            yield "gate", network.machines[gates[0]], float(at_site[site])
    if lost:
        yield "undeliverable", "", lost


def _is_end(hop: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """True where a message is not sent on: its gate belongs to the destination, or has no route."""
    here = np.arange(len(hop))[:, None]
    ends: npt.NDArray[np.bool_] = (hop == UNREACHABLE) | (hop == here)
    return ends


def _flow_through(hop: npt.NDArray[np.int32], flow: Flows) -> Flows:
    """The flow through each site to each destination, added up from the farthest sites on."""
    depth = _depths(hop)
    through = flow.copy()
    for level in range(int(depth.max(initial=0)), 0, -1):
        site, column = np.nonzero(depth == level)
        np.add.at(through, (hop[site, column], column), through[site, column])
    return through


def _depths(hop: npt.NDArray[np.int32]) -> Ints:
    """The number of hops from each site to each destination; 0 if there is no route."""
    count, width = hop.shape
    columns = np.broadcast_to(np.arange(width), hop.shape)
    at = np.broadcast_to(np.arange(count)[:, None], hop.shape).astype(np.int64)
    depth = np.zeros(hop.shape, dtype=np.int64)
    ends = _is_end(hop)
    under_way = ~ends
    while under_way.any():
        depth += under_way
        at = np.where(under_way, hop[at, columns], at)
        under_way &= ~ends[at, columns]
    return depth


def _edges(network: RoutingArrays, hop: npt.NDArray[np.int32]) -> Ints:
    """The number of the link to each next hop; of parallel links, the cheapest."""
    graph = network.graph
    edge = graph.is_edge
    keys = graph.first[edge].astype(np.int64) * graph.count + graph.second[edge]
    here = _leaving_from(network, hop)
    there = np.maximum(hop, 0)
    wanted = np.minimum(here, there).astype(np.int64) * graph.count + np.maximum(here, there)
    place = np.minimum(np.searchsorted(keys, wanted.ravel()), max(len(keys) - 1, 0))
    return graph.link[edge][place] if len(keys) else np.zeros(hop.size, dtype=np.int64)


def _leaving_from(network: RoutingArrays, hop: npt.NDArray[np.int32]) -> Ints:
    """The site whose link is taken: one of the others, if the gate belongs to several sites."""
    rows, roots = network.graph.rows, network.gates.roots()
    here = np.repeat(np.arange(network.graph.count)[:, None], hop.shape[1], axis=1)
    for site, own in enumerate(roots):
        if len(own) > 1:
            for there in np.unique(hop[site]):
                offers = [
                    (int(rows.cost[at]), root)
                    for root in own
                    for at in range(rows.start[root], rows.start[root + 1])
                    if rows.neighbour[at] == there
                ]
                here[site][hop[site] == there] = min(offers, default=(0, site))[1]
    return here


def without_link(network: RoutingArrays, name: str) -> RoutingArrays:
    """The network after a failure of all links of that name."""
    graph = network.graph
    kept = np.array([network.links[number] != name for number in graph.link], dtype=np.bool_)
    ends = graph.first[kept], graph.second[kept]
    return replace(network, graph=SiteGraph(graph.count, graph.link[kept], *ends, graph.cost[kept]))
