"""Progress and divergence of replicas, computed from a stream of journal records.

No exports are needed. A replica differs from its authority if it has passed over a change, unless a
later synchronisation has brought the object or everything up to a later number. It also differs if
the body of a message was altered on its way.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.transforms.expressions import (
    body_number,
    body_octets,
    guid_text,
    shaped,
    type_label,
)
from mqis.pipeline.transforms.records import (
    changes_in,
    dropped_unread,
    messages,
    not_refused,
)
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqdsrp import layout
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.messages import MessageOperation

#: The columns of a record that are kept; ``digest`` is that of a message's body.
KEPT = (
    *("server", "lsn", "time", "kind", "state", "operation", "object_type", "partition", "seq"),
    *("object_id", "message_source", "message_ordinal", "digest", "from_seq", "to_seq"),
)
#: The columns of the journal that are read for them.
READ = (*KEPT[:-3], "peer", "body", "error")
#: The columns of the table ``live``.
_STANDING = (
    *("server", "partition", "authority", "made_seq", "had_seq", "behind", "changes", "last"),
)
_CHANGES = (int(RecordState.LOCAL), int(RecordState.APPLIED))
_MESSAGES = (int(RecordState.QUEUED), int(RecordState.RECEIVED), int(RecordState.REFUSED))


def kept(records: DataFrame) -> DataFrame:
    """The records that the tables need, without their bodies."""
    change = F.col("kind") == int(RecordKind.CHANGE)
    chosen = (change & F.col("state").isin(*_CHANGES)) | (~change & F.col("state").isin(*_MESSAGES))
    reply = (
        ~change & (F.col("operation") == int(MessageOperation.SYNC_REPLY)) & (F.length("body") > 0)
    )

    def number(at: int) -> Column:
        return F.when(reply, body_number(at, 8).cast("long"))

    about = F.when(reply, body_octets(layout.SYNC_REPLY_PARTITION_AT, 16))
    return shaped(
        records.filter(F.col("error").isNull() & chosen & ~dropped_unread()),
        KEPT,
        partition=about.otherwise(F.col("partition")),
        digest=F.when(F.length("body") > 0, F.xxhash64("body")),
        from_seq=number(layout.SYNC_REPLY_FROM_AT),
        to_seq=number(layout.SYNC_REPLY_TO_AT),
    )


def without_strangers(seen: DataFrame) -> DataFrame:
    """Leaves out the own changes of servers that nobody knows: any file may claim anything.

    If several servers claim to have made changes of a partition, only those count from which
    another server has received a message.
    """
    received = messages(seen, RecordState.RECEIVED).select("message_source")
    queued = messages(seen, RecordState.QUEUED).select("server", "message_source")
    known = queued.join(received, "message_source", "left_semi").select("server").distinct()
    claims = changes_in(seen, RecordState.LOCAL).select("server", "partition", "state").distinct()
    owned = claims.join(known, "server", "left_semi").select("partition")
    strange = claims.join(known, "server", "left_anti").join(owned, "partition", "left_semi")
    return seen.join(F.broadcast(strange), ["server", "partition", "state"], "left_anti")


def _synchronized(seen: DataFrame) -> DataFrame:
    """The spans that accepted sync replies covered: (server, partition, from_seq, to_seq)."""
    came = not_refused(seen, MessageOperation.SYNC_REPLY).filter(F.col("to_seq") >= 0)
    return came.select("server", "partition", "from_seq", "to_seq")


def _numbers(seen: DataFrame) -> DataFrame:
    """(server, partition, seq, time): the numbers that servers got, by changes or sync replies.

    A reply, which may bring no change, has no time.
    """
    applied = changes_in(seen, RecordState.APPLIED).select("server", "partition", "seq", "time")
    by_replies = _synchronized(seen).select("server", "partition", F.col("to_seq").alias("seq"))
    return applied.unionByName(by_replies, allowMissingColumns=True)


def standing(seen: DataFrame) -> DataFrame:
    """The last number of each replica, and how far it is behind its authority."""
    made = (
        changes_in(seen, RecordState.LOCAL)
        .groupBy("partition")
        .agg(F.max_by("server", "seq").alias("authority"), F.max("seq").alias("made_seq"))
    )
    had = (
        _numbers(seen)
        .groupBy("server", "partition")
        .agg(
            F.max("seq").alias("had_seq"),
            F.count_distinct(F.when(F.col("time").isNotNull(), F.col("seq"))).alias("changes"),
            F.max("time").alias("last"),
        )
    )
    return shaped(
        had.join(F.broadcast(made), "partition", "left"),
        _STANDING,
        partition=guid_text("partition"),
        behind=F.greatest(F.col("made_seq") - F.col("had_seq"), F.lit(0)),
    )


def divergence(seen: DataFrame) -> DataFrame:
    """Objects in which a replica differs from its authority, as far as journals show it.

    (server, partition, id, type, seq, difference): ``passed_over`` or ``altered``.
    """
    return _passed_over(seen).unionByName(_altered(seen))


def _passed_over(seen: DataFrame) -> DataFrame:
    """Changes up to a replica's last number that it neither applied nor got by synchronisation."""
    made = changes_in(seen, RecordState.LOCAL).select(
        "partition", "seq", "object_id", "object_type", F.col("server").alias("authority")
    )
    applied = changes_in(seen, RecordState.APPLIED)
    reached = _numbers(seen).groupBy("server", "partition").agg(F.max("seq").alias("reached"))
    owed = made.join(F.broadcast(reached), "partition").filter(
        (F.col("server") != F.col("authority")) & (F.col("seq") <= F.col("reached"))
    )
    missed = owed.join(
        applied.select("server", "partition", "seq"), ["server", "partition", "seq"], "left_anti"
    )
    # A whole object, or its deletion, supersedes all earlier changes of it.
    whole = (int(Command.CREATE), int(Command.SYNC), int(Command.DELETE))
    # Not by type: the record of deleting what was not there has none.
    said = (
        applied.filter(F.col("operation").isin(*whole))
        .groupBy("server", "partition", "object_id")
        .agg(F.max("seq").alias("said"))
    )
    left = missed.join(said, ["server", "partition", "object_id"], "left").filter(
        F.coalesce("said", F.lit(-1)) < F.col("seq")
    )
    covered = (F.col("from_seq") < F.col("seq")) & (F.col("seq") <= F.col("to_seq"))
    spans = _synchronized(seen).select(
        F.col("server").alias("s"), F.col("partition").alias("p"), "from_seq", "to_seq"
    )
    same = (F.col("server") == F.col("s")) & (F.col("partition") == F.col("p"))
    found = left.join(F.broadcast(spans), same & covered, "left_anti")
    grouped = found.groupBy("server", "partition", "object_id", "object_type").agg(
        F.max("seq").alias("seq")
    )
    return _readable(grouped, "passed_over")


def _altered(seen: DataFrame) -> DataFrame:
    """Changes from messages whose body differs between sender and receiver."""
    key = ["message_source", "message_ordinal"]
    sent = messages(seen, RecordState.QUEUED).select(*key, F.col("digest").alias("sent"))
    came = messages(seen, RecordState.RECEIVED).select("server", *key, "digest")
    wrong = came.join(sent, key).filter(F.col("digest") != F.col("sent"))
    applied = changes_in(seen, RecordState.APPLIED)
    concerned = applied.join(wrong.select("server", *key), ["server", *key], "left_semi")
    return _readable(concerned, "altered")


def _readable(found: DataFrame, difference: str) -> DataFrame:
    return found.select(
        "server",
        guid_text("partition").alias("partition"),
        guid_text("object_id").alias("id"),
        type_label("object_type").alias("type"),
        "seq",
        F.lit(difference).alias("difference"),
    )
