"""A second look at differences that no lost message explains: which of the exports is wrong?

The journals say that the replica applied the change, or that there never was such a change. Before
a replica is called corrupted, everything else is ruled out: an export that was made before the
change, an export with unreadable lines, and an authority whose export contradicts its own journal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.content import digests
from mqis.pipeline.mapping import mapped_rows
from mqis.pipeline.registry import step, table
from mqis.pipeline.transforms.causes import EXPLAINED, Cause
from mqis.pipeline.transforms.current import edited_exports
from mqis.pipeline.transforms.expressions import (
    gathered,
    guid_text,
    listed_properties,
    shaped,
    travels_as,
    type_label,
)
from mqis.pipeline.transforms.rebuild import folded, lines
from mqis.pipeline.transforms.records import changes_in, replies
from mqis.protocol.directory.export_format import parse_entry
from mqis.protocol.directory.objects import DeletedObject
from mqis.protocol.replication.convergence import DifferenceKind
from mqis.wire.journal import RecordState
from mqis.wire.mqdsrp.change import Command

_KEY = ["server", "partition", "type", "id"]
_OBJECT = ["authority", "partition", "type", "id"]
_CONTRADICTION = "its export contradicts its own journal"
_DOUBTFUL = (Cause.CORRUPTED.value, Cause.UNKNOWN.value, Cause.FOREIGN.value)


def is_doubtful() -> Column:
    """True for differences that need a second look."""
    return F.col("cause").isin(*_DOUBTFUL)


@table(schemas.DIVERGENCE, requires="objects", order=("server", "partition", "id", "type"))
def divergence(explained_differences: DataFrame, doubtful_differences: DataFrame) -> DataFrame:
    """Corrects the causes of differences by the second look at them.

    An authority that contradicts its own journal gets one row for each object, instead of one for
    each of its replicas.
    """
    own = doubtful_differences.filter(F.col("authority_odd"))
    others = doubtful_differences.filter(~F.col("authority_odd") | F.col("replica_odd"))
    judged = shaped(others, EXPLAINED, reason=_reason(), cause=_cause())
    certain = explained_differences.filter(~is_doubtful())
    found = certain.unionByName(judged).unionByName(_authorities(own))
    texts = {"partition": guid_text("partition"), "id": guid_text("id")}
    return gathered(shaped(found, schemas.DIVERGENCE.names, type=type_label("type"), **texts))


@step
def export_numbers(used_partitions: DataFrame) -> DataFrame:
    """(server, partition, last_seq): the numbers of the exports' first lines."""
    return used_partitions.groupBy("server", "partition").agg(F.min("last_seq").alias("last_seq"))


@step
def doubtful_differences(
    *,
    explained_differences: DataFrame,
    journaled_objects: DataFrame,
    used_records: DataFrame,
    export_numbers: DataFrame,
    errors: DataFrame,
    used_objects: DataFrame,
) -> DataFrame:
    """The doubtful differences, with everything that exports and journals tell about them."""
    doubtful = explained_differences.filter(is_doubtful())
    replica = _renamed(export_numbers, "server", "replica_number")
    authority = _renamed(export_numbers, "authority", "authority_number")
    damaged = errors.filter(F.col("source") == "export").select("server").distinct()
    edited = edited_exports(errors).select("server").distinct()
    facts = (
        doubtful.join(replica, _KEY[:2], "left")
        .join(authority, _OBJECT[:2], "left")
        .join(_flagged(damaged, "server", "replica_damaged"), "server", "left")
        .join(_flagged(damaged, "authority", "authority_damaged"), "authority", "left")
        .join(_flagged(edited, "server", "replica_edited"), "server", "left")
        .join(_flagged(edited, "authority", "authority_edited"), "authority", "left")
        .join(F.broadcast(_floors(doubtful, used_records, export_numbers)), "server", "left")
        .join(journaled_objects, _OBJECT, "left")
        .join(_firsts(doubtful, used_records), _OBJECT[:2], "left")
    )
    return _compared(facts, doubtful, used_objects)


def _flagged(servers: DataFrame, role: str, flag: str) -> DataFrame:
    return F.broadcast(servers.select(F.col("server").alias(role), F.lit(True).alias(flag)))


