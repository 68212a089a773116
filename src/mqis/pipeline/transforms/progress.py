"""Progress of replication: lag, gaps, synchronisations and purge margins."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.registry import table, view
from mqis.pipeline.transforms.expressions import (
    body_number,
    body_octets,
    gathered,
    guid_text,
    same_name,
    shaped,
)
from mqis.pipeline.transforms.records import accepted, changes_in, messages, replies
from mqis.wire.journal import RecordState
from mqis.wire.mqdsrp import layout
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.describing import operation_name
from mqis.wire.mqdsrp.messages import MessageOperation, Sync0

#: The columns of gaps before it is known whether they are certain.
_FOUND = schemas.GAPS.names[:-1]
_QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}


@view
def arrivals(used_records: DataFrame, wrong_clocks: DataFrame) -> DataFrame:
    """The arrivals at servers whose clocks are right, from such servers."""
    return arrived(used_records.join(F.broadcast(wrong_clocks), "server", "left_anti"))


def arrived(records: DataFrame) -> DataFrame:
    """The lag of each change at each replica: (partition, seq, origin, server, made, lag_ms)."""
    made = (
        changes_in(records, RecordState.LOCAL)
        .groupBy("partition", "seq")
        .agg(F.min("server").alias("origin"), F.min("time").alias("made"))
    )
    had = (
        changes_in(records, RecordState.APPLIED)
        .groupBy("server", "partition", "seq")
        .agg(F.min("time").alias("had"))
    )
    micros = F.unix_micros("had") - F.unix_micros("made")
    return had.join(made, ["partition", "seq"]).select(
        "partition", "seq", "origin", "server", "made", (micros / 1000).alias("lag_ms")
    )


@table(schemas.LAG, requires="records", order=("origin", "server"))
def lag(arrivals: DataFrame) -> DataFrame:
    """Percentiles of the lag from each authority to each replica."""
    ranks = F.percentile("lag_ms", list(_QUANTILES.values()))
    grouped = arrivals.groupBy("origin", "server").agg(
        F.count("*").alias("changes"), ranks.alias("ranks"), F.max("lag_ms").alias("max_ms")
    )
    named = {name: F.col("ranks")[i] for i, name in enumerate(_QUANTILES)}
    return gathered(shaped(grouped, schemas.LAG.names, **named))


@table(schemas.LAG_BY_MINUTE, requires="records")
def lag_by_minute(arrivals: DataFrame) -> DataFrame:
    """Percentiles of the lag by minute and replica, for charts."""
    minute = F.date_trunc("minute", "made").alias("minute")
    grouped = arrivals.groupBy(minute, "server").agg(
        F.count("*").alias("changes"),
        F.percentile("lag_ms", F.lit(0.5)).alias("p50_ms"),
        F.percentile("lag_ms", F.lit(0.95)).alias("p95_ms"),
    )
    return gathered(shaped(grouped, schemas.LAG_BY_MINUTE.names))


@table(schemas.GAPS, requires="records", order=("server", "partition", "first_seq"))
def gaps(used_records: DataFrame, journals: DataFrame, snapshot_partitions: DataFrame) -> DataFrame:
    """Numbers that a replica never got, or changes that it applied more than once.

    A number that the server gave out itself, or skipped as the authority, is none of them: it may
    have decided about the partition before, or stood in for who does.

    ``certain`` is false if the replica's journal is not whole, as records may be missing.
    """
    applied = changes_in(used_records, RecordState.APPLIED)
    spans = _applied_spans(applied).unionByName(_reply_spans(used_records))
    brought = spans.unionByName(_started(snapshot_partitions)).withColumn("own", F.lit(False))
    spans = brought.unionByName(_own_spans(used_records).withColumn("own", F.lit(True)))
    whole = journals.select("server", "complete")
    found = _uncovered(spans, whole).unionByName(_duplicates(used_records, applied))
    shown = shaped(
        found.join(F.broadcast(whole), "server", "left"),
        schemas.GAPS.names,
        partition=guid_text("partition"),
        certain=F.coalesce("complete", F.lit(False)),
    )
    return gathered(shown)


def _applied_spans(applied: DataFrame) -> DataFrame:
    """The numbers after ``begin`` and up to ``end`` that applied changes brought.

    A change of a synchronisation brings its own number only: the reply says what it covers.
    """
    before = F.col("seq") - 1
    is_chained = (F.col("operation") != int(Command.SYNC)) & (F.col("previous_seq") > 0)
    begin = F.when(is_chained, F.least("previous_seq", before)).otherwise(before)
    return applied.select("server", "partition", begin.alias("begin"), F.col("seq").alias("end"))


def _own_spans(records: DataFrame) -> DataFrame:
    """The same of what the server decided as the authority: its changes, and what it skipped."""
    decided = changes_in(records, RecordState.LOCAL, RecordState.SKIPPED)
    begin = F.least("previous_seq", F.col("seq") - 1)
    return decided.select("server", "partition", begin.alias("begin"), F.col("seq").alias("end"))


def _reply_spans(records: DataFrame) -> DataFrame:
    """The same of sync replies, which cover all numbers after From and up to To."""
    return replies(records).select(
        "server", "partition", F.col("from_seq").alias("begin"), F.col("to_seq").alias("end")
    )


def _started(snapshot_partitions: DataFrame) -> DataFrame:
    """The same of the oldest snapshot of each journal, which goes on from its numbers.

    A partition that only later snapshots have came after the journal began: they do not tell
    whether all of its changes were applied before.
    """
    oldest = F.min("lsn").over(Window.partitionBy("server"))
    starts = snapshot_partitions.withColumn("oldest", oldest).filter("lsn = oldest")
    return starts.select(
        "server", "partition", F.lit(0).cast("long").alias("begin"), F.col("last_seq").alias("end")
    )


def _uncovered(spans: DataFrame, journals: DataFrame) -> DataFrame:
    """The numbers between spans that no span covers, whichever came first.

    Numbers before a change of the server itself are not among them: ``missing_changes`` judges
    those, and a journal of an earlier version has no record of what an authority skipped.
    """
    before = (
        Window.partitionBy("server", "partition")
        .orderBy("begin", "end")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    numbered = spans.join(F.broadcast(journals), "server", "left").withColumn(
        "reached", F.max("end").over(before)
    )
    # A journal that starts in the middle of a history does not show a gap before its start.
    start = F.when(F.col("complete"), F.lit(0))
    known: Column = F.coalesce("reached", start)
    return shaped(
        numbered.filter((F.col("begin") > known) & ~F.col("own")),
        _FOUND,
        kind=F.lit("gap"),
        first_seq=known + 1,
        last_seq=F.col("begin"),
        times=F.lit(0).cast("long"),
    )


def _duplicates(records: DataFrame, applied: DataFrame) -> DataFrame:
    """Changes that were applied more than once.

    A synchronisation repeats objects, and the deletions that the authority still knows.
    """
    message = ["server", "message_source", "message_ordinal"]
    synchronized = messages(records, RecordState.RECEIVED, MessageOperation.SYNC_REPLY)
    grouped = (
        applied.filter(F.col("operation") != int(Command.SYNC))
        .join(synchronized.select(*message), message, "left_anti")
        .groupBy("server", "partition", "seq", "operation")
        .agg(F.count("*").alias("times"))
        .filter(F.col("times") > 1)
    )
    numbers = {"first_seq": F.col("seq"), "last_seq": F.col("seq")}
    return shaped(grouped, _FOUND, kind=F.lit("duplicate"), **numbers)


# --- messages -------------------------------------------------------------------------------------


@table(schemas.ROUNDS, requires="records", order=("server", "peer"))
def rounds(used_records: DataFrame) -> DataFrame:
    """Messages between servers by kind, and completed synchronisations.

    A synchronisation may take several requests: an unanswered one is repeated, and a long reply
    comes in parts. It ends with the part that is marked as the last. ``sync0`` is a full
    resynchronisation of a partition.
    """
    counted = (
        F.count_if(F.col("operation") == int(operation)).alias(operation_name(operation))
        for operation in MessageOperation
    )
    is_sync0 = body_number(layout.SYNC_REQUEST_IS_SYNC0_AT, 1).cast("int") > 0
    asked_for_all = (F.col("operation") == int(MessageOperation.SYNC_REQUEST)) & is_sync0
    sent = (
        messages(used_records, RecordState.QUEUED)
        .groupBy("server", "peer")
        .agg(
            *counted,
            F.count_if(asked_for_all).alias("sync0_request"),
            F.sum(F.length("body")).alias("bytes"),
        )
    )
    over = body_number(layout.SYNC_REPLY_COMPLETE_AT, 1).cast("int")
    came = (
        accepted(used_records, MessageOperation.SYNC_REPLY)
        .groupBy("server", "peer")
        .agg(
            F.count_if(over == int(Sync0.NONE)).alias("sync_rounds"),
            F.count_if(over == int(Sync0.COMPLETE)).alias("sync0_rounds"),
            F.count_if(over == int(Sync0.MORE)).alias("parts"),
        )
    )
    joined = sent.join(came, ["server", "peer"], "full")
    counts = {name: F.coalesce(name, F.lit(0)) for name in schemas.ROUNDS.names[2:]}
    return gathered(shaped(joined, schemas.ROUNDS.names, **counts))


@table(schemas.MARGINS, requires="partitions", order=("authority", "partition", "psc"))
def margins(used_partitions: DataFrame, used_records: DataFrame) -> DataFrame:
    """The distance from an authority's purged number to the number that each PSC acknowledged.

    A negative margin means that tombstones were purged that this PSC may not have seen; it will
    need a full resynchronisation (sync0). ``behind`` is the distance that it still has to
    acknowledge.
    """
    number = body_number(layout.PSC_ACK_SEQ_AT, 8).cast("long")
    acked = (
        accepted(used_records, MessageOperation.PSC_ACK)
        .select(
            F.col("server").alias("authority"),
            F.lower("peer").alias("key"),
            body_octets(layout.PSC_ACK_PARTITION_AT, 16).alias("partition"),
            number.alias("acked"),
        )
        .groupBy("authority", "key", "partition")
        .agg(F.max("acked").alias("acked"))
    )
    own = used_partitions.filter(same_name("owner", "server")).select(
        F.col("server").alias("authority"), "partition", "last_seq", "purged_seq", "purge_state"
    )
    pscs = own.select(F.col("authority").alias("psc"), F.lower("authority").alias("key")).distinct()
    ways = own.crossJoin(F.broadcast(pscs)).filter(F.col("psc") != F.col("authority"))
    joined = ways.join(acked, ["authority", "key", "partition"], "left")
    known = F.coalesce("acked", F.lit(0))
    shown = shaped(
        joined,
        schemas.MARGINS.names,
        partition=guid_text("partition"),
        acked_seq=known,
        behind=F.col("last_seq") - known,
        margin=known - F.col("purged_seq"),
    )
    return gathered(shown)
