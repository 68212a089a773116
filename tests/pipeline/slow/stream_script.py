"""Run by ``test_exactly_once`` in a process of its own: a stream of changes into a table.

python stream_script.py MASTER JOURNALS TABLE CHECKPOINT [COLUMNS]
"""

from __future__ import annotations

import sys

from mqis.pipeline.session import Engine, open_session

_SETTINGS = {"spark.sql.shuffle.partitions": "2"}
COLUMNS = "server,lsn,command,partition,seq,object_id"


def main(master: str, journals: str, table: str, checkpoint: str, columns: str = COLUMNS) -> None:
    """Prints ``batch N`` for each batch, and ``done`` at the end of the journals."""
    session = open_session(Engine(master=master, settings=_SETTINGS), "mqis tests of streams")
    reader = session.readStream.format("mqis.journal").option("rows", "changes")
    changes = reader.option("columns", columns).option("maxRowsPerTrigger", 100).load(journals)
    query = (
        changes.writeStream.format("parquet")
        .option("path", table)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    last = -1
    while not query.awaitTermination(1):
        progress = query.lastProgress
        if progress is not None and progress.batchId > last:
            last = progress.batchId
            print(f"batch {last}", flush=True)
    print("done", flush=True)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
