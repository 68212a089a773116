"""Checks a journal's directory: its records, the chain of its segments, and its snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mqis.findings import Finding
from mqis.protocol.directory.export_format import MAX_LINE, ExportError, parse_header
from mqis.protocol.directory.objects import Partition, name_key
from mqis.protocol.errors import StorageError
from mqis.protocol.journal import ChainLink, ChainState, chain_finding, judge_chain, seal_difference
from mqis.protocol.journal.numbers import ChangeNumbers
from mqis.protocol.ports import NumberedOutbox, View
from mqis.storage.journal.journal_files import others, segment_name, segments, snapshots
from mqis.storage.journal.journal_reader import Segment
from mqis.storage.journal.sealing import file_digest
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, Torn, Whole, segment_header
from mqis.wire.journal.segment import Entry
from mqis.wire.journal.segmentheader import NO_DIGEST, SegmentHeader, is_unfinished_header
from mqis.wire.mqds.keys import RsaPublicKey

#: The number of waiting records above which the end of the numbers is not judged.
_WAITING = 10_000
#: The maximum length of a header: its length field has 16 bits.
_HEADER_BYTES = 1 << 16
#: The records between two calls of ``pause``.
_PAGE = 256


@dataclass(frozen=True, slots=True)
class JournalCheck:
    """The result of a check."""

    findings: tuple[Finding, ...]
    segments: int
    #: The number of intact records.
    records: int
    #: Records up to this number are in sealed segments; 0: no segment is sealed.
    sealed_lsn: int

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_fault)

    @property
    def notices(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.is_fault)


def copied_lsn(view: View) -> int:
    """The last record that was copied to the journal and removed from the store; 0: none."""
    waiting = view.outbox(0, 1)
    if waiting:
        return waiting[0][0] - 1
    return view.last_lsn() if isinstance(view, NumberedOutbox) else 0


@dataclass(frozen=True, slots=True)
class StoreEnd:
    """The state of the server's store, which the end of its journal has to agree with."""

    #: The last record that the store has given to the journal.
    reaches: int = 0
    partitions: tuple[Partition, ...] = ()
    #: Records that the journal does not have yet.
    waiting: tuple[JournalRecord, ...] = ()

    @classmethod
    def of(cls, view: View) -> StoreEnd:
        waiting = view.outbox(0, _WAITING)
        states = tuple(view.partitions()) if len(waiting) < _WAITING else ()
        return cls(copied_lsn(view), states, tuple(record for _, record in waiting))


def check_journal(
    directory: Path,
    keys: Sequence[RsaPublicKey] = (),
    end: StoreEnd | None = None,
    pause: Callable[[], None] = lambda: None,
) -> JournalCheck:
    """Checks all files.

    ``keys`` are the public keys that the server has signed with, ``end`` is the state of its store.
    ``pause`` is called now and then, so that a long check can leave time to others.
    """
    end = end or StoreEnd()
    paths = segments(directory)
    check = _Check(snapshots(directory), pause)
    last_number = max(paths, default=0)
    for number, path in paths.items():
        check.read(number, path, last=number == last_number)
    check.findings += _renamed_segments(directory)
    chain = judge_chain(check.links, keys)
    check.findings += [finding for finding in chain if not check.explains(finding)]
    check.findings += _missing_snapshots(check.snapshots, check.links)
    check.findings += check.unreadable_findings()
    check.findings += _end_findings(directory, check, end.reaches)
    check.findings += check.number_findings(directory, end)
    last = max(check.links, key=lambda link: link.header.number, default=None)
    sealed = 0 if last is None or last.header.seal is None else last.header.first_lsn - 1
    return JournalCheck(tuple(check.findings), len(paths), check.records, sealed)


def server_id_of(directory: Path) -> Guid | None:
    """The identifier of the journal's server, by the first header that can be read."""
    for path in segments(directory).values():
        try:
            return Segment.load(path).header.server_id
        except StorageError:
            continue
    return None


