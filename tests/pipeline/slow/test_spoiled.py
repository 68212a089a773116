"""Journals and exports that were spoiled by hand, in ways that the generator does not know."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqis.lab.generate import GeneratePlan, generate
from mqis.pipeline.runs import audit, ingest
from mqis.pipeline.tables import TableDirectory
from mqis.wire.journal import Whole, encode_record, segment_header, walk

PLAN = GeneratePlan(sites=2, machines=4, queues=10, changes=60, backups=1, faults=0, seed=4)
SEGMENT = "segment-0000000001.mqj"

Lines = list[dict[str, Any]]


def read_export(path: Path) -> Lines:
    """The lines as version 1 has them: without a server and a digest."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines[0]["version"] = 1
    lines[0].pop("server", None)
    return [line for line in lines if line.get("type") != "end"]


def write_export(path: Path, lines: Lines, *, ascii_only: bool = True) -> None:
    first, *others = lines
    first["lines"] = len(others)
    texts = [json.dumps(line, ensure_ascii=ascii_only, separators=(",", ":")) for line in lines]
    path.write_text("\n".join([*texts, ""]), encoding="utf-8")


def rewrite_segment(path: Path, change: Callable[[list[Whole]], list[Whole]]) -> None:
    """Writes other records into a segment, with right checksums."""
    data = path.read_bytes()
    _, start = segment_header(data)
    found = [entry for entry in walk(data, start) if isinstance(entry, Whole)]
    path.write_bytes(data[:start] + b"".join(encode_record(e.lsn, e.record) for e in change(found)))


def make_older(path: Path, server: str) -> set[str]:
    """Takes an authority's export back to before the last created queue; returns what it lacks."""
    header, *lines = read_export(path)
    (own,) = (p for p in header["partitions"] if p["owner"] == server)
    mine = [line for line in lines if line["partition"] == own["id"] and line["type"] == "queue"]
    number = sorted(line["seq"] for line in mine)[-3]
    lost = {line["id"] for line in mine if line["seq"] >= number}
    own["last_seq"] = f"{int(number, 16) - 1:016x}"
    write_export(path, [header, *(line for line in lines if line["id"] not in lost)])
    return lost


def relabel(exports: Path, owner: str) -> None:
    """Gives one queue a label outside ASCII everywhere; one export has it as plain UTF-8."""
    header, *lines = read_export(exports / f"{owner}.jsonl")
    (own,) = (p["id"] for p in header["partitions"][1:] if p["owner"] == owner)
    queue = next(x["id"] for x in lines if x["type"] == "queue" and x["partition"] == own)
    for path in exports.glob("*.jsonl"):
        changed = read_export(path)
        for line in changed[1:]:
            if line["id"] == queue:
                line["props"]["108"]["value"] = "Grüße 漢字"
        write_export(path, changed, ascii_only=path.stem != "s001-bsc")


def alter_record(found: list[Whole]) -> list[Whole]:
    record = found[9].record
    found[9] = replace(found[9], record=replace(record, time_us=record.time_us + 1))
    return found


@pytest.fixture(scope="module")
def spoiled(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TableDirectory, set[str]]:
    directory = tmp_path_factory.mktemp("spoiled")
    generate(PLAN, directory / "made")
    journals, exports = directory / "made/journals", directory / "made/exports"
    relabel(exports, "s001-psc")
    lost = make_older(exports / "s002-psc.jsonl", "s002-psc")
    shutil.copy(exports / "s001-bsc.jsonl", exports / "whoever.jsonl")
    shutil.copytree(journals / "s001-bsc", journals / "copy")
    rewrite_segment(journals / "copy" / SEGMENT, alter_record)
    rewrite_segment(journals / "s001-psc" / SEGMENT, lambda found: found[:100] + found[102:])
    tables = TableDirectory(spark, directory / "tables")
    ingest(tables, str(journals), str(exports))
    audit(tables)
    return tables, lost


def test_what_is_found(spoiled: tuple[TableDirectory, set[str]]) -> None:
    """Records that were cut out, a copy with other content, an export nobody can have made."""
    rows = spoiled[0].read("evidence").collect()
    assert sorted((row.kind, row.server, row.first, row.last) for row in rows) == [
        ("conflicting_records", "s001-bsc", 10, 10),
        ("missing_records", "s001-psc", 101, 102),
        ("older_export", "s002-psc", None, None),
        ("stranger", "whoever", None, None),
    ]
    assert {row.server for row in spoiled[0].read("journals").filter("complete").collect()} == {
        "s002-psc"
    }


def test_records_of_copies_count_once(spoiled: tuple[TableDirectory, set[str]]) -> None:
    records = spoiled[0].read("records").filter("server = 's001-bsc'")
    assert records.count() == records.select("lsn").distinct().count() > 100
    (differing,) = spoiled[0].read("repeats").filter("not same").collect()
    assert (differing.server, differing.lsn) == ("s001-bsc", 10)
    assert differing.file != differing.kept
    assert spoiled[0].read("repeats").count() == records.count()


def test_an_older_export_of_an_authority_corrupts_nobody(
    spoiled: tuple[TableDirectory, set[str]],
) -> None:
    """Nor does an export in UTF-8, which ``mqis import`` takes."""
    tables, lost = spoiled
    rows = tables.read("divergence").collect()
    assert {(row.server, row.id) for row in rows} == {
        (server, id_) for server in ("s001-psc", "s001-bsc") for id_ in lost
    }
    assert {(row.difference, row.cause) for row in rows} == {("extra", "export_older")}
    assert all("the export of s002-psc ends at change" in row.reason for row in rows)
