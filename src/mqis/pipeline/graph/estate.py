"""Faults of an Active Directory over time: when each was found first, and whether it is mended.

The checks are those of ``mqis estate check``; their results are the input.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.registry import table
from mqis.pipeline.transforms.expressions import gathered

_FAULT = ["check", "entry"]


@table(schemas.ESTATE, requires="estate_checks", order=("-state", *_FAULT))
def estate(estate_checks: DataFrame) -> DataFrame:
    """One row for each check and entry, with the texts of the last time that it was found."""
    newest = estate_checks.agg(F.max_by(F.struct("checked", "unknown"), "checked").alias("newest"))
    found = estate_checks.select("checked", F.explode("findings").alias("found"))
    rows = found.select("checked", "found.*")
    latest = F.max_by(
        F.struct("detail", "symptom", "advice", "ldif"), F.struct("checked", "detail")
    )
    faults = rows.groupBy(*_FAULT).agg(
        latest.alias("told"),
        F.min("checked").alias("first_found"),
        F.max("checked").alias("last_found"),
        F.count_distinct("checked").alias("times_found"),
    )
    state = (
        F.when(F.col("last_found") == F.col("newest.checked"), F.lit("open"))
        .when(F.array_contains("newest.unknown", F.col("check")), F.lit("unknown"))
        .otherwise(F.lit("mended"))
    )
    judged = faults.crossJoin(F.broadcast(newest)).withColumn("state", state)
    shown = judged.select(*_FAULT, "state", "told.*", "first_found", "last_found", "times_found")
    return gathered(shown)
