"""Evidence: the tables ``journals`` and ``evidence``, which say how far the input can be trusted.

One pass over ``records`` gives a few rows for each file; ``mqis.pipeline.evidence`` judges them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.evidence import exports, extents
from mqis.pipeline.evidence.clocks import SentAndReceived, wrong_clocks
from mqis.pipeline.evidence.exports import ExportedPartition
from mqis.pipeline.evidence.extents import Extent, JournalInventory, JournalKey
from mqis.pipeline.evidence.findings import EvidenceFinding
from mqis.pipeline.jobs.chains import judge_chains
from mqis.pipeline.session import PipelineError
from mqis.pipeline.sources.inventory import JournalFiles, RepeatedSegment, SegmentFile
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.records import (
    holes,
    known_by_others,
    parts,
    replies_reached,
    sendings,
    unrecorded,
)
from mqis.wire.guid import Guid
from mqis.wire.journal import segment_header
from mqis.wire.mqds.objecttype import ObjectType

#: The first day of the year 1, and the last of the year 9999.
_EARLIEST_US, _LATEST_US = -62_135_596_800_000_000, 253_402_214_400_000_000
_GUID_DIGITS = 32
#: Objects of these types have properties that only their authority stores.
_MARKED = (int(ObjectType.SITE), int(ObjectType.ROUTINGLINK), int(ObjectType.MACHINE))


@dataclass(slots=True)
class JournalContent:
    """The content of ``records``, as far as evidence is judged by it."""

    extents: dict[str, Extent] = field(default_factory=dict)
    #: By (server, partition): the last number that the journal shows, and of own changes.
    reached: dict[tuple[str, bytes], int] = field(default_factory=dict)
    made: dict[tuple[str, bytes], int] = field(default_factory=dict)
    #: By the same: the first number of own changes, and their count.
    first_made: dict[tuple[str, bytes], int] = field(default_factory=dict)
    count_made: Counter[tuple[str, bytes]] = field(default_factory=Counter)
    #: (receiver, sender's identifier, ordinal, time of receipt).
    received: set[tuple[str, bytes, int, int]] = field(default_factory=set)
    conflicts: list[EvidenceFinding] = field(default_factory=list)
    servers: set[str] = field(default_factory=set)

    def add(self, row: dict[str, Any]) -> None:
        names = ("first", "last", "records", "began_us", "ended_us")
        part = Extent(*(row[name] for name in names))
        self.servers.add(row["server"])
        if row["file"] in self.extents:
            self.extents[row["file"]].add(part)
        else:
            self.extents[row["file"]] = part
        if row["sender"] is not None:
            ends = ("first_ordinal", "first_us"), ("last_ordinal", "last_us")
            found = ((row["server"], row["sender"], row[a], row[b]) for a, b in ends)
            self.received |= set(found)
        if row["partition"] is not None:
            key = row["server"], row["partition"]
            self.reached[key] = max(self.reached.get(key, 0), row["reached"])
            if row["made"] is not None:
                self.made[key] = max(self.made.get(key, 0), row["made"])
                first = row["first_made"]
                self.first_made[key] = min(self.first_made.get(key, first), first)
                self.count_made[key] += row["count_made"]

    def thinned(self, server: str) -> list[tuple[str, bytes]]:
        """The partitions of which own changes have numbers that are not consecutive."""
        return [
            key
            for key, count in self.count_made.items()
            if key[0] == server and self.made[key] - self.first_made[key] + 1 > count
        ]


def read_journals(records: DataFrame) -> JournalContent:
    """Reads the content of ``records`` in one pass."""
    found = JournalContent()
    for row in parts(records).toArrow().to_pylist():
        found.add(row)
    return found


def evidence(tables: TableDirectory, found: JournalContent) -> None:
    """Writes both tables; ``found`` comes from ``read_journals``."""
    damaged, files = _damaged(tables), _files(tables)
    journals = extents.inventories(files.segments, found.extents, damaged)
    states = _exported(tables)
    marks = _marks(tables, {id_ for _, id_ in journals}, {state.server for state in states})
    strange = list(_strangers(tables, journals, states, marks))
    misnamed = list(exports.misnamed(states, marks.own, found.made.keys()))
    unused = {finding.file for finding in (*strange, *misnamed) if finding.file}
    used = {key: journal for key, journal in journals.items() if journal.place not in unused}
    states = [state for state in states if state.file not in unused]
    _add_missing(tables, used.values(), damaged, found, states)
    judge_chains(tables, used.values(), files, damaged, unused)
    findings = [extents.repeated(copy) for copy in files.repeated]
    findings += [finding for journal in used.values() for finding in journal.missing]
    findings += [*strange, *misnamed, *exports.older(states, found.reached)]
    findings += wrong_clocks(_clocks(tables, found))
    _write(tables, used.values(), findings)


def _add_missing(
    tables: TableDirectory,
    journals: Iterable[JournalInventory],
    damaged: Collection[str],
    found: JournalContent,
    states: Collection[ExportedPartition],
) -> None:
    """Adds to each journal what is missing from it."""
    lsns = _snapshot_lsns(tables)
    by_server: dict[str, list[EvidenceFinding]] = defaultdict(list)
    for finding in (*found.conflicts, *_missing_ends(tables, found, states)):
        by_server[finding.server].append(finding)
    for journal in journals:
        journal.missing += _missing(tables, journal, damaged, lsns[journal.server])
        journal.missing += by_server[journal.server]
        if not journal.lacks_records:  # else that explains missing changes
            journal.missing += _missing_changes(tables, found.thinned(journal.server))


def _missing_changes(
    tables: TableDirectory, thinned: list[tuple[str, bytes]]
) -> Iterator[EvidenceFinding]:
    """The changes that were made around a journal; ``thinned`` are the partitions to look at."""
    if not thinned:
        return
    for row in unrecorded(tables.read("records"), thinned).collect():
        partition = str(Guid(bytes(row["partition"])))
        yield extents.missing_changes(row["server"], partition, row["first"], row["last"])


def _write(
    tables: TableDirectory,
    journals: Iterable[JournalInventory],
    findings: Iterable[EvidenceFinding],
) -> None:
    make = tables.session.createDataFrame
    rows = [_journal_row(journal) for journal in journals]
    tables.write("journals", make(rows, schemas.JOURNALS).coalesce(1))
    found = make([finding.row for finding in findings], schemas.EVIDENCE)
    tables.write("evidence", found.coalesce(1))


def _journal_row(journal: JournalInventory) -> tuple[object, ...]:
    whole = journal.whole
    numbers: tuple[object, ...] = (None, None, 0, None, None)
    if whole is not None:
        times = (_time(whole.began_us), _time(whole.ended_us))
        numbers = whole.first, whole.last, whole.records, *times
    id_, count = bytearray(journal.server_id), len(journal.segments)
    return journal.server, id_, count, *numbers, journal.is_complete, journal.signature


def _time(micros: int) -> datetime:
    """The time of a record, which may be any number; a year has four digits."""
    known = min(max(micros, _EARLIEST_US), _LATEST_US)
    return datetime.fromtimestamp(0, tz=UTC) + timedelta(microseconds=known)


# --- journals -------------------------------------------------------------------------------------


def _damaged(tables: TableDirectory) -> frozenset[str]:
    """The journal files with records that cannot be read."""
    errors = tables.read("errors").filter(F.col("source") == "journal")
    return frozenset(row["file"] for row in errors.select("file").distinct().collect())


def _files(tables: TableDirectory) -> JournalFiles:
    """The segment files that ingesting found."""
    rows = []
    if tables.has("segments"):
        listed = tables.read("segments")
        if "header" not in listed.columns:
            raise PipelineError(
                f"{tables.directory}: an earlier version of mqis wrote the table segments; ingest "
                "the journals again"
            )
        rows = listed.drop("damage").filter("header is not null").collect()
    kept: list[SegmentFile] = []
    copies: list[RepeatedSegment] = []
    for row in rows:
        id_ = Guid(bytes(row["server_id"]))
        names = row["file"], row["size"], row["server"]
        digest = None if row["digest"] is None else bytes(row["digest"])
        header, _ = segment_header(bytes(row["header"]))
        segment = SegmentFile(*names, id_, row["number"], row["first_lsn"], header, digest)
        if row["kept"] is None:
            kept.append(segment)
        else:
            copies.append(RepeatedSegment(segment, row["kept"]))
    return JournalFiles(tuple(kept), tuple(copies))


def _snapshot_lsns(tables: TableDirectory) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    if tables.has("snapshot_partitions"):
        taken = tables.read("snapshot_partitions").select("server", "lsn").distinct()
        for row in taken.collect():
            found[row["server"]].append(row["lsn"])
    return found


def _missing(
    tables: TableDirectory, journal: JournalInventory, damaged: Collection[str], lsns: list[int]
) -> Iterator[EvidenceFinding]:
    yield from extents.missing_between(journal, damaged, lsns)
    thinned = [file for file in journal.thinned if file not in damaged]
    if thinned:
        for row in holes(tables.read("records"), thinned).collect():
            yield extents.missing_records(journal.server, row["first"], row["last"], row["file"])


def _missing_ends(
    tables: TableDirectory, found: JournalContent, states: Collection[ExportedPartition]
) -> Iterator[EvidenceFinding]:
    """The journals that end before the exports of their servers do."""

    def doubtful() -> list[ExportedPartition]:
        return [
            state
            for state in states
            if extents.is_missing_end(
                found.reached.get((state.server, state.partition)), state.last_seq
            )
        ]

    if servers := {state.server for state in doubtful()}:
        reached = [*replies_reached(tables.read("records"), servers).collect()]
        if tables.has("snapshot_partitions"):
            taken = tables.read("snapshot_partitions").select("server", "partition", "last_seq")
            reached += taken.collect()
        for server, partition, number in reached:
            key = server, bytes(partition)
            found.reached[key] = max(found.reached.get(key, 0), number)
    for state in doubtful():
        number = found.reached[state.server, state.partition]
        yield extents.missing_end(state.server, str(Guid(state.partition)), number, state.last_seq)


def _clocks(tables: TableDirectory, found: JournalContent) -> Iterator[SentAndReceived]:
    if not found.received:
        return
    rows = [(receiver, bytearray(id_), *rest) for receiver, id_, *rest in sorted(found.received)]
    asked = tables.session.createDataFrame(
        rows, "receiver string, message_source binary, message_ordinal long, received_us long"
    )
    sent: dict[tuple[str, str, int], int] = {}
    for row in sendings(tables.read("records"), asked).toArrow().to_pylist():
        key = row["sender"], row["receiver"], row["received_us"]
        # A restored server may use the number of a message again, for a later one.
        sent[key] = min(sent.get(key, row["sent_us"]), row["sent_us"])
    for (sender, receiver, received_us), sent_us in sent.items():
        yield SentAndReceived(sender, receiver, sent_us, received_us)


# --- directories ----------------------------------------------------------------------------------


def _exported(tables: TableDirectory) -> list[ExportedPartition]:
    if not tables.has("partitions"):
        return []
    columns = ("server", "file", "partition", "owner", "last_seq")
    rows = tables.read("partitions").select(*columns).collect()
    return [ExportedPartition(r[0], r[1], bytes(r[2]), r[3] or "", r[4]) for r in rows]


def _strangers(
    tables: TableDirectory,
    journals: dict[JournalKey, JournalInventory],
    states: Collection[ExportedPartition],
    marks: _Marks,
) -> Iterator[EvidenceFinding]:
    """The journals and exports of servers that no directory knows as machines."""
    unknown = {id_ for _, id_ in journals} - marks.ids
    if unknown and tables.has("records"):
        snapshots = tables.read("snapshots") if tables.has("snapshots") else None
        unknown -= known_by_others(tables.read("records"), snapshots, unknown)
    # A single journal proves nothing about its own server.
    if len({id_ for _, id_ in journals}) > 1 or marks.ids:
        for journal in journals.values():
            if journal.server_id in unknown:
                yield exports.stranger(journal.server, journal.place, "journal")
    files: dict[str, set[str]] = defaultdict(set)
    for state in states:
        files[state.server].add(state.file)
    known = any(server.lower() in marks.names for server in files)
    for server in sorted(files) if known else ():
        if server.lower() not in marks.names:
            for file in sorted(files[server]):
                yield exports.stranger(server, file, "export")


@dataclass(frozen=True, slots=True)
class _Marks:
    """The facts in exports by which servers are recognised."""

    #: The (file, partition) whose objects have properties that only their authority stores.
    own: set[tuple[str, bytes]] = field(default_factory=set)
    #: The identifiers and the names, in lower case, that exports know as machines.
    ids: set[bytes] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def _marks(tables: TableDirectory, ids: set[bytes], names: set[str]) -> _Marks:
    """Reads them in one pass; machines only of the given identifiers and names."""
    found = _Marks()
    if not tables.has("objects"):
        return found
    wanted = F.lower("path").isin(sorted(name.lower() for name in names))
    if ids:
        wanted |= F.hex("id").isin(sorted(id_.hex().upper() for id_ in ids))
    machine = F.concat(F.hex("id"), F.coalesce(F.lower("path"), F.lit("")))
    is_machine = F.col("type") == int(ObjectType.MACHINE)
    marked = tables.read("objects").filter(F.col("type").isin(*_MARKED))
    rows = marked.groupBy("file", "partition").agg(
        F.bool_and(F.when(~F.col("deleted"), F.col("own"))).alias("own"),
        F.collect_set(F.when(is_machine & wanted, machine)).alias("machines"),
    )
    for row in rows.collect():
        if row["own"]:
            found.own.add((row["file"], bytes(row["partition"])))
        for text in row["machines"]:
            found.ids.add(bytes.fromhex(text[:_GUID_DIGITS]))
            found.names.add(text[_GUID_DIGITS:])
    return found
