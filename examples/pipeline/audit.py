"""Generates five servers with faults, and audits them: python -m examples.pipeline.audit

Everything is written to a directory that is removed at the end; name one to keep it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from mqis.lab.generate import GeneratePlan, generate
from mqis.pipeline.report import report
from mqis.pipeline.runs import audit, ingest
from mqis.pipeline.session import Engine, session
from mqis.pipeline.tables import TableDirectory


def main(directory: Path) -> None:
    plan = GeneratePlan(sites=3, machines=6, queues=20, changes=100)
    made = generate(plan, directory / "made")
    print(f"{len(made.members)} servers, {made.changes} changes, {len(made.faults)} faults")

    with session(Engine(master="local[2]")) as spark:
        tables = TableDirectory(spark, directory / "tables")
        ingest(tables, str(directory / "made/journals"), str(directory / "made/exports"))
        done = audit(tables)
        for row in tables.read("divergence").collect():
            where = f" from {row.source} to {row.target}" if row.source else ""
            print(f"{row.server}: {row.type} {row.id} is {row.difference}: {row.cause}{where}")
        report(tables, directory / "report.html")
    assert done.differences == len(made.faults)
    print(f"report with charts: {directory / 'report.html'}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
