"""Findings about the input: what was planted in the files of an enterprise, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.evidence.findings import EvidenceKind
from mqis.pipeline.graph.facts import Facts, facts_by, judged_by_key
from mqis.pipeline.readable import used_input
from mqis.pipeline.rebuilding import rebuild
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.records import sendings, unrecorded
from mqis.protocol.journal.numbers import SKIPPED
from mqis.wire.journal import RecordKind, RecordState
from tests.pipeline.conftest import Enterprise

#: The kinds that the generator plants; the rules of the others are tested by themselves.
PLANTED = (
    EvidenceKind.MISSING_RECORDS,
    EvidenceKind.MISSING_END,
    EvidenceKind.MISSING_SEGMENTS,
    EvidenceKind.TAMPERED,
    EvidenceKind.FOREIGN,
    EvidenceKind.DUPLICATE_SEGMENT,
    EvidenceKind.STRANGER,
    EvidenceKind.MISNAMED_EXPORT,
    EvidenceKind.OLDER_EXPORT,
    EvidenceKind.CLOCK_AHEAD,
)
COLUMNS = ("kind", "server", "file", "partition", "first", "last")

Key = tuple[object, ...]


@pytest.fixture(scope="module")
def found(tables: TableDirectory) -> list[Key]:
    rows = tables.read("evidence").collect()
    assert all(row.explanation for row in rows)
    return [tuple(row[name] for name in COLUMNS) for row in rows]


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_evidence(kind: EvidenceKind, found: list[Key], enterprise: Enterprise) -> None:
    planted = [tuple(row[name] for name in COLUMNS) for row in enterprise.manifest["evidence"]]
    wanted = sorted((key for key in planted if key[0] == kind), key=str)
    assert wanted
    assert sorted((key for key in found if key[0] == kind), key=str) == wanted


def test_nothing_else_is_found(found: list[Key]) -> None:
    assert {key[0] for key in found} == set(PLANTED)


def test_unreadable_places_of_exports_and_journals(
    tables: TableDirectory, enterprise: Enterprise
) -> None:
    """A line that is not UTF-8 is an unreadable line, not another value."""
    rows = tables.read("errors").collect()
    told = [(row.file, row.offset, row.reason.partition(":")[0]) for row in rows]
    planted = [(d["file"], d["offset"], d["kind"]) for d in enterprise.manifest["damage"]]
    assert sorted(told) == sorted(planted)
    assert {kind for _, _, kind in told} == {"corrupt", "torn", "cut", "not UTF-8"}


def test_copies_are_read_once(tables: TableDirectory) -> None:
    records = tables.read("records")
    assert records.count() == records.select("server", "server_id", "lsn").distinct().count()
    assert tables.read("journals").filter("complete").count() == 4


def test_signatures_are_checked_with_the_keys_in_the_exports(
    tables: TableDirectory, enterprise: Enterprise
) -> None:
    (wrong,) = (e["server"] for e in enterprise.manifest["evidence"] if e["kind"] == "foreign")
    rows = tables.read("journals").select("server", "signature").collect()
    names = {server["name"] for server in enterprise.manifest["servers"]}
    assert {row.server: row.signature for row in rows} == {
        name: "wrong" if name == wrong else "valid" for name in names
    }


def test_a_tampered_segment_is_not_a_damaged_one(tables: TableDirectory) -> None:
    (row,) = tables.read("evidence").filter("kind = 'tampered'").collect()
    assert "all checksums are right, so this is no disk error" in row.explanation
    assert tables.read("errors").filter(f"file = '{row.file}'").isEmpty()


def test_strangers_and_misnamed_exports_are_not_used(
    tables: TableDirectory, found: list[Key]
) -> None:
    (misnamed,) = (key[2] for key in found if key[0] == EvidenceKind.MISNAMED_EXPORT)
    assert used_input(tables, "records").filter("server = 'stranger'").isEmpty()
    assert not tables.read("records").filter("server = 'stranger'").isEmpty()
    for used, whole in (
        (used_input(tables, "objects"), tables.read("objects")),
        (used_input(tables, "partitions"), tables.read("partitions")),
    ):
        files = {row.file for row in whole.select("file").distinct().collect()}
        assert {row.file for row in used.select("file").distinct().collect()} == files - {misnamed}


def test_a_rebuild_warns_of_clocks_and_ignores_strangers(
    tables: TableDirectory, tmp_path: Path
) -> None:
    out = tmp_path / "rebuilt.jsonl"
    done = rebuild(tables, out, at_time=datetime(2030, 1, 1, tzinfo=UTC))
    assert len(done.warnings) == 1
    assert "the times of s002-psc cannot be trusted: its clock is 365 days" in done.warnings[0]
    text = out.read_text("ascii")
    assert "made by nobody" not in text
    assert '"owner":"stranger"' not in text


def test_changes_made_around_a_journal(spark: SparkSession) -> None:
    """A number that no record has; a large jump is made on purpose, by a restored server."""
    local, applied = int(RecordState.LOCAL), int(RecordState.APPLIED)
    numbers = [(1, local, 5), (2, local, 6), (3, local, 9), (4, applied, 12), (5, local, 13)]
    numbers += [(6, local, 13 + 2 * SKIPPED), (7, int(RecordState.REFUSED), 1)]
    rows = [
        ("psc1", bytearray(16), int(RecordKind.CHANGE), state, lsn, seq)
        for lsn, state, seq in numbers
    ]
    columns = "server string, partition binary, kind int, state int, lsn long, seq long"
    records = spark.createDataFrame(rows, columns)
    makers = spark.createDataFrame([("psc1", bytearray(16))], "server string, partition binary")
    found = [tuple(row) for row in unrecorded(records, makers).collect()]
    assert found == [("psc1", bytearray(16), 7, 8)]


def test_a_rule_gets_the_rows_of_one_server_at_a_time(spark: SparkSession) -> None:
    """A rule that got all servers at once would need memory for all pairs of servers."""
    sizes = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "server string, first long")
    names = spark.createDataFrame([("b", "x"), ("c", "y")], "server string, file string")

    def rule(known: Facts) -> Iterator[dict[str, object]]:
        (server,) = {row["server"] for rows in known.values() for row in rows}
        first = sum(row["first"] for row in known["sizes"])
        yield {"server": server, "first": first, "file": "".join(r["file"] for r in known["names"])}

    found = judged_by_key(facts_by("server", sizes=sizes, names=names), rule, schemas.EVIDENCE)
    told = {(row.server, row.first, row.file) for row in found.collect()}
    assert told == {("a", 4, ""), ("b", 2, "x"), ("c", 0, "y")}


def test_clocks_are_judged_by_one_message_of_each_two_servers(spark: SparkSession) -> None:
    """The message that shows the sender's clock furthest ahead; times may be any number."""
    first, last = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
    source = bytearray(16)
    queued, received = int(RecordState.QUEUED), int(RecordState.RECEIVED)
    rows = [("a", "a.mqj", lsn, first, queued, source, lsn) for lsn in (1, 2, 3)]
    rows += [("a", "a.mqj", 4, last, queued, source, 4)]
    came = [first + timedelta(seconds=lsn) for lsn in range(5)]
    rows += [("b", f"{n % 2}.mqj", n, came[n], received, source, n) for n in (1, 2, 3, 4)]
    columns = "server string, file string, lsn long, time timestamp, state int"
    records = spark.createDataFrame(
        rows, f"{columns}, message_source binary, message_ordinal long"
    ).withColumn("kind", F.lit(int(RecordKind.MESSAGE)))
    (found,) = sendings(records).collect()
    assert (found.sender, found.receiver) == ("a", "b")
    assert found.sent_us - found.received_us == (last - came[4]) // timedelta(microseconds=1)
