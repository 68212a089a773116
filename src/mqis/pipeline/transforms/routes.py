"""Routes between all sites, and the effects of single failures, by the project's own routing.

The graph of an enterprise is small (thousands of sites), its routes are many (millions). So every
task gets the whole graph and computes the routes to some destinations, or some failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import arrays, schemas
from mqis.pipeline.mapping import mapped, mapped_rows
from mqis.pipeline.registry import table
from mqis.pipeline.transforms.expressions import gathered
from mqis.pipeline.transforms.network import RoutingArrays, unpacked
from mqis.protocol.routing.bulk.allpairs import all_pairs
from mqis.protocol.routing.bulk.some_destinations import GateColumns, gate_columns
from mqis.protocol.routing.bulk.whatif import Impact, WhatIf
from mqis.protocol.routing.routing_table import UNREACHABLE

Batches = Iterator[pa.RecordBatch]
Ints = npt.NDArray[np.int64]

#: The number of destinations that a task computes at once.
_BLOCK = 64
#: The number of tasks for any network; Spark would put so few rows into one.
_TASKS = 8
#: The columns that a task gets.
_SPREAD = ("number", "packed")
#: With more sites, paths are left out: they would be most of the table, and next hops imply them.
_PATHS_UP_TO = 1000
_ROUTES = arrays.schema_of(schemas.ROUTES)


# --- routes ---------------------------------------------------------------------------------------


@table(schemas.ROUTES, requires="objects")
def routes(network: DataFrame) -> DataFrame:
    """Cost, next hop and path of every pair of sites; null without a route.

    ``network`` is one row of ``schemas.NETWORK``. Each task computes the routes to some sites.
    """
    last = F.floor((F.col("sites") - 1) / _BLOCK).cast("int")
    spread = _spread(network.filter("sites > 0"), last)
    return mapped(spread, _SPREAD, _route, schemas.ROUTES)


def _spread(network: DataFrame, last: Column) -> DataFrame:
    """(number, packed): the numbers up to ``last``, divided between tasks."""
    numbers = network.select(F.explode(F.sequence(F.lit(0), last)).alias("number"))
    spread = numbers.repartition(_TASKS, "number")
    return spread.crossJoin(F.broadcast(network.select("packed")))


def _route(batches: Batches) -> Batches:
    for batch in batches:
        for number, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            network = unpacked(text)
            count = network.graph.count
            begin = number * _BLOCK
            wanted = np.arange(begin, min(begin + _BLOCK, count), dtype=np.int64)
            yield routes_block(network, wanted, count <= _PATHS_UP_TO)


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
    columns = [made[field.name].cast(field.type) for field in _ROUTES]
    return pa.RecordBatch.from_arrays(columns, schema=_ROUTES)


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


@table(schemas.WHAT_IF, requires="objects", order=("-cut_off", "-dearer_by", "kind", "name"))
def what_if(network: DataFrame) -> DataFrame:
    """The effect of the failure of every single link and gate (``schemas.WHAT_IF``)."""
    last = F.col("failures") - 1
    spread = _spread(network.filter("failures > 0"), last)
    return gathered(mapped_rows(spread, _SPREAD, _fail, schemas.WHAT_IF))


def _fail(rows: Iterator[tuple[int, str]]) -> Iterator[dict[str, Any]]:
    for number, text in rows:
        network, failures, ask = _questions(text)
        kind, failing = failures[number]
        is_link = kind == "link"
        effects = ask.without([failing]) if is_link else ask.without(gates=[failing])
        impact = Impact.of(failing, effects)
        yield {
            "kind": kind,
            "name": (network.links if is_link else network.machines)[failing],
            "changed": impact.changed,
            "cut_off": impact.unreachable,
            "dearer_by": impact.dearer_by,
            "worst": impact.worst,
        }


@lru_cache(maxsize=1)
def _questions(text: str) -> tuple[RoutingArrays, list[tuple[str, int]], WhatIf]:
    """The network of a task, which has the same one in every row, and its possible failures."""
    network = unpacked(text)
    return network, network.failures, WhatIf(all_pairs(network.graph), network.gates)