@dataclass(slots=True)
class _Check:
    """The state of a check, segment after segment."""

    #: By the record that they end with.
    snapshots: dict[int, Path]
    pause: Callable[[], None]
    findings: list[Finding] = field(default_factory=list)
    links: list[ChainLink] = field(default_factory=list)
    records: int = 0
    #: The number behind the last record; None if there is no record.
    expected: int | None = None
    numbers: ChangeNumbers = field(default_factory=ChangeNumbers)
    #: Segments whose headers cannot be read, by number.
    _unreadable: dict[int, Path] = field(default_factory=dict)
    #: The digests of snapshots, by the record that they end with.
    _digests: dict[int, bytes] = field(default_factory=dict)

    def read(self, number: int, path: Path, *, last: bool) -> None:
        try:
            segment = Segment.load(path)
        except StorageError as error:
            if not path.exists():  # retention has just deleted it
                return
            self._unreadable[number] = path
            begun = not (last and _is_unfinished(path))
            state = ChainState.CORRUPT if begun else ChainState.TORN
            reason = error.__cause__ or error
            self.findings.append(
                chain_finding(state, path.name, number, number, f"{state.value}: {reason}")
            )
            return
        if segment.header.number != number:
            text = f"is segment {segment.header.number}: the file was copied or renamed"
            self.findings.append(
                chain_finding(ChainState.TAMPERED, path.name, number, number, text)
            )
        before = len(self.findings)
        self._begin_numbers(segment)
        for index, entry in enumerate(segment.entries()):
            self.findings += self._judge(entry, path.name, number, last=last)
            if index % _PAGE == 0:
                self.pause()
        damaged = any(f.check == ChainState.CORRUPT for f in self.findings[before:])
        link = ChainLink.of(path.name, segment.data, damaged=damaged)
        self.links.append(replace(link, snapshot_digest=self._snapshot_digest(segment.header)))

    def _snapshot_digest(self, header: SegmentHeader) -> bytes | None:
        lsn = header.snapshot_lsn
        if not header.snapshot or lsn not in self.snapshots:
            return None
        if lsn not in self._digests:
            self._digests[lsn] = file_digest(self.snapshots[lsn])
        return self._digests[lsn]

    def _judge(self, entry: Entry, name: str, number: int, *, last: bool) -> Iterator[Finding]:
        text = ""
        if isinstance(entry, Whole):
            self.records += 1
            expected, self.expected = self.expected, entry.lsn + 1
            gap = self.numbers.add(entry.record)
            if expected is None or entry.lsn == expected:
                if gap is not None:  # else the missing records explain it
                    text = f"record {entry.lsn}: {gap}"
                    yield chain_finding(ChainState.MISSING, name, number, number, text)
                return
            state = ChainState.MISSING if entry.lsn > expected else ChainState.CORRUPT
            text = f"record {entry.lsn} is where {expected} belongs"
        else:
            torn = isinstance(entry, Torn)
            state = ChainState.TORN if torn and last else ChainState.CORRUPT
            text = f"{'torn' if torn else 'corrupt'}: {entry.reason}"
        text = f"offset {entry.offset}: {text}"
        yield chain_finding(state, name, number, number, text)

    def _begin_numbers(self, segment: Segment) -> None:
        """Compares the numbers with those of the snapshot that the segment begins at."""
        header = segment.header
        path = segment.path.with_name(header.snapshot) if header.snapshot else None
        states = None if path is None else _snapshot_partitions(path)
        if states is None or path is None or header.snapshot_lsn != header.first_lsn - 1:
            return
        own = _owned(states, header.server)
        if self.expected == header.first_lsn:  # else records are missing, which is a finding itself
            for gap in self.numbers.behind(own):
                number = header.number
                finding = chain_finding(ChainState.MISSING, path.name, number, number, str(gap))
                self.findings.append(finding)
        self.numbers.begin(states)

    def number_findings(self, directory: Path, end: StoreEnd) -> Iterator[Finding]:
        """Compares the newest numbers with those in the store."""
        for record in end.waiting:
            self.numbers.add(record)
        last = max(self.links, key=lambda link: link.header.number, default=None)
        if last is None or self.expected != end.reaches + 1:
            return
        for gap in self.numbers.behind(_owned(end.partitions, last.header.server)):
            number = last.header.number
            yield chain_finding(
                ChainState.MISSING, directory.name, number, number, f"the store is ahead: {gap}"
            )

    def explains(self, finding: Finding) -> bool:
        """Returns whether segments that seem to be missing are there but cannot be read."""
        if finding.check != ChainState.MISSING:
            return False
        between = [number for number in self._unreadable if finding.covers(number)]
        return len(between) == finding.length

    def unreadable_findings(self) -> Iterator[Finding]:
        """Compares segments without a readable header with the seals of those behind them."""
        seals = {link.header.number - 1: link.header.seal for link in self.links}
        for number, path in self._unreadable.items():
            seal = seals.get(number)
            if seal is None or not path.is_file():
                continue
            text = seal_difference(seal, path.stat().st_size, file_digest(path), damaged=True)
            if text:
                yield chain_finding(ChainState.TAMPERED, path.name, number, number, text)


def _owned(states: Sequence[Partition], server: str) -> list[Partition]:
    return [state for state in states if name_key(state.owner) == name_key(server)]


def _snapshot_partitions(path: Path) -> tuple[Partition, ...] | None:
    """The partitions in the first line of a snapshot; None if it is not there or damaged."""
    try:
        with path.open("rb") as file:
            return parse_header(file.readline(MAX_LINE).decode("ascii")).partitions
    except (OSError, UnicodeDecodeError, ExportError):
        return None  # a damaged or missing snapshot is a finding of its own


def _end_findings(directory: Path, check: _Check, reaches: int) -> Iterator[Finding]:
    """Compares the end with the store. A new journal may have no more than a snapshot."""
    end = max(snapshots(directory), default=0)
    if check.expected is not None:
        end = check.expected - 1
    if reaches > end:
        number = max((link.header.number for link in check.links), default=0)
        text = f"the end is missing: the store has given it record {reaches}, it ends at {end}"
        yield chain_finding(ChainState.MISSING, directory.name, number, number, text)


def _renamed_segments(directory: Path) -> Iterator[Finding]:
    """The files that are segments, but not by their names: nobody reads them."""
    for path in others(directory):
        try:
            with path.open("rb") as file:
                header, _ = segment_header(file.read(_HEADER_BYTES))
        except (OSError, WireError):
            continue
        number = header.number
        text = (
            f"is segment {number} under another name: the file was copied or renamed; move it "
            f"away, or back to {segment_name(number)} if that is missing"
        )
        yield chain_finding(ChainState.TAMPERED, path.name, number, number, text)


def _is_unfinished(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_unfinished_header(file.read(_HEADER_BYTES), path.stat().st_size)
    except OSError:
        return False


def _missing_snapshots(
    present: Mapping[int, Path], links: Iterable[ChainLink]
) -> Iterator[Finding]:
    """The snapshots that headers name and that are not there.

    Retention deletes those that are older than the oldest kept one.
    """
    oldest = min(present, default=-1)
    for link in links:
        header = link.header
        if header.seal is None or header.seal.snapshot_digest == NO_DIGEST:
            continue
        if header.snapshot_lsn not in present and header.snapshot_lsn > oldest:
            text = f"its {header.snapshot} is missing"
            number = header.number
            yield chain_finding(ChainState.MISSING, link.source, number, number, text)
