"""Snapshots of journals: the tables ``snapshots`` and ``snapshot_partitions``.

A snapshot is the server's directory as it was after one record. Retention removes the records
before the oldest snapshot that it keeps, so a rebuild of the past may have to start from a
snapshot.
"""

from __future__ import annotations

import re

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import sources
from mqis.pipeline.sources.directory import server_of
from mqis.pipeline.sources.files import SourceFile, files_beside, paths_in
from mqis.pipeline.sources.journal import PATTERN, server_of_segment
from mqis.pipeline.tables import TableDirectory

_SNAPSHOTS = "snapshot-*.jsonl"
_NUMBER = re.compile(r"[0-9]{1,20}")
_MAX_LSN = (1 << 63) - 1
_PLACE = "file string, of string, lsn long"


def snapshots(tables: TableDirectory, journals: str) -> list[DataFrame]:
    """Reads the snapshots in the journals' directories into tables; returns the errors."""
    options = {"path": journals, "allow_empty": "true"}
    beside = {path.parent for path in paths_in(options, PATTERN, "journal segments")}
    found = [row for directory in sorted(beside, key=str) for row in _snapshot_files(directory)]
    session = tables.session
    if not found:
        for name in ("snapshots", "snapshot_partitions"):
            tables.drop(name)
        return []
    places = F.broadcast(session.createDataFrame(found, _PLACE))
    paths = ",".join(path for path, _, _ in found)

    def placed(frame: DataFrame) -> DataFrame:
        named = frame.filter("error is null").drop("error", "server")
        return named.join(places, "file").withColumnRenamed("of", "server")

    lines = placed(sources.directory(session, paths, rows="lines"))
    tables.write("snapshots", lines.drop("offset"))
    states = placed(sources.directory(session, paths, rows="partitions"))
    tables.write("snapshot_partitions", states.coalesce(1))
    columns = ["server", "file", "offset", "error"]
    unread = sources.directory(session, paths, columns, rows="lines").filter("error is not null")
    return [unread.join(places, "file").withColumn("server", F.col("of")).drop("of", "lsn")]


def _snapshot_files(directory: SourceFile) -> list[tuple[str, str, int]]:
    """(file, server, lsn) of the snapshots in a journal's directory."""
    server = next(filter(None, map(server_of_segment, files_beside(directory, PATTERN))), "")
    taken = files_beside(directory, _SNAPSHOTS) if server else []
    # A path with a comma is left out: a comma separates paths.
    numbered = ((path, server_of(path).partition("-")[2]) for path in taken if "," not in str(path))
    return [(str(path), server, int(n)) for path, n in numbered if _is_lsn(n)]


def _is_lsn(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and int(text) <= _MAX_LSN
