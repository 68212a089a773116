"""Audit: the table ``divergence``, what every replica holds wrongly, and why."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.jobs.ingest import empty
from mqis.pipeline.tables import Tables
from mqis.pipeline.transforms.causes import causes, journals
from mqis.pipeline.transforms.divergence import authorities, copies, differences, members
from mqis.pipeline.transforms.expressions import guid_text, type_label
from mqis.pipeline.transforms.settling import settled


@dataclass(frozen=True, slots=True)
class Audited:
    differences: int
    objects: int
    servers: int
    #: Partitions whose authority was not exported, so that nothing can be said of them.
    unaudited: tuple[str, ...]


def audit(tables: Tables) -> Audited:
    """From ``objects``, ``partitions``, ``records`` and ``errors`` to ``divergence``."""
    objects, partitions = tables.read("objects"), tables.read("partitions")
    session = tables.session
    records = tables.read("records") if tables.has("records") else empty(session, "records")
    errors = tables.read("errors") if tables.has("errors") else empty(session, "errors")
    owners, servers = settled(authorities(partitions)), settled(members(objects))
    replicas = settled(copies(partitions, owners, servers))
    whole = settled(journals(records, errors))
    found = settled(differences(objects, replicas))
    explained = causes(found, records, whole, owners, servers)
    written = tables.write("divergence", _readable(explained).coalesce(1))
    session.catalog.clearCache()
    asked = partitions.select("server", guid_text(F.col("partition")).alias("partition"))
    told = asked.agg(
        F.count_distinct("server").alias("servers"),
        F.collect_set("partition").alias("partitions"),
    ).collect()[0]
    known = {row.id for row in owners.select(guid_text(F.col("partition")).alias("id")).collect()}
    unaudited = sorted(set(told["partitions"]) - known)
    return Audited(written.count(), objects.count(), told["servers"], tuple(unaudited))


def _readable(explained: DataFrame) -> DataFrame:
    return explained.select(
        "server",
        "authority",
        guid_text(F.col("partition")).alias("partition"),
        guid_text(F.col("id")).alias("id"),
        type_label(F.col("type")).alias("type"),
        "path",
        "difference",
        "properties",
        "cause",
        "reason",
        "seq",
        "source",
        "target",
        "authority_seq",
        "replica_seq",
    ).orderBy("server", "partition", "id")
