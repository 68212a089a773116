"""``tools/same_tables.py``: equal rows in any order are the same, wherever the files lay."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tools.same_tables import main

LOCAL = "/data/journals/psc1/segment-0000000001.mqj"
STORED = "s3://bucket/x/journals/psc1/segment-0000000001.mqj?endpoint_override=10.0.0.9:1&region=x"


def write(directory: Path, name: str, *rows: dict[str, object]) -> None:
    (directory / name / "v000002").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), directory / name / "v000002" / "a.parquet")
    (directory / name / "CURRENT").write_text("v000002\n")


def test_the_same_rows_of_other_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    ours: list[dict[str, object]] = [{"file": LOCAL, "n": 1}, {"file": None, "n": 2}]
    write(first, "errors", *ours)
    write(second, "errors", ours[1], {"file": STORED, "n": 1})
    assert main([str(first), str(second)]) == 0
    assert "1 tables, all rows are the same" in capsys.readouterr().out


@pytest.mark.parametrize(
    "other", [{"file": LOCAL, "n": 2}, {"file": LOCAL.replace("psc1", "psc2"), "n": 1}]
)
def test_another_row_is_told(
    other: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "first", "errors", {"file": LOCAL, "n": 1})
    write(tmp_path / "second", "errors", other)
    write(tmp_path / "second", "gaps", {"n": 1})
    assert main([str(tmp_path / "first"), str(tmp_path / "second")]) == 1
    told = capsys.readouterr().out
    assert "gaps: only in" in told
    assert told.count("errors: ") == 2


def test_no_tables_are_not_the_same(tmp_path: Path) -> None:
    assert main([str(tmp_path), str(tmp_path)]) == 1
