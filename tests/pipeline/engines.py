"""A standalone cluster and Spark Connect give what was planted, as a local session does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from mqis.pipeline.java import java_home
from mqis.runtime.freeports import free_port
from mqis.services.generate import Plan, generate

SCRIPT = Path(__file__).with_name("engine_script.py")
SMALL = Plan(sites=3, machines=6, queues=20, changes=50, seed=11)
COLUMNS = ("server", "difference", "cause", "type", "id", "partition", "seq", "source", "target")
STARTED_S = 120


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("engines") / "made"
    generate(SMALL, directory)
    return directory


def environment() -> dict[str, str]:
    return os.environ | {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


def wait_for(log: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTED_S
    while text not in log.read_text("utf-8", "replace"):
        assert process.poll() is None, log.read_text("utf-8", "replace")
        assert time.monotonic() < deadline, log.read_text("utf-8", "replace")
        time.sleep(0.2)


@contextmanager
def daemon(directory: Path, name: str, ready: str, *arguments: str) -> Iterator[None]:
    """A process of a Spark cluster, from the package that pip installed."""
    home = Path(pyspark.__file__).parent
    log = directory / f"{name}.log"
    spawned = environment() | {"SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(directory / name)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", *arguments],
            env=spawned,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(log, ready, process)
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    deploy, here = "org.apache.spark.deploy", ("--host", "127.0.0.1")
    master = ("--port", str(port), "--webui-port", str(free_port()))
    worker = ("--cores", "2", "--memory", "1g", "--webui-port", str(free_port()))
    url = f"spark://127.0.0.1:{port}"
    ready = ("I have been elected leader", "Successfully registered with master")
    with (
        daemon(tmp_path, "master", ready[0], f"{deploy}.master.Master", *here, *master),
        daemon(tmp_path, "worker", ready[1], f"{deploy}.worker.Worker", *here, *worker, url),
    ):
        yield url


def run(kind: str, url: str, enterprise: Path, tables: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, SCRIPT, kind, url, enterprise, tables],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    rows: list[dict[str, Any]] = json.loads(done.stdout.strip().splitlines()[-1])
    return rows


def check(rows: list[dict[str, Any]], enterprise: Path) -> None:
    planted = json.loads((enterprise / "manifest.json").read_text("ascii"))["faults"]
    assert planted

    def told(row: dict[str, Any]) -> tuple[object, ...]:
        return tuple(row[name] for name in COLUMNS)

    assert sorted(map(told, rows), key=str) == sorted(map(told, planted), key=str)


@pytest.mark.slow
def test_a_standalone_cluster(cluster: str, small: Path, tmp_path: Path) -> None:
    check(run("master", cluster, small, tmp_path / "tables"), small)


@pytest.mark.slow
def test_spark_connect(small: Path, tmp_path: Path) -> None:
    check(run("remote", "local[2]", small, tmp_path / "tables"), small)
