"""The verdict about all input: an inventory of the journals, and what limits them as evidence.

The facts come from ``mqis.pipeline.graph.evidence``: a few rows for each file and server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from mqis.pipeline.evidence import exports, extents
from mqis.pipeline.evidence.chains import JournalChain, unreadable_numbers
from mqis.pipeline.evidence.clocks import SentAndReceived, wrong_clocks
from mqis.pipeline.evidence.exports import ExportedPartition, Reached
from mqis.pipeline.evidence.extents import Extent, JournalInventory
from mqis.pipeline.evidence.findings import EvidenceFinding, EvidenceKind
from mqis.pipeline.evidence.keys import ExportedKeys, keys_by_server
from mqis.pipeline.evidence.recognition import Row, exported_partitions
from mqis.pipeline.sources.inventory import JournalFiles, RepeatedSegment, SegmentFile
from mqis.wire.guid import Guid
from mqis.wire.journal import segment_header
from mqis.wire.mqds.keys import RsaPublicKey

#: The first day of the year 1, and the last of the year 9999.
_EARLIEST_US, _LATEST_US = -62_135_596_800_000_000, 253_402_214_400_000_000
_EPOCH = datetime.fromtimestamp(0, tz=UTC)


def judge_input(known: defaultdict[str, list[Row]]) -> Iterator[dict[str, Any]]:
    """Yields one row for each journal that is used, and one for each finding."""
    damaged = frozenset(row["file"] for row in known["damaged"])
    files = _files(known["segments"])
    names = ("first", "last", "records", "began_us", "ended_us")
    held = {row["file"]: Extent(*(row[name] for name in names)) for row in known["files"]}
    strange = [_finding(row) for row in known["unrecognised"]]
    unused = {finding.file for finding in strange}
    journals = [
        journal
        for journal in extents.inventories(files.segments, held, damaged).values()
        if journal.place not in unused
    ]
    states = [s for s in exported_partitions(known["states"]) if s.file not in unused]
    reached = {
        (row["server"], bytes.fromhex(row["partition"])): row["number"] for row in known["reached"]
    }
    _add_missing(known, journals, damaged, [*_missing_ends(states, reached)])
    _judge_chains(journals, files, damaged, _keys(known["keys"]))
    findings = [extents.repeated(copy) for copy in files.repeated]
    findings += [finding for journal in journals for finding in journal.missing]
    findings += [*strange, *exports.older(states, reached)]
    findings += wrong_clocks(SentAndReceived(**row) for row in known["sent"])
    for journal in journals:
        yield {"journal": _journal_row(journal), "finding": None}
    for finding in findings:
        yield {"journal": None, "finding": asdict(finding) | {"kind": finding.kind.value}}


def _finding(row: Row) -> EvidenceFinding:
    return EvidenceFinding(**(row | {"kind": EvidenceKind(row["kind"])}))


def _files(rows: Iterable[Row]) -> JournalFiles:
    """The segment files that ingesting found."""
    kept: list[SegmentFile] = []
    copies: list[RepeatedSegment] = []
    for row in rows:
        digests = (
            None if row[name] is None else bytes.fromhex(row[name])
            for name in ("digest", "snapshot_digest")
        )
        header, _ = segment_header(bytes.fromhex(row["header"]))
        id_ = Guid(bytes.fromhex(row["server_id"]))
        place = row["file"], row["size"], row["server"]
        segment = SegmentFile(*place, id_, row["number"], row["first_lsn"], header, *digests)
        if row["kept"] is None:
            kept.append(segment)
        else:
            copies.append(RepeatedSegment(segment, row["kept"]))
    return JournalFiles(tuple(kept), tuple(copies))


def _add_missing(
    known: defaultdict[str, list[Row]],
    journals: Iterable[JournalInventory],
    damaged: Collection[str],
    ends: Iterable[EvidenceFinding],
) -> None:
    """Adds to each journal what is missing from it."""
    lsns: dict[str, list[int]] = defaultdict(list)
    for row in known["snapshots"]:
        lsns[row["server"]].append(row["lsn"])
    by_server: dict[str, list[EvidenceFinding]] = defaultdict(list)
    for row in known["conflicts"]:
        by_server[row["server"]].append(extents.conflicting(**row))
    for finding in ends:
        by_server[finding.server].append(finding)
    for journal in journals:
        journal.missing += extents.missing_between(journal, damaged, lsns[journal.server])
        thinned = {file for file in journal.thinned if file not in damaged}
        for row in known["holes"]:
            if row["file"] in thinned:
                journal.missing.append(extents.missing_records(journal.server, **row))
        journal.missing += by_server[journal.server]
        if not journal.lacks_records:  # else that explains missing changes
            journal.missing += _missing_changes(known["unrecorded"], journal.server)


def _missing_changes(rows: Iterable[Row], server: str) -> Iterator[EvidenceFinding]:
    """The changes that were made around a journal."""
    for row in rows:
        if row["server"] == server:
            partition = str(Guid(bytes.fromhex(row["partition"])))
            yield extents.missing_changes(server, partition, row["first"], row["last"])


def _missing_ends(
    states: Iterable[ExportedPartition], reached: Reached
) -> Iterator[EvidenceFinding]:
    """The journals that end before the exports of their servers do."""
    for state in states:
        number = reached.get((state.server, state.partition))
        if number is not None and extents.is_missing_end(number, state.last_seq):
            partition = str(Guid(state.partition))
            yield extents.missing_end(state.server, partition, number, state.last_seq)


def _judge_chains(
    journals: Iterable[JournalInventory],
    files: JournalFiles,
    damaged: Collection[str],
    keys: dict[bytes, tuple[RsaPublicKey, ...]],
) -> None:
    """Adds to each journal the state of its signature, and what was changed or removed."""
    unreadable = unreadable_numbers(damaged, files)
    for journal in journals:
        key = journal.server, journal.server_id
        copies = [c for c in files.repeated if (c.segment.server, c.segment.server_id.raw) == key]
        numbers = {number for place in journal.places for number in unreadable[place]}
        chain = JournalChain(journal.server, journal.segments, copies, damaged, numbers)
        known = keys.get(journal.server_id, ())
        journal.signature = chain.signature(known)
        journal.missing += chain.findings(known)


def _keys(rows: Iterable[Row]) -> dict[bytes, tuple[RsaPublicKey, ...]]:
    """The keys that exports have, by the identifier of the server."""
    names: dict[bytes, str] = {}
    exported: list[ExportedKeys] = []
    for row in rows:
        if row["id"] is not None:
            names[bytes.fromhex(row["id"])] = row["name"]
        if row["keys"]:
            exported.append(ExportedKeys(row["name"], row["keys"], row["first"], row["last"]))
    keys = keys_by_server(exported)
    return {id_: keys.get(name, ()) for id_, name in names.items()}


def _journal_row(journal: JournalInventory) -> dict[str, Any]:
    whole = journal.whole
    return {
        "server": journal.server,
        "server_id": journal.server_id,
        "segments": len(journal.segments),
        "first": whole and whole.first,
        "last": whole and whole.last,
        "records": whole.records if whole else 0,
        "began": whole and _time(whole.began_us),
        "ended": whole and _time(whole.ended_us),
        "complete": journal.is_complete,
        "signature": journal.signature,
    }


def _time(micros: int) -> datetime:
    """The time of a record, which may be any number; a year has four digits."""
    return _EPOCH + timedelta(microseconds=min(max(micros, _EARLIEST_US), _LATEST_US))
