"""Progress of replication: lag, gaps, synchronisations and purge margins."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.transforms.bodies import carried
from mqis.pipeline.transforms.expressions import body_number, body_octets, guid_text, same_name
from mqis.pipeline.transforms.settling import settled
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.describing import operation_name
from mqis.wire.mqdsrp.layout import (
    PSC_ACK_PARTITION_AT,
    PSC_ACK_SEQ_AT,
    SYNC_REPLY_COMPLETE_AT,
    SYNC_REQUEST_IS_SYNC0_AT,
)
from mqis.wire.mqdsrp.messages import MessageOperation, Sync0

_QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}


def _changes(records: DataFrame, state: RecordState) -> DataFrame:
    is_change = F.col("kind") == int(RecordKind.CHANGE)
    return records.filter(is_change & (F.col("state") == int(state)))


def arrivals(records: DataFrame) -> DataFrame:
    """The lag of each change at each replica: (partition, seq, origin, server, made, lag_ms)."""
    made = (
        _changes(records, RecordState.LOCAL)
        .groupBy("partition", "seq")
        .agg(F.min("server").alias("origin"), F.min("time").alias("made"))
    )
    had = (
        _changes(records, RecordState.APPLIED)
        .groupBy("server", "partition", "seq")
        .agg(F.min("time").alias("had"))
    )
    micros = F.unix_micros("had") - F.unix_micros("made")
    return had.join(made, ["partition", "seq"]).select(
        "partition", "seq", "origin", "server", "made", (micros / 1000).alias("lag_ms")
    )


def lag(arrived: DataFrame) -> DataFrame:
    """Percentiles of the lag from each authority to each replica."""
    ranks = F.percentile("lag_ms", list(_QUANTILES.values()))
    grouped = arrived.groupBy("origin", "server").agg(
        F.count("*").alias("changes"), ranks.alias("ranks"), F.max("lag_ms").alias("max_ms")
    )
    named = [F.col("ranks")[i].alias(name) for i, name in enumerate(_QUANTILES)]
    return grouped.select("origin", "server", "changes", *named, "max_ms")


def lag_by_minute(arrived: DataFrame) -> DataFrame:
    """Percentiles of the lag by minute and replica, for charts."""
    minute = F.date_trunc("minute", "made").alias("minute")
    grouped = arrived.groupBy(minute, "server").agg(
        F.count("*").alias("changes"),
        F.percentile("lag_ms", F.lit(0.5)).alias("p50_ms"),
        F.percentile("lag_ms", F.lit(0.95)).alias("p95_ms"),
    )
    return grouped.select("minute", "server", "changes", "p50_ms", "p95_ms")


def gaps(records: DataFrame, journals: DataFrame) -> DataFrame:
    """Numbers that a replica passed over, or applied more than once.

    ``certain`` is false if the replica's journal is not whole, as records may be missing.
    """
    events = _events(records).persist()
    passed = settled(_passed_over(events, journals))
    found = _open_gaps(passed, events).unionByName(_duplicates(events))
    return found.join(F.broadcast(journals), "server", "left").select(
        "kind",
        "server",
        guid_text(F.col("partition")).alias("partition"),
        "first_seq",
        "last_seq",
        "times",
        F.coalesce("complete", F.lit(False)).alias("certain"),
    )


def _events(records: DataFrame) -> DataFrame:
    """The events that advance a replica's number: applied changes, and sync replies."""
    applied = _changes(records, RecordState.APPLIED).select(
        "server", "lsn", "partition", "seq", "previous_seq", "operation"
    )
    replies = records.filter(
        (F.col("kind") == int(RecordKind.MESSAGE))
        & (F.col("state") == int(RecordState.RECEIVED))
        & (F.col("operation") == int(MessageOperation.SYNC_REPLY))
    )
    reached = (
        carried(replies, properties=False)
        .filter(F.col("reached_seq").isNotNull() & (F.col("reached_seq") >= 0))
        .groupBy("server", "lsn", "partition")
        .agg(F.max("reached_seq").alias("seq"))
    )
    return applied.unionByName(
        reached.select(
            "server",
            "lsn",
            "partition",
            "seq",
            F.lit(None).cast("long").alias("previous_seq"),
            F.lit(int(Command.SYNC)).alias("operation"),
        )
    )


