"""The tables without the input that is not used: strangers' journals, exports of other servers."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.evidence.findings import EvidenceKind
from mqis.pipeline.tables import TableDirectory

_CLOCKS = (EvidenceKind.CLOCK_AHEAD.value, EvidenceKind.CLOCK_BEHIND.value)
_ALTERED = (EvidenceKind.TAMPERED.value, EvidenceKind.FOREIGN.value)
_UNUSED = (EvidenceKind.STRANGER.value, EvidenceKind.MISNAMED_EXPORT.value)


def _unused_files(tables: TableDirectory) -> list[str]:
    if not tables.has("evidence"):
        return []
    rows = tables.read("evidence").filter(F.col("kind").isin(*_UNUSED))
    return sorted(row["file"] for row in rows.select("file").collect())


def readable_objects(tables: TableDirectory) -> DataFrame:
    """The table ``objects`` without the lines that could not be read."""
    return tables.read("objects").filter("error is null").drop("error")


def objects_of(tables: TableDirectory) -> DataFrame:
    """The objects of the exports that are used."""
    files = _unused_files(tables)
    found = readable_objects(tables)
    return found.filter(~F.col("file").isin(files)) if files else found


def partitions_of(tables: TableDirectory) -> DataFrame:
    """The partitions of the exports that are used."""
    files = _unused_files(tables)
    found = tables.read("partitions")
    return found.filter(~F.col("file").isin(files)) if files else found


def records_of(tables: TableDirectory) -> DataFrame:
    """The records of the servers that directories know; raises if there are no ``records``."""
    found = tables.read("records")
    for server, id_ in _strange_journals(tables):
        found = found.filter((F.col("server") != server) | (F.hex("server_id") != id_))
    return found


def _strange_journals(tables: TableDirectory) -> list[tuple[str, str]]:
    """The names and identifiers, in hexadecimal digits, of servers that no directory knows."""
    if not (tables.has("segments") and tables.has("journals")):
        return []
    listed, known = (
        {
            tuple(row)
            for row in tables.read(name)
            .filter("server_id is not null")
            .select("server", F.hex("server_id"))
            .collect()
        }
        for name in ("segments", "journals")
    )
    return sorted(listed - known)


def servers_with_wrong_clocks(tables: TableDirectory) -> dict[str, str]:
    """The explanations by server."""
    return _explanations(tables, _CLOCKS)


def servers_with_altered_journals(tables: TableDirectory) -> dict[str, str]:
    """The explanations by server."""
    return _explanations(tables, _ALTERED)


def _explanations(tables: TableDirectory, kinds: Collection[str]) -> dict[str, str]:
    if not tables.has("evidence"):
        return {}
    rows = tables.read("evidence").filter(F.col("kind").isin(*kinds))
    return {row["server"]: row["explanation"] for row in rows.collect()}


def journals_of(tables: TableDirectory) -> DataFrame:
    """(server, complete) of the journals that are used."""
    if not tables.has("journals") and not tables.has("records"):
        return empty(tables.session, "journals").select("server", "complete")
    return tables.read("journals").select("server", "complete")


def errors_of(tables: TableDirectory) -> DataFrame:
    """The table ``errors``, or an empty one."""
    return tables.read("errors") if tables.has("errors") else empty(tables.session, "errors")


def empty(session: SparkSession, name: str) -> DataFrame:
    """An empty table in place of one that was not ingested."""
    known = {
        "records": schemas.RECORDS,
        "errors": schemas.ERRORS,
        "journals": schemas.JOURNALS,
        "partitions": schemas.PARTITIONS,
    }
    return session.createDataFrame([], known[name])
