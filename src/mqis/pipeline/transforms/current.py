"""The current directory: every object once, as the authority of its partition has it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.transforms.divergence import authorities


def current(objects: DataFrame, partitions: DataFrame) -> DataFrame:
    """The objects that are not deleted: (authority, partition, id, type, seq, path, props)."""
    owners = F.broadcast(authorities(partitions))
    return (
        objects.filter(~F.col("deleted"))
        .join(owners, "partition")
        .filter(F.col("server") == F.col("authority"))
        .select("authority", "partition", "id", "type", "seq", "path", "props")
    )


def value(propid: int) -> Column:
    """A stored property's value as text; null if the object does not have it."""
    return F.get_json_object("props", f"$.{int(propid)}.value")


def values(propid: int) -> Column:
    """A stored list of GUIDs as an array of texts; empty if the object does not have it."""
    return F.coalesce(F.from_json(value(propid), "array<string>"), F.array().cast("array<string>"))
