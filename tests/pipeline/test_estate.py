"""Results of ``mqis estate check`` over several days become one table of faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.pipeline.inputs import estate_checks
from mqis.pipeline.runs import estate
from mqis.pipeline.tables import TableDirectory
from mqis.wire.errors import MqisError
from mqis.wire.ldap.changes import AddEntry
from tests.cli.commands import run
from tests.cli.test_estate import written
from tests.estate.planted import faults, sound


def check(directory: Path, day: int, entries: list[AddEntry]) -> None:
    """Runs the command at a directory with these entries, as if on that day of November."""
    dump = written(directory / f"{day}.ldif", entries)
    done = run("estate", "check", dump, "--json")
    told = json.loads(done.stdout)
    assert told["checked"].endswith("+00:00")
    told["checked"] = f"2026-11-{day:02}T08:00:00+01:00"
    (directory / f"{day}.json").write_text(json.dumps(told), "utf-8")


def without_descriptors(entries: list[AddEntry]) -> list[AddEntry]:
    return [
        AddEntry(e.name, tuple(row for row in e.attributes if row[0] != "nTSecurityDescriptor"))
        for e in entries
    ]


def test_faults_are_open_mended_or_unknown(spark: SparkSession, tmp_path: Path) -> None:
    planted = faults()
    everything = [entry for entries in planted.values() for entry in entries]
    open_queue, clone = planted["open_queue"], planted["cloned_queue_manager"]
    check(tmp_path, 1, [*sound(), *everything])
    check(tmp_path, 2, [*sound(), *open_queue, *clone])
    tables = TableDirectory(spark, tmp_path / "tables")
    assert estate(tables, str(tmp_path)) == {"open": 2, "mended": len(planted) - 2}

    # The newest check cannot tell open queues: it is a dump without descriptors.
    check(tmp_path, 3, without_descriptors([*sound(), *clone]))
    counts = estate(tables, str(tmp_path))
    assert counts == {"open": 1, "unknown": 1, "mended": len(planted) - 2}
    rows = {row.check: row for row in tables.read("estate").collect()}
    assert rows.keys() == planted.keys()
    assert rows["open_queue"].state == "unknown"
    assert rows["open_queue"].times_found == 2
    clone_row = rows["cloned_queue_manager"]
    assert (clone_row.state, clone_row.times_found) == ("open", 3)
    assert (clone_row.last_found - clone_row.first_found).days == 2
    assert all(row.detail and row.symptom and row.advice for row in rows.values())
    assert rows["queue_without_machine"].ldif.startswith("version: 1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "list indices"),
        ('{"checked": "2026-11-01T08:00:00Z", "unknown": []}', "'findings' is missing"),
        ('{"checked": "2026-11-01T08:00:00", "unknown": [], "findings": []}', "no time zone"),
        (
            '{"checked": "2026-11-01T08:00:00Z", "unknown": [], "findings": [{"check": 7}]}',
            "7 is no text",
        ),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_file_that_is_no_result_is_one_clear_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(MqisError, match=r"a\.json: this is no result of 'mqis estate check'") as e:
        estate_checks(str(tmp_path))
    assert reason in str(e.value)
    assert "\n" not in str(e.value)


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(MqisError, match="there are no results of 'mqis estate check --json'"):
        estate_checks(str(tmp_path))
