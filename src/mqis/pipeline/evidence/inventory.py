"""The verdict about the input: an inventory of the journals, and what limits them as evidence.

The facts come from ``mqis.pipeline.graph.evidence``: a few rows for each file and server.
"""

from __future__ import annotations

from base64 import b64decode
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mqis.findings import Finding
from mqis.pipeline.evidence import exports, extents
from mqis.pipeline.evidence.chains import JournalChain, unreadable_numbers
from mqis.pipeline.evidence.clocks import SentAndReceived, wrong_clocks
from mqis.pipeline.evidence.exports import ExportedPartition, Reached
from mqis.pipeline.evidence.extents import Extent, JournalInventory
from mqis.pipeline.evidence.findings import evidence_row
from mqis.pipeline.evidence.recognition import Row
from mqis.pipeline.sources.inventory import SegmentFile
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import segment_header
from mqis.wire.mqds.keys import PublicKeys, RsaPublicKey

#: The first day of the year 1, and the last of the year 9999.
_EARLIEST_US, _LATEST_US = -62_135_596_800_000_000, 253_402_214_400_000_000
_EPOCH = datetime.fromtimestamp(0, tz=UTC)


def judge_server(known: defaultdict[str, list[Row]]) -> Iterator[Row]:
    """Judges the journals and exports of one server, or of several.

    Yields one row for each journal that is used, and one for each finding.
    """
    damaged = frozenset(row["file"] for row in known["damaged"])
    listed = [_segment(row) for row in known["segments"]]
    segments = [segment for segment in listed if segment.kept is None]
    copies = [segment for segment in listed if segment.kept is not None]
    names = ("first", "last", "records", "began_us", "ended_us")
    held = {row["file"]: Extent(*(row[name] for name in names)) for row in known["files"]}
    unused = {row["file"] for row in known["unrecognised"]}
    found = extents.inventories(segments, held, damaged)
    journals = [journal for journal in found if journal.place not in unused]
    reached = {(row["server"], row["partition"]): row["number"] for row in known["reached"]}
    unreadable = unreadable_numbers(damaged, segments)
    keys = _keys(known["keys"])
    states = [ExportedPartition(**_without(row, "newest")) for row in known["states"]]
    ends = [*_missing_ends(states, reached)]
    findings = [extents.repeated(copy) for copy in copies]
    findings += [extents.renamed(s) for s in segments if s.is_misnamed]
    findings += [exports.edited(**row) for row in known["edited"] if row["file"] not in unused]
    twice = (exports.DoubledLines(**row) for row in known["doubled"])
    findings += [lines.finding for lines in twice if lines.file not in unused]
    for journal in journals:
        journal.missing += _missing(known, journal, damaged, ends)
        key = journal.server, journal.server_id
        of_journal = [c for c in copies if (c.server, c.server_id.raw) == key]
        numbers = {number for place in journal.places for number in unreadable[place]}
        chain = JournalChain(journal.server, journal.segments, of_journal, damaged, numbers)
        trusted = keys.get(journal.server_id, ())
        journal.signature = chain.signature(trusted)
        journal.missing += chain.findings(trusted)
        findings += journal.missing
        yield {"journal": _journal_row(journal), "finding": None}
    findings += _since_earlier(known["earlier"])
    newest = {row["partition"]: row["newest"] for row in known["states"]}
    findings += exports.older(states, reached, newest)
    for finding in findings:
        yield {"journal": None, "finding": evidence_row(finding)}


def _since_earlier(rows: Iterable[Row]) -> Iterator[Finding]:
    """Segments that an earlier run read and that are not as they were: (server, number, found)."""
    gone: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        if row["found"] is None:
            gone[row["server"]].add(row["number"])
        else:
            yield extents.changed(row["server"], row["number"], row["found"])
    for server, numbers in gone.items():
        yield extents.vanished(server, numbers)


def judge_clocks(known: defaultdict[str, list[Row]]) -> Iterator[Row]:
    """The findings about the clocks of all servers, from a row for each two that talk."""
    for finding in wrong_clocks(SentAndReceived(**row) for row in known["sent"]):
        yield evidence_row(finding)


