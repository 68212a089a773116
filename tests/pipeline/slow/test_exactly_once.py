"""A stream of changes into a table has each change once, whatever is killed on the way.

Part of ``make engines``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mqis.lab.generate import GeneratePlan, generate
from mqis.wire.journal import Whole, segment_header, walk
from tests.pipeline.slow.cluster import environment, standalone
from tests.pipeline.test_changes import changes_in
from tests.waiting import DEADLINE_S, wait_until

SCRIPT = Path(__file__).with_name("stream_script.py")
SMALL = GeneratePlan(sites=2, machines=4, queues=10, changes=60, seed=5, faults=0)
Row = tuple[str, int, int, bytes, int]


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stream") / "made"
    generate(SMALL, directory)
    return directory / "journals"


def wanted(journals: Path) -> list[Row]:
    found: list[Row] = []
    for path in journals.rglob("*.mqj"):
        data = path.read_bytes()
        header, start = segment_header(data)
        for entry in walk(data, start):
            assert isinstance(entry, Whole)
            found += [
                (header.server, entry.lsn, int(one.command), one.partition.raw, one.seq.value)
                for one in changes_in(entry.record)[0]
            ]
    return sorted(found)


def in_table(table: Path) -> list[Row]:
    """The rows of the files that Spark's log of the table names; others are of failed batches."""
    names = [line for log in sorted((table / "_spark_metadata").iterdir()) for line in named(log)]
    rows = [
        row
        for path in names
        for row in pq.read_table(path).to_pylist()
        if row["command"] is not None
    ]
    return sorted(
        (row["server"], row["lsn"], row["command"], row["partition"], row["seq"]) for row in rows
    )


def named(log: Path) -> list[str]:
    if log.suffix in (".compact", "") and not log.name.startswith("."):
        lines = log.read_text("utf-8").splitlines()[1:]
        return [json.loads(line)["path"].removeprefix("file://") for line in lines]
    return []


class Stream:
    """The script with its table; killed and started again."""

    def __init__(self, master: str, journals: Path, directory: Path) -> None:
        self.table, self.log = directory / "table", directory / "log"
        self._arguments = [master, journals, self.table, directory / "checkpoint"]

    def start(self, *columns: str) -> subprocess.Popen[bytes]:
        """In a group of its own, so that Java dies with it."""
        with self.log.open("wb") as out:
            return subprocess.Popen(
                [sys.executable, SCRIPT, *map(str, self._arguments), *columns],
                env=environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def wait_for(self, words: str, process: subprocess.Popen[bytes]) -> None:
        def looked() -> bool:
            assert process.poll() is None or words in self.text(), self.text()[-4000:]
            return words in self.text()

        wait_until(looked, words)

    def finish(self, *columns: str) -> int:
        process = self.start(*columns)
        try:
            return process.wait(4 * DEADLINE_S)
        finally:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_the_driver_is_killed(journals: Path, tmp_path: Path) -> None:
    stream = Stream("local[2]", journals, tmp_path)
    first = stream.start()
    try:
        stream.wait_for("batch 1", first)
    finally:
        kill(first)
    second = stream.start()
    try:
        stream.wait_for("batch ", second)
    finally:
        kill(second)
    assert in_table(stream.table) != wanted(journals)  # both were killed before the end
    assert stream.finish() == 0, stream.text()[-4000:]
    assert in_table(stream.table) == wanted(journals)
    assert "Trigger.AvailableNow" not in stream.text()  # Spark warns if a source cannot do it
    assert stream.finish("server,lsn") != 0
    assert "the stream of this checkpoint was started with changes: struct<" in stream.text()
    assert "give the same columns, or a new checkpoint and a new table" in stream.text()


@pytest.mark.slow
def test_an_executor_is_killed(journals: Path, tmp_path: Path) -> None:
    with standalone(tmp_path) as url:
        stream = Stream(url, journals, tmp_path)
        process = stream.start()
        try:
            stream.wait_for("batch 0", process)
            executors = running_executors(tmp_path)
            assert executors
            for executor in executors:
                os.kill(executor, signal.SIGKILL)
            stream.wait_for("done", process)
            assert process.wait(DEADLINE_S) == 0
        finally:
            kill(process)
    assert in_table(stream.table) == wanted(journals)


def running_executors(directory: Path) -> list[int]:
    """The Java processes of executors whose worker has its directory here."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            line = (process / "cmdline").read_bytes()
            here = (process / "cwd").readlink()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in line and here.is_relative_to(directory):
            found.append(int(process.name))
    return found
