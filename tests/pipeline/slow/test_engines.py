"""A standalone cluster and Spark Connect give what a local session gives, row by row; a stream that
is killed goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

from mqis.lab.generate import GeneratePlan, generate
from mqis.wire.journal import RecordKind, RecordState, Whole, segment_header, walk
from tests.pipeline.slow.cluster import environment, standalone
from tests.waiting import wait_until

SCRIPT = Path(__file__).with_name("engine_script.py")
SMALL = GeneratePlan(sites=3, machines=6, queues=20, changes=50, seed=11)
COLUMNS = ("server", "difference", "cause", "type", "id", "partition", "seq", "source", "target")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("engines") / "made"
    generate(SMALL, directory)
    return directory


def wait_for(log: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    def looked() -> bool:
        assert process.poll() is None, log.read_text("utf-8", "replace")
        return text in log.read_text("utf-8", "replace")

    wait_until(looked, f"{text} in {log}")


def run(kind: str, url: str, enterprise: Path, tables: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, SCRIPT, kind, url, enterprise, tables],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def local(small: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """On a local session: what was planted is found; others have to say the same."""
    told = run("master", "local[2]", small, tmp_path_factory.mktemp("local"))
    planted = json.loads((small / "manifest.json").read_text("ascii"))["faults"]
    assert planted

    def chosen(row: dict[str, Any]) -> tuple[object, ...]:
        return tuple(row[name] for name in COLUMNS)

    assert sorted(map(chosen, told["divergence"]), key=str) == sorted(map(chosen, planted), key=str)
    tables: dict[str, Any] = told["tables"]
    assert all(tables[name] for name in ("gaps", "lag", "rounds", "live", "live_divergence"))
    return tables


@pytest.mark.slow
def test_a_standalone_cluster(small: Path, local: dict[str, Any], tmp_path: Path) -> None:
    with standalone(tmp_path) as url:
        assert run("master", url, small, tmp_path / "tables")["tables"] == local


@pytest.mark.slow
def test_spark_connect(small: Path, local: dict[str, Any], tmp_path: Path) -> None:
    assert run("remote", "local[2]", small, tmp_path / "tables")["tables"] == local


# --- a stream that is killed ----------------------------------------------------------------------


def follow(enterprise: Path, tables: Path, log: Path) -> subprocess.Popen[bytes]:
    """In a group of its own, so that Java dies with it."""
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, SCRIPT, "master", "local[2]", enterprise, tables, "follow"],
            env=environment(),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def records_of(journals: Path) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    states = (RecordState.LOCAL, RecordState.APPLIED)
    for path in journals.rglob("*.mqj"):
        data = path.read_bytes()
        header, start = segment_header(data)
        entries = [entry for entry in walk(data, start) if isinstance(entry, Whole)]
        found += [(header.server, e.lsn) for e in entries if e.record.state in states]
    return sorted(found)


@pytest.mark.slow
def test_a_stream_that_is_killed_loses_and_repeats_nothing(small: Path, tmp_path: Path) -> None:
    enterprise, tables, log = tmp_path / "made", tmp_path / "tables", tmp_path / "log"
    shutil.copytree(small / "journals", enterprise / "journals")
    whole = {path: path.read_bytes() for path in (enterprise / "journals").rglob("*.mqj")}
    for path, octets in whole.items():
        path.write_bytes(octets[: len(octets) // 3])
    first = follow(enterprise, tables, log)
    wait_for(log, "batch 0", first)
    for path, octets in whole.items():
        path.write_bytes(octets[: len(octets) * 2 // 3])
    time.sleep(1.0)  # somewhere in the next batch
    kill(first)
    for path, octets in whole.items():
        path.write_bytes(octets)
    wanted = records_of(enterprise / "journals")
    second = follow(enterprise, tables, log)
    try:

        def looked() -> bool:
            assert second.poll() is None, log.read_text("utf-8", "replace")
            return kept(tables) == wanted

        wait_until(looked, "every record in the tables")
    finally:
        kill(second)


def kept(tables: Path) -> list[tuple[str, int]]:
    """The changes that batches hold, each as often as it is there."""
    try:
        table = pq.read_table(tables / "stream" / "batches", columns=["server", "lsn", "kind"])
    except (OSError, pa.ArrowInvalid):  # a batch is being replaced
        return []
    rows = table.filter(pa.compute.equal(table["kind"], int(RecordKind.CHANGE))).to_pylist()
    return sorted((row["server"], row["lsn"]) for row in rows)
