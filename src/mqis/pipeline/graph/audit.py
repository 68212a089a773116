"""Audit: every difference of a replica from its authority, and why.

The steps in between are small, because differences are few.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.graph.registry import step, table
from mqis.pipeline.transforms import causes, second_look
from mqis.pipeline.transforms import divergence as comparison
from mqis.pipeline.transforms.expressions import guid_text, type_label


@step
def authorities(used_partitions: DataFrame) -> DataFrame:
    return comparison.authorities(used_partitions)


@step
def members(used_objects: DataFrame, used_partitions: DataFrame) -> DataFrame:
    return comparison.members(used_objects, used_partitions)


@step
def replicas(used_partitions: DataFrame, authorities: DataFrame, members: DataFrame) -> DataFrame:
    return comparison.replicas(used_partitions, authorities, members)


@step
def suspects(used_objects: DataFrame, replicas: DataFrame) -> DataFrame:
    return comparison.suspects(used_objects, replicas)


@step
def differences(suspects: DataFrame, replicas: DataFrame) -> DataFrame:
    return comparison.differences(suspects, replicas)


@step
def made_changes(differences: DataFrame, used_records: DataFrame) -> DataFrame:
    return causes.changes_of(differences, used_records)


@step
def traced_differences(
    differences: DataFrame, made_changes: DataFrame, journals: DataFrame
) -> DataFrame:
    return causes.traced(differences, made_changes, journals)


@step
def hops(traced_differences: DataFrame, authorities: DataFrame, members: DataFrame) -> DataFrame:
    return causes.hops(traced_differences, authorities, members)


@step
def carriers(hops: DataFrame, used_records: DataFrame) -> DataFrame:
    return causes.carriers(hops, used_records)


@step
def explained_differences(
    traced_differences: DataFrame,
    hops: DataFrame,
    carriers: DataFrame,
    used_records: DataFrame,
    journals: DataFrame,
) -> DataFrame:
    return causes.causes(traced_differences, hops, carriers, used_records, journals)


@step
def export_numbers(used_partitions: DataFrame) -> DataFrame:
    return second_look.export_numbers(used_partitions)


@step
def journaled_objects(
    explained_differences: DataFrame, made_changes: DataFrame, export_numbers: DataFrame
) -> DataFrame:
    return second_look.journaled(explained_differences, made_changes, export_numbers)


@step
def doubtful_differences(
    *,
    explained_differences: DataFrame,
    journaled_objects: DataFrame,
    used_records: DataFrame,
    export_numbers: DataFrame,
    errors: DataFrame,
    used_objects: DataFrame,
) -> DataFrame:
    return second_look.evidenced(
        explained_differences,
        journaled_objects,
        used_records,
        numbers=export_numbers,
        errors=errors,
        objects=used_objects,
    )


@table(schemas.DIVERGENCE, requires="objects")
def divergence(explained_differences: DataFrame, doubtful_differences: DataFrame) -> DataFrame:
    found = second_look.second_look(explained_differences, doubtful_differences)
    readable = found.select(
        "server",
        "authority",
        guid_text(F.col("partition")).alias("partition"),
        guid_text(F.col("id")).alias("id"),
        type_label(F.col("type")).alias("type"),
        *("path", "difference", "properties", "cause", "reason", "seq", "source", "target"),
        *("authority_seq", "replica_seq"),
    )
    return readable.orderBy("server", "partition", "id").coalesce(1)