def _without(row: Row, name: str) -> Row:
    return {key: value for key, value in row.items() if key != name}


def _segment(row: Row) -> SegmentFile:
    """A segment file that ingesting found."""
    header, _ = segment_header(row["header"])
    same = {name: row[name] for name in row if name != "file"}
    typed = {"path": row["file"], "server_id": Guid(row["server_id"]), "header": header}
    return SegmentFile(**(same | typed))


def _missing(
    known: defaultdict[str, list[Row]],
    journal: JournalInventory,
    damaged: Collection[str],
    ends: Iterable[Finding],
) -> Iterator[Finding]:
    """Everything that is missing from a journal."""
    server = journal.server
    lsns = [row["lsn"] for row in known["snapshots"] if row["server"] == server]
    found = [*extents.missing_between(journal, damaged, lsns)]
    thinned = {file for file in journal.thinned if file not in damaged}
    found += (extents.missing_records(**row) for row in known["holes"] if row["file"] in thinned)
    found += (extents.conflicting(**row) for row in known["conflicts"] if row["server"] == server)
    yield from found
    yield from (finding for finding in ends if finding.names[0] == server)
    if not (journal.is_damaged or found):  # else that explains missing changes
        for row in known["unrecorded"]:
            if row["server"] == server:
                yield extents.missing_changes(**(row | {"partition": Guid(row["partition"])}))


def _missing_ends(states: Iterable[ExportedPartition], reached: Reached) -> Iterator[Finding]:
    """The journals that end before the exports of their servers do."""
    for state in states:
        number = reached.get((state.server, state.partition))
        if number is not None and extents.is_missing_end(number, state.last_seq):
            partition = Guid(state.partition)
            yield extents.missing_end(state.server, partition, number, state.last_seq)


def _keys(rows: Iterable[Row]) -> dict[bytes, tuple[RsaPublicKey, ...]]:
    """The keys that exports have, by the identifier of the server."""
    names: dict[bytes, str] = {}
    exported: list[ExportedKeys] = []
    for row in rows:
        if row["id"] is not None:
            names[row["id"]] = row["name"]
        if row["keys"]:
            exported.append(ExportedKeys(row["name"], row["keys"], row["first"], row["last"]))
    keys = keys_by_server(exported)
    return {id_: keys.get(name, ()) for id_, name in names.items()}


def _journal_row(journal: JournalInventory) -> Row:
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


@dataclass(frozen=True, slots=True)
class ExportedKeys:
    """A list of keys that exports have of a server, as base64; all names are in lower case.

    ``first`` and ``last`` are the first and last server whose exports have this list.
    """

    server: str
    text: str
    first: str
    last: str

    @property
    def is_own(self) -> bool:
        """True if only the server's own export has it."""
        return self.first == self.last == self.server


def keys_by_server(exported: Iterable[ExportedKeys]) -> Mapping[str, tuple[RsaPublicKey, ...]]:
    """The keys by the server's name in lower case.

    Somebody who can write a server's journal can change its directory too. So the server's own
    export counts only if no other one has keys of it.
    """
    listed: dict[str, list[ExportedKeys]] = defaultdict(list)
    for keys in exported:
        listed[keys.server].append(keys)
    found: dict[str, tuple[RsaPublicKey, ...]] = {}
    for server, of_server in listed.items():
        others = [keys for keys in of_server if not keys.is_own]
        decoded = (key for keys in (others or of_server) for key in _decoded(keys.text))
        found[server] = tuple(dict.fromkeys(decoded))
    return found


def _decoded(text: str) -> list[RsaPublicKey]:
    """The RSA keys in a property's base64 text; those of other kinds are skipped."""
    found: list[RsaPublicKey] = []
    try:
        entries = PublicKeys.from_bytes(b64decode(text)).keys
    except (WireError, ValueError):
        return []
    for entry in entries:
        try:
            found.append(entry.rsa())
        except WireError:
            continue
    return found
