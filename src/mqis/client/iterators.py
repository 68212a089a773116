"""Reads that go on from event to event (MS-MQDS 3.2.1.5, 3.2.1.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mqis.client.elements import DirectoryObject
from mqis.client.requests import Columns
from mqis.client.session import Session
from mqis.wire.mqds.propid import PropId
from mqis.wire.ndr import ContextHandle


@dataclass(slots=True, eq=False)
class ReadIterator:
    """ReadDirectoryIteratorState; what is read is known once the type-specific steps are done."""

    element_type: type[DirectoryObject]
    #: What the server calls it. None until it has an answer.
    handle: ContextHandle | None = None
    columns: Columns[DirectoryObject] | None = None
    #: Where the handle is good.
    session: Session | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        return () if self.columns is None else self.columns.attributes

    @property
    def propids(self) -> tuple[PropId, ...]:
        return () if self.columns is None else self.columns.propids


class IteratorCollection:
    """ReadDirectoryIteratorStateCollection: every iterator that there is."""

    def __init__(self) -> None:
        self._iterators: list[ReadIterator] = []

    def __iter__(self) -> Iterator[ReadIterator]:
        return iter(self._iterators)

    def __len__(self) -> int:
        return len(self._iterators)

    def add(self, iterator: ReadIterator) -> None:
        self._iterators.append(iterator)

    def remove(self, iterator: ReadIterator) -> None:
        self._iterators.remove(iterator)

    def find(self, handle: ContextHandle) -> ReadIterator | None:
        return next((it for it in self._iterators if it.handle == handle), None)
