"""Causes of differences: follows the change that a replica lacks from server to server.

For each difference, the authority's journal has the change that the replica lacks: the last one
that set the property, created the missing object, or deleted the object that is still there. A
change goes from the authority to the replica, directly or over the PSC of the replica's site. The
first step at which it failed gives the cause. The absence of a record is evidence only if the
journal is whole.
"""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.registry import step
from mqis.pipeline.transforms.bodies import carried
from mqis.pipeline.transforms.divergence import DIFFERENCE
from mqis.pipeline.transforms.expressions import guid_text, same_name, shaped, travels_as
from mqis.pipeline.transforms.records import changes_in, messages
from mqis.protocol.replication.convergence import DifferenceKind
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.messages import MessageOperation


class Cause(StrEnum):
    """The fate of the change that a replica lacks."""

    #: The sender never queued a message with it.
    NEVER_SENT = "never_sent"
    #: It is queued and not sent yet.
    QUEUED = "queued"
    #: Its time limit or the queue's quota ran out before it arrived.
    EXPIRED = "expired"
    #: It was sent, and did not arrive.
    LOST = "lost"
    #: It arrived and was neither applied nor refused: an earlier change is missing.
    PENDING = "pending"
    #: The receiver refused it and recorded the reason.
    REFUSED = "refused"
    #: The replica applied it before it was exported, and yet the export differs.
    CORRUPTED = "corrupted"
    #: The authority's export contradicts the authority's own journal.
    AUTHORITY_CORRUPTED = "authority_corrupted"
    #: One of the two exports was made before the change.
    EXPORT_OLDER = "export_older"
    #: The object is missing from an export that was cut off or has unreadable lines.
    EXPORT_DAMAGED = "export_damaged"
    #: The authority never created the object that the replica holds.
    FOREIGN = "foreign"
    #: The journal that would show the cause is missing or damaged.
    UNKNOWN = "unknown"


#: The columns that ``causes`` makes.
EXPLAINED = (
    *(*DIFFERENCE, "latest", "known", "authority_complete"),
    *("cause", "reason", "seq", "source", "target", "applied_lsn"),
)
#: The columns that identify a difference.
_KEY = ["server", "partition", "type", "id"]
_HOP = [*_KEY, "step"]


@step
def made_changes(differences: DataFrame, used_records: DataFrame) -> DataFrame:
    """The changes of the differing objects in the journals of their authorities, decoded."""
    objects = differences.select(
        F.col("authority").alias("server"),
        "partition",
        F.col("type").alias("object_type"),
        F.col("id").alias("object_id"),
    ).distinct()
    local = changes_in(used_records, RecordState.LOCAL)
    keys = ["server", "partition", "object_type", "object_id"]
    return carried(local.join(objects, keys, "left_semi"))


@step
def explained_differences(
    traced_differences: DataFrame,
    hops: DataFrame,
    carriers: DataFrame,
    used_records: DataFrame,
    journals: DataFrame,
) -> DataFrame:
    """Adds ``cause``, ``reason``, ``seq`` and the failed step (``source``, ``target``).

    ``latest`` is the object's last change, ``known`` the number of its changes in the authority's
    journal, ``applied_lsn`` the record in which the replica applied the change; ``second_look``
    needs them.
    """
    steps = (
        hops.join(_arrivals(hops, used_records), _HOP, "left")
        .join(_sendings(carriers, used_records), _HOP, "left")
        .join(_complete(journals, "source"), "source", "left")
        .join(_complete(journals, "target"), "target", "left")
    )
    return _verdict(traced_differences, steps)


# --- the change -----------------------------------------------------------------------------------


@step
def traced_differences(
    differences: DataFrame, made_changes: DataFrame, journals: DataFrame
) -> DataFrame:
    """Adds the number of the missed change, or the cause if the journal has no such change."""
    made = made_changes.select(
        F.col("server").alias("authority"),
        "partition",
        F.col("object_type").alias("type"),
        F.col("object_id").alias("id"),
        F.col("seq").alias("made_seq"),
        "command",
        F.transform("properties", lambda p: travels_as(p["propid"])).alias("set"),
    )
    joined = differences.join(made, ["authority", "partition", "type", "id"], "left")
    grouped = joined.groupBy(*DIFFERENCE).agg(
        F.max(F.when(_is_missed_change(), F.col("made_seq"))).alias("seq"),
        F.max("made_seq").alias("latest"),
        F.count("made_seq").alias("known"),
    )
    whole = grouped.join(_complete(journals, "authority"), "authority", "left")
    foreign = (
        (F.col("difference") == DifferenceKind.EXTRA.value)
        & (F.col("known") == 0)
        & F.col("authority_complete")
    )
    unfound = F.when(foreign, Cause.FOREIGN.value).otherwise(Cause.UNKNOWN.value)
    return shaped(
        whole,
        (*DIFFERENCE, "seq", "latest", "known", "authority_complete", "cause"),
        authority_complete=F.coalesce("authority_complete", F.lit(False)),
        cause=F.when(F.col("seq").isNull(), unfound),
    )


