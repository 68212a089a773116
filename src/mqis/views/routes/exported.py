"""Routing snapshots read directly from files of ``mqis export``, without a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mqis.protocol.directory.export_format import ExportError, parse_entry, parse_header
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.errors import StorageError
from mqis.protocol.routing.snapshot import ROUTED, Snapshot

#: The start of queue lines, most of an export, which routing does not need.
_SKIPPED = '{"type":"queue"'


def snapshot_of_export(path: Path) -> Snapshot:
    """Reads the snapshot of an export; raises ``ExportError`` with file, line and key."""
    return Snapshot.of(routed_objects(path))


def routed_objects(path: Path) -> Iterator[DirectoryObject]:
    """The sites, links and machines of an export."""
    with _lines_of(path) as lines:
        yield from _objects(lines)


def queue_of_export(path: Path, name: str) -> DirectoryObject | None:
    """Finds a public queue by its path name, ignoring case; None if there is none."""
    key = name_key(name)
    with _lines_of(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.startswith(_SKIPPED):
                continue
            entry = parse_entry(line, number)
            if isinstance(entry, DirectoryObject) and name_key(entry.path or "") == key:
                return entry
    return None


@contextmanager
def _lines_of(path: Path) -> Iterator[Iterator[str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield iter(file)
    except ExportError as error:
        raise ExportError(error.reason, error.line, error.key, str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"{path}: cannot be read: {reason}") from error


def _objects(lines: Iterator[str]) -> Iterator[DirectoryObject]:
    header = parse_header(next(lines, ""))
    number = 1
    for number, line in enumerate(lines, 2):
        if line.startswith(_SKIPPED):
            continue
        entry = parse_entry(line, number)
        if isinstance(entry, DirectoryObject) and entry.type in ROUTED:
            yield entry
    if header.lines not in (None, number - 1):
        reason = f"announces {header.lines} more lines, but {number - 1} follow: it was cut off"
        raise ExportError(reason, 1, "lines")
