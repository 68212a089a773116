"""Mutations that put a plausible bug into a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mqis.protocol.directory.objects import DeletedObject
from mqis.protocol.ports import Change
from mqis.storage import memory_store
from mqis.storage.sql_store import SqlTransaction, SqlView
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

_Any = Callable[..., Any]


def _kept(_savepoint: _Any) -> _Any:
    @contextmanager
    def savepoint(_tx: object) -> Iterator[None]:
        yield

    return savepoint


def _objects_alone(changes: _Any) -> _Any:
    def selected(view: SqlView, partition: Guid, after: SequenceNumber) -> Iterator[Change]:
        found: Iterator[Change] = changes(view, partition, after)
        return (change for change in found if not isinstance(change, DeletedObject))

    return selected


B29 = (memory_store._LayerView, "savepoint", _kept), (SqlTransaction, "savepoint", _kept)
B30 = ((SqlView, "changes", _objects_alone),)

BUGS = {
    "B29": ("a savepoint is not rolled back", B29),
    "B30": ("a database lists changes without tombstones", B30),
}
