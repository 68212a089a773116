"""Measures the pipeline: reading journals, decoding changes, auditing replicas, computing routes.

Journals are generated and then read by Spark, by one Python process record by record, and by Spark
again from the Parquet files that the records were ingested into. Every number has the machine's
load beside it, as Spark shares the cores with everything else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from bench import pipelineagain
from bench.earlier import COMMIT, NAME, EarlierPipeline, earlier_pipeline
from bench.environment import load
from bench.measure import Sample, contest, once
from bench.results import Aim, Results, Row
from bench.run import Bench, Run
from mqis.lab.generate import GeneratePlan, generate
from mqis.wire.journal import Whole, segment_header, walk
from mqis.wire.journal.record import decode_body
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, ChangeRequest, Message, SyncReply
from tools.memory import watched_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SERVERS = 10


def _run(run: Run) -> Results:
    results = Results()
    try:
        from mqis.pipeline.session import Amount, Engine, session  # noqa: PLC0415
    except ImportError:
        results.notes.append("pipeline: skipped: Spark is not installed (make pipeline)")
        return results
    run.say("pipeline: generating")
    journals = _journals(run)
    memory = "1g" if run.quick else "4g"
    # As the commands do with large inputs: with Java's optimising compiler.
    large = not run.quick
    amount = Amount.MUCH if large else Amount.SOME
    engine = Engine(master="local[2]", memory=memory, amount=amount)
    with session(engine) as spark:
        code = run.directory / "pipeline-earlier"
        with earlier_pipeline(code, journals, memory, large=large) as earlier:
            if earlier is None:
                results.notes.append(
                    f"no ratios to the earlier way: commit {COMMIT} is not in this repository"
                )
            _planning(results, journals)
            _reading(run, results, spark, journals, earlier)
            _decoding(run, results, spark, journals, earlier)
        _auditing(run, results, spark)
        _routing(run, results, spark)
    pipelineagain.measure(run, results)
    if run.quick:
        results.notes.append("scaling: skipped in a quick run, as it takes two more sessions")
    else:
        _scaling(run, results, journals)
    return results


def _times(results: Results, what: str, times: float, ours: Row) -> None:
    """The aim of a rate that is so many times that of the earlier way."""
    if ours.peer == NAME and ours.ratio is not None:
        measured = f"{ours.ratio:.2f}x"
        goal = f"{times}x the earlier {what} a second"
        results.aims.append(Aim(goal, measured, ours.ratio >= times))


def _loaded(results: Results, what: str) -> None:
    results.notes.append(f"{what}: load {load():.1f} when it was measured")


BENCH = Bench("pipeline", "Spark: journal decode, audit, routes", _run)


def _journals(run: Run) -> Path:
    """Generates journals once, and copies the files to have more."""
    made = run.directory / "pipeline"
    changes = run.scaled(20_000, 300)
    generate(GeneratePlan(changes=changes, queues=200, faults=0, seed=1), made)
    journals = made / "journals"
    for number in range(run.scaled(5, 0)):
        shutil.copytree(journals, made / "copies" / str(number))
    if (made / "copies").exists():
        shutil.move(made / "copies", journals / "copies")
    return journals


def _planning(results: Results, journals: Path) -> None:
    """Counts what the driver reads of the segments for a plan, and the tasks that it makes."""
    from mqis.pipeline.sources import inventory  # noqa: PLC0415
    from mqis.pipeline.sources.files import SourceFile, part_of  # noqa: PLC0415
    from mqis.pipeline.sources.journal import JournalSource  # noqa: PLC0415

    read = [0]

    def counted(path: SourceFile, start: int, end: int) -> bytes:
        data = part_of(path, start, end)
        read[0] += len(data)
        return data

    source = JournalSource({"path": str(journals), "columns": "lsn"})
    with patch.object(inventory, "part_of", counted):
        tasks = len(source.reader(source.schema()).partitions())
    sizes = [path.stat().st_size for path in journals.rglob("*.mqj")]
    share = read[0] / sum(sizes)
    measured = f"{share:.4%}: {read[0]:,} of {sum(sizes):,} bytes"
    results.aims.append(Aim("a plan reads less than 0.1 % of the segments", measured, share < 1e-3))
    results.notes.append(f"plan: {tasks} tasks for {len(sizes)} segments")


def _reading(
    run: Run,
    results: Results,
    spark: SparkSession,
    journals: Path,
    earlier: EarlierPipeline | None,
) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from mqis.pipeline import schemas, sources  # noqa: PLC0415
    from mqis.pipeline.tables import TableDirectory  # noqa: PLC0415

    columns = ["lsn", "time", "kind", "state", "seq"]
    size = sum(path.stat().st_size for path in journals.rglob("*.mqj"))
    tables = TableDirectory(spark, run.directory / "pipeline-tables")
    whole = sources.journal(spark, str(journals), schemas.RECORDS.fieldNames())
    run.say("pipeline: ingesting")
    ingested = once(lambda: tables.write("records", whole).count())

    def scanned(frame: Callable[[], Any]) -> Callable[[], Sample]:
        aggregates = [F.count("*"), F.sum("seq"), F.max("time"), F.sum("state")]
        return lambda: once(lambda: int(frame().agg(*aggregates).collect()[0][0]))

    name, peer = "Spark, headers", "one process, record by record"
    found = contest(
        run.rounds,
        {
            name: scanned(lambda: sources.journal(spark, str(journals), columns)),
            "Spark, the same as Parquet": scanned(lambda: tables.read("records")),
            peer: lambda: once(lambda: _walked(journals)),
        }
        | ({NAME: earlier.headers} if earlier else {}),
    )
    bytes_each = size / ingested.operations
    for contender, rounds in found.items():
        beside = None if contender == peer else (peer, found[peer])
        if contender == name and earlier:
            beside = NAME, found[NAME]
        results.rows.append(
            Row.of("reading a journal", contender, rounds, peer=beside, size=bytes_each)
        )
    results.rows.append(Row.of("reading a journal", "ingest to Parquet", [ingested]))
    _loaded(results, "reading a journal")
    _times(results, "record headers", 1.5, results.rows[0])
    rate = results.rows[0].per_second
    results.aims.append(Aim("500,000 record headers a second", f"{rate:,.0f}", rate >= 500_000))


def _walked(journals: Path) -> int:
    """Reads a fifth of the files, which is enough to measure the speed."""
    count = 0
    paths = sorted(journals.rglob("*.mqj"))
    for path in paths[:: max(1, len(paths) // 5)]:
        data = path.read_bytes()
        count += sum(isinstance(e, Whole) for e in walk(data, segment_header(data)[1]))
    return count


#: The columns of a query that needs numbers and identifiers only.
_NUMBERS = (
    *("server", "lsn", "time", "state", "command", "partition", "seq", "object_id", "object_type"),
    *("properties.propid", "properties.number"),
)


def _decoding(
    run: Run,
    results: Results,
    spark: SparkSession,
    journals: Path,
    earlier: EarlierPipeline | None,
) -> None:
    """Measures decoding of all changes in the journals: made, sent or received.

    The source decodes them, or it hands over the bodies and a transform decodes them.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from mqis.pipeline import sources  # noqa: PLC0415
    from mqis.pipeline.tables import TableDirectory  # noqa: PLC0415
    from mqis.pipeline.transforms.bodies import NEEDED, carried  # noqa: PLC0415

    aggregates = [F.count("command").alias("n"), F.sum(F.size("properties")).alias("p")]
    properties = [0.0]

    def counted(frame: Callable[[], Any]) -> Callable[[], Sample]:
        def count() -> int:
            row = frame().agg(*aggregates).collect()[0]
            properties[0] = row["p"] / row["n"]
            return int(row["n"])

        return lambda: once(count)

    def inside(*columns: str) -> Any:
        return sources.changes(spark, str(journals), columns)

    kept = TableDirectory(spark, run.directory / "pipeline-tables").write("decoded", inside())
    whole, numbers, process = "Spark, in the source", "Spark, numbers only", "one process"
    behind, parquet = "Spark, bodies to a transform", "Spark, the same as Parquet"
    found = contest(
        run.rounds,
        {
            whole: counted(inside),
            numbers: counted(lambda: inside(*_NUMBERS)),
            behind: counted(lambda: carried(sources.journal(spark, str(journals), NEEDED))),
            parquet: counted(lambda: kept),
            process: lambda: once(lambda: _decoded(journals)),
        }
        | ({NAME: earlier.changes} if earlier else {}),
    )
    table = "decoding changes with all properties"
    before = NAME if earlier else behind
    for name in (whole, numbers):
        results.rows.append(Row.of(table, name, found[name], peer=(before, found[before])))
    _times(results, "decoded changes", 1.3, results.rows[-2])
    _times(results, "decoded changes, with numbers only now,", 2.0, results.rows[-1])
    rates = [row.per_second for row in results.rows[-2:]]
    for name in (behind, parquet, process, *([NAME] if earlier else [])):
        results.rows.append(Row.of(table, name, found[name], peer=(process, found[process])))
    _loaded(results, "decoding changes")
    each = f"{properties[0]:.1f} properties each"
    results.aims.append(
        Aim("105,000 decoded changes a second", f"{rates[0]:,.0f}, {each}", rates[0] >= 105_000)
    )
    results.aims.append(
        Aim("164,000 changes a second, numbers only", f"{rates[1]:,.0f}", rates[1] >= 164_000)
    )