def _renamed(numbers: DataFrame, role: str, name: str) -> DataFrame:
    return numbers.select(F.col("server").alias(role), "partition", F.col("last_seq").alias(name))


def _floors(doubtful: DataFrame, records: DataFrame, numbers: DataFrame) -> DataFrame:
    """The record of each server after which it was exported, at least: (server, floor).

    It is the last of those that brought the server to a number of its export's first line.
    """
    servers = doubtful.select("server").distinct()
    concerned = records.join(F.broadcast(servers), "server", "left_semi")
    changes = changes_in(concerned, RecordState.LOCAL, RecordState.APPLIED).select(
        "server", "partition", "seq", "lsn"
    )
    came = replies(concerned).select("server", "partition", F.col("to_seq").alias("seq"), "lsn")
    reached = numbers.withColumnRenamed("last_seq", "seq")
    hits = changes.unionByName(came).join(reached, ["server", "partition", "seq"])
    first = hits.groupBy("server", "partition").agg(F.min("lsn").alias("lsn"))
    return first.groupBy("server").agg(F.max("lsn").alias("floor"))


def _firsts(doubtful: DataFrame, records: DataFrame) -> DataFrame:
    """The first change of its own in each authority's journal: (authority, partition, number)."""
    keys = doubtful.select(F.col("authority").alias("server"), "partition").distinct()
    local = changes_in(records, RecordState.LOCAL).join(keys, ["server", "partition"], "left_semi")
    return local.groupBy(F.col("server").alias("authority"), "partition").agg(
        F.min("seq").alias("first_made")
    )


@step
def journaled_objects(
    explained_differences: DataFrame, made_changes: DataFrame, export_numbers: DataFrame
) -> DataFrame:
    """The objects as their authorities' journals have them when they were exported."""
    keys = explained_differences.filter(is_doubtful()).select(*_OBJECT).distinct()
    named = made_changes.withColumnRenamed("server", "authority")
    about = {"type": "object_type", "id": "object_id"}
    asked = keys.withColumnsRenamed(about)
    concerned = named.join(asked, [*_OBJECT[:2], *about.values()], "left_semi")
    owners = keys.select(*_OBJECT[:2]).distinct()
    own = _renamed(export_numbers, "authority", "at").join(owners, _OBJECT[:2])
    rebuilt = lines(folded(concerned), own.select("partition", "at"))
    held = mapped_rows(rebuilt, ["line"], _parse, schemas.JOURNALED_STATE)
    sets = F.flatten(F.collect_list(F.transform("properties", lambda p: travels_as(p["propid"]))))
    told = (F.col(column).alias(name) for name, column in about.items())
    known = concerned.groupBy(*_OBJECT[:2], *told).agg(
        F.max(F.col("command") == int(Command.CREATE)).alias("born"), sets.alias("set")
    )
    return known.join(held, _OBJECT[1:], "left")


