"""A second run reads only what is new, and its tables equal those of a run from the beginning."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from mqis.lab.generate import GeneratePlan, generate
from mqis.pipeline.building import FilesRead, TableBuilder
from mqis.pipeline.inputs import PipelineInputs, sources_of
from mqis.pipeline.tables import TableDirectory
from mqis.places.pipeline_tables import current_version
from tests.pipeline.growing import garble, grow, in_segments, restore
from tests.pipeline.kept import lines_of

TABLES = ("read_segments", "segments", "records", "repeats")
SMALL = GeneratePlan(sites=1, machines=3, queues=6, changes=60, seed=5, faults=0, backups=1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journals of two servers, in several segments each."""
    directory = tmp_path_factory.mktemp("whole")
    generate(SMALL, directory / "made")
    in_segments(directory / "made" / "journals", directory / "journals", 12_000)
    return directory / "journals"


class Growing:
    """Journals that grow, and their tables."""

    def __init__(self, spark: SparkSession, whole: Path, directory: Path) -> None:
        self.root, self.whole = directory, whole
        self.journals = directory / "journals"
        self.tables = TableDirectory(spark, directory / "tables")
        self.began_anew = False

    def grow(self, share: float) -> None:
        grow(self.whole, self.journals, share)

    @property
    def files(self) -> list[Path]:
        return sorted(self.journals.rglob("*.mqj"))

    def run(self, store: TableDirectory | None = None) -> FilesRead:
        """Makes the tables; tells how many segments were read for ``records``, and of how many."""
        tables = store or self.tables
        sources = sources_of(tables.session, PipelineInputs(str(self.journals)))
        with TableBuilder(tables, sources) as builder:
            builder.write(TABLES)
        self.began_anew = builder.began_anew
        return builder.files_read["read_segments"]

    def check(self) -> None:
        """Compares all tables with those of a run from the beginning."""
        others = TableDirectory(self.tables.session, self.root / "others")
        assert self.run(others) == FilesRead(len(self.files), len(self.files))
        for name in TABLES:
            found = lines_of(name, self.tables.read(name), self.root)
            assert found == lines_of(name, others.read(name), self.root), name
        shutil.rmtree(others.directory)

    def layers(self) -> dict[str, int]:
        """The layers of ``records``, and the number of segments in each."""
        made = self.tables.made_of("records")
        return {layer: len(files) for layer, files in made.layers.items()}


@pytest.fixture
def growing(spark: SparkSession, whole: Path, tmp_path: Path) -> Growing:
    return Growing(spark, whole, tmp_path)


def test_sealed_segments_are_read_once(growing: Growing) -> None:
    growing.grow(0.5)
    before = growing.files
    assert growing.run() == FilesRead(len(before), len(before))
    sealed = [path for path in before if path.with_name(next_name(path)).exists()]
    assert growing.layers() == {"000001": len(sealed), "000002": 2}
    growing.grow(0.7)
    kept = {path: garble(path) for path in sealed}
    after = growing.files
    assert growing.run() == FilesRead(len(after) - len(sealed), len(after))
    for path, data in kept.items():
        restore(path, data)
    growing.check()
    assert growing.layers()["000001"] == len(sealed)  # its files stand where they stood
    before_link, now = (table_files(v) for v in versions(growing.tables, "records"))
    first = {name for name in before_link if Path(name).name.startswith("000001-")}
    assert first <= now.keys()
    assert all(now[name] == before_link[name] for name in first)  # the same inodes


def next_name(path: Path) -> str:
    return f"segment-{int(path.stem.partition('-')[2]) + 1:010}.mqj"


def versions(tables: TableDirectory, name: str) -> list[Path]:
    return sorted((tables.directory / f".{name}").iterdir())


def table_files(version: Path) -> dict[str, int]:
    return {str(p.relative_to(version)): p.stat().st_ino for p in version.rglob("*.parquet")}


def test_nothing_new_makes_no_table(growing: Growing) -> None:
    growing.grow(0.4)
    growing.run()
    before = [current_version(growing.tables.directory, name) for name in TABLES]
    kept = {path: garble(path) for path in growing.files}
    assert growing.run() == FilesRead(0, len(kept))
    assert [current_version(growing.tables.directory, name) for name in TABLES] == before


def test_a_segment_that_changed_or_went_is_as_it_is_now(growing: Growing) -> None:
    growing.grow(0.6)
    growing.run()
    first, second, *_ = growing.files
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1  # a damaged record
    first.write_bytes(data)
    second.unlink()
    assert growing.run().read == 1
    growing.check()


def test_copies_and_files_that_overlap_may_come_and_go(growing: Growing) -> None:
    growing.grow(0.5)
    growing.run()
    first = growing.files[0]
    copy = growing.journals / "copy" / first.name
    copy.parent.mkdir()
    shutil.copy2(first, copy)
    growing.run()
    growing.check()
    # A file that is no copy has the same numbers: the rows of the whole server are judged anew.
    copy.write_bytes(first.read_bytes()[:-40])
    other = growing.journals / "other" / first.name
    other.parent.mkdir()
    data = bytearray(first.read_bytes())
    data[-60] ^= 1
    other.write_bytes(data)
    growing.run()
    assert growing.tables.read("repeats").count() > 0
    growing.check()
    shutil.rmtree(other.parent)
    first.unlink()  # now the copy counts
    growing.run()
    assert growing.tables.read("repeats").count() == 0
    growing.check()


def test_everybody_reads_a_table_in_layers(growing: Growing) -> None:
    for share in (0.3, 0.6, 1.0):
        growing.grow(share)
        growing.run()
    place, spark = growing.tables.directory / "records", growing.tables.session
    count = growing.tables.read("records").count()
    assert count > 100
    assert spark.read.parquet(str(place)).count() == count
    assert ds.dataset(place, format="parquet", partitioning="hive").count_rows() == count
    assert (place / "_SUCCESS").is_file()
    assert len(growing.layers()) > 1


def test_without_hard_links_files_are_copied(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    growing.grow(0.5)
    growing.run()
    growing.grow(0.7)
    monkeypatch.setattr(os, "link", refused)
    assert growing.run().read < len(growing.files)
    growing.check()


def test_tables_of_other_code_are_made_anew(growing: Growing) -> None:
    growing.grow(0.5)
    growing.run()
    for name in TABLES:
        version = current_version(growing.tables.directory, name)
        assert version is not None
        record = version / "_made.json"
        told = json.loads(record.read_text("utf-8"))
        record.write_text(json.dumps(told | {"code": "other", "digest": "other"}), "utf-8")
    assert growing.run() == FilesRead(len(growing.files), len(growing.files))
    assert growing.began_anew
    growing.check()


def test_tables_of_a_version_without_layers_are_made_anew(growing: Growing) -> None:
    growing.grow(0.5)
    records = growing.tables.session.createDataFrame([("x", 1)], "server string, lsn long")
    records.write.partitionBy("server").parquet(str(growing.root / "tables/.records/v000001"))
    (growing.root / "tables" / "records").symlink_to(".records/v000001")
    growing.run()
    assert growing.began_anew
    growing.check()
