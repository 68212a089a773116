"""Evidence: the tables ``journals`` and ``evidence``, which say how far the input can be trusted.

The queries here reduce records, exports and snapshots to a few rows for each file, server and
partition; ``mqis.pipeline.evidence`` judges those rows, those of each server by themselves.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from mqis.pipeline import schemas
from mqis.pipeline.evidence.inventory import judge_clocks, judge_server
from mqis.pipeline.evidence.recognition import misnamed_exports as judge_names
from mqis.pipeline.evidence.recognition import strangers
from mqis.pipeline.graph.facts import facts, facts_by, judged, judged_by_key
from mqis.pipeline.graph.used import LINE_KEY
from mqis.pipeline.registry import step, table, view
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


_JOURNAL = ("server", "server_id")
_IDENTITY = (*_JOURNAL, "number", "first_lsn")


@table(schemas.SEALED_SEGMENTS, requires="journal")
def sealed_segments(segments: DataFrame, earlier_segments: DataFrame | None) -> DataFrame:
    """The segments to which nothing is added any more, as they were when they were first read.

    Those that lie before the first segment of a journal are forgotten: retention removes them.
    """
    names = schemas.SEALED_SEGMENTS.fieldNames()
    own = _listed(segments).filter("kept is null")
    ends = own.groupBy(*_JOURNAL).agg(F.min("number").alias("oldest"), F.max("number").alias("end"))
    sealed = own.join(ends, [*_JOURNAL]).filter("number < end").select(*names)
    if earlier_segments is None:
        return gathered(sealed)
    remembered = earlier_segments.join(ends, [*_JOURNAL], "left").filter(
        "oldest is null or number >= oldest"
    )
    new = sealed.join(earlier_segments, [*_IDENTITY], "left_anti")
    return gathered(remembered.select(*names).unionByName(new))


def _since_earlier(segments: DataFrame, sealed_segments: DataFrame) -> DataFrame:
    """(server, number, found): sealed segments that are not as they were; null if not there."""
    own = _listed(segments).filter("kept is null").groupBy(*_IDENTITY)
    now = own.agg(F.collect_set("digest").alias("digests"), F.min("file").alias("found"))
    both = sealed_segments.join(now, [*_IDENTITY], "left")
    other = both.filter("found is null or not array_contains(digests, digest)")
    return other.select("server", "number", "found")


def _exported(partitions: DataFrame) -> DataFrame:
    owner = F.coalesce("owner", F.lit("")).alias("owner")
    return partitions.select("server", "file", "partition", owner, "last_seq", "exporter")


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
def misnamed_exports(
    objects: DataFrame, partitions: DataFrame, journaled_numbers: DataFrame
) -> DataFrame:
    """The exports of other servers than their names say (``schemas.EVIDENCE``)."""
    marked = objects.filter(F.col("type").isin(*_MARKED))
    own = marked.groupBy("server", "file", "partition").agg(
        F.bool_and(F.when(~F.col("deleted"), F.col("own"))).alias("own")
    )
    known = facts_by(
        "server",
        states=_exported(partitions),
        own=own.filter("own").select("server", "file", "partition"),
        made=journaled_numbers.filter("made is not null").select("server", "partition"),
    )
    return judged_by_key(known, judge_names, schemas.EVIDENCE)


@step
def strange_input(
    *,
    segments: DataFrame,
    objects: DataFrame,
    partitions: DataFrame,
    records: DataFrame,
    snapshots: DataFrame,
    misnamed_exports: DataFrame,
) -> DataFrame:
    """Journals and exports of strangers, and second exports (``schemas.EVIDENCE``)."""
    ids = segments.select(F.col("server_id").alias("id")).distinct()
    names = partitions.select(F.lower("server").alias("name")).distinct()
    machines = objects.filter(F.col("type") == int(ObjectType.MACHINE)).select(
        "id", F.lower("path").alias("name")
    )
    by_id = machines.join(F.broadcast(ids), "id", "left_semi")
    by_name = machines.join(F.broadcast(names), "name", "left_semi")
    firsts = _listed(segments).filter("kept is null").groupBy("server", "server_id")
    named = partitions.join(misnamed_exports.select("file"), "file", "left_anti")
    known = facts(
        journals=firsts.agg(F.min_by("file", F.struct("first_lsn", "file")).alias("file")),
        exports=named.groupBy("server", "file").agg(
            F.sum(F.col("last_seq").cast("decimal(20,0)")).alias("changes")
        ),
        machines=by_id.unionByName(by_name.select("id", "name")).distinct(),
        known=reductions.known_by_others(records, snapshots, ids),
    )
    return judged(known, strangers, schemas.EVIDENCE)


@view
def unrecognised_input(misnamed_exports: DataFrame, strange_input: DataFrame) -> DataFrame:
    """The journals and exports that are not used (``schemas.EVIDENCE``)."""
    return misnamed_exports.unionByName(strange_input)


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
    *,
    journaled_numbers: DataFrame,
    partitions: DataFrame,
    records: DataFrame,
    snapshot_partitions: DataFrame,
) -> DataFrame:
    """(server, partition, number): the numbers that journals reached.

    Synchronisations and snapshots count only for servers whose exports have later numbers.
    """
    shown = journaled_numbers.select("server", "partition", F.col("reached").alias("number"))
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
    file_extents: DataFrame,
    journaled_numbers: DataFrame,
    reached_numbers: DataFrame,
    unrecognised_input: DataFrame,
    exported_keys: DataFrame,
    sealed_segments: DataFrame,
) -> DataFrame:
    """One row for each journal and each finding about a server."""
    thinned = journaled_numbers.filter("made - first_made + 1 > count_made")
    holed = file_extents.filter("records < last - first + 1").select("file")
    listed = _listed(segments)
    known = facts_by(
        "server",
        segments=listed,
        files=file_extents,
        damaged=_damaged(errors, listed),
        edited=edited_exports(errors).select("server", "file", "reason"),
        doubled=_doubled(objects),
        conflicts=reductions.conflicts(repeats).select("server", "first", "last", "count"),
        holes=reductions.holes(records, holed),
        unrecorded=reductions.unrecorded(records, thinned.select("server", "partition")),
        snapshots=snapshot_partitions.select("server", "lsn").distinct(),
        states=_used_states(partitions, unrecognised_input),
        reached=reached_numbers,
        unrecognised=unrecognised_input.select("server", "file"),
        keys=_keys_of_servers(exported_keys, listed),
        earlier=_since_earlier(segments, sealed_segments),
    )
    return judged_by_key(known, judge_server, _VERDICT)


def _damaged(errors: DataFrame, listed: DataFrame) -> DataFrame:
    """(server, file): files with damage; one without a header may be of any server beside it."""
    found = errors.filter("source = 'journal'").select("server", "file").distinct()
    beside = listed.select("server", _directory().alias("directory")).distinct()
    nameless = found.filter("server is null").select("file", _directory().alias("directory"))
    told = nameless.join(beside, "directory").select("server", "file")
    return found.filter("server is not null").unionByName(told)


def _directory() -> Column:
    """The directory of a file; a URI has settings behind its path."""
    path = F.regexp_replace("file", r"^([a-z0-9]+://[^?]*)\?.*$", "$1")
    return F.regexp_replace(path, "/[^/]*$", "")


def _used_states(partitions: DataFrame, unrecognised_input: DataFrame) -> DataFrame:
    """Adds ``newest``, the last number of the partition in all exports, to those that are used."""
    used = _exported(partitions).join(unrecognised_input.select("file"), "file", "left_anti")
    newest = used.groupBy("partition").agg(F.max("last_seq").alias("newest"))
    return used.join(newest, "partition")


def _keys_of_servers(exported_keys: DataFrame, listed: DataFrame) -> DataFrame:
    """The keys of the machine that a journal is of, with the name of the journal's server."""
    named = exported_keys.filter("id is not null").select("id", "name").distinct()
    ids = listed.select("server", F.col("server_id").alias("id")).distinct()
    wanted = named.join(ids, "id").select(F.col("server").alias("of_server"), "name").distinct()
    return exported_keys.join(wanted, "name").withColumnRenamed("of_server", "server")


@step
def clock_findings(records: DataFrame) -> DataFrame:
    """The servers whose clocks are wrong (``schemas.EVIDENCE``)."""
    return judged(facts(sent=reductions.sendings(records)), judge_clocks, schemas.EVIDENCE)


@table(schemas.JOURNALS)
def journals(input_verdict: DataFrame) -> DataFrame:
    return gathered(input_verdict.filter("journal is not null").select("journal.*"))


@table(schemas.EVIDENCE)
def evidence(
    input_verdict: DataFrame, unrecognised_input: DataFrame, clock_findings: DataFrame
) -> DataFrame:
    of_servers = input_verdict.filter("finding is not null").select("finding.*")
    return gathered(of_servers.unionByName(unrecognised_input).unionByName(clock_findings))
