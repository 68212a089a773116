"""The state of reads that take several events (MS-MQDS 3.2.1.5, 3.2.1.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mqis.client.elements import DirectoryElement
from mqis.client.requests import ElementColumns
from mqis.client.session import ServerSession
from mqis.wire.ndr import ContextHandle


@dataclass(slots=True, eq=False)
class ReadIterator:
    """ReadDirectoryIteratorState; ``columns`` is known after the type-specific steps."""

    element_type: type[DirectoryElement]
    #: The server's handle; None until it has answered.
    handle: ContextHandle | None = None
    columns: ElementColumns[DirectoryElement] | None = None
    #: The session in which the handle is valid.
    session: ServerSession | None = None


class IteratorCollection:
    """ReadDirectoryIteratorStateCollection: all open iterators."""

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
