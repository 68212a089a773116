"""Journals of a healthy enterprise: nothing is told about them.

``tests/data/pipeline/tour.tar.xz`` has the journals and exports of the five servers of a tour, of a
version without records of skipped numbers. The PEC made the machines of two sites for their PSCs,
which took office behind numbers by their clocks; a machine was deleted and brought back; a backup
controller was killed and synchronised its whole partition.

The other journals are those of simulated enterprises with faults, in which servers were restored,
joined and retired, and which healed.

Part of ``make engines``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mqis.cli.pipeline.options import InputOptions
from mqis.cli.pipeline.output import everything
from mqis.findings import Gravity
from mqis.pipeline import schemas
from mqis.pipeline.report.content import ReportContent, read_content
from mqis.pipeline.report.findings import findings
from mqis.pipeline.runs import ingest, lag
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.progress import gaps
from mqis.protocol.directory.export_format import parse_header
from mqis.sim.run_trace import SimTrace
from mqis.sim.scenario import draw
from mqis.sim.simulated_server import SimServer
from mqis.sim.steps import Lie
from mqis.sim.world import World
from mqis.storage.journal import Appender, Journal
from mqis.wire.journal import RecordState

TOUR = Path(__file__).parents[2] / "data" / "pipeline" / "tour.tar.xz"


@pytest.fixture(scope="module")
def toured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableDirectory:
    directory = tmp_path_factory.mktemp("tour")
    shutil.unpack_archive(TOUR, directory)
    tables = TableDirectory(spark, directory / "tables")
    read = ingest(tables, str(directory / "journals"), str(directory / "exports"))
    assert (read.servers, read.errors, read.evidence) == (5, 0, 0)
    lag(tables)
    return tables


@pytest.fixture(scope="module")
def content(toured: TableDirectory) -> ReportContent:
    return read_content(toured)


def test_nothing_was_skipped_or_repeated(content: ReportContent) -> None:
    assert content.tables["gaps"] == []


def test_the_report_is_in_order(content: ReportContent) -> None:
    assert {finding.gravity for finding in findings(content)} == {Gravity.OK}


def test_the_full_synchronisation_is_a_round_and_no_fault(content: ReportContent) -> None:
    full = {
        (row["server"], row["peer"]): row["sync0_rounds"]
        for row in content.tables["rounds"]
        if row["sync0_rounds"]
    }
    assert full["ber-dir2", "ber-dir1"] == 1
    # The others are copies that two new PSCs took before they went into service.
    assert {server for server, _ in full} == {"ber-dir1", "ber-dir2", "chi-dir1"}


def test_a_run_on_a_tours_data_is_few_jobs(spark: SparkSession, tmp_path: Path) -> None:
    """Little data is one task to a query: planning and starting jobs took most of the time."""
    shutil.unpack_archive(TOUR, tmp_path)
    inputs = InputOptions(str(tmp_path / "journals"), str(tmp_path / "exports"))
    group = "a whole run"
    spark.sparkContext.setJobGroup(group, group)
    done = everything(TableDirectory(spark, tmp_path / "tables"), inputs)
    assert done["ingest"]["records"] == 9906
    assert done["audit"]["differences"] == 0
    assert 20 < len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)) < 60


# --- simulated enterprises ------------------------------------------------------------------------

#: Seeds with restored authorities and replicas, with new and retired servers.
SEEDS = (3, 8, 9, 11, 20, 23, 35, 41)


def begin_anew(world: World, server: SimServer) -> None:
    """Begins a journal as ``mqis restore`` does: with a snapshot, without what waited before."""
    assert world._journal is not None
    if server.restores:
        with closing(journal_of(server, world._journal.with_name("waste"))) as waste:
            Appender(server.disk.store, waste).flush()
    with closing(journal_of(server, world._journal)) as journal:
        appender = Appender(server.disk.store, journal)
        appender.flush()
        appender.snapshot()


def journal_of(server: SimServer, place: Path) -> Journal:
    suffix = f"-restored{server.restores}" if server.restores else ""
    return Journal(place / f"{server.name}{suffix}", server.name, server.me.id)


def simulated(seed: int, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs a seed to its end; returns the directory of its journals.

    Without lies: a liar pushes numbers that its journal does not have.
    """
    drawn = draw(seed)
    steps = tuple(step for step in drawn.steps if not isinstance(step, Lie))
    scenario = replace(drawn, steps=steps, journaled=True, streams=False, sqlite=False)
    world = World(scenario, SimTrace(keep=False), directory, directory / "journals")
    restore = world._restore

    def restored(server: SimServer, put_back: Callable[[], None], down_s: float) -> None:
        restore(server, put_back, down_s)
        begin_anew(world, server)

    monkeypatch.setattr(world, "_restore", restored)
    with closing(world):
        world._build_enterprise()
        for server in world.servers.values():
            begin_anew(world, server)
        world._run_fault_phase()
        world._run_healing_phase()
    return directory / "journals"


def oldest_partitions(journal: Path) -> list[dict[str, object]]:
    for oldest in sorted(journal.glob("snapshot-*.jsonl"))[:1]:
        header = parse_header(oldest.read_text("ascii").partition("\n")[0])
        return [
            {"partition": state.id.raw, "last_seq": state.last_seq.value, "lsn": 0}
            for state in header.partitions
        ]
    return []


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The journals of all seeds; each is that of a server with a name of its own."""
    found: list[Path] = []
    with pytest.MonkeyPatch.context() as patched:
        for seed in SEEDS:
            place = simulated(seed, tmp_path_factory.mktemp(f"seed{seed}"), patched)
            found += sorted(place.iterdir())
    return found


def test_healed_simulations_skipped_nothing(spark: SparkSession, runs: list[Path]) -> None:
    """All in one query, of journals that are whole, so that every gap would be certain."""
    restored = [path for path in runs if "restored" in path.name]
    assert len(restored) >= 5
    names = [(str(path), True) for path in runs]
    partitions = [
        dict.fromkeys(schemas.SNAPSHOT_PARTITIONS.names) | {"server": str(path)} | row
        for path in runs
        for row in oldest_partitions(path)
    ]
    read = spark.read.format("mqis.journal").load(",".join(map(str, runs)))
    records = read.withColumn("server", F.regexp_replace("file", "/[^/]*$", ""))
    assert records.filter(F.col("state") == int(RecordState.SKIPPED)).count() >= 5
    told = gaps(
        records,
        spark.createDataFrame(names, "server string, complete boolean"),
        spark.createDataFrame(partitions, schemas.SNAPSHOT_PARTITIONS),
    )
    assert told.collect() == []
