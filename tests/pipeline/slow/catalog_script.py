"""Run by ``test_catalogs`` in a process of its own: ingests into catalogues, tells it as JSON.

python catalog_script.py DIRECTORY ENTERPRISE JAR JDBC_URL
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mqis.pipeline import runs
from mqis.pipeline.catalogs import CatalogTables
from mqis.pipeline.session import Engine, open_session
from mqis.wire.errors import MqisError

_JDBC = "org.apache.spark.sql.execution.datasources.v2.jdbc"


def changes(tables: CatalogTables) -> dict[str, str]:
    """The rows of the table by their keys; a map has its entries in any order."""
    rows = (row.asDict(recursive=True) for row in tables.read("changes").collect())
    return {
        f"{row['partition']} {row['seq']}": str(row | {"had": sorted((row["had"] or {}).items())})
        for row in rows
    }


def main(directory: Path, enterprise: Path, jar: str, url: str) -> None:
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={directory / 'metastore'};create=true"
        ),
        "spark.jars": jar,
        "spark.sql.catalog.pg": f"{_JDBC}.JDBCTableCatalog",
        "spark.sql.catalog.pg.url": url,
        "spark.sql.catalog.pg.driver": "org.postgresql.Driver",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
    }
    session = open_session(Engine(master="local[2]", settings=settings), "mqis catalogues")
    told: dict[str, object] = {}
    for place in ("spark_catalog.estate", "pg.estate"):
        tables = CatalogTables(session, place)
        for _ in range(2):  # the second time, every table is replaced
            runs.ingest(tables, str(enterprise / "journals"), str(enterprise / "exports"))
        runs.history(tables)
        found = {name: tables.read(name).count() for name in tables.names()}
        told[place] = {"counts": found, "changes": changes(tables)}
        session.sql(f"DROP TABLE {place}.lag") if tables.has("lag") else None
        session.range(1).writeTo(f"{place}.lag").create()
        try:
            runs.lag(tables)
        except MqisError as error:
            told[f"{place} refuses"] = str(error)
    print(json.dumps(told))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
