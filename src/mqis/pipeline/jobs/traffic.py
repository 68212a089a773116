"""Traffic: the table ``traffic``, the load of links and gates, with and without a failed link."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.jobs.hygiene import directory
from mqis.pipeline.locations import local_path
from mqis.pipeline.session import PipelineError
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.routes import RoutingArrays, snapshot_of
from mqis.pipeline.transforms.traffic import demand, loads, without_link
from mqis.wire.mqds.objecttype import ObjectType

_SCHEMA = "source string, destination string, messages double"


@dataclass(frozen=True, slots=True)
class Carried:
    messages: float
    links: int
    undeliverable: float


def traffic(
    tables: TableDirectory, messages: str = "", *, failed: str = "", seed: int = 1
) -> Carried:
    """Writes the table; ``failed`` names a link as the table ``what_if`` does.

    ``messages`` is a CSV file (source, destination, messages; by machine name). Without it, the
    messages are made up from ``seed``.
    """
    held = directory(tables).persist()
    network = RoutingArrays.of(snapshot_of(held))
    if failed and failed not in network.links:
        known = ", ".join(sorted(set(network.links))[:10])
        raise PipelineError(f"there is no link {failed!r}; links are {known}")
    given = _read(tables, messages) if messages else made_up(held, seed)
    wanted = demand(given, held).persist()
    found = loads(wanted, network).withColumnRenamed("messages", "messages_before")
    after = loads(wanted, without_link(network, failed) if failed else network)
    table = found.join(after, ["kind", "name"], "full").select(
        "kind",
        "name",
        F.coalesce("messages_before", F.lit(0.0)).alias("messages"),
        F.coalesce("messages", F.lit(0.0)).alias("messages_after"),
        F.lit(failed).alias("failed"),
    )
    ranked = table.orderBy(F.desc("messages_after"), "kind", "name").coalesce(1)
    written = tables.write("traffic", ranked)
    total = wanted.agg(F.sum("messages")).collect()[0][0] or 0.0
    rows = written.collect()
    tables.session.catalog.clearCache()
    lost = sum(row["messages_after"] for row in rows if row["kind"] == "undeliverable")
    return Carried(total, sum(row["kind"] == "link" for row in rows), lost)


def _read(tables: TableDirectory, path: str) -> DataFrame:
    place = local_path(path)
    if not place.exists():
        raise PipelineError(f"{path}: there is no such file (a CSV of messages)")
    return tables.session.read.csv(str(place), header=True, schema=_SCHEMA)


def made_up(held: DataFrame, seed: int) -> DataFrame:
    """Made-up messages: every machine sends up to 500 to each of three machines."""
    machines = held.filter(F.col("type") == int(ObjectType.MACHINE)).select("path")
    listed = machines.agg(F.array_sort(F.collect_list("path")).alias("all"))
    sending = machines.crossJoin(F.broadcast(listed)).select(
        F.col("path").alias("source"), "all", F.explode(F.sequence(F.lit(1), F.lit(3))).alias("n")
    )
    roll = F.xxhash64("source", "n", F.lit(seed))
    chosen = F.element_at("all", (F.pmod(roll, F.size("all")) + 1).cast("int"))
    count = F.pmod(F.shiftright(roll, 20), F.lit(500)) + 1
    return sending.select(
        "source", chosen.alias("destination"), count.cast("double").alias("messages")
    )
