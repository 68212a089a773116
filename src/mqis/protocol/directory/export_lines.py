"""The lines that an export writes of a view, in the order that ``export_format`` documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mqis.protocol.directory.export_format import ORDER, ExportHeader, format_entry, format_header
from mqis.protocol.directory.objects import DeletedObject
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.ports import Change, View
from mqis.wire.seqnum import SequenceNumber


def exported_lines(view: View) -> tuple[int, Iterator[str]]:
    """Returns the number of lines after the first one, and all lines, without line ends."""
    # No store lists tombstones; they stand among the changes of each partition. They are found
    # first because the header counts them.
    tombstones = list(_tombstones(view))
    total = sum(view.count(object_type) for object_type in ORDER) + len(tombstones)
    return total, _lines(view, tombstones, total)


def _lines(view: View, tombstones: Iterable[DeletedObject], total: int) -> Iterator[str]:
    root = enterprise(view)
    name = None if root is None else root.path
    yield format_header(ExportHeader(name, tuple(view.partitions()), total))
    yield from map(format_entry, _entries(view, tombstones))


def _entries(view: View, tombstones: Iterable[DeletedObject]) -> Iterator[Change]:
    for object_type in ORDER:
        yield from view.objects(object_type)
    yield from tombstones


def _tombstones(view: View) -> Iterator[DeletedObject]:
    for partition in view.partitions():
        for change in view.changes(partition.id, SequenceNumber.MIN):
            if isinstance(change, DeletedObject):
                yield change