def _decoded(journals: Path) -> int:
    """Decodes one server's journal, which is enough to measure the speed."""
    count = 0
    for path in sorted(journals.glob("*-psc/*.mqj"))[:1]:
        data = path.read_bytes()
        for entry in walk(data, segment_header(data)[1]):
            if isinstance(entry, Whole):
                count += _changes_in(decode_body(entry.record))
    return count


def _changes_in(body: Message | DirectoryChange | None) -> int:
    if isinstance(body, ChangePropagation | SyncReply):
        return len(body.changes)
    return int(isinstance(body, DirectoryChange | ChangeRequest))


def _auditing(run: Run, results: Results, spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from mqis.pipeline.building import settled  # noqa: PLC0415
    from mqis.pipeline.tables import TableDirectory  # noqa: PLC0415
    from mqis.pipeline.transforms.divergence import differences, suspects  # noqa: PLC0415

    count = run.scaled(1_000_000, 2000)
    run.say("pipeline: making replicas")
    tables = TableDirectory(spark, run.directory / "pipeline-tables")
    server = F.concat(F.lit("server"), F.pmod("n", F.lit(_SERVERS)).cast("string"))
    number = F.floor(F.col("n") / _SERVERS)
    # One object in 100,000 differs at one server.
    odd = (F.pmod(number, F.lit(100_000)) == 77) & (F.pmod("n", F.lit(_SERVERS)) == 3)
    digest = F.xxhash64(number) + odd.cast("long")
    made = (
        spark.range(count * _SERVERS)
        .withColumnRenamed("id", "n")
        .select(
            server.alias("server"),
            F.lit(bytearray(16)).alias("partition"),
            F.unhex(F.md5(number.cast("string").cast("binary"))).alias("id"),
            F.lit(1).alias("type"),
            F.lit("name").alias("path"),
            number.alias("seq"),
            F.lit(False).alias("deleted"),
            F.lit(False).alias("site_only"),
            digest.alias("digest"),
            F.transform(F.sequence(F.lit(1), F.lit(14)), lambda i: digest + i).alias("digests"),
        )
    )
    objects = tables.write("bench_objects", made)
    replicas = settled(
        spark.range(1, _SERVERS).select(
            F.concat(F.lit("server"), F.col("id").cast("string")).alias("server"),
            F.lit(bytearray(16)).alias("partition"),
            F.lit("server0").alias("authority"),
            F.lit(True).alias("same_site"),
        )
    )
    found = [0]

    def audited() -> int:
        found[0] = differences(settled(suspects(objects, replicas)), replicas).count()
        return count * _SERVERS

    run.say("pipeline: auditing")
    with watched_memory() as peak:
        sample = once(audited)
    spark.catalog.clearCache()
    _loaded(results, "audit")
    expected = len(range(77, count, 100_000))
    results.notes.append(f"audit: {found[0]} of {expected} planted differences found")
    table = f"audit of {_SERVERS} replicas x {count:,} objects, rows"
    results.rows.append(Row.of(table, "Spark", [sample]))
    seconds = sample.elapsed_ns / 1e9
    rows = f"{count * _SERVERS:,} rows in {seconds:.0f} s, {peak.mib:,} MiB in all processes"
    fits = seconds < 180 and peak.mib < 6144
    results.aims.append(Aim("10 million rows audited in 3 minutes and 6 GiB", rows, fits))


def _routing(run: Run, results: Results, spark: SparkSession) -> None:
    from mqis.pipeline import schemas  # noqa: PLC0415
    from mqis.pipeline.transforms.network import RoutingArrays, packed  # noqa: PLC0415
    from mqis.pipeline.transforms.routes import routes  # noqa: PLC0415
    from mqis.protocol.routing.bulk.gates import Gates  # noqa: PLC0415
    from mqis.protocol.routing.bulk.sitegraph import SiteGraph  # noqa: PLC0415

    count = run.scaled(4000, 100)
    random = Random(1)
    links = [(n, random.randrange(n), random.randint(1, 100)) for n in range(1, count)]
    links += [
        (random.randrange(count), random.randrange(count), random.randint(1, 100))
        for _ in range(count)
    ]
    graph = SiteGraph.of(count, *([link[part] for link in links] for part in range(3)))
    names = tuple(f"site{number}" for number in range(count))
    gates = Gates.of(count, range(count), range(count))
    network = RoutingArrays(graph, gates, names, tuple(map(str, links)), names)
    run.say("pipeline: routes")
    row = (count, len(network.failures), packed(network))
    found = routes(spark.createDataFrame([row], schemas.NETWORK))
    sample = once(lambda: found.filter("cost is not null").count())
    results.rows.append(Row.of(f"routes between {count:,} sites, pairs", "Spark", [sample]))
    _loaded(results, "routes")


def _scaling(run: Run, results: Results, journals: Path) -> None:
    """Measures the same work in a process with one core, and in one with two."""
    found: dict[int, dict[str, float]] = {}
    for cores in (1, 2):
        run.say(f"pipeline: on {cores} of the cores")
        command = [sys.executable, "-m", "bench.pipelinescaling", str(cores), str(journals)]
        done = subprocess.run(
            [*command, str(run.rounds)], capture_output=True, text=True, check=True
        )
        rates: dict[str, list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
        found[cores] = {name: median(rounds) for name, rounds in rates.items()}
    for name, what in (("scan", "headers"), ("decode", "changes")):
        one, two = found[1][name], found[2][name]
        times = f"{two / one:.2f}x: {one:,.0f} to {two:,.0f} {what} a second"
        results.aims.append(Aim(f"1.4x from one core to two, {name}", times, two >= 1.4 * one))
    _loaded(results, "scaling")
