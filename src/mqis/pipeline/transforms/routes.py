"""Routes between all sites, and the effects of single failures, by the project's own routing.

The graph of an enterprise is small (thousands of sites), its routes are many (millions). So every
task gets the whole graph and computes the routes to some destinations, or some failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from mqis.pipeline import schemas
from mqis.pipeline.transforms.current import OBJECT_COLUMNS, objects_from, value
from mqis.protocol.directory.service import ServiceBits
from mqis.protocol.routing.bulk.allpairs import all_pairs
from mqis.protocol.routing.bulk.columns import GateColumns, gate_columns
from mqis.protocol.routing.bulk.gates import Gates
from mqis.protocol.routing.bulk.sitegraph import SiteGraph, site_graph
from mqis.protocol.routing.bulk.whatif import Impact, WhatIf
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.table import UNREACHABLE
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

Batches = Iterator[pa.RecordBatch]
Ints = npt.NDArray[np.int64]

#: The number of destinations that a task computes at once.
_BLOCK = 64
_ROUTES: pa.Schema = to_arrow_schema(schemas.ROUTES, timezone="UTC")
_WHAT_IF: pa.Schema = to_arrow_schema(schemas.WHAT_IF, timezone="UTC")


@dataclass(frozen=True, slots=True)
class RoutingArrays:
    """The input of a task: the graph as arrays, and the names of sites, links and machines."""

    graph: SiteGraph
    gates: Gates
    sites: tuple[str, ...]
    links: tuple[str, ...]
    machines: tuple[str, ...]

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


def snapshot_of(directory: DataFrame) -> Snapshot:
    """The part of a directory that routing between sites needs."""
    return Snapshot.of(objects_from(routing_rows(directory)))


def routing_rows(directory: DataFrame) -> list[Row]:
    """Sites, links, machines that route, and machines that are named as gates but do not."""
    routes = F.coalesce(
        value(PropId.QM_SERVICE).cast("int").bitwiseAND(int(ServiceBits.ROUTING)) != 0,
        F.lit(False),
    )
    is_machine = F.col("type") == int(ObjectType.MACHINE)
    kinds = [int(ObjectType.SITE), int(ObjectType.ROUTINGLINK)]
    rows = _collected(directory, F.col("type").isin(kinds) | (is_machine & routes))
    snapshot = Snapshot.of(objects_from(rows))
    named = {gate for site in snapshot.sites.values() for gate in site.gates}
    named |= {gate for link in snapshot.links.values() for gate in link.gates}
    others = [gate.raw.hex().upper() for gate in sorted(named - snapshot.machines.keys())]
    if others:
        rows += _collected(directory, is_machine & F.hex("id").isin(others))
    return rows


def _collected(directory: DataFrame, wanted: Column) -> list[Row]:
    return directory.filter(wanted).select(*OBJECT_COLUMNS).collect()


# --- routes ---------------------------------------------------------------------------------------


def routes(session: SparkSession, network: RoutingArrays, *, paths: bool = True) -> DataFrame:
    """Cost, next hop and, with ``paths``, the path of every pair of sites; null without a route."""
    return _spread(session, network.graph.count).mapInArrow(_router(network, paths), schemas.ROUTES)


def _spread(session: SparkSession, count: int) -> DataFrame:
    """The numbers below ``count``, divided between tasks."""
    tasks = max(1, -(-count // _BLOCK))
    return session.range(0, count, 1, tasks)


def _router(network: RoutingArrays, paths: bool) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            wanted = batch.column(0).to_numpy()
            for begin in range(0, len(wanted), _BLOCK):
                yield routes_block(network, wanted[begin : begin + _BLOCK], paths)

    return work


def routes_block(network: RoutingArrays, destinations: Ints, paths: bool) -> pa.RecordBatch:
    """The rows of ``routes`` for some destinations, by number; the same as of ``mqis route``."""
    found = gate_columns(network.graph, network.gates.roots(), destinations)
    count = network.graph.count
    # Every source with every destination, except a site with itself.
    here, column = (index.ravel() for index in np.indices((count, len(destinations))))
    other = here != destinations[column]
    here, column = here[other], column[other]
    names = np.array([*network.sites, None], dtype=object)  # index -1 means no site
    cut = ~found.arrives[here, column]
    via = np.where(cut, UNREACHABLE, found.next_site()[here, column])
    made = {
        "source": pa.array(names[here], pa.string()),
        "destination": pa.array(names[destinations[column]], pa.string()),
        "cost": pa.array(found.cost[here, column], pa.int64(), mask=cut),
        "next_hop": pa.array(names[via], pa.string()),
        "path": pa.nulls(len(here), pa.list_(pa.string())),
    }
    if paths:
        steps = _steps(found, here, column)
        known = (steps >= 0) & ~cut[:, None]
        ends = np.concatenate(([0], np.cumsum(known.sum(axis=1)))).astype(np.int32)
        listed = pa.array(names[steps[known]], pa.string())
        made["path"] = pa.ListArray.from_arrays(pa.array(ends), listed)
    arrays = [made[name].cast(_ROUTES.field(name).type) for name in _ROUTES.names]
    return pa.RecordBatch.from_arrays(arrays, schema=_ROUTES)


def _steps(found: GateColumns, here: Ints, column: Ints) -> Ints:
    """The sites of each path, one row a path, -1 after its end. All paths grow in parallel."""
    hop, end = found.next_site(), found.destinations[column]
    steps = [here]
    while True:
        at = steps[-1]
        following = hop[np.maximum(at, 0), column].astype(np.int64)
        going = (at >= 0) & (at != end) & (following != UNREACHABLE)
        if not going.any():
            return np.stack(steps, axis=1)
        steps.append(np.where(going, following, -1))


# --- failures -------------------------------------------------------------------------------------


def what_if(session: SparkSession, network: RoutingArrays) -> DataFrame:
    """The effect of the failure of every single link and gate (``schemas.WHAT_IF``)."""
    links = np.sort(network.graph.link)
    gates = sorted({gate for gates in network.gates.of_site for gate in gates})
    failures = [("link", int(number)) for number in links] + [("gate", gate) for gate in gates]
    tasks = max(1, min(64, len(failures) // 16))
    numbered = session.range(0, len(failures), 1, tasks)
    return numbered.mapInArrow(_failer(network, failures), schemas.WHAT_IF)


def _failer(
    network: RoutingArrays, failures: list[tuple[str, int]]
) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        questions: WhatIf | None = None
        for batch in batches:
            questions = questions or WhatIf(all_pairs(network.graph), network.gates)
            rows = [failures[index] for index in batch.column(0).to_pylist()]
            yield _impacts(network, questions, rows)

    return work


def _impacts(network: RoutingArrays, ask: WhatIf, rows: list[tuple[str, int]]) -> pa.RecordBatch:
    found = []
    for kind, number in rows:
        if kind == "link":
            found.append(Impact.of(number, ask.without([number])))
        else:
            found.append(Impact.of(number, ask.without(gates=[number])))
    names = {"link": network.links, "gate": network.machines}
    made: dict[str, list[object]] = {
        "kind": [kind for kind, _ in rows],
        "name": [names[kind][number] for kind, number in rows],
        "changed": [impact.changed for impact in found],
        "cut_off": [impact.unreachable for impact in found],
        "dearer_by": [impact.dearer_by for impact in found],
        "worst": [impact.worst for impact in found],
    }
    arrays = [pa.array(made[field.name], field.type) for field in _WHAT_IF]
    return pa.RecordBatch.from_arrays(arrays, schema=_WHAT_IF)
