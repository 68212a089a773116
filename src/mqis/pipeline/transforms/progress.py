"""How changes get on: the time that they take to each replica, and numbers that are left out."""

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
from mqis.wire.mqdsrp.messages import Operation, Sync0

_QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}


def _changes(records: DataFrame, state: RecordState) -> DataFrame:
    is_change = F.col("kind") == int(RecordKind.CHANGE)
    return records.filter(is_change & (F.col("state") == int(state)))


def arrivals(records: DataFrame) -> DataFrame:
    """When each replica had each change: (partition, seq, origin, server, made, lag_ms)."""
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
    """Per way from an authority to a replica."""
    ranks = F.percentile("lag_ms", list(_QUANTILES.values()))
    grouped = arrived.groupBy("origin", "server").agg(
        F.count("*").alias("changes"), ranks.alias("ranks"), F.max("lag_ms").alias("max_ms")
    )
    named = [F.col("ranks")[i].alias(name) for i, name in enumerate(_QUANTILES)]
    return grouped.select("origin", "server", "changes", *named, "max_ms")


def lag_by_minute(arrived: DataFrame) -> DataFrame:
    """The same over time, for charts."""
    minute = F.date_trunc("minute", "made").alias("minute")
    grouped = arrived.groupBy(minute, "server").agg(
        F.count("*").alias("changes"),
        F.percentile("lag_ms", F.lit(0.5)).alias("p50_ms"),
        F.percentile("lag_ms", F.lit(0.95)).alias("p95_ms"),
    )
    return grouped.select("minute", "server", "changes", "p50_ms", "p95_ms")


def gaps(records: DataFrame, journals: DataFrame) -> DataFrame:
    """Numbers that a replica passed over, or applied more than once.

    ``certain`` is false where the replica's journal is not whole: then it may just not tell.
    """
    events = _events(records).persist()
    passed = settled(_passed_over(events, journals))
    found = _unhealed(passed, events).unionByName(_twice(events))
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
    """What moves a replica's number: changes, and the ends of sync replies."""
    applied = _changes(records, RecordState.APPLIED).select(
        "server", "lsn", "partition", "seq", "previous_seq", "operation"
    )
    replies = records.filter(
        (F.col("kind") == int(RecordKind.MESSAGE))
        & (F.col("state") == int(RecordState.RECEIVED))
        & (F.col("operation") == int(Operation.SYNC_REPLY))
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
    # Whoever starts in the middle of a history has not passed over its beginning.
    start = F.when(F.col("complete"), F.lit(0))
    known: Column = F.coalesce("reached", start)
    return numbered.filter(F.col("previous_seq") > known).select(
        "server",
        "partition",
        "lsn",
        (known + 1).alias("first_seq"),
        F.col("previous_seq").alias("last_seq"),
    )


def _unhealed(passed: DataFrame, events: DataFrame) -> DataFrame:
    """What did not come after all, nor with a synchronisation."""
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


def _twice(events: DataFrame) -> DataFrame:
    """A whole object may come again; a change that was made once is applied once."""
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


def _messages(records: DataFrame, state: RecordState, *operations: Operation) -> DataFrame:
    chosen = (F.col("kind") == int(RecordKind.MESSAGE)) & (F.col("state") == int(state))
    if operations:
        chosen &= F.col("operation").isin([int(operation) for operation in operations])
    return records.filter(chosen)


def _taken(records: DataFrame, operation: Operation) -> DataFrame:
    """Messages that came and were not refused."""
    refused = _messages(records, RecordState.REFUSED).select(
        "server", "message_source", "message_ordinal"
    )
    came = _messages(records, RecordState.RECEIVED, operation)
    return came.join(refused, ["server", "message_source", "message_ordinal"], "left_anti")


def rounds(records: DataFrame) -> DataFrame:
    """What servers sent to each other, and the synchronisations that they went through.

    A round may take several requests: one that got no answer is repeated, and a long answer comes
    in parts. It is over with the part that says so, ``sync0`` meaning of the whole partition.
    """
    names = {operation: operation_name(operation) for operation in Operation}

    def counted(operation: Operation) -> Column:
        return F.count_if(F.col("operation") == int(operation)).alias(names[operation])

    is_sync0 = body_number(SYNC_REQUEST_IS_SYNC0_AT, 1).cast("int") > 0
    asked_for_all = (F.col("operation") == int(Operation.SYNC_REQUEST)) & is_sync0
    sent = (
        _messages(records, RecordState.QUEUED)
        .groupBy("server", "peer")
        .agg(
            *(counted(operation) for operation in Operation),
            F.count_if(asked_for_all).alias("sync0_request"),
            F.sum(F.length("body")).alias("bytes"),
        )
    )
    over = body_number(SYNC_REPLY_COMPLETE_AT, 1).cast("int")
    came = (
        _taken(records, Operation.SYNC_REPLY)
        .groupBy("server", "peer")
        .agg(
            F.count_if(over == int(Sync0.NONE)).alias("sync_rounds"),
            F.count_if(over == int(Sync0.COMPLETE)).alias("sync0_rounds"),
            F.count_if(over == int(Sync0.MORE)).alias("parts"),
        )
    )
    columns = (*names.values(), "sync0_request", "sync_rounds", "sync0_rounds", "parts", "bytes")
    joined = sent.join(came, ["server", "peer"], "full")
    told = [F.coalesce(name, F.lit(0)).alias(name) for name in columns]
    return joined.select("server", "peer", *told)


def margins(partitions: DataFrame, records: DataFrame) -> DataFrame:
    """How far purging is behind what each PSC has acknowledged to the authority of a partition.

    A negative margin: tombstones are gone that this PSC may not have seen, and it will need a
    synchronisation of the whole partition. ``behind`` is what it has not acknowledged yet.
    """
    number = body_number(PSC_ACK_SEQ_AT, 8).cast("long")
    acked = (
        _taken(records, Operation.PSC_ACK)
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
