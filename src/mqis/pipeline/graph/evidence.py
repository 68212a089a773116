"""Evidence: the tables ``journals`` and ``evidence``, which say how far the input can be trusted.

The queries here reduce records, exports and snapshots to a few rows for each file, server and
partition; ``mqis.pipeline.evidence`` judges those rows, in one task.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from mqis.pipeline import schemas
from mqis.pipeline.evidence.inventory import judge_input
from mqis.pipeline.evidence.recognition import unrecognised
from mqis.pipeline.graph.facts import facts, judged
from mqis.pipeline.graph.used import LINE_KEY
from mqis.pipeline.registry import step, table
from mqis.pipeline.transforms import records as reductions
from mqis.pipeline.transforms.current import edited_exports, value
from mqis.pipeline.transforms.expressions import gathered
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: Objects of these types have properties that only their authority stores.
_MARKED = (int(ObjectType.SITE), int(ObjectType.ROUTINGLINK), int(ObjectType.MACHINE))
_VERDICT = StructType(
    [StructField("journal", schemas.JOURNALS), StructField("finding", schemas.EVIDENCE)]
)


def _listed(segments: DataFrame) -> DataFrame:
    """The segments whose headers can be read."""
    return segments.filter("header is not null").select(
        *("file", "size", "server", "server_id", "number", "first_lsn", "header", "digest"),
        *("snapshot_digest", "kept"),
    )


def _exported(partitions: DataFrame) -> DataFrame:
    owner = F.coalesce("owner", F.lit("")).alias("owner")
    return partitions.select("server", "file", "partition", owner, "last_seq", "exporter")


def _reached(extents: DataFrame) -> DataFrame:
    """The numbers that journals show: (server, partition, reached, first_made, made, ...)."""
    return (
        extents.filter("partition is not null")
        .groupBy("server", "partition")
        .agg(
            F.max("reached").alias("reached"),
            F.min("first_made").alias("first_made"),
            F.max("made").alias("made"),
            F.sum("count_made").alias("count_made"),
        )
    )


def _doubled(objects: DataFrame) -> DataFrame:
    """The exports with lines that stand there twice: (server, file, count, first, last, id)."""
    lines = objects.filter("error is null").groupBy("server", "file", *LINE_KEY)
    again = lines.agg(F.count("*").alias("lines"), F.max("offset").alias("again"))
    return (
        again.filter("lines > 1")
        .groupBy("server", "file")
        .agg(
            F.sum(F.col("lines") - 1).alias("count"),
            F.min("again").alias("first"),
            F.max("again").alias("last"),
            F.min_by("id", "again").alias("id"),
        )
    )


@step
def unrecognised_input(
    *,
    segments: DataFrame,
    objects: DataFrame,
    partitions: DataFrame,
    extents: DataFrame,
    records: DataFrame,
    snapshots: DataFrame,
) -> DataFrame:
    """The journals and exports that are not used (``schemas.EVIDENCE``)."""
    ids = segments.select(F.col("server_id").alias("id")).distinct()
    names = partitions.select(F.lower("server").alias("name")).distinct()
    marked = objects.filter(F.col("type").isin(*_MARKED))
    own = marked.groupBy("file", "partition").agg(
        F.bool_and(F.when(~F.col("deleted"), F.col("own"))).alias("own")
    )
    machines = marked.filter(F.col("type") == int(ObjectType.MACHINE)).select(
        "id", F.lower("path").alias("name")
    )
    by_id = machines.join(F.broadcast(ids), "id", "left_semi")
    by_name = machines.join(F.broadcast(names), "name", "left_semi")
    known = facts(
        segments=_listed(segments),
        states=_exported(partitions),
        own=own.filter("own").select("file", "partition"),
        machines=by_id.unionByName(by_name.select("id", "name")).distinct(),
        known=reductions.known_by_others(records, snapshots, ids),
        made=_reached(extents).filter("made is not null").select("server", "partition"),
    )
    return judged(known, unrecognised, schemas.EVIDENCE)


@step
def exported_keys(
    objects: DataFrame, segments: DataFrame, unrecognised_input: DataFrame
) -> DataFrame:
    """(id, name, keys, first, last): keys of machines and, without id, of sites' PSCs."""
    unused = F.broadcast(unrecognised_input.select("file").distinct())
    ids = F.broadcast(segments.select(F.col("server_id").alias("id")).distinct())
    used = objects.filter("error is null and not deleted").join(unused, "file", "left_anti")
    machines = used.filter(F.col("type") == int(ObjectType.MACHINE)).join(ids, "id", "left_semi")
    sites = used.filter(F.col("type") == int(ObjectType.SITE))
    server = F.lower("server").alias("server")
    of_machines = machines.select(
        "id", F.lower("path").alias("name"), value(PropId.QM_SIGN_PKS).alias("keys"), server
    )
    of_pscs = sites.select(
        F.lit(None).cast("binary").alias("id"),
        F.lower(value(PropId.S_PSC)).alias("name"),
        value(PropId.S_PSC_SIGNPK).alias("keys"),
        server,
    )
    listed = of_machines.unionByName(of_pscs)
    return (
        listed.filter("name is not null")
        .groupBy("id", "name", "keys")
        .agg(F.min("server").alias("first"), F.max("server").alias("last"))
    )


