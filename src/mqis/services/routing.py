"""Routing snapshots from files that ``mqis export`` wrote, without a store in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mqis.protocol.directory.export import ExportError, parse_entry, parse_header
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.routing.snapshot import ROUTED, Snapshot

#: Most lines of an export are queues, which are nothing to routing.
_SKIPPED = '{"type":"queue"'


def snapshot_of_export(path: Path) -> Snapshot:
    """``ExportError`` names file, line and key."""
    try:
        with path.open(encoding="utf-8") as file:
            return Snapshot.of(_objects(iter(file)))
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