def _is_missed_change() -> Column:
    """True for a change of the object that would have prevented the difference."""
    command, difference = F.col("command"), F.col("difference")
    created = command == int(Command.CREATE)
    return (
        F.when(difference == DifferenceKind.MISSING.value, created)
        .when(difference == DifferenceKind.EXTRA.value, command == int(Command.DELETE))
        .otherwise(created | F.arrays_overlap("set", "properties"))
    )


# --- its path -------------------------------------------------------------------------------------


@step
def hops(traced_differences: DataFrame, authorities: DataFrame, members: DataFrame) -> DataFrame:
    """One row for each step from the authority to the replica, possibly over the site's PSC."""
    unexplained = traced_differences.filter(F.col("cause").isNull())
    pscs = authorities.select(guid_text("partition").alias("site"), F.col("authority").alias("psc"))
    placed = unexplained.join(F.broadcast(members), "server", "left").join(
        F.broadcast(pscs), "site", "left"
    )
    psc, server, authority = F.col("psc"), F.col("server"), F.col("authority")
    direct = psc.isNull() | (psc == server) | (psc == authority)
    stops = F.when(direct, F.array(authority, server)).otherwise(F.array(authority, psc, server))
    numbered = F.sequence(F.lit(0), F.size("stops") - 2)
    return (
        placed.withColumn("stops", stops)
        .select(*_KEY, "seq", "stops", F.explode(numbered).alias("step"))
        .select(
            *_HOP,
            "seq",
            F.col("stops")[F.col("step")].alias("source"),
            F.col("stops")[F.col("step") + 1].alias("target"),
        )
    )


def _concerning(
    hops: DataFrame, changes: DataFrame, at: str, is_whole: Column, told: tuple[str, ...]
) -> DataFrame:
    """The changes that a step is about: (hop, source, target, what they tell).

    They have the number of the step's change, or the whole object as it was then or later. Two
    joins by equal columns: a single one, with a condition on the numbers, would compare each
    difference with each change of its partition.
    """
    asked = hops.withColumnRenamed("seq", "wanted")
    columns = (*_HOP, "source", "target", *told)
    same = changes.withColumnRenamed("seq", "wanted").join(asked, [at, "partition", "wanted"])
    whole = changes.filter(is_whole).withColumnsRenamed({"object_type": "type", "object_id": "id"})
    later = whole.join(asked, [at, "partition", "type", "id"]).filter("seq >= wanted")
    return same.select(*columns).unionByName(later.select(*columns))


def _arrivals(hops: DataFrame, records: DataFrame) -> DataFrame:
    """The receiver's treatment of the change at each step: (hop, applied, refused_change)."""
    changes = changes_in(records, RecordState.APPLIED, RecordState.REFUSED).select(
        F.col("server").alias("target"),
        *("partition", "object_type", "object_id", "seq", "operation", "state", "reason", "lsn"),
    )
    applied = F.col("state") == int(RecordState.APPLIED)
    whole = applied & F.col("operation").isin(int(Command.CREATE), int(Command.SYNC))
    told = ("state", "reason", "lsn")
    return (
        _concerning(hops, changes, "target", whole, told)
        .groupBy(*_HOP)
        .agg(
            F.max(applied).alias("applied"),
            F.min(F.when(applied, F.col("lsn"))).alias("applied_lsn"),
            F.max(F.when(~applied, F.col("reason"))).alias("refused_change"),
        )
    )


