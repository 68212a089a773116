"""Routing snapshots read directly from files of ``mqis export``, without a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mqis.files import system_reason
from mqis.protocol.directory.export_format import ExportError, parse_entry
from mqis.protocol.directory.export_reading import ExportLines
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.errors import StorageError
from mqis.protocol.routing.snapshot import ROUTED, Snapshot

#: The start of queue lines, most of an export, which routing does not need.
_QUEUE = '{"type":"queue"'


def snapshot_of_export(path: Path) -> Snapshot:
    """Reads the snapshot of an export; raises ``ExportError`` with file, line and key."""
    return Snapshot.of(routed_objects(path))


def routed_objects(path: Path) -> Iterator[DirectoryObject]:
    """The sites, links and machines of an export."""
    with _lines_of(path) as lines:
        for obj in lines.objects(lines.header(), skipped=_QUEUE):
            if obj.type in ROUTED:
                yield obj


def queue_of_export(path: Path, name: str) -> DirectoryObject | None:
    """Finds a public queue by its path name, ignoring case; None if there is none."""
    key = name_key(name)
    with _lines_of(path) as lines:
        for number, line in lines:
            if not line.startswith(_QUEUE):
                continue
            entry = parse_entry(line, number)
            if isinstance(entry, DirectoryObject) and name_key(entry.path or "") == key:
                return entry
    return None


@contextmanager
def _lines_of(path: Path) -> Iterator[ExportLines]:
    try:
        with path.open("rb") as file:
            yield ExportLines(file)
    except ExportError as error:
        raise ExportError(error.reason, error.line, error.key, str(path)) from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {system_reason(error)}") from error
