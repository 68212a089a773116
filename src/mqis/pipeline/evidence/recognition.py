"""Recognises servers: journals and exports of servers that no directory knows are not used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from mqis.findings import Finding
from mqis.pipeline.evidence.exports import (
    ExportedPartition,
    ExportFile,
    duplicates,
    misnamed,
    stranger,
)
from mqis.pipeline.evidence.findings import evidence_row
from mqis.pipeline.sources.files import parent_of

Row = dict[str, Any]


def misnamed_exports(known: defaultdict[str, list[Row]]) -> Iterator[Row]:
    """The findings about one server's exports that are another's, from the facts of the graph."""
    states = [ExportedPartition(**row) for row in known["states"]]
    own = {(row["file"], row["partition"]) for row in known["own"]}
    made = {(row["server"], row["partition"]) for row in known["made"]}
    for finding in misnamed(states, own, made):
        yield evidence_row(finding)


def strangers(known: defaultdict[str, list[Row]]) -> Iterator[Row]:
    """The findings about strangers and second exports; a few facts for each server."""
    files = [ExportFile(**row) for row in known["exports"]]
    strange = [*_strangers(known, files)]
    others = {finding.where for finding in strange}
    twice = duplicates(export for export in files if export.file not in others)
    for finding in (*strange, *twice):
        yield evidence_row(finding)


def _strangers(
    known: defaultdict[str, list[Row]], exports: Iterable[ExportFile]
) -> Iterator[Finding]:
    """The journals and exports of servers that no directory knows as machines."""
    ids = {row["id"] for row in known["machines"]}
    names = {row["name"] for row in known["machines"]}
    journals = {(row["server"], row["server_id"]): row["file"] for row in known["journals"]}
    elsewhere = ids | {row["id"] for row in known["known"]}
    # A single journal proves nothing about its own server.
    if len({id_ for _, id_ in journals}) > 1 or ids:
        for (server, id_), file in sorted(journals.items()):
            if id_ not in elsewhere:
                yield stranger(server, parent_of(file), "journal")
    files: dict[str, set[str]] = defaultdict(set)
    for export in exports:
        files[export.server].add(export.file)
    if any(server.lower() in names for server in files):
        for server in sorted(files):
            if server.lower() not in names:
                for file in sorted(files[server]):
                    yield stranger(server, file, "export")
