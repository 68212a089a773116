"""The history of the directory: its changes, and the versions of each object that they made."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.registry import table
from mqis.pipeline.transforms.expressions import guid_text, lookup, shaped, type_label
from mqis.pipeline.transforms.rebuild import local_changes
from mqis.pipeline.transforms.records import changes_in
from mqis.wire.journal import RecordState
from mqis.wire.mqdsrp.change import Command

_OPERATIONS = {int(command): command.name.lower() for command in Command}


@table(schemas.CHANGES, requires="records")
def changes(used_records: DataFrame) -> DataFrame:
    """One row for each change that an authority made; ``had`` says when each replica applied it."""
    had = (
        changes_in(used_records, RecordState.APPLIED)
        .groupBy("partition", "seq", "server")
        .agg(F.min("time").alias("at"))
        .groupBy("partition", "seq")
        .agg(F.map_from_entries(F.collect_list(F.struct("server", "at"))).alias("had"))
    )
    return shaped(
        local_changes(used_records).join(had, ["partition", "seq"], "left"),
        schemas.CHANGES.names,
        partition=guid_text("partition"),
        id=guid_text("object_id"),
        type=type_label("object_type"),
        operation=lookup(_OPERATIONS)[F.col("command")],
        origin=F.col("server"),
    )


@table(schemas.VERSIONS, requires="records")
def versions(changes: DataFrame) -> DataFrame:
    """The version of an object that each change made, valid until the next change of the object.

    A deletion ends the last version and begins none.
    """
    following = Window.partitionBy("partition", "type", "id").orderBy("seq")
    ended = shaped(
        changes,
        schemas.VERSIONS.names,
        valid_from_seq=F.col("seq"),
        valid_to_seq=F.lead("seq").over(following),
        valid_from=F.col("time"),
        valid_to=F.lead("time").over(following),
    )
    return ended.filter(F.col("operation") != "delete")
