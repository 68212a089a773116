"""The current directory: every object once, from the best copy of its partition.

The best copy is the authority's. If it was not exported, or its export is damaged, a replica's
whole copy takes its place: every server holds the whole directory.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.registry import step, view
from mqis.pipeline.sources.directory import EDITED
from mqis.pipeline.transforms.expressions import same_name
from mqis.protocol.directory.export_format import parse_properties
from mqis.protocol.directory.objects import DirectoryObject, PurgeState
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber

_NORMAL = PurgeState.NORMAL.name.lower()


def edited_exports(errors: DataFrame) -> DataFrame:
    """The errors of exports that do not match their digests."""
    return errors.filter((F.col("source") == "export") & F.col("reason").startswith(f"{EDITED}: "))


@step
def copies(used_partitions: DataFrame, errors: DataFrame) -> DataFrame:
    """The best copy of each partition; a cut, edited or damaged export is not whole."""
    damaged = errors.select(F.col("file").alias("damaged")).distinct()
    joined = used_partitions.join(F.broadcast(damaged), F.col("file") == F.col("damaged"), "left")
    judged = joined.select(
        "partition",
        "file",
        "server",
        "owner",
        "last_seq",
        same_name("owner", "server").alias("own"),
        (F.col("damaged").isNull() & (F.col("purge_state") == _NORMAL)).alias("whole"),
    ).filter("partition is not null")
    order = F.struct("whole", "own", "last_seq", "server", "file")
    columns = F.struct("file", "server", "owner", "last_seq", "own", "whole")
    best = judged.groupBy("partition").agg(F.max_by(columns, order).alias("best"))
    return best.select("partition", "best.*")


@view
def held_objects(used_objects: DataFrame, copies: DataFrame) -> DataFrame:
    """The objects that are not deleted:
    (authority, server, partition, id, type, seq, path, props)."""
    chosen = F.broadcast(copies.select("partition", "file", F.col("owner").alias("authority")))
    return (
        used_objects.filter(~F.col("deleted"))
        .join(chosen, ["partition", "file"])
        .select("authority", "server", "partition", "id", "type", "seq", "path", "props")
    )


def value(propid: int) -> Column:
    """A stored property's value as text; null if the object does not have it."""
    return F.get_json_object("props", f"$.{int(propid)}.value")


def values(propid: int) -> Column:
    """A stored list of GUIDs as an array of texts; empty if the object does not have it."""
    return F.coalesce(F.from_json(value(propid), "array<string>"), F.array().cast("array<string>"))


#: The columns that ``object_from`` needs.
OBJECT_COLUMNS = ("type", "id", "partition", "seq", "props")


def object_from(kind: int, id_: bytes, partition: bytes, seq: int, props: str) -> DirectoryObject:
    return DirectoryObject(
        ObjectType(kind),
        Guid(bytes(id_)),
        Guid(bytes(partition)),
        SequenceNumber(seq & ((1 << 64) - 1)),
        parse_properties(props),
    )
