"""Hygiene: the tables ``directory``, ``hygiene`` (findings) and ``hygiene_limits``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.current import BestCopies, best_copies, current, objects_from
from mqis.pipeline.transforms.expressions import guid_text, type_label
from mqis.pipeline.transforms.hygiene import as_frame, judged
from mqis.pipeline.transforms.routes import routing_rows
from mqis.pipeline.trusted import errors_of, objects_of, partitions_of
from mqis.protocol.hygiene.knowledge import Knowledge, absent_sites
from mqis.protocol.hygiene.topology import topology_findings, untold_gates
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.mqds.objecttype import ObjectType


def directory(tables: TableDirectory) -> DataFrame:
    """The current directory, from ``objects`` and ``partitions``."""
    return current(objects_of(tables), _copies(tables))


def _copies(tables: TableDirectory) -> DataFrame:
    return best_copies(partitions_of(tables), errors_of(tables))


def hygiene(tables: TableDirectory) -> dict[str, int]:
    """Writes the tables; returns the number of findings of each check."""
    held = directory(tables).persist()
    readable = held.select(
        "authority",
        "server",
        guid_text(F.col("partition")).alias("partition"),
        guid_text(F.col("id")).alias("id"),
        type_label(F.col("type")).alias("type"),
        "seq",
        "path",
        "props",
    )
    tables.write("directory", readable.coalesce(4))
    counted = _findings(tables, held)
    tables.session.catalog.clearCache()
    return counted


def _findings(tables: TableDirectory, held: DataFrame) -> dict[str, int]:
    few = list(objects_from(routing_rows(held)))
    snapshot = Snapshot.of(few)
    copies = BestCopies(tuple(_copies(tables).collect()))
    sites = (obj for obj in few if obj.type is ObjectType.SITE)
    known = Knowledge(tuple(copies.partitions()), absent_sites(sites, copies.filled()))
    found = judged(held).unionByName(as_frame(topology_findings(snapshot, known), held)).persist()
    counts = {row["check"]: row["count"] for row in found.groupBy("check").count().collect()}
    uncertain = known.uncertain()
    kept = found.filter(~F.col("check").isin(*uncertain)) if uncertain else found
    tables.write("hygiene", kept.orderBy("check", "type", "path", "id", "detail").coalesce(1))
    left_out = {check: number for check, number in counts.items() if check in uncertain}
    limits = known.limits(left_out, untold_gates(snapshot, known))
    rows = [(one.check or None, one.reason, one.advice, one.left_out) for one in limits]
    tables.write(
        "hygiene_limits", tables.session.createDataFrame(rows, schemas.HYGIENE_LIMITS).coalesce(1)
    )
    return {check: number for check, number in counts.items() if check not in uncertain}
