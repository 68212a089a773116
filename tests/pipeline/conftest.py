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
from mqis.pipeline.session import Engine, open_session
from mqis.pipeline.tables import TableDirectory

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
    # Little data: what is compiled for a query takes longer than the query.
    few = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    session = open_session(Engine(master="local[2]", memory="1g", settings=few), "mqis tests")
    yield session
    session.stop()


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
