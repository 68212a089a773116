"""Frames that are computed once and used several times.

Spark takes longer to plan a query that contains all earlier plans than to run it. So frames that
are usually small (servers, differences, the messages with a change) are computed early and continue
as plain rows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

#: A frame with more rows stays with the executors.
_FEW = 100_000


def settled(frame: DataFrame) -> DataFrame:
    """Computes the frame: collects few rows on the driver, or caches many on the executors."""
    rows = frame.limit(_FEW + 1).toArrow()
    if rows.num_rows > _FEW:
        return frame.persist()
    return frame.sparkSession.createDataFrame(rows, frame.schema)
