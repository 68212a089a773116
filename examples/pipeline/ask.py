"""Queries journals with SQL, without ingesting them: python -m examples.pipeline.ask JOURNALS

The source reads segment files, and ``carried`` decodes the bodies of the records that a query
selects.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import sources
from mqis.pipeline.session import Engine, session
from mqis.pipeline.transforms.bodies import NEEDED, carried
from mqis.pipeline.transforms.expressions import type_label

#: The number of changes that each server made in each hour, the most first.
BUSIEST = """
    SELECT server, date_trunc('hour', time) AS hour, count(*) AS changes
    FROM records WHERE kind = 2 AND state = 1
    GROUP BY ALL ORDER BY changes DESC LIMIT 5
"""
#: The latest labels of queues; Q_LABEL is property 108.
LABELS = """
    SELECT server, time, filter(properties, p -> p.propid = 108)[0].text AS label
    FROM changes WHERE exists(properties, p -> p.propid = 108)
    ORDER BY time DESC, server LIMIT 5
"""


def main(journals: str) -> dict[str, list[Any]]:
    with session(Engine(master="local[2]")) as spark:
        columns = ["server", "time", "kind", "state"]
        sources.journal(spark, journals, columns).createOrReplaceTempView("records")
        busiest = spark.sql(BUSIEST).collect()

        local = sources.journal(spark, journals, NEEDED).filter("kind = 2 AND state = 1")
        changes = carried(local).withColumn("type", type_label(F.col("object_type")))
        changes.createOrReplaceTempView("changes")
        labels = spark.sql(LABELS).collect()
    for row in busiest:
        print(f"{row.server}: {row.changes} changes from {row.hour:%H:%M} on")
    for row in labels:
        print(f"{row.time:%H:%M:%S} {row.server}: {row.label}")
    return {"busiest": busiest, "labels": labels}


if __name__ == "__main__":
    main(sys.argv[1])
