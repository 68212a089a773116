"""The timeline of one change, from the logs and journals of all servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mqis.config.nodes import NodePlace
from mqis.protocol.errors import StorageError
from mqis.protocol.replication.change_ids import parse_change_id, parse_request_id
from mqis.views.presentation.records import what
from mqis.views.tracing.journals import ChangeNames, records_about
from mqis.views.tracing.loglines import ChangeLine, change_lines
from mqis.wire.errors import MqisError
from mqis.wire.journal import RecordKind, Whole
from mqis.wire.mqqb.identifier import MessageIdentifier


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
