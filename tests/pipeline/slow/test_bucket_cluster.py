"""A standalone cluster whose workers reach no directory of the driver, only the S3 server.

Inputs are read by their URIs. The tables lie in the bucket, too, which is mounted for driver and
workers. All processes of Spark have mqis from its wheel.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from mqis.lab.generate import GeneratePlan, generate
from tests.pipeline.slow.cluster import QUICK_JAVA, connect_server, environment, standalone
from tests.pipeline.slow.installed import environment_with_wheel, without_repository, worker_of
from tests.pipeline.slow.mounted import check_mounts, credential, mounted, without
from tests.s3server import s3_server

SMALL = GeneratePlan(sites=3, machines=6, queues=20, changes=50, seed=11)
COLUMNS = ("server", "difference", "cause", "type", "id", "partition", "seq", "source", "target")
#: For little data.
_LITTLE = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True, slots=True)
class Computers:
    """A directory of the driver's computer, one of the worker's, and the bucket on both."""

    driver: Path
    worker: Path
    #: Where the bucket is mounted.
    bucket: Path
    #: The bucket itself, without a mount.
    stored: Path
    #: The Python that has mqis from its wheel.
    python: Path
    master: str
    inputs: tuple[str, ...]

    @property
    def settings(self) -> dict[str, str]:
        """Settings of Spark: for little data, and the credential of the workers."""
        env = {f"spark.executorEnv.{name}": value for name, value in credential().items()}
        return _LITTLE | env | {"spark.driver.host": "127.0.0.1"}

    def env(self) -> dict[str, str]:
        """The environment of the driver: everything that it makes is in its directory."""
        own = {name: str(self.driver) for name in ("HOME", "TMPDIR", "SPARK_LOCAL_DIRS")}
        return spark_environment(self.python) | credential() | own

    def mqis(self, *arguments: str) -> None:
        self.run([str(self.python), "-m", "mqis.cli.main", *arguments])

    def run(self, command: list[str], directory: str = ".") -> None:
        done = subprocess.run(
            command,
            cwd=self.driver / directory,
            env=self.env(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-9000:]


@cache
def spark_environment(python: Path) -> dict[str, str]:
    return without_repository(environment() | QUICK_JAVA) | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": worker_of(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    check_mounts()
    return environment_with_wheel(tmp_path_factory.mktemp("environment"))


@contextmanager
def started(tmp_path: Path, python: Path) -> Iterator[Computers]:
    """The S3 server with the inputs, its bucket mounted, and the cluster."""
    driver, worker, bucket = (tmp_path / name for name in ("driver", "worker", "bucket"))
    for directory in (driver, worker, bucket):
        directory.mkdir()
    generate(SMALL, driver / "made")
    root = driver / "s3"
    with s3_server(root, "bucket") as server:
        for kind in ("journals", "exports"):
            shutil.move(driver / "made" / kind, root / "bucket" / kind)
        inputs = [(f"--{kind}", server.uri(f"bucket/{kind}")) for kind in ("journals", "exports")]
        with (
            mounted(server, "bucket", bucket, driver / "cache"),
            standalone(worker, without(driver), spark_environment(python)) as master,
        ):
            assert list(driver.iterdir())
            assert not list(seen_by_worker(driver, worker).iterdir())
            given = tuple(part for pair in inputs for part in pair)
            yield Computers(driver, worker, bucket, root / "bucket", python, master, given)


def test_workers_that_see_only_the_bucket(tmp_path: Path, python: Path) -> None:
    with started(tmp_path, python) as computers:
        conf = [part for pair in computers.settings.items() for part in ("--conf", "=".join(pair))]
        tables = ("--tables", str(computers.bucket / "tables"))
        run = ("pipeline", "run", "--master", computers.master)
        computers.mqis(*run, *computers.inputs, *tables, *conf)
    stored = computers.stored / "tables" / "divergence"
    version = (stored / "CURRENT").read_text("ascii").strip()  # a mounted bucket has no links
    assert differences(stored / version) == planted(computers)


def test_spark_pipelines_with_workers_that_see_only_the_bucket(
    tmp_path: Path, python: Path
) -> None:
    with started(tmp_path, python) as computers:
        computers.mqis("pipeline", "init", "project", *computers.inputs)
        settings = computers.settings | {
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": (computers.bucket / "warehouse").as_uri(),
            "spark.sql.pipelines.execution.maxConcurrentFlows": "2",
            # A store of objects has no directories to rename: tasks put each file in its place.
            "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        }
        serving = connect_server(computers.driver, computers.master, settings, computers.env())
        with serving as url:
            command = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
            computers.run([str(command), "run", "--remote", url], "project")
    assert differences(computers.stored / "warehouse" / "divergence") == planted(computers)


def planted(computers: Computers) -> list[tuple[object, ...]]:
    manifest = json.loads((computers.driver / "made" / "manifest.json").read_text("ascii"))
    found = [tuple(row[name] for name in COLUMNS) for row in manifest["faults"]]
    assert found
    return sorted(found, key=str)


def differences(table: Path) -> list[tuple[object, ...]]:
    found = pq.read_table(table).to_pylist()
    return sorted((tuple(row[name] for name in COLUMNS) for row in found), key=str)


def seen_by_worker(driver: Path, worker: Path) -> Path:
    """The driver's directory as the worker sees it."""
    return Path(f"/proc/{worker_pid(worker)}/root{driver}")


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
