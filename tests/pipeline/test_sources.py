"""The data sources as Spark runs them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mqis.pipeline import sources
from mqis.pipeline.sources.journal import option_filters
from mqis.pipeline.transforms.bodies import NEEDED, carried
from mqis.protocol.directory.export_format import is_end
from mqis.wire.errors import MqisError
from mqis.wire.journal import Whole, segment_header, walk
from tests.pipeline.conftest import Enterprise


def whole_records(enterprise: Enterprise) -> list[tuple[str, Whole]]:
    found = []
    for path in sorted(Path(enterprise.journals).rglob("*.mqj")):
        data = path.read_bytes()
        header, start = segment_header(data)
        found += [(header.server, e) for e in walk(data, start) if isinstance(e, Whole)]
    return found


def test_rows_are_the_records(spark: SparkSession, enterprise: Enterprise) -> None:
    frame = spark.read.format("mqis.journal").option("share_bytes", 500_000)
    rows = frame.load(enterprise.journals).filter("error is null").toArrow()
    wanted = sorted(whole_records(enterprise), key=lambda pair: (pair[0], pair[1].lsn))
    rows = rows.sort_by([("server", "ascending"), ("lsn", "ascending")])
    got = rows.to_pydict()
    assert len(wanted) > 20_000
    assert got["server"] == [server for server, _ in wanted]
    records = [entry.record for _, entry in wanted]
    assert got["lsn"] == [entry.lsn for _, entry in wanted]
    assert got["state"] == [int(record.state) for record in records]
    assert got["operation"] == [record.operation for record in records]
    assert got["partition"] == [record.partition.raw for record in records]
    assert got["seq"] == [record.seq.value for record in records]
    assert got["object_id"] == [
        record.object_id.raw if record.object_id else None for record in records
    ]
    assert got["peer"] == [record.peer for record in records]
    assert got["reason"] == [record.reason for record in records]
    assert got["body"] == [record.body for record in records]
    assert got["message_ordinal"] == [
        None if record.message is None else record.message.ordinal for record in records
    ]
    times = rows["time"].cast("int64").to_pylist()
    assert times == [record.time_us for record in records]


def test_changes_are_those_of_the_bodies(spark: SparkSession, enterprise: Enterprise) -> None:
    """Decoded inside the source, and by the transform from the bodies of records."""
    inside = sources.changes(spark, enterprise.journals).filter("state = 1 and error is null")
    records = sources.journal(spark, enterprise.journals, [*NEEDED, "error"])
    wanted = carried(records.filter("state = 1"))
    keys = [("server", "ascending"), ("lsn", "ascending")]
    found = inside.toArrow().sort_by(keys)
    assert found.num_rows > 1000
    assert found.equals(wanted.toArrow().sort_by(keys))


def test_a_frame_that_takes_no_filters_can_be_used_again(
    spark: SparkSession, enterprise: Enterprise
) -> None:
    """Spark keeps pushed filters with the frame, so the ordinary source takes none."""
    frame = spark.read.format("mqis.journal").schema("server string, state int, error string")
    loaded = frame.load(enterprise.journals)
    local = loaded.filter("state = 1").count()
    assert 0 < local < loaded.filter("error is null").count()
    assert loaded.filter("error is not null").count() == 2


def test_filters_are_pushed_and_exact(spark: SparkSession, enterprise: Enterprise) -> None:
    server, entry = whole_records(enterprise)[1000]
    record = entry.record
    wanted = [
        e.lsn
        for s, e in whole_records(enterprise)
        if s == server and e.record.time_us >= record.time_us and e.record.state == record.state
    ]
    frame = sources.journal(spark, enterprise.journals, ["server", "lsn", "time", "state"])
    chosen = frame.filter(
        f"server = '{server}' and time >= timestamp_micros({record.time_us}) "
        f"and state = {int(record.state)}"
    )
    plan = chosen._jdf.queryExecution().toString()
    assert " Filter " not in plan.split("== Physical Plan ==")[1]
    assert sorted(row.lsn for row in chosen.collect()) == sorted(wanted)


def test_damage_is_rows(spark: SparkSession, enterprise: Enterprise) -> None:
    columns = ["server", "file", "offset", "error"]
    frame = sources.journal(spark, enterprise.journals, columns).filter("error is not null")
    found = {(r.server, r.file, r.offset, r.error.split(":")[0]) for r in frame.collect()}
    wanted = {
        (d["server"], d["file"], d["offset"], d["kind"])
        for d in enterprise.manifest["damage"]
        if d["file"].endswith(".mqj")
    }
    assert len(wanted) == 2
    assert found == wanted


def test_files_that_are_no_journal_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    newer = bytearray(b"MQISJRNL" + bytes(100))
    newer[8] = 9
    (tmp_path / "segment-0000000001.mqj").write_bytes(newer)
    (tmp_path / "segment-0000000002.mqj").write_bytes(b"something else")
    (tmp_path / "segment-0000000003.mqj").write_bytes(b"")
    rows = sources.journal(spark, str(tmp_path), ["file", "error"]).collect()
    told = [row.error for row in sorted(rows, key=lambda row: str(row.file))]
    assert "format version 9" in told[0]
    assert "not a journal segment" in told[1]
    assert len(told) == 3


def test_unknown_column_and_empty_directory(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no column 'colour'"):
        spark.read.format("mqis.journal").schema("colour string").load(str(tmp_path)).collect()
    with pytest.raises(PySparkException, match="there are no journal segments"):
        spark.read.format("mqis.journal").load(str(tmp_path)).collect()


@pytest.mark.parametrize("source", ["journal", "segments", "directory", "capture"])
def test_a_misspelt_option_is_refused(spark: SparkSession, tmp_path: Path, source: str) -> None:
    told = f"mqis.{source}: share_byte: no such option; did you mean share_bytes"
    with pytest.raises(PySparkException, match=told):
        spark.read.format(f"mqis.{source}").option("share_byte", "1").load(str(tmp_path)).collect()
    with pytest.raises(PySparkException, match=r"known: .*path, paths, allow_empty, share_bytes"):
        spark.read.format(f"mqis.{source}").option("qqq", "1").load(str(tmp_path)).collect()


def test_a_wrong_value_is_named(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copy(Path(__file__), tmp_path / "x.pcap")
    reader = spark.read.format("mqis.capture").option("share_bytes", "many")
    with pytest.raises(PySparkException, match="the option share_bytes is a positive number"):
        reader.load(str(tmp_path)).collect()


def test_paths_are_given_as_to_other_sources(
    spark: SparkSession, tmp_path: Path, enterprise: Enterprise
) -> None:
    """A list of them, of which one has a comma in its name, and wildcards."""
    journals = Path(enterprise.journals)
    first, second = sorted(path for path in journals.iterdir() if path.is_dir())[:2]
    strange = tmp_path / "second, copied"
    shutil.copytree(second, strange)
    reader = spark.read.format("mqis.journal")
    both = reader.load([str(first), str(strange)]).count()
    assert both == reader.load(f"{first},{second}").count() > reader.load(str(first)).count() > 0
    assert reader.load(f"{journals}/*").count() == reader.load(str(journals)).count()


def test_options_choose_rows() -> None:
    chosen = option_filters({"server": "a,b", "since": "2024-03-01T08:00:00"})
    assert len(chosen) == 2
    with pytest.raises(MqisError, match="an option of mqis"):
        option_filters({"partition": "nonsense"})


def test_exports_shared_out_are_whole(spark: SparkSession, enterprise: Enterprise) -> None:
    frame = spark.read.format("mqis.directory").option("share_bytes", 60_000)
    rows = frame.schema("file string, offset long, error string").load(enterprise.exports)
    files = Path(enterprise.exports).rglob("*.jsonl")
    texts = [path.read_bytes().splitlines()[1:] for path in files]
    lines = sum(not is_end(line) for text in texts for line in text)
    found = [(row.file, row.offset) for row in rows.collect() if row.error is None]
    assert len(found) == len(set(found)) == lines - 1  # one is not UTF-8


def test_damaged_exports_are_rows(
    spark: SparkSession, enterprise: Enterprise, tmp_path: Path
) -> None:
    source = Path(enterprise.exports) / "s001-psc.jsonl"
    lines = source.read_text(encoding="ascii").splitlines()
    (tmp_path / "cut.jsonl").write_text("\n".join(lines[:-3]) + "\n", encoding="ascii")
    shutil.copy(source, tmp_path / "whole.jsonl")
    (tmp_path / "bad.jsonl").write_text("\n".join([*lines[:-1], "{"]) + "\n", encoding="ascii")
    (tmp_path / "other.jsonl").write_text('{"format":"other"}\n', encoding="ascii")
    frame = sources.directory(spark, str(tmp_path), ["server", "error"])
    told = {row.server: row.error for row in frame.filter("error is not null").collect()}
    assert told.keys() == {"cut", "bad", "other"}
    assert "cut off" in told["cut"]
    assert "not JSON" in told["bad"]
    assert "not an export" in told["other"]
