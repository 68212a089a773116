"""One Spark session and one generated enterprise for all tests of the pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqis.lab.generate import GeneratePlan, generate
from mqis.pipeline.runs import ingest
from mqis.pipeline.session import Amount, Engine, open_session
from mqis.pipeline.tables import TableDirectory
from mqis.places import remote
from tests.s3server import KEY, SECRET, S3Server, s3_server

#: Three sites, five servers.
PLAN = GeneratePlan(sites=3, machines=12, queues=60, changes=2000, seed=7, faults=2)


@dataclass(frozen=True, slots=True)
class Enterprise:
    directory: Path
    manifest: dict[str, Any]

    @property
    def journals(self) -> str:
        return str(self.directory / "journals")

    @property
    def exports(self) -> str:
        return str(self.directory / "exports")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    few = {
        "spark.default.parallelism": "2",
        # The S3 servers of tests; Java has the environment of the time when it was started.
        "spark.executorEnv.AWS_ACCESS_KEY_ID": KEY,
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY": SECRET,
    }
    engine = Engine(master="local[2]", amount=Amount.LITTLE, memory="1g", settings=few)
    session = open_session(engine, "mqis tests")
    yield session
    session.stop()


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A real S3 server with an empty bucket, and its credential in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    remote.forget_systems()
    with s3_server(tmp_path / "s3", "bucket") as server:
        yield server
    remote.forget_systems()


@pytest.fixture(scope="session")
def enterprise(tmp_path_factory: pytest.TempPathFactory) -> Enterprise:
    directory = tmp_path_factory.mktemp("enterprise") / "made"
    generate(PLAN, directory)
    manifest = json.loads((directory / "manifest.json").read_text(encoding="ascii"))
    return Enterprise(directory, manifest)


@pytest.fixture(scope="session")
def tables(
    spark: SparkSession, enterprise: Enterprise, tmp_path_factory: pytest.TempPathFactory
) -> TableDirectory:
    """Ingested once; who writes into it writes tables of names that nobody else does."""
    made = TableDirectory(spark, tmp_path_factory.mktemp("tables"))
    ingest(made, enterprise.journals, enterprise.exports)
    return made
