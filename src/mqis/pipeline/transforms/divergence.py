"""Differences of replicas from their authorities, by the rule of ``replication.convergence``.

First the objects of all servers are grouped by type and identifier, because a site and its
connected network may share one identifier. An object is fine if all servers that should hold it do
and all digests are equal. The few others are compared in detail.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.registry import step
from mqis.pipeline.transforms.expressions import guid_text, listed_properties, same_name, shaped
from mqis.protocol.replication.convergence import DifferenceKind
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: The columns of ``differences``.
DIFFERENCE = (
    *("server", "authority", "partition", "id", "type", "path", "difference", "properties"),
    *("authority_seq", "replica_seq"),
)
_OBJECT = ["partition", "type", "id"]


@step
def members(used_objects: DataFrame, used_partitions: DataFrame) -> DataFrame:
    """The exported servers and their sites: (server, site as text).

    A server's own export gives its site; another's does if it does not hold its own machine yet.
    """
    exported = used_partitions.select(F.col("server").alias("member")).distinct()
    sites = F.get_json_object("props", f"$.{int(PropId.QM_SITE_IDS)}.value[0]")
    machines = used_objects.filter((F.col("type") == int(ObjectType.MACHINE)) & ~F.col("deleted"))
    listed = machines.join(F.broadcast(exported), same_name("path", "member"))
    own = (F.col("server") == F.col("member")).cast("int")
    found = listed.groupBy("member").agg(F.max_by(sites, own).alias("site"))
    return found.select(F.col("member").alias("server"), "site")


@step
def authorities(used_partitions: DataFrame) -> DataFrame:
    """The server that claims to own each partition: (partition, authority)."""
    owned = used_partitions.filter(same_name("owner", "server"))
    return owned.groupBy("partition").agg(F.min("server").alias("authority"))


@step
def replicas(used_partitions: DataFrame, authorities: DataFrame, members: DataFrame) -> DataFrame:
    """The replicas that should exist: (server, partition, authority, same_site).

    Every server has every partition.
    """
    servers = used_partitions.select("server").distinct()
    pairs = servers.crossJoin(F.broadcast(authorities)).filter("server != authority")
    same_site = F.coalesce(guid_text("partition") == F.col("site"), F.lit(False))
    return pairs.join(F.broadcast(members), "server", "left").select(
        "server", "partition", "authority", same_site.alias("same_site")
    )


@step
def suspects(used_objects: DataFrame, replicas: DataFrame) -> DataFrame:
    """The objects, of all servers, that some server may lack or have different."""
    held = used_objects.filter(~F.col("deleted"))
    looked_at = held.join(_unequal_objects(held, replicas), _OBJECT, "left_semi").select(
        "server", "partition", "id", "type", "path", "seq", "site_only", "digest", "digests"
    )
    owners = replicas.select("partition", "authority").distinct()
    return looked_at.join(F.broadcast(owners), "partition")


@step
def differences(suspects: DataFrame, replicas: DataFrame) -> DataFrame:
    """The objects that replicas lack, have in excess, or have different."""
    own = suspects.filter(F.col("server") == F.col("authority"))
    others = suspects.filter(F.col("server") != F.col("authority"))
    return _missing_or_different(own, others, replicas).unionByName(_extra(own, others))


def grouped(held: DataFrame) -> DataFrame:
    """Each object once: the number of servers that hold it, and its lowest and highest digest."""
    return held.groupBy(*_OBJECT).agg(
        F.count("*").alias("held"), F.min("digest").alias("low"), F.max("digest").alias("high")
    )


def _unequal_objects(held: DataFrame, replicas: DataFrame) -> DataFrame:
    """(partition, type, id) of the objects that some server may lack or have different."""
    expected = replicas.groupBy("partition").agg((F.count("*") + 1).alias("expected"))
    unequal = (F.col("held") != F.col("expected")) | (F.col("low") != F.col("high"))
    return grouped(held).join(F.broadcast(expected), "partition").filter(unequal).select(*_OBJECT)


def _missing_or_different(own: DataFrame, others: DataFrame, replicas: DataFrame) -> DataFrame:
    """The objects that replicas lack or have different."""
    held = own.select(
        *("partition", "id", "type", "path", "seq", "site_only", "digest", "digests", "authority")
    )
    # Once for each replica.
    others_of = replicas.select("server", "partition", "same_site")
    wanted = held.join(others_of, "partition")
    renamed = (F.col(name).alias(f"their_{name}") for name in ("seq", "digest", "digests"))
    theirs = others.select("server", *_OBJECT, *renamed)
    joined = wanted.join(theirs, ["server", *_OBJECT], "left")
    missing = F.col("their_digest").isNull()
    # Replicas in other sites may hold a site-only queue or not (E58).
    concerned = F.col("same_site") | ~F.col("site_only")
    kinds = DifferenceKind.MISSING.value, DifferenceKind.DIFFERENT.value
    return shaped(
        joined.filter(concerned & (missing | (F.col("digest") != F.col("their_digest")))),
        DIFFERENCE,
        difference=F.when(missing, kinds[0]).otherwise(kinds[1]),
        properties=F.when(missing, F.array().cast("array<int>")).otherwise(_unequal()),
        authority_seq=F.col("seq"),
        replica_seq=F.col("their_seq"),
    )


def _unequal() -> Column:
    """The properties whose digests differ."""
    listed = listed_properties(F.col("type"))
    numbered = F.sequence(F.lit(0), F.size("digests") - 1)
    differing = F.filter(numbered, lambda i: F.col("digests")[i] != F.col("their_digests")[i])
    return F.array_sort(F.transform(differing, lambda i: listed[i]))


def _extra(own: DataFrame, others: DataFrame) -> DataFrame:
    """The objects that replicas have and the authority does not."""
    beyond = others.join(own.select(*_OBJECT), _OBJECT, "left_anti")
    return shaped(
        beyond,
        DIFFERENCE,
        difference=F.lit(DifferenceKind.EXTRA.value),
        properties=F.array().cast("array<int>"),
        authority_seq=F.lit(None).cast("long"),
        replica_seq=F.col("seq"),
    )
