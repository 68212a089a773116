"""Lookups step by step: a server's events of reading (MS-MQDS 3.1.6.7 to 3.1.6.9).

The methods of clients, replication and export all read through these. They check no rights:
whoever acts for a client passes ``admit``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field
from heapq import merge
from typing import Any, TypeVar

from mqis.protocol.directory.lookup_query import Descending, Query
from mqis.protocol.directory.lookup_rows import ROW_BYTES, Row, RowFormat
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import View
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

T = TypeVar("T")


@dataclass(slots=True)
class LookupPages:
    """Answers of a lookup, each with the number of its rows; they take ``room`` bytes at most."""

    room: int
    known: dict[Hashable, tuple[int, bytes]] = field(default_factory=dict)

    def keep(self, page: Hashable, rows: int, answer: bytes) -> None:
        if len(answer) <= self.room and page not in self.known:
            self.room -= len(answer)
            self.known[page] = rows, answer


@dataclass(slots=True)
class LookupState:
    """LookupIteratorState (3.1.1.13): the rows as they were when it began, and how far it is."""

    object_type: ObjectType
    form: RowFormat
    rows: Sequence[bytes] = ()
    #: What the rows take, in bytes.
    size: int = 0
    position: int = 0
    #: The pages that were encoded already, if other lookups have the same rows.
    pages: LookupPages | None = None

    def again(self) -> LookupState:
        """A lookup that has not begun to be read, with the same rows and pages."""
        return LookupState(self.object_type, self.form, self.rows, self.size, pages=self.pages)

    @property
    def columns(self) -> tuple[PropId, ...]:
        """PropertyList: in the client's order, duplicates included."""
        return self.form.columns

    def page(self, size: int) -> list[Row]:
        """3.1.6.8: whole objects, as many as ``size`` values hold; does not move on.

        Fewer of large ones: one answer has a bounded number of bytes, and at least one object.
        """
        first = self.position
        rows = self.rows[first : first + size // len(self.columns)]
        return [self.form.unpack(row) for row in self.form.bounded(rows)]


#: One step for each object that is looked at: the bytes that it has added to the lookup.
Walk = Generator[int, None, LookupState]

#: Rows that are sorted in one step; longer lists are merged out of such runs.
RUN = 256


def walk_directory(view: View, query: Query, admit: Callable[[DirectoryObject], bool]) -> Walk:
    """3.1.6.7 in steps: the matching objects that ``admit`` lets pass, materialised (note <131>).

    No step takes longer than to look at one object and to sort ``RUN`` of them, however large the
    directory is.
    """
    state = LookupState(query.object_type, RowFormat(query.columns))
    if query.sort:
        yield from _walk_sorted(view, query, admit, state)
        return state
    pack = state.form.packer(view)
    rows: list[bytes] = []
    state.rows = rows
    for obj in query.matching(view):
        if obj is None or not admit(obj):
            yield 0
            continue
        row = pack(obj)
        rows.append(row)
        state.size += len(row) + ROW_BYTES
        yield len(row) + ROW_BYTES
    return state


def _walk_sorted(
    view: View, query: Query, admit: Callable[[DirectoryObject], bool], state: LookupState
) -> Generator[int, None, None]:
    """The same for a sort set: sorted runs first, which are merged then."""
    pack, key_of = state.form.packer(view), query.order(view)
    run: list[tuple[tuple[Any, ...], bytes]] = []
    runs, keys = [run], 0
    for obj in query.matching(view):
        if obj is None or not admit(obj):
            yield 0
            continue
        row, key = pack(obj), key_of(obj)
        run.append((key, row))
        state.size += len(row) + ROW_BYTES
        keys += (weight := _weight(key))
        yield len(row) + ROW_BYTES + weight
        if len(run) == RUN:
            run.sort()
            run = []
            runs.append(run)
    run.sort()
    rows: list[bytes] = []
    state.rows = rows
    for _, row in merge(*runs):
        rows.append(row)
        yield 0
    yield -keys


def _weight(key: object) -> int:
    """About how many bytes a sort key takes."""
    if isinstance(key, Descending):
        return _weight(key.value)
    if isinstance(key, tuple):
        return 56 + sum(map(_weight, key))
    return 56 + 2 * len(key) if isinstance(key, (str, bytes)) else 56


def finish_walk(walk: Generator[int, None, T]) -> T:
    """Does all steps of a walk, and returns its result."""
    while True:
        try:
            next(walk)
        except StopIteration as end:
            result: T = end.value
            return result


def end_directory_lookup(state: LookupState) -> None:
    """3.1.6.9: the rows go; there is no query below this one to end (note <133>)."""
    state.rows = ()
    state.size = state.position = 0
