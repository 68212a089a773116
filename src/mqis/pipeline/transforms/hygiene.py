"""Checks for defects that a directory can have although all replicas agree on it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from enum import StrEnum

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.transforms.current import value, values
from mqis.pipeline.transforms.expressions import guid_text, type_label
from mqis.protocol.directory.service import ServiceBits
from mqis.protocol.security.access import Token, access_check
from mqis.protocol.security.masks import QueueRights, generic_mapping, map_descriptor
from mqis.wire.errors import WireError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.descriptor import SecurityDescriptor


class Check(StrEnum):
    """A check: its name is the column ``check`` of a finding, its value the ``explanation``."""

    DUPLICATE_ID = "several partitions have an object with this identifier"
    DUPLICATE_NAME = "several objects of this type have this name"
    ORPHANED_QUEUE = "the queue's machine is not in the directory"
    ORPHANED_MACHINE = "the machine's site is not in the directory"
    UNKNOWN_SITE = "the routing link joins a site that is not in the directory"
    NO_GATE = "the site has no gate, so no messages are routed to it or through it"
    WRITABLE = "everyone, even anonymous users, may send to the queue"


def hygiene(directory: DataFrame) -> DataFrame:
    """The findings, one row each: (check, explanation, type, id, path, detail)."""
    named = directory.withColumn("gid", guid_text(F.col("id"))).persist()
    parts = (
        _duplicate_ids(named),
        _duplicate_names(named),
        _orphaned_queues(named),
        _orphaned_machines(named),
        _unknown_sites(named),
        _without_gate(named),
        _writable(named),
    )
    found = parts[0]
    for part in parts[1:]:
        found = found.unionByName(part)
    return found


def _of_type(directory: DataFrame, kind: ObjectType) -> DataFrame:
    return directory.filter(F.col("type") == int(kind))


def _findings(found: DataFrame, check: Check, detail: Column) -> DataFrame:
    return found.select(
        F.lit(check.name.lower()).alias("check"),
        F.lit(check.value).alias("explanation"),
        type_label(F.col("type")).alias("type"),
        F.col("gid").alias("id"),
        "path",
        detail.cast("string").alias("detail"),
    )


def _duplicate_ids(named: DataFrame) -> DataFrame:
    twice = named.groupBy("type", "gid").count().filter("count > 1").drop("count")
    found = named.join(twice, ["type", "gid"], "left_semi")
    return _findings(found, Check.DUPLICATE_ID, guid_text(F.col("partition")))


def _duplicate_names(named: DataFrame) -> DataFrame:
    keyed = named.filter(F.col("path").isNotNull()).withColumn("key", F.lower("path"))
    grouped = keyed.groupBy("type", "key").agg(F.count_distinct("id").alias("ids"))
    found = keyed.join(grouped.filter("ids > 1"), ["type", "key"])
    return _findings(found, Check.DUPLICATE_NAME, F.col("ids"))


def _orphaned_queues(named: DataFrame) -> DataFrame:
    machines = _of_type(named, ObjectType.MACHINE).select(F.col("gid").alias("owner")).distinct()
    queues = _of_type(named, ObjectType.QUEUE).withColumn("owner", value(PropId.Q_QMID))
    found = queues.join(machines, "owner", "left_anti")
    return _findings(found, Check.ORPHANED_QUEUE, F.col("owner"))


def _sites(named: DataFrame) -> DataFrame:
    return _of_type(named, ObjectType.SITE).select(F.col("gid").alias("site")).distinct()


def _orphaned_machines(named: DataFrame) -> DataFrame:
    machines = _of_type(named, ObjectType.MACHINE)
    placed = machines.withColumn("site", F.explode_outer(values(PropId.QM_SITE_IDS)))
    found = placed.join(F.broadcast(_sites(named)), "site", "left_anti")
    return _findings(found, Check.ORPHANED_MACHINE, F.col("site"))


def _unknown_sites(named: DataFrame) -> DataFrame:
    ends = F.array(value(PropId.L_NEIGHBOR1), value(PropId.L_NEIGHBOR2))
    links = _of_type(named, ObjectType.ROUTINGLINK).withColumn("site", F.explode(ends))
    found = links.join(F.broadcast(_sites(named)), "site", "left_anti")
    return _findings(found, Check.UNKNOWN_SITE, F.col("site"))


def _without_gate(named: DataFrame) -> DataFrame:
    """Sites without a gate: a router in the site that the site or one of its links names.

    Routing derives gates in the same way.
    """
    sites = _of_type(named, ObjectType.SITE)
    by_site = sites.select(
        F.col("gid").alias("site"), F.explode(values(PropId.S_GATES)).alias("gate")
    )
    ends = F.array(value(PropId.L_NEIGHBOR1), value(PropId.L_NEIGHBOR2))
    links = _of_type(named, ObjectType.ROUTINGLINK).select(
        F.explode(ends).alias("site"), values(PropId.L_GATES).alias("gates")
    )
    by_link = links.select("site", F.explode("gates").alias("gate"))
    routers = (
        _of_type(named, ObjectType.MACHINE)
        .filter(value(PropId.QM_SERVICE).cast("int").bitwiseAND(int(ServiceBits.ROUTING)) != 0)
        .select(F.col("gid").alias("gate"), F.explode(values(PropId.QM_SITE_IDS)).alias("site"))
    )
    gated = by_site.unionByName(by_link).join(routers, ["gate", "site"]).select("site").distinct()
    found = sites.withColumn("site", F.col("gid")).join(gated, "site", "left_anti")
    return _findings(found, Check.NO_GATE, F.lit(""))


# --- permissions ----------------------------------------------------------------------------------


def _writable(named: DataFrame) -> DataFrame:
    """Queues that everyone may send to. Checks each distinct security descriptor only once."""
    queues = _of_type(named, ObjectType.QUEUE).withColumn("descriptor", value(PropId.Q_SECURITY))
    known = queues.select("descriptor").filter(F.col("descriptor").isNotNull()).distinct()
    open_ = known.mapInArrow(_open_to_everyone, "descriptor string")
    found = queues.join(F.broadcast(open_), "descriptor", "left_semi")
    return _findings(found, Check.WRITABLE, F.lit(""))


def _open_to_everyone(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        kept = [
            text for text in batch.column("descriptor").to_pylist() if _anonymous_may_send(text)
        ]
        yield pa.RecordBatch.from_arrays([pa.array(kept, pa.string())], ["descriptor"])


def _anonymous_may_send(text: str) -> bool:
    """Returns whether anonymous users may send to a queue with this descriptor (in base64)."""
    try:
        descriptor = SecurityDescriptor.from_bytes(b64decode(text))
    except (WireError, ValueError):
        return False
    token = Token.anonymous(in_everyone=True)
    mapping = generic_mapping(ObjectType.QUEUE)
    mapped = map_descriptor(descriptor, mapping)
    return bool(access_check(mapped, token, int(QueueRights.WRITE_MESSAGE), mapping))