def _parse(rows: Iterator[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for (line,) in rows:
        entry = parse_entry(line, 0)
        kind = entry.object_type if isinstance(entry, DeletedObject) else entry.type
        parts = None if isinstance(entry, DeletedObject) else digests(entry)[1]
        named = {"partition": entry.partition.raw, "type": int(kind), "id": entry.id.raw}
        yield {**named, "journaled": parts}


def _compared(facts: DataFrame, doubtful: DataFrame, objects: DataFrame) -> DataFrame:
    """Adds ``authority_odd`` and ``replica_odd``: which export contradicts the journal."""
    keys = doubtful.select(*_OBJECT[1:]).distinct()
    held = (
        objects.filter(~F.col("deleted"))
        .join(keys, _OBJECT[1:], "left_semi")
        .select(*_KEY, "digests")
    )
    own = held.withColumnsRenamed({"server": "authority", "digests": "own_parts"})
    theirs = held.select(*_KEY, F.col("digests").alias("their_parts"))
    joined = facts.join(own, _OBJECT, "left").join(theirs, _KEY, "left")
    older = F.coalesce(F.col("latest") > F.col("authority_number"), F.lit(False))
    genuine = F.col("authority_edited").isNull()
    return joined.select(
        "*",
        older.alias("authority_older"),
        (~older & _is_authority_odd() & genuine).alias("authority_odd"),
        (_is_authority_odd() & ~genuine).alias("authority_altered"),
        _differs("their_parts").alias("replica_odd"),
    )


def _is_authority_odd() -> Column:
    """True if the authority's export contradicts its journal, in the way that was found."""
    difference, born = F.col("difference"), F.coalesce("born", F.lit(False))
    # The journal has the change with the object's number, and that is about another object.
    never = F.col("authority_complete") & (F.col("known") == 0)
    never &= F.coalesce(F.col("authority_seq") >= F.col("first_made"), F.lit(False))
    gone = (born | never) & F.col("journaled").isNull()
    kept = born & F.col("journaled").isNotNull() & F.col("authority_damaged").isNull()
    return (
        F.when(difference == DifferenceKind.MISSING.value, gone)
        .when(difference == DifferenceKind.EXTRA.value, kept)
        .otherwise(_differs("own_parts"))
    )


def _differs(parts: str) -> Column:
    """True if a differing property has another value than in the journal, which has it."""
    listed = listed_properties(F.col("type"))
    numbered = F.sequence(F.lit(0), F.size(listed) - 1)
    born = F.coalesce("born", F.lit(False))

    def differs(index: Column) -> Column:
        concerned = F.array_contains("properties", listed[index])
        known = born | F.array_contains("set", listed[index])
        return concerned & known & (F.col(parts)[index] != F.col("journaled")[index])

    compared = F.col(parts).isNotNull() & F.col("journaled").isNotNull()
    return F.coalesce(compared & F.exists(numbered, differs), F.lit(False))


# --- the verdict ----------------------------------------------------------------------------------


def _is_replica_older() -> Column:
    return (F.col("cause") == Cause.CORRUPTED.value) & (F.col("seq") > F.col("replica_number"))


def _is_damaged() -> Column:
    difference = F.col("difference")
    applied = F.col("cause") == Cause.CORRUPTED.value
    lacking = (difference == DifferenceKind.MISSING.value) & applied
    unfound = F.col("cause") == Cause.UNKNOWN.value
    surplus = (difference == DifferenceKind.EXTRA.value) & F.col("seq").isNull() & unfound
    return (
        (lacking & F.col("replica_damaged").isNotNull())
        | (surplus & F.col("authority_damaged").isNotNull())
        | (applied & F.col("replica_edited").isNotNull())
        | F.col("authority_altered")
    )


def _is_unproven() -> Column:
    """True unless the export is from after the record in which the replica applied the change."""
    later = F.coalesce(F.col("applied_lsn") <= F.col("floor"), F.lit(False))
    agrees = (F.col("difference") == DifferenceKind.DIFFERENT.value) & ~F.col("replica_odd")
    return (F.col("cause") == Cause.CORRUPTED.value) & (~later | agrees)


def _cause() -> Column:
    return (
        F.when(F.col("authority_older"), Cause.EXPORT_OLDER.value)
        .when(_is_replica_older(), Cause.EXPORT_OLDER.value)
        .when(_is_damaged(), Cause.EXPORT_DAMAGED.value)
        .when(_is_unproven(), Cause.UNKNOWN.value)
        .otherwise(F.col("cause"))
    )


def _reason() -> Column:
    def ends(whose: str, number: str) -> Column:
        text = F.lit("the export of "), F.col(whose), F.lit(" ends at change ")
        return F.concat(*text, F.col(number).cast("string"))

    return (
        F.when(F.col("authority_older"), ends("authority", "authority_number"))
        .when(_is_replica_older(), ends("server", "replica_number"))
        .otherwise(F.col("reason"))
    )


def _authorities(own: DataFrame) -> DataFrame:
    """One row for each object in which an authority's export contradicts its own journal."""
    missing, extra = DifferenceKind.MISSING.value, DifferenceKind.EXTRA.value
    flipped = (
        F.when(F.col("difference") == missing, extra)
        .when(F.col("difference") == extra, missing)
        .otherwise(F.col("difference"))
    )
    none = F.lit(None).cast("string")
    return shaped(
        own.dropDuplicates(_OBJECT),
        EXPLAINED,
        difference=flipped,
        server=F.col("authority"),
        cause=F.lit(Cause.AUTHORITY_CORRUPTED.value),
        reason=F.lit(_CONTRADICTION),
        seq=F.col("latest"),
        source=none,
        target=none,
        replica_seq=none.cast("long"),
    )
