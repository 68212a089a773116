"""Lookups step by step: a server's events of reading (MS-MQDS 3.1.6.7 to 3.1.6.9).

The methods of clients, replication and export all read through these. They check no rights:
whoever acts for a client passes ``admit``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from typing import Any, TypeVar

from mqis.protocol.directory.guard import Access
from mqis.protocol.directory.lookup_query import Descending, Query
from mqis.protocol.directory.lookup_rows import ROW_BYTES, Row, RowFormat, object_of, row_format
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.ndr.packed import Packed

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
    #: The rights that a caller needs to read the objects.
    needed: tuple[Access, ...] = ()
    #: The caller and the state of the directory by which its rows were admitted.
    admitted_by: Hashable = None

    def again(self, admitted_by: Hashable) -> LookupState:
        """A lookup that has not begun to be read, with the same rows and pages."""
        again = replace(self, position=0)
        again.admitted_by = admitted_by
        return again

    @property
    def columns(self) -> tuple[PropId, ...]:
        """PropertyList: in the client's order, duplicates included."""
        return self.form.columns

    def page(self, size: int) -> list[Row]:
        """3.1.6.8: whole objects, as many as ``size`` values hold; does not move on.

        Fewer of large ones: one answer has a bounded number of bytes, and at least one object.
        """
        return [self.form.unpack(row) for row in self._page(size)]

    def packed_page(self, size: int) -> list[list[Packed]]:
        """The same with values as they are stored."""
        return [self.form.split(row) for row in self._page(size)]

    def _page(self, size: int) -> Iterator[bytes]:
        first = self.position
        rows = self.rows[first : first + size // len(self.columns)]
        return self.form.bounded(rows)

    def judge_again(self, admit: Callable[[Guid], bool], size: int) -> int:
        """Leaves out the next objects that ``admit`` refuses now.

        Returns the size of the page that is judged, which may be less than ``size``. If so many are
        refused that the right to all seems to have ended, it ends with a ``DirectoryError``.
        """
        rows, most = self.rows, min(size // len(self.columns), MOST_JUDGED)
        kept: list[bytes] = []
        place, refused = self.position, 0
        while place < len(rows) and len(kept) < most and refused < MOST_JUDGED:
            if admit(object_of(rows[place])):
                kept.append(rows[place])
            else:
                refused += 1
            place += 1
        if refused:  # a new list, because other lookups may have the same one
            self.rows, self.position, self.pages = [*kept, *rows[place:]], 0, None
        if refused == MOST_JUDGED and not kept:
            self.rows = ()
            raise DirectoryError(
                HResult.MQ_ERROR_ACCESS_DENIED,
                "the right to read these objects has ended since the lookup began",
            )
        return len(kept) * len(self.columns)


#: One step for each object that is looked at: the bytes that it has added to the lookup.
Walk = Generator[int, None, LookupState]

#: Objects whose permissions are looked up again for one page.
MOST_JUDGED = 1_000
#: Rows that are sorted in one step; longer lists are merged out of such runs.
RUN = 256


def walk_directory(
    view: View,
    query: Query,
    admit: Callable[[DirectoryObject], bool],
    needed: tuple[Access, ...] = (),
) -> Walk:
    """3.1.6.7 in steps: the matching objects that ``admit`` lets pass, materialised (note <131>).

    No step takes longer than to look at one object and to sort ``RUN`` of them, however large the
    directory is. ``needed`` are the rights that ``admit`` asks for.
    """
    state = LookupState(query.object_type, row_format(query.columns), needed=needed)
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
