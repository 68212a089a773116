"""Audit: the table ``divergence``, every difference of a replica from its authority, and why."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.jobs.ingest import empty, objects_of
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.causes import causes, journals, unexplained
from mqis.pipeline.transforms.divergence import Replicas, differences
from mqis.pipeline.transforms.expressions import guid_text, type_label
from mqis.pipeline.transforms.settling import settled


@dataclass(frozen=True, slots=True)
class Audited:
    differences: int
    objects: int
    servers: int
    #: Partitions that were not audited, because their authority was not exported.
    unaudited: tuple[str, ...]


def audit(tables: TableDirectory) -> Audited:
    """Writes ``divergence`` from ``objects``, ``partitions``, ``records`` and ``errors``."""
    objects, partitions = objects_of(tables), tables.read("partitions")
    session = tables.session
    records = tables.read("records") if tables.has("records") else empty(session, "records")
    errors = tables.read("errors") if tables.has("errors") else empty(session, "errors")
    replicas = Replicas.of(objects, partitions)
    found = settled(differences(objects, replicas.copies))
    if found.isEmpty():
        explained = unexplained(found)
    else:
        whole = settled(journals(records, errors))
        explained = causes(found, records, whole, replicas.owners, replicas.members)
    written = tables.write("divergence", _readable(explained).coalesce(1))
    session.catalog.clearCache()
    return Audited(written.count(), objects.count(), len(replicas.servers), replicas.unknown)


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
