"""Tables as the graph uses them, for those who only read: reports, rebuilds, questions."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.building import TableBuilder
from mqis.pipeline.evidence.findings import EvidenceKind
from mqis.pipeline.tables import TableStore

#: The kinds of findings about journals that were altered.
ALTERED = (EvidenceKind.TAMPERED.value, EvidenceKind.FOREIGN.value)


def readable_objects(tables: TableStore) -> DataFrame:
    """The table ``objects`` without the lines that could not be read."""
    return tables.read("objects").filter("error is null").drop("error")


def used_input(tables: TableStore, name: str) -> DataFrame:
    """The part of ``records``, ``objects`` or ``partitions`` that is used; raises without it."""
    tables.read(name)
    return TableBuilder(tables).frame(f"used_{name}")


def explanations(tables: TableStore, kinds: Collection[str]) -> dict[str, str]:
    """The explanations of findings of these kinds, by server."""
    rows = TableBuilder(tables).frame("evidence").filter(F.col("kind").isin(*kinds))
    return {row["server"]: row["explanation"] for row in rows.collect()}
