"""The network, and the load of its links and gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.graph.directory import object_facts, routing_objects_of
from mqis.pipeline.graph.facts import Facts, judged
from mqis.pipeline.registry import step, table
from mqis.pipeline.transforms.expressions import gathered, shaped
from mqis.pipeline.transforms.network import RoutingArrays, packed
from mqis.pipeline.transforms.traffic import demand, loads, made_up
from mqis.protocol.routing.snapshot import Snapshot


def _network(known: Facts) -> Iterator[dict[str, Any]]:
    found = RoutingArrays.of(Snapshot.of(routing_objects_of(known)))
    failures = len(found.failures)
    yield {"sites": found.graph.count, "failures": failures, "packed": packed(found)}


@step
def network(routing_objects: DataFrame) -> DataFrame:
    """The network in one row (``schemas.NETWORK``)."""
    return judged(object_facts(routing_objects), _network, schemas.NETWORK)


@step
def site_demand(
    held_objects: DataFrame, messages: DataFrame | None, synthetic_seed: DataFrame
) -> DataFrame:
    """(source, destination, messages) between sites; made up if no messages are given."""
    given = made_up(held_objects, synthetic_seed) if messages is None else messages
    return demand(given, held_objects)


@table(schemas.TRAFFIC, requires="objects", order=("-messages_after", "kind", "name"))
def traffic(network: DataFrame, site_demand: DataFrame, failed_link: DataFrame) -> DataFrame:
    """The load of links and gates, before and after ``failed_link``: one row, maybe empty."""
    before = loads(site_demand, network.withColumn("failed", F.lit("")))
    after = loads(site_demand, network.crossJoin(F.broadcast(failed_link)))
    joined = before.withColumnRenamed("messages", "messages_before").join(
        after, ["kind", "name"], "full"
    )
    found = shaped(
        joined.crossJoin(F.broadcast(failed_link)),
        schemas.TRAFFIC.names,
        messages=F.coalesce("messages_before", F.lit(0.0)),
        messages_after=F.coalesce("messages", F.lit(0.0)),
    )
    return gathered(found)
