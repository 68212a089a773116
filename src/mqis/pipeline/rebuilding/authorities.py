"""The authorities of partitions in the past, and what they held of the changes of others.

The PEC makes the first objects of a new site, such as the machine of its PSC; a promoted server
finds those of the one before it. The authority got such a change by replication: it stores what
travels, and not what only the server that made the change keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.mapping import mapped_rows
from mqis.pipeline.rebuilding.beginnings import Moment
from mqis.pipeline.rebuilding.completeness import PastPartition
from mqis.pipeline.tables import TableStore
from mqis.pipeline.transforms.records import changes_in
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.replication.keeping import emptied, kept_values
from mqis.protocol.replication.replicated import changed_properties, whole_object
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordState
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.propertylist import PropertyList
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber


def authorities(
    tables: TableStore,
    records: DataFrame,
    changes: DataFrame,
    past: Mapping[bytes, PastPartition],
    moment: Moment,
) -> dict[bytes, str]:
    """By partition: the server that decided about it at ``moment``.

    It is the PSC of the site, once it has a copy of the partition; before that, and if the journals
    do not show the site, the server that made the last change.
    """
    found = {key: one.owner for key, one in past.items()}
    root = past.get(ENTERPRISE_PARTITION.raw)
    if root is None or moment.time is None:
        return found
    named = F.broadcast(_pscs(tables, changes, root.last_seq))
    held = changes_in(records, RecordState.LOCAL, RecordState.APPLIED)
    holders = held.filter(F.col("time") <= F.lit(moment.time)).select("server", "partition")
    own = holders.join(named, "partition").filter(F.lower("server") == F.lower("psc"))
    rows = own.select("partition", "server").distinct().collect()
    return found | {bytes(row["partition"]): row["server"] for row in rows}


def _pscs(tables: TableStore, changes: DataFrame, last_seq: int) -> DataFrame:
    """(partition, psc): the PSCs of the sites at a number of the enterprise's partition."""
    given = F.filter("properties", lambda p: p["propid"] == int(PropId.S_PSC))
    made = changes.select(
        *("partition", "seq", F.col("object_type").alias("type"), F.col("object_id").alias("site")),
        F.get(given, 0)["text"].alias("psc"),  # null in a change of something else
    )
    if tables.has("snapshots"):
        told = F.get_json_object("line", f"$.props.{int(PropId.S_PSC)}.value")
        lines = tables.read("snapshots").filter("not deleted")
        site = F.col("id").alias("site")
        made = made.unionByName(lines.select("partition", "seq", "type", site, told.alias("psc")))
    enterprise = F.col("partition") == F.lit(bytearray(ENTERPRISE_PARTITION.raw))
    is_site = F.col("type") == int(ObjectType.SITE)
    named = made.filter(enterprise & is_site & F.col("psc").isNotNull())
    sites = named.filter(F.col("seq") <= last_seq).groupBy(F.col("site").alias("partition"))
    return sites.agg(F.max_by("psc", "seq").alias("psc"))


def replicated(changes: DataFrame) -> DataFrame:
    """Changes (``schemas.FOLDED``) as a replica stores them; a value that it drops is null."""
    return mapped_rows(changes, schemas.FOLDED.fieldNames(), _as_replica, schemas.FOLDED)


def _as_replica(rows: Iterator[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for values in rows:
        row = dict(zip(schemas.FOLDED.fieldNames(), values, strict=True))
        if row["command"] != Command.DELETE:
            row["properties"] = _stored(row)
        yield row


def _stored(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = {p["propid"]: p["raw"] for p in row["properties"] or ()}
    obj = DirectoryObject(
        ObjectType(row["object_type"]),
        Guid(row["object_id"]),
        Guid(row["partition"]),
        SequenceNumber(row["seq"]),
        {p: PropVariant.decode(Reader(raw), PROPERTIES[p].vt) for p, raw in given.items()},
    )
    if row["command"] == Command.CREATE:
        sent, dropped = whole_object(obj), []
    else:
        sent = PropertyList.of(changed_properties(obj, given))
        dropped = emptied(sent)
    kept: dict[int, bytes | None] = {p: raw for p, (_, raw) in kept_values(sent).items()}
    return [{"propid": p, "raw": raw} for p, raw in (dict.fromkeys(dropped) | kept).items()]
