"""Spark finds the sources by itself, in a session that registers nothing."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

from pyspark.sql import SparkSession

from mqis.pipeline.sources import SOURCES
from tests.pipeline.conftest import Enterprise

_ROOT = Path(__file__).parents[2]
_MODULES = sorted(path.stem for path in (_ROOT / "src").glob("pyspark_*.py"))


def test_a_session_that_registers_nothing_finds_them(
    spark: SparkSession, enterprise: Enterprise
) -> None:
    fresh = spark.newSession()
    fresh.sql(
        f"CREATE TEMPORARY VIEW found USING mqis.journal OPTIONS (path '{enterprise.journals}')"
    )
    counted = fresh.sql("SELECT count(DISTINCT server) AS servers FROM found").collect()
    assert counted[0]["servers"] > 3
    exported = fresh.read.format("mqis.directory").load(enterprise.exports)
    assert exported.filter("error is null").limit(1).count() == 1


def test_every_source_has_a_module() -> None:
    found = {import_module(name).DefaultSource for name in _MODULES}
    assert found == set(SOURCES)


def test_the_wheel_has_every_module() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="ascii"))
    listed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert {f"src/{name}.py" for name in _MODULES} | {"src/mqis"} == set(listed)
