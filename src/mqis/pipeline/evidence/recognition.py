"""Recognises servers: journals and exports of servers that no directory knows are not used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from mqis.findings import Finding
from mqis.pipeline.evidence.exports import ExportedPartition, duplicates, misnamed, stranger
from mqis.pipeline.evidence.findings import evidence_row
from mqis.pipeline.sources.files import parent_of

Row = dict[str, Any]


def unrecognised(known: defaultdict[str, list[Row]]) -> Iterator[Row]:
    """The findings about journals and exports that are not used, from the facts of the graph."""
    states = [ExportedPartition(**row) for row in known["states"]]
    own = {(row["file"], row["partition"]) for row in known["own"]}
    made = {(row["server"], row["partition"]) for row in known["made"]}
    moved = [*misnamed(states, own, made)]
    others = {finding.where for finding in moved}
    strange = [*_strangers(known, [s for s in states if s.file not in others])]
    others |= {finding.where for finding in strange}
    twice = duplicates(s for s in states if s.file not in others)
    for finding in (*strange, *moved, *twice):
        yield evidence_row(finding)


def _strangers(
    known: defaultdict[str, list[Row]], states: Iterable[ExportedPartition]
) -> Iterator[Finding]:
    """The journals and exports of servers that no directory knows as machines."""
    ids = {row["id"] for row in known["machines"]}
    names = {row["name"] for row in known["machines"]}
    journals = _first_segments(known["segments"])
    elsewhere = ids | {row["id"] for row in known["known"]}
    # A single journal proves nothing about its own server.
    if len({id_ for _, id_ in journals}) > 1 or ids:
        for (server, id_), file in journals.items():
            if id_ not in elsewhere:
                yield stranger(server, parent_of(file), "journal")
    files: dict[str, set[str]] = defaultdict(set)
    for state in states:
        files[state.server].add(state.file)
    if any(server.lower() in names for server in files):
        for server in sorted(files):
            if server.lower() not in names:
                for file in sorted(files[server]):
                    yield stranger(server, file, "export")


def _first_segments(segments: Iterable[Row]) -> dict[tuple[str, bytes], str]:
    """By name and identifier of each journal: its first file."""
    found: dict[tuple[str, bytes], str] = {}
    kept = (row for row in segments if row["kept"] is None)
    for row in sorted(kept, key=lambda r: (r["server"], r["server_id"], r["first_lsn"], r["file"])):
        found.setdefault((row["server"], row["server_id"]), row["file"])
    return found
