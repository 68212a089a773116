"""Reductions of journal records to a few rows for each file, server and partition."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.registry import step
from mqis.pipeline.transforms.expressions import body_number, body_octets
from mqis.protocol.journal.numbers import SKIPPED
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp import layout
from mqis.wire.mqdsrp.messages import MessageOperation

#: The states of changes that tell how far a server has come in a partition.
_ADVANCING = (RecordState.LOCAL, RecordState.APPLIED, RecordState.SKIPPED)


def messages(records: DataFrame, state: RecordState, *operations: MessageOperation) -> DataFrame:
    """The records of messages in a state, of some operations or of all."""
    chosen = (F.col("kind") == int(RecordKind.MESSAGE)) & (F.col("state") == int(state))
    if operations:
        chosen &= F.col("operation").isin([int(operation) for operation in operations])
    return records.filter(chosen)


def changes_in(records: DataFrame, *states: RecordState) -> DataFrame:
    """The records of changes in one of some states."""
    is_change = F.col("kind") == int(RecordKind.CHANGE)
    return records.filter(is_change & F.col("state").isin([int(state) for state in states]))


def accepted(records: DataFrame, operation: MessageOperation) -> DataFrame:
    """The messages that were received and not refused; select what you need of them."""
    return not_refused(records.filter(~dropped_unread()), operation)


def dropped_unread() -> Column:
    """True for a message that the queue manager refused, which is before it is received.

    It knows no server, so the record has no peer.
    """
    refused = F.col("state") == int(RecordState.REFUSED)
    return refused & (F.col("kind") == int(RecordKind.MESSAGE)) & (F.col("peer") == "")


def not_refused(records: DataFrame, operation: MessageOperation) -> DataFrame:
    """``accepted`` of records without those that ``dropped_unread`` tells.

    A message that comes again is refused then: that does not undo its first arrival.
    """
    came = (F.col("state") == int(RecordState.RECEIVED)) & (F.col("operation") == int(operation))
    refused = F.col("state") == int(RecordState.REFUSED)
    chosen = records.filter((F.col("kind") == int(RecordKind.MESSAGE)) & (came | refused))
    together = Window.partitionBy("server", "message_source", "message_ordinal").orderBy("lsn")
    following = chosen.withColumn("following", F.lead("state").over(together))
    is_refused = F.coalesce(F.col("following") == int(RecordState.REFUSED), F.lit(False))
    return following.filter(came & ~is_refused)


@step
def file_extents(records: DataFrame) -> DataFrame:
    """The records of each file: (server, server_id, file, first, last, records, ...)."""
    time = F.unix_micros("time")
    return records.groupBy("server", "server_id", "file").agg(
        F.min("lsn").alias("first"),
        F.max("lsn").alias("last"),
        F.count("*").alias("records"),
        F.min(time).alias("began_us"),
        F.max(time).alias("ended_us"),
    )


@step
def journaled_numbers(records: DataFrame) -> DataFrame:
    """The numbers that journals show: (server, partition, reached, made, first_made, ...)."""
    made = F.when(F.col("state") == int(RecordState.LOCAL), F.col("seq"))
    return (
        changes_in(records, *_ADVANCING)
        .groupBy("server", "partition")
        .agg(
            F.max("seq").alias("reached"),
            F.max(made).alias("made"),
            F.min(made).alias("first_made"),
            F.count(made).alias("count_made"),
        )
    )


def sendings(records: DataFrame) -> DataFrame:
    """When the senders queued received messages: (sender, receiver, sent_us, received_us).

    Of each file and sender, the first and the last message are looked at; of these, the message of
    each sender and receiver that shows the sender's clock furthest ahead.
    """
    came = (
        messages(records, RecordState.RECEIVED)
        .groupBy("server", "file", "message_source")
        .agg(
            *(
                pick(F.struct("message_ordinal", "time"), "lsn").alias(end)
                for end, pick in (("first", F.min_by), ("last", F.max_by))
            )
        )
    )
    received = came.select(
        F.col("server").alias("receiver"),
        "message_source",
        F.explode(F.array_distinct(F.array("first", "last"))).alias("end"),
    ).select(
        *("receiver", "message_source", "end.message_ordinal"),
        F.unix_micros("end.time").alias("received_us"),
    )
    queued = messages(records, RecordState.QUEUED).select(
        F.col("server").alias("sender"),
        "message_source",
        "message_ordinal",
        F.unix_micros("time").alias("sent_us"),
    )
    met = queued.join(received, ["message_source", "message_ordinal"])
    # A restored server may use the number of a message again, for a later one.
    each = met.groupBy("sender", "receiver", "received_us").agg(F.min("sent_us").alias("sent_us"))
    # Times of damaged clocks may be any number, and their difference more than 64 bits.
    lead = F.col("sent_us").cast("decimal(20,0)") - F.col("received_us").cast("decimal(20,0)")
    furthest = F.max_by(F.struct("sent_us", "received_us"), lead).alias("message")
    return (
        each.groupBy("sender", "receiver").agg(furthest).select("sender", "receiver", "message.*")
    )


def replies(records: DataFrame) -> DataFrame:
    """The spans of accepted sync replies: (server, lsn, partition, from_seq, to_seq)."""
    came = accepted(records, MessageOperation.SYNC_REPLY).select(
        "server",
        "lsn",
        body_octets(layout.SYNC_REPLY_PARTITION_AT, 16).alias("partition"),
        body_number(layout.SYNC_REPLY_FROM_AT, 8).alias("from_seq"),
        body_number(layout.SYNC_REPLY_TO_AT, 8).alias("to_seq"),
    )
    return came.filter("from_seq is not null and to_seq is not null")


def replies_reached(records: DataFrame) -> DataFrame:
    """The highest numbers that sync replies brought servers to: (server, partition, number)."""
    return replies(records).groupBy("server", "partition").agg(F.max("to_seq").alias("number"))


def holes(records: DataFrame, files: DataFrame) -> DataFrame:
    """The missing numbers between the records of some files: (server, file, first, last)."""
    before = Window.partitionBy("file").orderBy("lsn")
    chosen = records.select("server", "file", "lsn").join(files, "file", "left_semi")
    numbered = chosen.withColumn("before", F.lag("lsn").over(before))
    return numbered.filter("lsn > before + 1").select(
        "server", "file", (F.col("before") + 1).alias("first"), (F.col("lsn") - 1).alias("last")
    )


def unrecorded(records: DataFrame, makers: DataFrame) -> DataFrame:
    """The numbers before own changes that no record has: (server, partition, first, last).

    ``makers`` are the (server, partition) to look at. A change that the server applied counts as
    well: it may have taken office behind it, and so do the numbers that it skipped on purpose.
    Larger jumps are those of journals without a record of that.
    """
    advancing = changes_in(records, *_ADVANCING)
    changes = advancing.join(F.broadcast(makers), ["server", "partition"], "left_semi")
    earlier = (
        Window.partitionBy("server", "partition")
        .orderBy("lsn")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    numbered = changes.select(
        "server", "partition", "state", "seq", F.max("seq").over(earlier).alias("known")
    )
    local = F.col("state") == int(RecordState.LOCAL)
    jump = F.col("seq") - F.col("known")
    return numbered.filter(local & (jump > 1) & (jump < SKIPPED)).select(
        "server", "partition", (F.col("known") + 1).alias("first"), (F.col("seq") - 1).alias("last")
    )


def known_by_others(records: DataFrame, snapshots: DataFrame, ids: DataFrame) -> DataFrame:
    """(id): those of the servers that the journals or snapshots of others know as machines."""
    is_machine = (F.col("kind") == int(RecordKind.CHANGE)) & (
        F.col("object_type") == int(ObjectType.MACHINE)
    )
    told = records.filter(is_machine).select("server_id", F.col("object_id").alias("id"))
    named = records.select("server", "server_id").distinct()
    machines = snapshots.filter(F.col("type") == int(ObjectType.MACHINE)).select("server", "id")
    held = machines.join(F.broadcast(named), "server").select("server_id", "id")
    others = told.unionByName(held).filter("id != server_id").select("id")
    return others.join(F.broadcast(ids), "id", "left_semi").distinct()


def each_once(records: DataFrame) -> DataFrame:
    """Each record once by server and number; of several, the one of the first file."""
    return _numbered(records).filter("copy = 1").select(*schemas.RECORDS.fieldNames())


def repeats(records: DataFrame) -> DataFrame:
    """The records that ``each_once`` leaves out (``schemas.REPEATS``)."""
    return _numbered(records).filter("copy > 1").select(*schemas.REPEATS.fieldNames())


def _numbered(records: DataFrame) -> DataFrame:
    """Adds ``copy``, which is 1 for a record to keep, its file and whether it has this content."""
    together = Window.partitionBy("server", "server_id", "lsn").orderBy("file", "offset")
    names = (name for name in schemas.RECORDS.fieldNames() if name not in ("file", "offset"))
    return records.withColumn("digest", F.xxhash64(*names)).select(
        *schemas.RECORDS.fieldNames(),
        F.row_number().over(together).alias("copy"),
        F.first("file").over(together).alias("kept"),
        (F.first("digest").over(together) == F.col("digest")).alias("same"),
    )


def conflicts(repeats: DataFrame) -> DataFrame:
    """The numbers of records that differ from file to file: (server, first, last, count)."""
    return (
        repeats.filter("not same")
        .groupBy("server", "server_id")
        .agg(
            F.min("lsn").alias("first"),
            F.max("lsn").alias("last"),
            F.count_distinct("lsn").alias("count"),
        )
    )
