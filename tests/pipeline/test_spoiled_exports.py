"""Exports that were edited, exchanged, copied or renamed, and renamed segments, are evidence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.cli.pipeline.options import InputOptions
from mqis.cli.pipeline.output import everything, say_everything
from mqis.lab.generate import GeneratePlan, generate
from mqis.pipeline.readable import used_input
from mqis.pipeline.runs import audit, ingest
from mqis.pipeline.tables import TableDirectory
from mqis.storage.journal.journal_files import segments
from tests.cli.test_edited_exports import MARK, VERSION_1, doubled, relabelled

#: Three sites; of two of them a backup controller.
PLAN = GeneratePlan(sites=3, machines=6, queues=20, changes=60, seed=3, faults=0)


def replaced(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("spoiled") / "made"
    generate(PLAN, directory)
    exports = directory / "exports"
    assert sorted(path.stem for path in exports.iterdir()) == [
        *("s001-bsc", "s001-psc", "s002-bsc", "s002-psc", "s003-psc")
    ]
    backup = exports / "s001-bsc.jsonl"
    replaced(backup, relabelled(backup.read_bytes()))
    psc = exports / "s001-psc.jsonl"
    # Behind the first object and its copy, other objects follow: copies need not be neighbours.
    replaced(psc, without_digest(doubled(psc.read_bytes(), 9)))
    marked = exports / "s003-psc.jsonl"
    replaced(marked, MARK + marked.read_bytes().replace(b"\n", b"\r\n"))
    (exports / "old").mkdir()
    shutil.copy(exports / "s003-psc.jsonl", exports / "old" / "s003-psc.jsonl")
    shutil.copy(exports / "s002-psc.jsonl", exports / "monday.jsonl")
    one, other = exports / "s002-psc.jsonl", exports / "s002-bsc.jsonl"
    texts = one.read_bytes(), other.read_bytes()
    replaced(one, texts[1])
    replaced(other, texts[0])
    (segment,) = segments(directory / "journals" / "s003-psc").values()
    segment.rename(segment.with_name("kept.mqj"))
    return directory


def without_digest(data: bytes) -> bytes:
    """An export of version 1, which nothing but its lines gives away."""
    lines = data.splitlines(keepends=True)[:-1]
    lines[0] = re.sub(rb'"version":2,"server":\{[^}]*\}', b'"version":1', lines[0])
    lines[0] = re.sub(rb'"lines":\d+', b'"lines":%d' % (len(lines) - 1), lines[0])
    return b"".join(lines)


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, made: Path, tmp_path_factory: pytest.TempPathFactory
) -> TableDirectory:
    tables = TableDirectory(spark, tmp_path_factory.mktemp("spoiled-tables"))
    ingest(tables, str(made / "journals"), str(made / "exports"))
    return tables


def test_what_is_wrong_with_each_file_is_told(tables: TableDirectory, made: Path) -> None:
    rows = tables.read("evidence").collect()
    found = {(row.kind, row.server, Path(row.file).relative_to(made).as_posix()) for row in rows}
    assert found == {
        ("edited_export", "s001-bsc", "exports/s001-bsc.jsonl"),
        ("doubled_lines", "s001-psc", "exports/s001-psc.jsonl"),
        ("misnamed_export", "s002-psc", "exports/s002-psc.jsonl"),
        ("misnamed_export", "s002-bsc", "exports/s002-bsc.jsonl"),
        ("misnamed_export", "monday", "exports/monday.jsonl"),
        ("duplicate_export", "s003-psc", "exports/s003-psc.jsonl"),
        ("misnamed_segment", "s003-psc", "journals/s003-psc/kept.mqj"),
    }
    assert len(rows) == len(found)
    texts = {row.kind: row.explanation for row in rows if row.server != "monday"}
    assert "its lines do not match the digest in its last line" in texts["edited_export"]
    assert texts["doubled_lines"].startswith("1 line stands there twice, the first at byte ")
    assert "its first line says that it is an export of s002-" in texts["misnamed_export"]
    assert texts["misnamed_segment"].startswith("it is segment 1: ")
    assert [row.reason for row in tables.read("errors").collect()] == [texts["edited_export"]]


def test_a_line_that_stands_twice_is_used_once(tables: TableDirectory, made: Path) -> None:
    data = (made / "exports" / "s001-psc.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    assert lines[8] == lines[9]
    (row,) = tables.read("evidence").filter("kind = 'doubled_lines'").collect()
    assert row.first == row.last == sum(map(len, lines[:9]))
    assert tables.read("objects").filter("server = 's001-psc'").count() == len(lines) - 1
    assert used_input(tables, "objects").filter("server = 's001-psc'").count() == len(lines) - 2


def test_an_edited_export_accuses_no_server(tables: TableDirectory) -> None:
    """The replica applied the change; its export has another label because somebody wrote it."""
    audit(tables)
    (row,) = tables.read("divergence").collect()
    assert (row.server, row.difference, row.cause) == ("s001-bsc", "different", "export_damaged")


def test_a_run_goes_on_without_any_export_that_can_be_used(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of s001-psc is named after a server that nobody knows."""
    shutil.copy(VERSION_1, tmp_path / "a.jsonl")
    tables = TableDirectory(spark, tmp_path / "tables")
    done = everything(tables, InputOptions(exports=str(tmp_path / "a.jsonl")))
    say_everything(done, "tables")
    (row,) = tables.read("evidence").collect()
    assert (row.kind, row.server) == ("misnamed_export", "a")
    assert done["routes"] == {"sites": 0, "pairs": 0, "unreachable": 0}
    assert done["what_if"] == {"failures": 0, "cutting": 0}
    text = " ".join(capsys.readouterr().out.split())
    assert "1 finding about the journals and exports themselves: table evidence" in text
    assert "not audited: no export can be used" in text