@step
def reached_numbers(
    extents: DataFrame, partitions: DataFrame, records: DataFrame, snapshot_partitions: DataFrame
) -> DataFrame:
    """(server, partition, number): the numbers that journals reached.

    Synchronisations and snapshots count only for servers whose exports have later numbers.
    """
    shown = _reached(extents).select("server", "partition", F.col("reached").alias("number"))
    later = partitions.join(shown, ["server", "partition"]).filter("last_seq > number")
    doubtful = F.broadcast(later.select("server").distinct())
    concerned = records.join(doubtful, "server", "left_semi")
    replied = reductions.replies_reached(concerned)
    taken = snapshot_partitions.join(doubtful, "server", "left_semi").select(
        "server", "partition", F.col("last_seq").alias("number")
    )
    whole = shown.unionByName(replied).unionByName(taken)
    return whole.groupBy("server", "partition").agg(F.max("number").alias("number"))


@step
def input_verdict(
    *,
    records: DataFrame,
    repeats: DataFrame,
    segments: DataFrame,
    errors: DataFrame,
    objects: DataFrame,
    partitions: DataFrame,
    snapshot_partitions: DataFrame,
    extents: DataFrame,
    reached_numbers: DataFrame,
    unrecognised_input: DataFrame,
    exported_keys: DataFrame,
) -> DataFrame:
    """One row for each journal and each finding."""
    shown = _reached(extents)
    thinned = shown.filter("made - first_made + 1 > count_made").select("server", "partition")
    files = extents.groupBy("file").agg(
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.sum("records").alias("records"),
        F.min("began_us").alias("began_us"),
        F.max("ended_us").alias("ended_us"),
    )
    holed = files.filter("records < last - first + 1").select("file")
    known = facts(
        segments=_listed(segments),
        files=files,
        damaged=errors.filter("source = 'journal'").select("file").distinct(),
        edited=edited_exports(errors).select("server", "file", "reason"),
        doubled=_doubled(objects),
        conflicts=reductions.conflicts(repeats).select("server", "first", "last", "count"),
        holes=reductions.holes(records, holed),
        unrecorded=reductions.unrecorded(records, thinned),
        snapshots=snapshot_partitions.select("server", "lsn").distinct(),
        states=_exported(partitions),
        reached=reached_numbers,
        sent=reductions.sendings(records, extents),
        unrecognised=unrecognised_input.select("kind", "server", "explanation", "file"),
        keys=exported_keys,
    )
    return judged(known, judge_input, _VERDICT)


@table(schemas.JOURNALS)
def journals(input_verdict: DataFrame) -> DataFrame:
    return gathered(input_verdict.filter("journal is not null").select("journal.*"))


@table(schemas.EVIDENCE)
def evidence(input_verdict: DataFrame) -> DataFrame:
    return gathered(input_verdict.filter("finding is not null").select("finding.*"))
