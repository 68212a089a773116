"""Audit: the table ``divergence``, every difference of a replica from its authority, and why."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.causes import causes, changes_of, unexplained
from mqis.pipeline.transforms.divergence import Replicas, differences
from mqis.pipeline.transforms.expressions import guid_text, type_label
from mqis.pipeline.transforms.second_look import ExportedState, is_doubtful, second_look
from mqis.pipeline.transforms.settling import settled
from mqis.pipeline.trusted import (
    empty,
    errors_of,
    journals_of,
    objects_of,
    partitions_of,
    records_of,
)


@dataclass(frozen=True, slots=True)
class Audited:
    differences: int
    objects: int
    servers: int
    #: Partitions that were not audited, because their authority was not exported.
    unaudited: tuple[str, ...]


def audit(tables: TableDirectory) -> Audited:
    """Writes ``divergence`` from what was ingested."""
    objects, partitions = objects_of(tables), partitions_of(tables)
    replicas = Replicas.of(objects, partitions)
    found = settled(differences(objects, replicas.copies))
    explained = unexplained(found)
    if not found.isEmpty():
        exported = _exported(tables, objects, partitions)
        explained = _explained(tables, found, replicas, exported)
    written = tables.write("divergence", _readable(explained).coalesce(1))
    tables.session.catalog.clearCache()
    return Audited(written.count(), objects.count(), len(replicas.servers), replicas.unknown)


def _explained(
    tables: TableDirectory, found: DataFrame, replicas: Replicas, exported: ExportedState
) -> DataFrame:
    session = tables.session
    records = records_of(tables) if tables.has("records") else empty(session, "records")
    made = changes_of(found, records).persist()
    whole = settled(journals_of(tables))
    first = settled(causes(found, records, made, whole, replicas))
    if first.filter(is_doubtful()).isEmpty():
        return first
    return second_look(first, made, records, exported)


def _exported(tables: TableDirectory, objects: DataFrame, partitions: DataFrame) -> ExportedState:
    numbers = partitions.groupBy("server", "partition").agg(F.min("last_seq").alias("last_seq"))
    faults = errors_of(tables).filter(F.col("source") == "export").select("server").distinct()
    return ExportedState(objects, settled(numbers), settled(faults))


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
