"""The directory as its authorities have it: every object once, from the server that decides."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.transforms.divergence import authorities


def current(objects: DataFrame, partitions: DataFrame) -> DataFrame:
    """(authority, partition, id, type, seq, path, props); objects that are not deleted."""
    owners = F.broadcast(authorities(partitions))
    return (
        objects.filter(~F.col("deleted"))
        .join(owners, "partition")
        .filter(F.col("server") == F.col("authority"))
        .select("authority", "partition", "id", "type", "seq", "path", "props")
    )


def value(propid: int) -> Column:
    """A stored property's value as text, null where there is none."""
    return F.get_json_object("props", f"$.{int(propid)}.value")


def values(propid: int) -> Column:
    """A list of GUIDs as texts."""
    return F.coalesce(F.from_json(value(propid), "array<string>"), F.array().cast("array<string>"))
