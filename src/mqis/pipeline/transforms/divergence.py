"""Where replicas differ from their authorities: the rule of ``protocol.replication.convergence``.

First the objects of all servers are grouped by identifier: where everybody who should has it and
all digests are the same, there is nothing to say. What is left is few, and looked at in detail.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.transforms.expressions import listed_properties, same_name
from mqis.pipeline.transforms.settling import settled
from mqis.protocol.replication.convergence import Kind
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


def members(objects: DataFrame, partitions: DataFrame) -> DataFrame:
    """The servers that were exported, with their sites: (server, site as text).

    By its own word, or where a server does not have its own machine yet, by that of another.
    """
    exported = partitions.select(F.col("server").alias("member")).distinct()
    sites = F.get_json_object("props", f"$.{int(PropId.QM_SITE_IDS)}.value[0]")
    machines = objects.filter((F.col("type") == int(ObjectType.MACHINE)) & ~F.col("deleted"))
    told = machines.join(F.broadcast(exported), same_name(F.col("path"), F.col("member")))
    own = (F.col("server") == F.col("member")).cast("int")
    found = told.groupBy("member").agg(F.max_by(sites, own).alias("site"))
    return found.select(F.col("member").alias("server"), "site")


def authorities(partitions: DataFrame) -> DataFrame:
    """Who decides about each partition, by its own word: (partition, authority)."""
    owned = partitions.filter(same_name(F.col("owner"), F.col("server")))
    return owned.groupBy("partition").agg(F.min("server").alias("authority"))


@dataclass(frozen=True, slots=True)
class Replicas:
    """Who has to hold what. These are few, so they are worked out here and go on as plain rows."""

    #: (partition, authority).
    owners: DataFrame
    #: (server, site as text).
    members: DataFrame
    #: (server, partition, authority, same_site): every server has every partition.
    copies: DataFrame
    servers: frozenset[str]
    #: Partitions whose authority was not exported, so that nothing can be said of them.
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, objects: DataFrame, partitions: DataFrame) -> Replicas:
        told = partitions.select("server", "partition", "owner").distinct().collect()
        owners: dict[bytes, str] = {}
        for row in sorted(told, key=lambda row: str(row["server"])):
            if (row["owner"] or "").lower() == row["server"].lower():
                owners.setdefault(bytes(row["partition"]), row["server"])
        sites = {row["server"]: row["site"] for row in members(objects, partitions).collect()}
        servers = frozenset(row["server"] for row in told)
        rows = [
            (server, bytearray(id_), authority, str(Guid(id_)) == sites.get(server))
            for id_, authority in owners.items()
            for server in sorted(servers - {authority})
        ]
        known = [(bytearray(id_), authority) for id_, authority in owners.items()]
        make = objects.sparkSession.createDataFrame
        return cls(
            make(known, "partition binary, authority string"),
            make(list(sites.items()), "server string, site string"),
            make(rows, "server string, partition binary, authority string, same_site boolean"),
            servers,
            tuple(
                sorted(
                    {
                        str(Guid(bytes(row["partition"])))
                        for row in told
                        if bytes(row["partition"]) not in owners
                    }
                )
            ),
        )


def differences(objects: DataFrame, replicas: DataFrame) -> DataFrame:
    """What replicas (``Replicas.copies``) lack, have too much, or have different."""
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


def grouped(held: DataFrame) -> DataFrame:
    """Each object once: how many servers have it, and whether they have the same."""
    return held.groupBy("partition", "id").agg(
        F.count("*").alias("held"), F.min("digest").alias("low"), F.max("digest").alias("high")
    )


def _suspects(held: DataFrame, replicas: DataFrame) -> DataFrame:
    """Objects that some server may lack or have different: (partition, id)."""
    expected = replicas.groupBy("partition").agg((F.count("*") + 1).alias("expected"))
    unequal = (F.col("held") != F.col("expected")) | (F.col("low") != F.col("high"))
    return (
        grouped(held)
        .join(F.broadcast(expected), "partition")
        .filter(unequal)
        .select("partition", "id")
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
