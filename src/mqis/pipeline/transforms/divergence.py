"""Where replicas differ from their authorities: the rule of ``protocol.replication.convergence``.

First the objects of all servers are grouped by identifier: where everybody who should has it and
all digests are the same, there is nothing to say. What is left is few, and looked at in detail.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.transforms.expressions import guid_text, listed_properties, same_name
from mqis.pipeline.transforms.settling import settled
from mqis.protocol.replication.convergence import Kind
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


def members(objects: DataFrame) -> DataFrame:
    """The servers that were exported, with their sites: (server, site as text)."""
    sites = F.get_json_object("props", f"$.{int(PropId.QM_SITE_IDS)}.value[0]")
    machines = objects.filter(
        (F.col("type") == int(ObjectType.MACHINE))
        & ~F.col("deleted")
        & same_name(F.col("path"), F.col("server"))
    )
    return machines.select("server", sites.alias("site")).distinct()


def authorities(partitions: DataFrame) -> DataFrame:
    """Who decides about each partition, by its own word: (partition, authority)."""
    owned = partitions.filter(same_name(F.col("owner"), F.col("server")))
    return owned.groupBy("partition").agg(F.min("server").alias("authority"))


def copies(partitions: DataFrame, owners: DataFrame, members: DataFrame) -> DataFrame:
    """Every replica: (server, partition, authority, same_site)."""
    held = partitions.select("server", "partition").distinct()
    placed = held.join(F.broadcast(owners), "partition").join(
        F.broadcast(members), "server", "left"
    )
    return placed.filter(F.col("server") != F.col("authority")).select(
        "server",
        "partition",
        "authority",
        (guid_text(F.col("partition")) == F.coalesce("site", F.lit(""))).alias("same_site"),
    )


def differences(objects: DataFrame, replicas: DataFrame) -> DataFrame:
    """What replicas (``copies``) lack, have too much, or have different."""
    held = objects.filter(~F.col("deleted"))
    suspects = _suspects(held, replicas)
    looked_at = held.join(F.broadcast(suspects), ["partition", "id"], "left_semi").select(
        "server", "partition", "id", "type", "path", "seq", "site_only", "digest", "digests"
    )
    owners = replicas.select("partition", "authority").distinct()
    placed = settled(looked_at.join(F.broadcast(owners), "partition"))
    own = placed.filter(F.col("server") == F.col("authority"))
    others = placed.filter(F.col("server") != F.col("authority"))
    return _wrong(own, others, replicas).unionByName(_extra(own, others))


def _suspects(held: DataFrame, replicas: DataFrame) -> DataFrame:
    """Objects that some server may lack or have different: (partition, id)."""
    expected = replicas.groupBy("partition").agg((F.count("*") + 1).alias("expected"))
    grouped = held.groupBy("partition", "id").agg(
        F.count("*").alias("held"), F.min("digest").alias("low"), F.max("digest").alias("high")
    )
    unequal = (F.col("held") != F.col("expected")) | (F.col("low") != F.col("high"))
    return (
        grouped.join(F.broadcast(expected), "partition").filter(unequal).select("partition", "id")
    )


def _wrong(own: DataFrame, others: DataFrame, replicas: DataFrame) -> DataFrame:
    """Missing and different ones."""
    wanted = own.drop("server").join(
        F.broadcast(replicas.drop("authority")), "partition"
    )  # once for each replica
    theirs = others.select(
        "server",
        "partition",
        "id",
        F.col("type").alias("their_type"),
        F.col("seq").alias("their_seq"),
        F.col("digest").alias("their_digest"),
        F.col("digests").alias("their_digests"),
    )
    joined = wanted.join(theirs, ["server", "partition", "id"], "left")
    missing = F.col("their_digest").isNull()
    # Queues that are known in their site alone may be elsewhere or not (E58).
    concerned = F.col("same_site") | ~F.col("site_only")
    return joined.filter(concerned & (missing | (F.col("digest") != F.col("their_digest")))).select(
        "server",
        "authority",
        "partition",
        "id",
        "type",
        "path",
        F.when(missing, F.lit(Kind.MISSING.value))
        .otherwise(F.lit(Kind.DIFFERENT.value))
        .alias("difference"),
        F.when(missing, F.array().cast("array<int>")).otherwise(_unequal()).alias("properties"),
        F.col("seq").alias("authority_seq"),
        F.col("their_seq").alias("replica_seq"),
    )


def _unequal() -> Column:
    """The properties whose digests differ; of another type, all."""
    listed = listed_properties(F.col("type"))
    numbered = F.sequence(F.lit(0), F.size("digests") - 1)
    differing = F.filter(numbered, lambda i: F.col("digests")[i] != F.col("their_digests")[i])
    everything = F.array_union(listed, listed_properties(F.col("their_type")))
    same_type = F.col("type") == F.col("their_type")
    chosen = F.when(same_type, F.transform(differing, lambda i: listed[i])).otherwise(everything)
    return F.array_sort(chosen)


def _extra(own: DataFrame, others: DataFrame) -> DataFrame:
    """What an authority does not have."""
    beyond = others.join(own.select("partition", "id"), ["partition", "id"], "left_anti")
    return beyond.select(
        "server",
        "authority",
        "partition",
        "id",
        "type",
        "path",
        F.lit(Kind.EXTRA.value).alias("difference"),
        F.array().cast("array<int>").alias("properties"),
        F.lit(None).cast("long").alias("authority_seq"),
        F.col("seq").alias("replica_seq"),
    )
