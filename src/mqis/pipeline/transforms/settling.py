"""Frames that are computed once and used often.

A plan that holds the plans of everything before it takes longer to make than to run. So what is
usually small (servers, differences, the messages that had a change) is computed when it is known
and goes on as plain rows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

#: More rows than this stay with the executors.
_FEW = 100_000


def settled(frame: DataFrame) -> DataFrame:
    """The same rows, computed: on the driver if they are few, else cached where they are."""
    rows = frame.limit(_FEW + 1).toArrow()
    if rows.num_rows > _FEW:
        return frame.persist()
    return frame.sparkSession.createDataFrame(rows, frame.schema)
