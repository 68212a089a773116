"""The timeline of one change, from the logs and journals of all servers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mqis.config.nodes import NodePlace
from mqis.protocol.directory.objects import name_key
from mqis.protocol.errors import StorageError
from mqis.protocol.replication.outgoing_changes import parse_change_id, parse_request_id
from mqis.storage.journal.journal_reader import records
from mqis.texts import parse_moment
from mqis.views.presentation.records import what
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, Whole
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    MessageOperation,
    SyncReply,
    decode_message,
)
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class TraceStep:
    """An event of the change at a server. ``time`` in seconds since the epoch."""

    time: float
    server: str
    #: log or journal.
    source: str
    event: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChangeTrace:
    #: The identifiers of change and request; None if not found.
    change: str | None
    request: str | None
    steps: tuple[TraceStep, ...]
    #: Journals that could not be read.
    faults: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def trace(nodes: Iterable[NodePlace], name: str) -> ChangeTrace:
    """Traces a change. ``name`` identifies a change, a request, or an object (its last change)."""
    nodes = list(nodes)
    found = _resolve(nodes, name) or _last_of(nodes, name)
    steps = [step for node in nodes for step in _logged(node, found)]
    faults: list[str] = []
    for node in nodes:
        try:
            steps += _journaled(node, found)
        except StorageError as error:
            faults.append(str(error))
    if not steps:
        raise MqisError(
            f"{name}: no log or journal mentions it; logs hold changes from level info on, "
            "journals need replication.journal, and both delete old records"
        )
    steps.sort(key=lambda step: step.time)
    return replace(found, steps=tuple(steps), faults=tuple(faults))


def _resolve(nodes: list[NodePlace], name: str) -> ChangeTrace | None:
    """Finds the other identifier too: the log of the authority has both; None if it is neither."""
    change, request = name.lower(), name.lower()
    if parse_change_id(change) is not None:
        lines = _lines(nodes, lambda text: change in text)
        known = (line.request for line in lines if change in line.changes and line.request)
        return ChangeTrace(change, next(known, None), ())
    if parse_request_id(request) is not None:
        lines = _lines(nodes, lambda text: request in text)
        made = (line.changes[0] for line in lines if line.request == request and line.changes)
        return ChangeTrace(next(made, None), request, ())
    return None


def _last_of(nodes: list[NodePlace], name: str) -> ChangeTrace:
    """Finds the newest change of the object with this path or identifier."""
    wanted = name.lower()
    about = (line for line in _lines(nodes, lambda _: True) if wanted in _objects(line))
    last = max(about, key=lambda line: line.time, default=None)
    known = None if last is None else last.changes[0] if last.changes else last.request
    found = None if known is None else _resolve(nodes, known)
    if found is None:
        raise MqisError(
            f"{name}: the logs hold no change of such an object; name an object, a change "
            "(PARTITION:NUMBER) or a request (SERVER:NUMBER), as in log lines of mqis.change"
        )
    return found


def _objects(line: ChangeLine) -> set[str]:
    return {str(line.details[key]).lower() for key in ("object", "id") if key in line.details}


def _lines(nodes: list[NodePlace], wanted: Callable[[str], bool]) -> Iterator[ChangeLine]:
    for node in nodes:
        yield from change_lines(Path(node.log), wanted)


def _logged(node: NodePlace, found: ChangeTrace) -> Iterator[TraceStep]:
    names = [name for name in (found.change, found.request) if name is not None]
    for line in change_lines(Path(node.log), lambda text: any(name in text for name in names)):
        if found.change in line.changes or (line.request and line.request == found.request):
            yield TraceStep(line.time, node.name, "log", line.event, line.details)


def _journaled(node: NodePlace, found: ChangeTrace) -> Iterator[TraceStep]:
    if not node.journal or not Path(node.journal).is_dir():
        return
    names = ChangeNames(
        None if found.change is None else parse_change_id(found.change),
        None if found.request is None else parse_request_id(found.request),
    )
    messages: dict[MessageIdentifier, str] = {}
    for entry in records_about(Path(node.journal), names):
        record = entry.record
        if record.body and record.message is not None:
            messages[record.message] = what(record)
        known = messages.get(record.message) if record.message is not None else None
        subject = what(record) if record.kind is RecordKind.CHANGE else known or what(record)
        yield _step(node, entry, f"{subject} {record.state.name.lower()}")


def _step(node: NodePlace, entry: Whole, event: str) -> TraceStep:
    record = entry.record
    details: dict[str, Any] = {"lsn": entry.lsn}
    if record.peer:
        details["peer"] = record.peer
    if record.message is not None:
        details["message"] = str(record.message)
    if record.reason:
        details["reason"] = record.reason
    return TraceStep(record.time_us / 1e6, node.name, "journal", event, details)


# --- Records of a server's journal about one change -----------------------------------------------
# The change itself, and messages about it.

_CARRY = (MessageOperation.CHANGE_PROPAGATION, MessageOperation.SYNC_REPLY)
_ASK = (MessageOperation.CHANGE_REQUEST, MessageOperation.CHANGE_REPLY)


@dataclass(frozen=True, slots=True)
class ChangeNames:
    """The identifiers of a change and of its request; either may be unknown."""

    change: tuple[Guid, SequenceNumber] | None = None
    request: tuple[str, int] | None = None


def records_about(directory: Path, names: ChangeNames) -> Iterator[Whole]:
    """Yields the records about a change, in the order of the journal."""
    messages: set[MessageIdentifier] = set()
    for entry in records(directory):
        record = entry.record
        if record.kind is RecordKind.CHANGE:
            if names.change is not None and (record.partition, record.seq) == names.change:
                yield entry
        elif record.body:
            if _concerns(record, names):
                if record.message is not None:
                    messages.add(record.message)
                yield entry
        elif record.message in messages:
            yield entry


def _concerns(record: JournalRecord, names: ChangeNames) -> bool:
    """True if a message carries the change, requests it, or answers the request."""
    change, request = names.change, names.request
    if record.operation in _CARRY:
        # The body holds the number verbatim, so most messages need not be decoded.
        if change is None or change[1].to_bytes() not in record.body:
            return False
    elif record.operation not in _ASK or request is None:
        return False
    try:
        message = decode_message(record.body)
    except WireError:
        return False
    match message:
        case ChangePropagation(changes=carried) | SyncReply(changes=carried):
            return any((one.partition, one.seq) == change for one in carried)
        case ChangeRequest() | ChangeReply():
            return (name_key(message.requester), message.request_id) == request
        case _:
            return False


# --- Parses the lines of the logger ``mqis.change`` in a server's log, text or JSON ---------------

LOGGER = "mqis.change"

_TEXT = re.compile(
    rf"(\d{{4}}-\d\d-\d\dT[\d:.]+Z) \w+ {re.escape(LOGGER)}: ([a-z ]+?)((?: \w+=.*)?)$"
)
_DETAIL = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S+)')


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One line; ``changes`` and ``request`` identify what it is about."""

    time: float
    event: str
    changes: tuple[str, ...]
    request: str | None
    #: All other details of the line.
    details: dict[str, Any]


