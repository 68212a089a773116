"""Run by ``engines`` in a process of its own: ingest and audit on the engine that it names.

python engine_script.py master|remote URL ENTERPRISE TABLES
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mqis.pipeline.jobs.audit import audit
from mqis.pipeline.jobs.ingest import ingest
from mqis.pipeline.session import Engine, open_session
from mqis.pipeline.tables import Tables

_FEW = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}


def main(kind: str, url: str, enterprise: Path, tables: Path) -> None:
    engine = Engine(settings=_FEW, **{kind: url})  # type: ignore[arg-type]
    session = open_session(engine, "mqis tests of engines")
    opened = Tables(session, tables)
    ingest(opened, str(enterprise / "journals"), str(enterprise / "exports"))
    audit(opened)
    rows = [row.asDict() for row in opened.read("divergence").collect()]
    print(json.dumps(rows))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