def _sendings(carriers: DataFrame, records: DataFrame) -> DataFrame:
    """The fate of the messages with the change, by step: (hop, sent, written, received, ...)."""
    events = records.filter(F.col("kind") == int(RecordKind.MESSAGE)).select(
        F.col("server").alias("teller"), "message_source", "message_ordinal", "state", "reason"
    )
    keys = ["message_source", "message_ordinal"]
    fates = events.join(carriers, keys)
    at_source = F.col("teller") == F.col("source")
    at_target = F.col("teller") == F.col("target")

    def happened(where: Column, state: RecordState) -> Column:
        return F.coalesce(F.max(where & (F.col("state") == int(state))), F.lit(False))

    def why(where: Column, state: RecordState) -> Column:
        return F.max(F.when(where & (F.col("state") == int(state)), F.col("reason")))

    return fates.groupBy(*_HOP).agg(
        F.lit(True).alias("sent"),
        happened(at_source, RecordState.WRITTEN).alias("written"),
        happened(at_source, RecordState.EXPIRED).alias("expired"),
        why(at_source, RecordState.EXPIRED).alias("expired_reason"),
        happened(at_target, RecordState.RECEIVED).alias("received"),
        why(at_target, RecordState.REFUSED).alias("refused_message"),
    )


@step
def carriers(hops: DataFrame, used_records: DataFrame) -> DataFrame:
    """The messages of a step that carry the change, or a later state of the whole object."""
    ways = hops.select(
        F.col("source").alias("server"), F.lower("target").alias("peer_key")
    ).distinct()
    carrying = (MessageOperation.CHANGE_PROPAGATION, MessageOperation.SYNC_REPLY)
    queued = messages(used_records, RecordState.QUEUED, *carrying).withColumn(
        "peer_key", F.lower("peer")
    )
    concerned = queued.join(ways, ["server", "peer_key"], "left_semi")
    changes = carried(concerned, properties=False).withColumnRenamed("server", "source")
    message = ("message_source", "message_ordinal")
    whole = F.col("command") == int(Command.SYNC)
    found = _concerning(hops, changes, "source", whole, ("peer", *message))
    on_its_way = found.filter(same_name("peer", "target"))
    return on_its_way.select(*_HOP, "source", "target", *message).distinct()


# --- the verdict ----------------------------------------------------------------------------------


def _complete(journals: DataFrame, role: str) -> DataFrame:
    return F.broadcast(
        journals.select(F.col("server").alias(role), F.col("complete").alias(f"{role}_complete"))
    )


def _verdict(traced: DataFrame, steps: DataFrame) -> DataFrame:
    """Takes the cause from the step after the last that applied the change.

    If the last step did too, the replica had the change: the cause is ``corrupted``.
    """
    applied = F.coalesce("applied", F.lit(False))
    reason = F.coalesce("refused_change", "refused_message", "expired_reason", F.lit(""))
    judged = steps.select(
        *_KEY,
        F.struct(
            "step",
            applied.alias("applied"),
            _cause().alias("cause"),
            reason.alias("reason"),
            *("source", "target", "applied_lsn"),
        ).alias("hop"),
    )
    taken = F.coalesce(F.max(F.when(F.col("hop.applied"), F.col("hop.step"))), F.lit(-1))
    ways = judged.groupBy(*_KEY).agg(
        taken.alias("taken"), F.array_sort(F.collect_list("hop")).alias("hops")
    )
    last = F.size("hops") - 1
    stopped = F.when(F.col("taken") < last, F.col("hops")[F.col("taken") + 1])
    arrived = F.col("hops")[last]
    followed = ways.select(
        *_KEY,
        F.when(F.col("taken") < last, stopped["cause"])
        .otherwise(F.lit(Cause.CORRUPTED.value))
        .alias("found"),
        F.coalesce(stopped["reason"], F.lit("")).alias("reason"),
        F.coalesce(stopped["source"], arrived["source"]).alias("source"),
        F.coalesce(stopped["target"], arrived["target"]).alias("target"),
        arrived["applied_lsn"].alias("applied_lsn"),
    )
    return shaped(
        traced.join(followed, _KEY, "left"),
        EXPLAINED,
        cause=F.coalesce("cause", "found"),
        reason=F.coalesce("reason", F.lit("")),
    )


def _cause() -> Column:
    """The cause that one step shows, for a step that did not apply the change."""

    def if_whole(journal: str, cause: Cause) -> Column:
        whole = F.coalesce(F.col(f"{journal}_complete"), F.lit(False))
        return F.when(whole, cause.value).otherwise(Cause.UNKNOWN.value)

    received = F.coalesce("received", F.lit(False))
    refused = F.col("refused_change").isNotNull() | F.col("refused_message").isNotNull()
    return (
        F.when(refused, Cause.REFUSED.value)
        .when(received, if_whole("target", Cause.PENDING))
        .when(F.col("sent").isNull(), if_whole("source", Cause.NEVER_SENT))
        .when(F.col("expired"), Cause.EXPIRED.value)
        .when(F.col("written"), if_whole("target", Cause.LOST))
        .otherwise(if_whole("source", Cause.QUEUED))
    )
