"""The directory in the past: an authority's changes up to a number, folded object by object.

A property has the value from the last change that set it since its object was created. Points in
time are rows, so one pass can rebuild many of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.mapping import mapped_rows
from mqis.pipeline.transforms.bodies import carried
from mqis.pipeline.transforms.records import changes_in
from mqis.protocol.directory.export_format import ORDER, format_entry, parse_entry
from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Scope
from mqis.protocol.ports import Change
from mqis.protocol.replication.outgoing_changes import deletion
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordState
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber

#: A site and its connected network may share one identifier: in Active Directory they always do.
_OBJECT = ["partition", "at", "object_id", "object_type"]
#: The columns that a line is made of.
_NEEDED = (*_OBJECT, "seq", "command", "properties")
_PLACES = {int(kind): place for place, kind in enumerate(ORDER)}
#: Tombstones come after all objects.
_LAST = len(ORDER)


def local_changes(records: DataFrame) -> DataFrame:
    """The decoded changes that authorities made; each number once."""
    return carried(changes_in(records, RecordState.LOCAL)).dropDuplicates(["partition", "seq"])


def folded(changes: DataFrame) -> DataFrame:
    """Reduces changes to the columns that ``lines`` needs (``schemas.FOLDED``)."""
    kept = F.transform("properties", lambda p: F.struct(p["propid"], p["raw"]))
    columns = [name for name in schemas.FOLDED.fieldNames() if name != "properties"]
    return changes.select(*columns, kept.alias("properties"))


def snapshot_changes(lines: DataFrame) -> DataFrame:
    """Converts the lines of snapshots to changes that create every object (``schemas.FOLDED``)."""
    return mapped_rows(lines, ["line"], _parse, schemas.FOLDED)


def _parse(rows: Iterator[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    return (_as_change(parse_entry(line, 0)) for (line,) in rows)


def _as_change(entry: Change) -> dict[str, Any]:
    row: dict[str, Any] = {
        "partition": entry.partition.raw,
        "seq": entry.seq.value,
        "object_id": entry.id.raw,
    }
    if isinstance(entry, DeletedObject):
        kind, listed = entry.object_type, dict(deletion(entry.object_type, entry.scope))
    else:
        kind, listed = entry.type, dict(entry.properties)
    command = Command.DELETE if isinstance(entry, DeletedObject) else Command.CREATE
    packed = [{"propid": int(p), "raw": variant.packed()} for p, variant in listed.items()]
    return row | {"command": int(command), "object_type": int(kind), "properties": packed}


def lines(changes: DataFrame, points: DataFrame) -> DataFrame:
    """The lines of an export at each point (``schemas.LINES``), to be ordered by (place, key).

    ``changes`` come from ``folded``, ``points`` are (partition, at).
    """
    before = changes.join(F.broadcast(points), "partition").filter(F.col("seq") <= F.col("at"))
    created = F.col("command") == int(Command.CREATE)
    fates = before.groupBy(*_OBJECT).agg(
        F.max("seq").alias("seq"),
        F.max_by("command", "seq").alias("command"),
        F.max(F.when(created, F.col("seq"))).alias("born"),
    )
    values = (
        before.select(*_OBJECT, F.col("seq").alias("set"), F.explode("properties").alias("p"))
        .join(fates.select(*_OBJECT, "born"), _OBJECT)
        .filter(F.col("set") >= F.coalesce("born", F.lit(0)))
        .groupBy(*_OBJECT, F.col("p.propid").alias("propid"))
        .agg(F.max_by("p.raw", "set").alias("raw"))
        .groupBy(*_OBJECT)
        .agg(F.collect_list(F.struct("propid", "raw")).alias("properties"))
    )
    whole = _without_overwritten(fates).join(values, _OBJECT, "left")
    return mapped_rows(whole, _NEEDED, _format, schemas.LINES)


def _without_overwritten(fates: DataFrame) -> DataFrame:
    """Leaves out tombstones that a store does not keep: it has one for each identifier.

    A later deletion takes its place, and so does the creation of an object.
    """
    gone = F.col("command") == int(Command.DELETE)
    said = F.when(gone, F.col("seq")).otherwise(F.col("born"))
    last = F.max(said).over(Window.partitionBy("partition", "at", "object_id"))
    return fates.withColumn("last", last).filter(~gone | (F.col("seq") == F.col("last")))


def _format(rows: Iterator[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    return (_line(dict(zip(_NEEDED, row, strict=True))) for row in rows)


def _line(row: dict[str, Any]) -> dict[str, Any]:
    kind = ObjectType(row["object_type"])
    id_, partition = Guid(row["object_id"]), Guid(row["partition"])
    seq = SequenceNumber(row["seq"])
    # A change without a value takes the value away.
    listed = {p["propid"]: p["raw"] for p in row["properties"] or () if p["raw"] is not None}
    made = {"partition": row["partition"], "at": row["at"], "seq": row["seq"]}
    if row["command"] == Command.DELETE:
        site = listed.get(int(PropId.D_SCOPE), b"\x01")[0] == Scope.SITE
        gone = DeletedObject(id_, partition, seq, kind, Scope.SITE if site else Scope.ENTERPRISE)
        key = partition.raw + seq.to_bytes()
        return made | {"place": _LAST, "key": key, "line": format_entry(gone)}
    properties = {propid: _variant(propid, raw) for propid, raw in listed.items()}
    obj = DirectoryObject(kind, id_, partition, seq, properties)
    return made | {"place": _PLACES[int(kind)], "key": id_.raw, "line": format_entry(obj)}


def _variant(propid: int, raw: bytes) -> PropVariant:
    return PropVariant.decode(Reader(raw), PROPERTIES[propid].vt)
