"""A standalone cluster whose workers reach no directory of the driver, only the S3 server.

Inputs are read by their URIs. The tables lie in the bucket, too, which is mounted for driver and
workers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mqis.lab.generate import GeneratePlan, generate
from tests.pipeline.slow.cluster import environment, standalone
from tests.pipeline.slow.mounted import check_mounts, credential, mounted, without
from tests.s3server import s3_server

SMALL = GeneratePlan(sites=3, machines=6, queues=20, changes=50, seed=11)
_RUN = (sys.executable, "-m", "mqis.cli.main", "pipeline", "run")
COLUMNS = ("server", "difference", "cause", "type", "id", "partition", "seq", "source", "target")


@dataclass(frozen=True, slots=True)
class Computers:
    """A directory of the driver's computer, one of the worker's, and the bucket on both."""

    driver: Path
    worker: Path
    bucket: Path


@pytest.fixture
def computers(tmp_path: Path) -> Computers:
    check_mounts()
    made = Computers(*(tmp_path / name for name in ("driver", "worker", "bucket")))
    for directory in (made.driver, made.worker, made.bucket):
        directory.mkdir()
    return made


def run_all(computers: Computers, master: str, uri: str) -> None:
    """Runs ``mqis pipeline run`` with everything that it makes beside tables in the driver's
    directory."""
    few = {"spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
    given = few | {f"spark.executorEnv.{name}": value for name, value in credential().items()}
    settings = [part for pair in given.items() for part in ("--conf", "=".join(pair))]
    bucket, _, query = uri.partition("?")
    inputs = ("--journals", f"{bucket}/journals?{query}", "--exports", f"{bucket}/exports?{query}")
    tables = ("--tables", str(computers.bucket / "tables"))
    done = subprocess.run(
        [*_RUN, "--master", master, *inputs, *tables, *settings],
        cwd=computers.driver,
        env=environment()
        | credential()
        | {name: str(computers.driver) for name in ("HOME", "TMPDIR", "SPARK_LOCAL_DIRS")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]


def test_workers_that_see_only_the_bucket(computers: Computers) -> None:
    made = computers.driver / "made"
    generate(SMALL, made)
    planted = json.loads((made / "manifest.json").read_text("ascii"))["faults"]
    root = computers.driver / "s3"
    with s3_server(root, "bucket") as server:
        for kind in ("journals", "exports"):
            shutil.move(made / kind, root / "bucket" / kind)
        with (
            mounted(server, "bucket", computers.bucket),
            standalone(computers.worker, without(computers.driver)) as master,
        ):
            assert list(computers.driver.iterdir())
            assert not list(seen_by_worker(computers).iterdir())
            run_all(computers, master, server.uri("bucket"))
        rows = divergence(root / "bucket" / "tables")
    wanted = [tuple(row[name] for name in COLUMNS) for row in planted]
    assert planted
    assert sorted(rows, key=str) == sorted(wanted, key=str)


def seen_by_worker(computers: Computers) -> Path:
    """The driver's directory as the worker sees it."""
    pid = worker_pid(computers.worker)
    return Path(f"/proc/{pid}/root{computers.driver}")


def worker_pid(directory: Path) -> int:
    """The process whose working files are in the worker's directory."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                settings = (entry / "environ").read_bytes()
            except OSError:  # it has ended
                continue
            if b"deploy.worker.Worker" in command and str(directory).encode() in settings:
                return int(entry.name)
    pytest.fail("there is no worker")


def divergence(tables: Path) -> list[tuple[object, ...]]:
    """The rows in the bucket itself, without a mount."""
    version = (tables / "divergence" / "CURRENT").read_text("ascii").strip()
    found = pq.read_table(tables / "divergence" / version).to_pylist()
    return [tuple(row[name] for name in COLUMNS) for row in found]
