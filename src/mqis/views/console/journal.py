"""The journal pages: records from newest to oldest, and one record in full."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from mqis.protocol.directory.object_sources import as_guid
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.journal_reader import Segment, first_lsn
from mqis.texts import and_more, counted, iso_moment, shortened
from mqis.views.console.journal_sight import Judge, Sight, WholeRecords, as_seen, see_everything
from mqis.views.console.messages import SegmentMessages, title
from mqis.views.console.recordednames import NAMELESS, NamedObject, RecordedNames
from mqis.views.console.server_places import NotShownError
from mqis.views.presentation.records import everything, record_summary
from mqis.wire.guid import Guid
from mqis.wire.journal import Corrupt, JournalRecord, RecordKind, RecordState, Whole
from mqis.wire.journal.headers import about, lsn_at, matching
from mqis.wire.journal.segment import offsets, walk

PAGE = 50
#: The most records and segments that a search reads before it offers the next page.
MOST_DECODED = 20_000
MOST_SEGMENTS = 4
#: The most values of a decoded body on a page, and characters of each.
MOST_VALUES = 1_000
MOST_TEXT = 2_000
_MOST_DAMAGE = 20
STATES = tuple(state.name.lower() for state in RecordState)
KINDS = tuple(kind.name.lower() for kind in RecordKind)


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """The conditions of a search; an empty text is no condition."""

    kind: str = ""
    state: str = ""
    #: A part of the name of the message or change, such as ``create queue``.
    what: str = ""
    peer: str = ""
    #: The identifier of an object.
    object: str = ""
    #: Heartbeats are messages without changes; most of an idle server's journal.
    heartbeats: bool = True

    def problems(self) -> dict[str, str]:
        """The wrong conditions, by their names."""
        found = {}
        if self.kind and self.kind not in KINDS:
            found["kind"] = f"{self.kind!r} is not one of {', '.join(KINDS)}"
        if self.state and self.state not in STATES:
            found["state"] = f"{self.state!r} is not one of {', '.join(STATES)}"
        if self.object and as_guid(self.object) is None:
            found["object"] = (
                f"There is no object {self.object!r} that you may read. A deleted object is found "
                "by its identifier (8-4-4-4-12 hexadecimal digits)."
            )
        return found

    def takes(self, record: JournalRecord) -> bool:
        return (
            (not self.kind or record.kind.name.lower() == self.kind)
            and (not self.state or record.state.name.lower() == self.state)
            and (not self.what or self.what.lower() in title(record))
            and (not self.peer or self.peer.lower() in record.peer.lower())
            and (not self.object or record.object_id == as_guid(self.object))
        )


@dataclass(frozen=True, slots=True)
class JournalLine:
    lsn: int
    time: str
    kind: str
    state: str
    what: str
    seq: str
    peer: str
    object: str
    reason: str
    size: int
    #: The object that the record is about.
    named: NamedObject = NAMELESS
    #: The content of a message in words, for visitors who may see it.
    content: str = ""


@dataclass(frozen=True, slots=True)
class JournalPage:
    server: str
    lines: tuple[JournalLine, ...]
    #: Records below this number are on the next page; None: there are none.
    older: int | None
    first: int | None
    last: int | None
    #: Places in the files that could not be read.
    damage: tuple[str, ...] = ()
    #: Records of heartbeats among these lines that are not shown.
    hidden: int = 0


def journal_page(
    directory: Path,
    wanted: RecordFilter,
    before: int | None = None,
    size: int = PAGE,
    *,
    judge: Judge = see_everything,
    names: RecordedNames | None = None,
) -> JournalPage:
    """One page of matching records; raises ``StorageError`` if there is no journal."""
    paths = list(segments(directory).values())
    search = _Search(wanted, judge, names or RecordedNames(), before, size)
    older = last = None
    server = ""
    segment: Segment | None = None
    looked_into = 0
    for path in reversed(paths):
        if before is not None and first_lsn(path) >= before:
            continue
        if segment is not None and looked_into == MOST_SEGMENTS:
            older = segment.header.first_lsn
            break
        looked_into += 1
        segment = Segment.load(path)
        server = segment.header.server
        its_last = search.search(segment)
        last = its_last if last is None else last
        if search.stopped_at is not None:
            older = search.stopped_at
            break
    first = first_lsn(paths[0]) if paths else None
    damage = search.damage[:_MOST_DAMAGE]
    if len(search.damage) > len(damage):
        more = and_more(len(search.damage) - len(damage))
        damage.append(f"{more}; 'mqis journal check' lists all")
    found = tuple(search.found)
    return JournalPage(server, found, older, first, last, tuple(damage), search.hidden)


def search_journal(
    directory: Path, wanted: RecordFilter, before: int | None, judge: Judge, names: RecordedNames
) -> tuple[JournalPage | None, dict[str, str]]:
    """One page of records, or the conditions that are wrong; an object may be given by name."""
    problems = wanted.problems()
    if "object" in problems:
        named = names.find(wanted.object)
        if named is not None:
            wanted = replace(wanted, object=str(named))
            del problems["object"]
    if problems:
        return None, problems
    return journal_page(directory, wanted, before, judge=judge, names=names), {}


class _Search:
    """Searches from newest to oldest; checks headers first, as decoding takes longer."""

    def __init__(
        self,
        wanted: RecordFilter,
        judge: Judge,
        names: RecordedNames,
        before: int | None,
        size: int,
    ) -> None:
        self._wanted = wanted
        self._judge = judge
        self._names = names
        self._before = 1 << 64 if before is None else before
        self._size = size
        self._left = MOST_DECODED
        self.found: list[JournalLine] = []
        self.damage: list[str] = []
        self.hidden = 0
        #: The lines about an object without a name, by its identifier: most were deleted.
        self._unnamed: dict[bytes, list[int]] = {}
        #: Records with smaller numbers were not searched.
        self.stopped_at: int | None = None

    def search(self, segment: Segment) -> int | None:
        """Searches a segment; returns the number of its last record."""
        data, starts = segment.data, offsets(segment.data, segment.records_at)
        self._find_damage(segment, starts)
        if not starts:
            return None
        end = bisect_left(starts, self._before, key=lambda at: lsn_at(data, at))
        messages = SegmentMessages(segment, starts[:end])
        for at in self._candidates(data, starts, end):
            if not self._wanted.heartbeats and messages.is_heartbeat(at):
                self.hidden += 1
                continue
            if len(self.found) >= self._size or self._left <= 0:
                self.stopped_at = lsn_at(data, at) + 1
                break
            self._decode(segment, at, messages)
        self._name_deleted(segment, starts[:end])
        return lsn_at(data, starts[-1])

    def _candidates(self, data: bytes, starts: list[int], end: int) -> Iterator[int]:
        """The offsets of records whose headers match, newest first."""
        wanted = self._wanted
        kind = RecordKind[wanted.kind.upper()] if wanted.kind else None
        state = RecordState[wanted.state.upper()] if wanted.state else None
        object_id = Guid.parse(wanted.object) if wanted.object else None
        return matching(data, starts[:end], kind, state, object_id)

    def _decode(self, segment: Segment, at: int, messages: SegmentMessages) -> None:
        self._left -= 1
        entry = next(walk(segment.data, at))
        if not isinstance(entry, Whole):
            self._note_damage(segment, at, entry.reason)
            return
        record = as_seen(messages.completed(entry), self._judge)
        sight = self._judge(record) if self._wanted.takes(record) else Sight.NOTHING
        if sight is not Sight.NOTHING:
            line = _line(entry.lsn, record, sight, self._names)
            self.found.append(line)
            if sight is Sight.EVERYTHING and line.object and not line.named.name:
                lines = self._unnamed.setdefault(record.object_id.raw, [])
                lines.append(len(self.found) - 1)

    def _name_deleted(self, segment: Segment, starts: list[int]) -> None:
        """Names objects that the directory does not have any more, after their older records."""
        for at in about(segment.data, starts, self._unnamed) if self._unnamed else ():
            entry = next(walk(segment.data, at))
            if not isinstance(entry, Whole):
                continue
            named = self._names.of(entry.record, itself=True)
            for line in self._unnamed.pop(entry.record.object_id.raw) if named.name else ():
                self.found[line] = replace(self.found[line], named=named)

    def _find_damage(self, segment: Segment, starts: list[int]) -> None:
        """Notes damage from the last record on; a record that is being written is not damage.

        The last record may be a heartbeat, which is hidden by its header and never decoded.
        """
        begin = starts[-1] if starts else segment.records_at
        for entry in islice(walk(segment.data, begin), 20):
            if isinstance(entry, Corrupt):
                self._note_damage(segment, entry.offset, entry.reason)

    def _note_damage(self, segment: Segment, at: int, reason: str) -> None:
        text = f"{segment.path.name}: offset {at}: {reason}"
        if text not in self.damage:
            self.damage.append(text)


def _line(lsn: int, record: JournalRecord, sight: Sight, names: RecordedNames) -> JournalLine:
    return JournalLine(
        lsn,
        iso_moment(record.time_us),
        record.kind.name.lower(),
        record.state.name.lower(),
        title(record),
        str(record.seq) if record.seq.value else "",
        record.peer,
        "" if record.object_id == Guid.NULL else str(record.object_id),
        record.reason if sight is Sight.EVERYTHING else "",
        len(record.body),
        names.of(record, itself=sight is Sight.EVERYTHING),
        names.content(record) if sight is Sight.EVERYTHING else "",
    )


@dataclass(frozen=True, slots=True)
class RecordPage:
    record: dict[str, Any]
    #: The body as plain values, decoded if possible; None: there is none.
    body: Any
    #: True if the body has more than a page shows.
    cut: bool
    #: True if the visitor may not see the body.
    hidden: bool = False
    named: NamedObject = NAMELESS


def record_page(
    directory: Path,
    lsn: int,
    judge: Judge = see_everything,
    names: RecordedNames | None = None,
) -> RecordPage:
    """One record as far as the visitor may see it; raises ``NotShownError`` if there is none."""
    found = _find(directory, lsn)
    sight = Sight.NOTHING if found is None else judge(found[0].record)
    if found is None or sight is Sight.NOTHING:
        raise NotShownError(f"there is no record {lsn} in this journal")
    entry, what = replace(found[0], record=as_seen(found[0].record, judge)), found[1]
    named = (names or RecordedNames()).of(entry.record, itself=sight is Sight.EVERYTHING)
    if sight is Sight.LINE:
        shown = {**record_summary(entry), "what": what, "reason": ""}
        return RecordPage(shown, None, False, hidden=True, named=named)
    record = {**everything(entry), "what": what}
    body = record.pop("body", None)
    room = [MOST_VALUES]
    shortened = _shortened(_with_names(body), room)
    return RecordPage(record, shortened, room[0] <= 0, named=named)


def _find(directory: Path, lsn: int) -> tuple[Whole, str] | None:
    """The record of that number, and the name of its message or change."""
    for path in reversed(segments(directory).values()):
        if first_lsn(path) > lsn:
            continue
        segment = Segment.load(path)
        starts = offsets(segment.data, segment.records_at)
        at = bisect_left(starts, lsn, key=lambda at: lsn_at(segment.data, at))
        entry = next(walk(segment.data, starts[at])) if at < len(starts) else None
        if not isinstance(entry, Whole) or entry.lsn != lsn:
            return None
        messages = SegmentMessages(segment, starts[: at + 1])
        return entry, title(messages.completed(entry))
    return None


def _with_names(value: Any) -> Any:
    """Turns lists of properties into names: ``label: orders`` for [Q_LABEL, {vt, value}]."""
    if isinstance(value, dict):
        return {key: _with_names(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    if value and all(_is_property(item) for item in value):
        return {str(name): variant["value"] for name, variant in value}
    return [_with_names(item) for item in value]


def _is_property(item: Any) -> bool:
    return (
        isinstance(item, list)
        and len(item) == 2
        and isinstance(item[1], dict)
        and item[1].keys() == {"vt", "value"}
    )


def _shortened(value: Any, room: list[int]) -> Any:
    """Cuts a tree to the room left: a full synchronisation has thousands of objects."""
    if isinstance(value, dict):
        pairs = ((key, item) for key, item in value.items() if room[0] > 0)
        return {key: _shortened(item, room) for key, item in pairs}
    if isinstance(value, list):
        return [_shortened(item, room) for item in value if room[0] > 0]
    room[0] -= 1
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return f"{shortened(value, MOST_TEXT)} ({counted(len(value), 'character')})"
    return value


@dataclass(frozen=True, slots=True)
class Past:
    """One journal record about an object, at one server."""

    server: str
    line: JournalLine


def history(
    journals: dict[str, Path],
    id: str,  # noqa: A002
    most: int = 100,
    *,
    users: bool = False,
) -> tuple[list[Past], bool]:
    """The records of an object in all journals, newest first, and whether these are all.

    ``users``: with the users who asked for its changes.
    """
    wanted = RecordFilter(object=id)
    found: list[Past] = []
    whole = True
    for server, directory in journals.items():
        if not directory.is_dir():
            continue
        page = journal_page(directory, wanted, size=most, judge=WholeRecords(users))
        whole = whole and page.older is None
        found += [Past(server, line) for line in page.lines]
    found.sort(key=lambda past: (past.line.time, past.line.lsn), reverse=True)
    return found[:most], whole and len(found) <= most
