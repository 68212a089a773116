"""The lines that an export writes of a view, in the order that ``export_format`` documents.

A store remembers the server that it belongs to, so that an export of it can name that server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mqis.protocol.directory.export_format import (
    ORDER,
    ExportedServer,
    ExportHeader,
    format_entry,
    format_header,
    sealed,
)
from mqis.protocol.directory.objects import DeletedObject
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.ports import Change, Transaction, View
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

_FAMILY, _IDENTITY = "server", b"identity"
_GUID_SIZE = 16


def remember_server(tx: Transaction, server: ExportedServer) -> None:
    """Remembers whose store this is."""
    tx.put_state(_FAMILY, _IDENTITY, server.id.raw + server.name.encode("utf-8", "surrogatepass"))


def server_of_store(view: View) -> ExportedServer | None:
    """The server whose store this is; None if no server has used it yet."""
    held = view.state(_FAMILY, _IDENTITY)
    if held is None:
        return None
    name = held[_GUID_SIZE:].decode("utf-8", "surrogatepass")
    return ExportedServer(Guid(held[:_GUID_SIZE]), name)


def exported_lines(view: View) -> tuple[int, Iterator[str]]:
    """Returns the number of objects and tombstones, and all lines, without line ends."""
    # No store lists tombstones; they stand among the changes of each partition. They are found
    # first because the header counts them.
    tombstones = list(_tombstones(view))
    total = sum(view.count(object_type) for object_type in ORDER) + len(tombstones)
    return total, sealed(_lines(view, tombstones, total))


def _lines(view: View, tombstones: Iterable[DeletedObject], total: int) -> Iterator[str]:
    root = enterprise(view)
    name = None if root is None else root.path
    states = tuple(view.partitions())
    yield format_header(ExportHeader(name, states, total + 1, server_of_store(view)))
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
