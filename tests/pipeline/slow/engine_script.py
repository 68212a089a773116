"""Run by ``engines`` in a process of its own, on the engine that it names.

python engine_script.py master|remote URL ENTERPRISE TABLES        everything, told as JSON
python engine_script.py master|remote URL ENTERPRISE TABLES follow  a stream, until it is killed
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mqis.pipeline.runs import audit, ingest, lag
from mqis.pipeline.session import Engine, open_session
from mqis.pipeline.streaming import follow, stream
from mqis.pipeline.tables import TableDirectory

_FEW = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
TOLD = ("divergence", "gaps", "lag", "rounds", "margins", "live", "live_divergence")


def everything(tables: TableDirectory, enterprise: Path) -> None:
    ingest(tables, str(enterprise / "journals"), str(enterprise / "exports"))
    audit(tables)
    lag(tables)
    query = stream(tables, str(enterprise / "journals"), once=True)
    follow(query, tables, lambda number, live: None)
    rows = {
        name: sorted(str(row.asDict(recursive=True)) for row in tables.read(name).collect())
        for name in TOLD
    }
    found = [row.asDict() for row in tables.read("divergence").collect()]
    print(json.dumps({"tables": rows, "divergence": found}))


def watch(tables: TableDirectory, enterprise: Path) -> None:
    query = stream(tables, str(enterprise / "journals"), every_s=0.2)
    follow(query, tables, lambda number, live: print(f"batch {number}", flush=True))


def main(kind: str, url: str, enterprise: Path, tables: Path, *what: str) -> None:
    engine = Engine(settings=_FEW, **{kind: url})  # type: ignore[arg-type]
    session = open_session(engine, "mqis tests of engines")
    (watch if what else everything)(TableDirectory(session, tables), enterprise)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), *sys.argv[5:])
