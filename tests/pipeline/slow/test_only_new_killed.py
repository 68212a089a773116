"""A run that is killed leaves each table as it was or new, and the next one continues.

Part of ``make engines``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from mqis.lab.generate import GeneratePlan, generate
from mqis.places.pipeline_tables import table_names
from tests.pipeline.growing import grow, in_segments
from tests.pipeline.slow.cluster import environment
from tests.waiting import DEADLINE_S, wait_until

SCRIPT = Path(__file__).with_name("ingest_script.py")
SMALL = GeneratePlan(sites=1, machines=3, queues=6, changes=60, seed=5, faults=0, backups=1)


class Ingest:
    """The script in a group of its own, so that Java dies with it."""

    def __init__(self, journals: Path, tables: Path, log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, SCRIPT, journals, tables],
                env=environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill_when(self, path: Path) -> None:
        """Kills it as soon as there is such a file or directory."""
        try:
            wait_until(lambda: path.exists() or self._process.poll() is not None, str(path))
            assert path.exists(), self.text
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def finish(self) -> str:
        assert self._process.wait(4 * DEADLINE_S) == 0, self.text
        return self.text

    @property
    def text(self) -> str:
        return self._log.read_text("utf-8", "replace")[-4000:]


def rows_of(tables: Path) -> dict[str, list[str]]:
    """The rows of all tables, as a program without Spark reads them."""
    found = {}
    for name in table_names(tables):
        rows = ds.dataset(tables / name, format="parquet", partitioning="hive").to_table()
        columns = sorted(rows.column_names)
        found[name] = sorted(repr([row[c] for c in columns]) for row in rows.to_pylist())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("moment", [".read_segments/v000002.draft", ".records/v000002.draft"])
def test_a_run_is_killed_while_it_writes(tmp_path: Path, moment: str) -> None:
    generate(SMALL, tmp_path / "made")
    in_segments(tmp_path / "made" / "journals", tmp_path / "whole", 12_000)
    journals, tables, log = tmp_path / "journals", tmp_path / "tables", tmp_path / "log"
    grow(tmp_path / "whole", journals, 0.5)
    Ingest(journals, tables, log).finish()
    before = rows_of(tables)
    grow(tmp_path / "whole", journals, 0.9)
    Ingest(journals, tables, log).kill_when(tables / moment)
    table = moment[1:].partition("/")[0]
    assert rows_of(tables)[table] == before[table]  # the old one, whole
    continued = Ingest(journals, tables, log).finish()
    read, files = (int(n) for n in continued.splitlines()[-1].split() if n.isdecimal())
    assert read < files
    Ingest(journals, tmp_path / "others", log).finish()
    assert rows_of(tables) == rows_of(tmp_path / "others")
    assert not [*tables.rglob("*.draft")]
