"""Tables in the Hive metastore that PySpark carries, and in a real PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqis.lab.generate import GeneratePlan, generate
from mqis.pipeline.session import java_home
from tests.plugins.stores import PostgresSchema, PostgresServer

SCRIPT = Path(__file__).with_name("catalog_script.py")
JAR = Path("/usr/share/java/postgresql.jar")
SMALL = GeneratePlan(sites=2, machines=2, queues=4, changes=20, faults=0, seed=5)


@pytest.fixture(scope="module")
def told(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> dict[str, Any]:
    if not JAR.exists():
        pytest.skip("PostgreSQL's JDBC driver is missing (Debian: libpostgresql-jdbc-java)")
    directory = tmp_path_factory.mktemp("catalogs")
    generate(SMALL, directory / "made")
    known = dict(part.split("=", 1) for part in postgres_server.conninfo.split())
    url = (
        f"jdbc:postgresql://{known['host']}:{known['port']}/{known['dbname']}?user={known['user']}"
    )
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(directory), str(directory / "made"), str(JAR), url],
        cwd=directory,
        env=os.environ | {"JAVA_HOME": str(java_home())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_both_catalogues_hold_the_same_rows(told: dict[str, Any]) -> None:
    hive, postgres = told["spark_catalog.estate"], told["pg.estate"]
    assert hive["counts"]["records"] > 0
    assert hive["counts"]["changes"] > 0
    assert hive == postgres


def test_another_program_reads_the_tables_by_sql(
    told: dict[str, Any], postgres_server: PostgresServer
) -> None:
    database = PostgresSchema(postgres_server.conninfo, "estate")
    for name in ("records", "objects", "changes"):
        ((count,),) = database.execute(f"SELECT count(*) FROM {name}")
        assert count == told["pg.estate"]["counts"][name]
    ((properties,),) = database.execute(
        "SELECT properties FROM changes WHERE left(properties, 2) = '[{' "
        "ORDER BY partition, seq LIMIT 1"
    )
    assert {"propid", "text", "number", "raw"} >= json.loads(properties)[0].keys()


@pytest.mark.parametrize("place", ["spark_catalog.estate", "pg.estate"])
def test_a_table_of_another_schema_is_not_replaced(told: dict[str, Any], place: str) -> None:
    text = told[f"{place} refuses"]
    assert f"{place}.lag: exists with another schema (column " in text
    assert "drop it, or choose another schema with --into" in text
    assert "\n" not in text
