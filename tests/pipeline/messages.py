"""Facts about messages, computed from journals record by record; the tables must equal them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mqis.protocol.directory.export_format import parse_header
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, Whole, segment_header, walk
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    Message,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
    decode_message,
)

Journals = list[tuple[str, JournalRecord]]
#: Flipped bits make such numbers; no authority reaches them.
_NOBODYS = 1 << 63


@dataclass(frozen=True, slots=True)
class Round:
    change_propagation: int = 0
    sync_request: int = 0
    sync_reply: int = 0
    sync0_request: int = 0
    sync_rounds: int = 0
    sync0_rounds: int = 0
    parts: int = 0
    bytes: int = 0


def of(directory: Path) -> Journals:
    """The messages of all journals under a directory, with whose journal it is."""
    found: Journals = []
    for path in sorted(directory.rglob("*.mqj")):
        data = path.read_bytes()
        header, start = segment_header(data)
        for entry in walk(data, start):
            if isinstance(entry, Whole) and entry.record.kind is RecordKind.MESSAGE:
                found.append((header.server, entry.record))
    return found


def rounds(journals: Journals) -> dict[tuple[str, str], Round]:
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for server, record in journals:
        if record.state is RecordState.QUEUED:
            count = counts[server, record.peer]
            count["bytes"] += len(record.body)
            count.update(_kinds(decode_message(record.body)))
    for server, peer, message in _taken(journals):
        if isinstance(message, SyncReply):
            counts[server, peer][_ENDS[message.complete_sync0]] += 1
    return {key: Round(**count) for key, count in counts.items()}


_ENDS = {Sync0.NONE: "sync_rounds", Sync0.COMPLETE: "sync0_rounds", Sync0.MORE: "parts"}


def _kinds(message: Message) -> Iterable[str]:
    match message:
        case ChangePropagation():
            yield "change_propagation"
        case SyncRequest():
            yield "sync_request"
            if message.is_sync0:
                yield "sync0_request"
        case SyncReply():
            yield "sync_reply"


def _taken(journals: Journals) -> Iterable[tuple[str, str, Message]]:
    """The messages that were not refused when they came; they may come, and be refused, again."""
    came: dict[tuple[str, object], int] = {}
    taken: dict[int, tuple[str, JournalRecord]] = {}
    for place, (server, record) in enumerate(journals):
        if record.state is RecordState.RECEIVED:
            came[server, record.message] = place
            taken[place] = server, record
        elif record.state is RecordState.REFUSED:
            taken.pop(came.get((server, record.message), -1), None)
    for server, record in taken.values():
        yield server, record.peer, decode_message(record.body)


def acked(journals: Journals) -> dict[tuple[str, str, str], int]:
    """(authority, PSC in lower case, partition) -> the highest number that was acknowledged."""
    found: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for server, peer, message in _taken(journals):
        if isinstance(message, PscAck):
            key = server, peer.lower(), str(message.partition)
            found[key] = max(found[key], message.seq.value)
    return dict(found)


Spans = defaultdict[tuple[str, str], set[tuple[int, int]]]


def gaps(directory: Path) -> set[tuple[str, str, int, int]]:
    """(server, partition, first, last) of the numbers that no change and no reply brought.

    A journal starts from its oldest snapshot, or from nothing. What the server decided itself is no
    gap, nor is what is missing before it.
    """
    spans: Spans = defaultdict(set)
    own: Spans = defaultdict(set)
    for place in sorted(path for path in directory.iterdir() if path.is_dir()):
        for oldest in sorted(place.glob("snapshot-*.jsonl"))[:1]:
            first = oldest.read_text("ascii").partition("\n")[0]
            for state in parse_header(first).partitions:
                spans[place.name, str(state.id)].add((1, state.last_seq.value))
        for server, record in _changes(place):
            _add_change(spans, own, (server, str(record.partition)), record)
    for server, _, message in _taken(of(directory)):
        if isinstance(message, SyncReply):
            span = message.from_seq.value + 1, message.to_seq.value
            if max(span) < _NOBODYS:
                spans[server, str(message.partition)].add(span)
    return {(*key, *gap) for key, listed in spans.items() for gap in _uncovered(listed, own[key])}


def _add_change(spans: Spans, own: Spans, key: tuple[str, str], record: JournalRecord) -> None:
    seq = record.seq.value
    if record.state is RecordState.APPLIED:
        spans[key].add((seq, seq))
    elif record.state is RecordState.LOCAL:
        own[key].add((seq, seq))
    elif record.state is RecordState.SKIPPED:
        own[key].add((record.previous_seq.value + 1, seq))


def _uncovered(
    listed: set[tuple[int, int]], own: set[tuple[int, int]]
) -> Iterable[tuple[int, int]]:
    reached = 0
    for span in sorted(listed | own):
        if span[0] > reached + 1 and span not in own:
            yield reached + 1, span[0] - 1
        reached = max(reached, span[1])


def _changes(directory: Path) -> Iterable[tuple[str, JournalRecord]]:
    for path in sorted(directory.glob("*.mqj")):
        data = path.read_bytes()
        header, start = segment_header(data)
        for entry in walk(data, start):
            if isinstance(entry, Whole) and entry.record.kind is RecordKind.CHANGE:
                yield header.server, entry.record
