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


@table(
    schemas.CONVERSATIONS,
    requires="packets",
    order=("-messages", "-bytes", "client", "server", "port", "protocol"),
)
def conversations(packets: DataFrame) -> DataFrame:
    """One row for each protocol between a client and a port of a server, the busiest first.

    A protocol that travels in another (``cmp`` in ``rpc``) has rows of its own, and its bytes are
    among those of its carrier too.
    """
    to_server = F.col("to_server")
    ends = packets.filter("carrier is not null").select(
        F.when(to_server, F.col("source")).otherwise(F.col("destination")).alias("client"),
        F.when(to_server, F.col("destination")).otherwise(F.col("source")).alias("server"),
        F.when(to_server, F.col("destination_port")).otherwise(F.col("source_port")).alias("port"),
        *("transport", "carrier", "protocol", "file", "stream", "length", "time", "error"),
    )
    added = ends.groupBy("client", "server", "port", "transport", "carrier", "protocol").agg(
        F.countDistinct("file", "stream").alias("streams"),
        F.count_if(F.col("error").isNull()).alias("messages"),
        F.sum("length").alias("bytes"),
        F.count("error").alias("errors"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    )
    return gathered(shaped(added, schemas.CONVERSATIONS.names))


_FAULT = ["check", "entry"]


@table(schemas.ESTATE, requires="estate_checks", order=("-state", *_FAULT))
def estate(estate_checks: DataFrame) -> DataFrame:
    """One row for each check and entry, with the texts of the last time that it was found."""
    newest = estate_checks.agg(F.max_by(F.struct("checked", "unknown"), "checked").alias("newest"))
    found = estate_checks.select("checked", F.explode("findings").alias("found"))
    rows = found.select("checked", "found.*")
    latest = F.max_by(
        F.struct("detail", "symptom", "advice", "ldif"), F.struct("checked", "detail")
    )
    faults = rows.groupBy(*_FAULT).agg(
        latest.alias("told"),
        F.min("checked").alias("first_found"),
        F.max("checked").alias("last_found"),
        F.count_distinct("checked").alias("times_found"),
    )
    state = (
        F.when(F.col("last_found") == F.col("newest.checked"), F.lit("open"))
        .when(F.array_contains("newest.unknown", F.col("check")), F.lit("unknown"))
        .otherwise(F.lit("mended"))
    )
    judged = faults.crossJoin(F.broadcast(newest)).withColumn("state", state)
    shown = judged.select(*_FAULT, "state", "told.*", "first_found", "last_found", "times_found")
    return gathered(shown)
