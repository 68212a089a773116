"""Hygiene: the tables ``directory`` (as the authorities have it) and ``hygiene`` (findings)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.current import current
from mqis.pipeline.transforms.expressions import guid_text, type_label
from mqis.pipeline.transforms.hygiene import hygiene as findings
from mqis.pipeline.trusted import objects_of, partitions_of


def directory(tables: TableDirectory) -> DataFrame:
    """The current directory, from ``objects`` and ``partitions``."""
    return current(objects_of(tables), partitions_of(tables))


def hygiene(tables: TableDirectory) -> dict[str, int]:
    """Writes both tables; returns the number of findings of each check."""
    held = directory(tables)
    readable = held.select(
        "authority",
        guid_text(F.col("partition")).alias("partition"),
        guid_text(F.col("id")).alias("id"),
        type_label(F.col("type")).alias("type"),
        "seq",
        "path",
        "props",
    )
    tables.write("directory", readable.coalesce(4))
    found = tables.write("hygiene", findings(held).orderBy("check", "type", "path").coalesce(1))
    tables.session.catalog.clearCache()
    return {row["check"]: row["count"] for row in found.groupBy("check").count().collect()}
