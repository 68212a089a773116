"""Run by ``test_only_new_killed`` in a process of its own: reads journals into tables.

python ingest_script.py JOURNALS TABLES
"""

from __future__ import annotations

import sys

from mqis.pipeline.runs import ingest
from mqis.pipeline.session import Engine, open_session
from mqis.pipeline.tables import TableDirectory


def main(journals: str, tables: str) -> None:
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.codegen.wholeStage": "false"}
    session = open_session(Engine(master="local[2]", settings=settings), "mqis tests of killing")
    done = ingest(TableDirectory(session, tables), journals)
    print(f"read {done.files['segment'].read} of {done.files['segment'].files}", flush=True)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
