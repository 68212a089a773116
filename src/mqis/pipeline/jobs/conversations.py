"""Conversations: the table of that name, from ``packets``."""

from __future__ import annotations

from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.tables import Tables
from mqis.pipeline.transforms.conversations import conversations as added_up


def conversations(tables: Tables) -> dict[str, int]:
    """Writes the table; returns the number of messages of each protocol."""
    made = tables.write("conversations", added_up(tables.read("packets")).coalesce(1))
    totals = made.groupBy("protocol").agg(F.sum("messages").alias("n")).orderBy("protocol")
    return {row["protocol"]: row["n"] for row in totals.collect()}