def _passed_over(events: DataFrame, journals: DataFrame) -> DataFrame:
    before = (
        Window.partitionBy("server", "partition")
        .orderBy("lsn")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    numbered = events.join(F.broadcast(journals), "server", "left").withColumn(
        "reached", F.max("seq").over(before)
    )
    # A journal that starts in the middle of a history does not show a gap before its start.
    start = F.when(F.col("complete"), F.lit(0))
    known: Column = F.coalesce("reached", start)
    return numbered.filter(F.col("previous_seq") > known).select(
        "server",
        "partition",
        "lsn",
        (known + 1).alias("first_seq"),
        F.col("previous_seq").alias("last_seq"),
    )


def _open_gaps(passed: DataFrame, events: DataFrame) -> DataFrame:
    """The gaps that neither a late change nor a synchronisation closed."""
    later = events.select(
        "server",
        "partition",
        F.col("lsn").alias("later_lsn"),
        "seq",
        "previous_seq",
        "operation",
    )
    came = F.col("seq").between(F.col("first_seq"), F.col("last_seq"))
    synchronized = (F.col("operation") == int(Command.SYNC)) & (
        F.coalesce("previous_seq", F.lit(0)) < F.col("first_seq")
    )
    healed = passed.join(later, ["server", "partition"]).filter(
        (F.col("later_lsn") > F.col("lsn")) & (came | synchronized)
    )
    key = ["server", "partition", "lsn"]
    left = passed.join(healed.select(*key).distinct(), key, "left_anti")
    return left.select(
        F.lit("gap").alias("kind"),
        "server",
        "partition",
        "first_seq",
        "last_seq",
        F.lit(0).cast("long").alias("times"),
    )


def _duplicates(events: DataFrame) -> DataFrame:
    """Changes that were applied more than once, except objects that a synchronisation repeated."""
    grouped = (
        events.filter(F.col("operation") != int(Command.SYNC))
        .groupBy("server", "partition", "seq", "operation")
        .agg(F.count("*").alias("times"))
        .filter(F.col("times") > 1)
    )
    return grouped.select(
        F.lit("duplicate").alias("kind"),
        "server",
        "partition",
        F.col("seq").alias("first_seq"),
        F.col("seq").alias("last_seq"),
        "times",
    )


# --- messages -------------------------------------------------------------------------------------


def _messages(records: DataFrame, state: RecordState, *operations: MessageOperation) -> DataFrame:
    chosen = (F.col("kind") == int(RecordKind.MESSAGE)) & (F.col("state") == int(state))
    if operations:
        chosen &= F.col("operation").isin([int(operation) for operation in operations])
    return records.filter(chosen)


def _accepted(records: DataFrame, operation: MessageOperation) -> DataFrame:
    """The messages that were received and not refused."""
    refused = _messages(records, RecordState.REFUSED).select(
        "server", "message_source", "message_ordinal"
    )
    came = _messages(records, RecordState.RECEIVED, operation)
    return came.join(refused, ["server", "message_source", "message_ordinal"], "left_anti")


def rounds(records: DataFrame) -> DataFrame:
    """Messages between servers by kind, and completed synchronisations.

    A synchronisation may take several requests: an unanswered one is repeated, and a long reply
    comes in parts. It ends with the part that is marked as the last. ``sync0`` is a full
    resynchronisation of a partition.
    """
    names = {operation: operation_name(operation) for operation in MessageOperation}

    def counted(operation: MessageOperation) -> Column:
        return F.count_if(F.col("operation") == int(operation)).alias(names[operation])

    is_sync0 = body_number(SYNC_REQUEST_IS_SYNC0_AT, 1).cast("int") > 0
    asked_for_all = (F.col("operation") == int(MessageOperation.SYNC_REQUEST)) & is_sync0
    sent = (
        _messages(records, RecordState.QUEUED)
        .groupBy("server", "peer")
        .agg(
            *(counted(operation) for operation in MessageOperation),
            F.count_if(asked_for_all).alias("sync0_request"),
            F.sum(F.length("body")).alias("bytes"),
        )
    )
    over = body_number(SYNC_REPLY_COMPLETE_AT, 1).cast("int")
    came = (
        _accepted(records, MessageOperation.SYNC_REPLY)
        .groupBy("server", "peer")
        .agg(
            F.count_if(over == int(Sync0.NONE)).alias("sync_rounds"),
            F.count_if(over == int(Sync0.COMPLETE)).alias("sync0_rounds"),
            F.count_if(over == int(Sync0.MORE)).alias("parts"),
        )
    )
    columns = (*names.values(), "sync0_request", "sync_rounds", "sync0_rounds", "parts", "bytes")
    joined = sent.join(came, ["server", "peer"], "full")
    counts = [F.coalesce(name, F.lit(0)).alias(name) for name in columns]
    return joined.select("server", "peer", *counts)


def margins(partitions: DataFrame, records: DataFrame) -> DataFrame:
    """The distance from an authority's purged number to the number that each PSC acknowledged.

    A negative margin means that tombstones were purged that this PSC may not have seen; it will
    need a full resynchronisation (sync0). ``behind`` is the distance that it still has to
    acknowledge.
    """
    number = body_number(PSC_ACK_SEQ_AT, 8).cast("long")
    acked = (
        _accepted(records, MessageOperation.PSC_ACK)
        .select(
            F.col("server").alias("authority"),
            F.lower("peer").alias("key"),
            body_octets(PSC_ACK_PARTITION_AT, 16).alias("partition"),
            number.alias("acked"),
        )
        .groupBy("authority", "key", "partition")
        .agg(F.max("acked").alias("acked"))
    )
    own = partitions.filter(same_name(F.col("owner"), F.col("server"))).select(
        F.col("server").alias("authority"), "partition", "last_seq", "purged_seq", "purge_state"
    )
    pscs = own.select(F.col("authority").alias("psc"), F.lower("authority").alias("key")).distinct()
    ways = own.crossJoin(F.broadcast(pscs)).filter(F.col("psc") != F.col("authority"))
    joined = ways.join(acked, ["authority", "key", "partition"], "left")
    known = F.coalesce("acked", F.lit(0))
    return joined.select(
        "authority",
        guid_text(F.col("partition")).alias("partition"),
        "psc",
        "last_seq",
        "purged_seq",
        known.alias("acked_seq"),
        (F.col("last_seq") - known).alias("behind"),
        (known - F.col("purged_seq")).alias("margin"),
        "purge_state",
    )