def change_lines(path: Path, wanted: Callable[[str], bool]) -> Iterator[ChangeLine]:
    """Yields the wanted lines of a log, those of its renamed predecessor first."""
    for file in (path.with_name(f"{path.name}.1"), path):
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                for text in lines:
                    if LOGGER in text and wanted(text):
                        line = parse_line(text.rstrip("\n"))
                        if line is not None:
                            yield line
        except FileNotFoundError:
            continue


def parse_line(text: str) -> ChangeLine | None:
    """Parses a line; None if it is incomplete or of another logger."""
    return _from_json(text) if text.startswith("{") else _from_text(text)


def _from_json(text: str) -> ChangeLine | None:
    try:
        content = json.loads(text)
        if content.pop("logger") != LOGGER:
            return None
        content.pop("level")
        return _line(content.pop("time"), content.pop("event"), content)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _from_text(text: str) -> ChangeLine | None:
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    details = {key: _read(value) for key, value in _DETAIL.findall(match[3])}
    try:
        return _line(match[1], match[2], details)
    except ValueError:
        return None


def _read(value: str) -> str:
    if value.startswith('"'):
        try:
            return str(json.loads(value))
        except ValueError:
            return value
    return value


def _line(time: str, event: str, details: dict[str, Any]) -> ChangeLine:
    changes = details.pop("change", ())
    if isinstance(changes, str):
        changes = changes.split(",")
    request = details.pop("request", None)
    moment = parse_moment(time).timestamp()
    return ChangeLine(moment, event, tuple(map(str, changes)), request, details)
