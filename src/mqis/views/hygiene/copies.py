"""Reads a copy of the directory for its hygiene: an export, a store, or a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mqis.files import is_sqlite_file, system_reason
from mqis.findings import CheckReport, Finding, Limit
from mqis.protocol.directory.export_format import ORDER, ExportError, ExportHeader
from mqis.protocol.directory.export_reading import ExportLines
from mqis.protocol.directory.object_sources import Source
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    IDENTIFIER_PROPERTY,
    NAME_PROPERTY,
    DirectoryObject,
)
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.hygiene.claims import REFERENCES
from mqis.protocol.hygiene.examining import examine
from mqis.protocol.hygiene.knowledge import Knowledge
from mqis.protocol.ports import View
from mqis.protocol.routing.model import PROPERTIES
from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber


def is_store(source: str) -> bool:
    """True for the URL of a store and for an SQLite file; anything else is taken as an export."""
    if source.startswith(("postgresql:", "postgres:", "sqlite:", "memory:")):
        return True
    return is_sqlite_file(Path(source))


# --- exports --------------------------------------------------------------------------------------


def check_export(path: Path) -> CheckReport:
    """Examines an export; raises ``ExportError`` with file, line and key if it is damaged."""
    doubts = Doubts()
    with read_export(path, doubts) as (header, objects):
        report = examine(objects, header.partitions)
    return replace(report, limits=(*doubts, *report.limits))


#: The exports that are not as mqis wrote them, each once, and what that limits.
Doubts = dict[Limit, None]


@contextmanager
def read_export(
    path: Path, doubts: Doubts
) -> Iterator[tuple[ExportHeader, Iterator[DirectoryObject]]]:
    """Opens an export: its first line, and its objects while the block lasts."""
    try:
        with path.open("rb") as file:
            lines = ExportLines(file)
            header = lines.header()
            yield header, _once(lines, header)
            if lines.doubt:
                reason = f"{path} was {lines.doubt}"
                doubts[Limit("", reason, "export the server again")] = None
    except ExportError as error:
        raise ExportError(error.reason, error.line, error.key, str(path)) from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {system_reason(error)}") from error


def _once(lines: ExportLines, header: ExportHeader) -> Iterator[DirectoryObject]:
    """The objects; refuses one that is there twice."""
    seen: dict[tuple[ObjectType, bytes], int] = {}
    for obj in lines.objects(header):
        first = seen.setdefault((obj.type, obj.id.raw), lines.number)
        if first != lines.number:
            reason = f"{obj.type.label} {obj.id} is on line {first} already"
            raise ExportError(reason, lines.number, "id")
        yield obj


# --- stores ---------------------------------------------------------------------------------------


def check_view(view: View) -> CheckReport:
    """Examines a store as one view shows it."""
    return examine((obj for kind in ORDER for obj in view.objects(kind)), view.partitions())


# --- servers --------------------------------------------------------------------------------------


def check_server(remote: Source) -> CheckReport:
    """Examines what a server shows to this user, by lookups (MS-MQDS).

    An object that is not among the rows may still exist, hidden from the user. So the server is
    asked for each missing object that others refer to.
    """
    knowledge = Knowledge((), permissions=False, checked=True)
    confirm = _Confirmation(remote).confirm
    report = examine(_looked_up(remote), knowledge=knowledge, confirm=confirm)
    if ObjectType.SITE.label not in report.counts:
        raise MqisError(
            "the server shows no site to this user: name one that may read them with --user"
        )
    return report


def _looked_up(remote: Source) -> Iterator[DirectoryObject]:
    for kind in ORDER:
        columns = _columns(kind)
        for record in remote.lookup(kind, columns, (), ()):
            values = {int(p): value for p, value in record.values.items() if value is not None}
            yield DirectoryObject(kind, record.id, ENTERPRISE_PARTITION, SequenceNumber.MIN, values)


def _columns(kind: ObjectType) -> tuple[PropId, ...]:
    """The properties that the rules look at; a lookup needs one at least."""
    referring = [PropId(propid) for propid, _, _ in REFERENCES[kind]]
    named = [NAME_PROPERTY[kind]] if kind in NAME_PROPERTY else []
    found = tuple(dict.fromkeys([*PROPERTIES.get(kind, ()), *named, *referring]))
    return found or (IDENTIFIER_PROPERTY[kind],)


class _Confirmation:
    """Asks a server for the missing objects that others refer to, each once."""

    def __init__(self, remote: Source) -> None:
        self._remote = remote
        self._absent: dict[tuple[ObjectType, str], bool] = {}
        self._targets = {
            (kind.label, check.label): target
            for kind, references in REFERENCES.items()
            for _, target, check in references
        }

    def confirm(self, findings: list[Finding]) -> tuple[list[Finding], dict[str, int]]:
        kept: list[Finding] = []
        hidden: dict[str, int] = {}
        for found in findings:
            target = self._targets.get((found.objects[0].type, found.check))
            if target is None or not found.detail or self._is_absent(target, found.detail):
                kept.append(found)
            else:
                hidden[found.check] = hidden.get(found.check, 0) + 1
        return kept, hidden

    def _is_absent(self, kind: ObjectType, id_: str) -> bool:
        key = kind, id_
        if key not in self._absent:
            self._absent[key] = self._ask(kind, id_)
        return self._absent[key]

    def _ask(self, kind: ObjectType, id_: str) -> bool:
        try:
            self._remote.get(kind, id_, [IDENTIFIER_PROPERTY[kind]])
        except DirectoryError as error:
            return error.hresult != HResult.MQ_ERROR_ACCESS_DENIED
        return False
