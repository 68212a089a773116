"""Lookups inside a server (3.1.6.7 to 3.1.6.9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.lookup_query import Order, Query, SortKey
from mqis.protocol.directory.lookup_rows import Row
from mqis.protocol.directory.lookup_walk import (
    LookupPages,
    LookupState,
    end_directory_lookup,
    finish_walk,
    walk_directory,
)
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import (
    C13,
    C14,
    DELETED,
    MACHINE,
    NET,
    QUEUE,
    SITE_A,
    World,
    guid,
    number,
    refusal,
    text,
    ui4,
)


@pytest.fixture
def world() -> World:
    return World()


OUT = "C15\\q007"


def crowd(world: World, queues: int, label: str = "") -> None:
    """That many queues more; every third has the same label."""
    like = world.one(QUEUE)
    with world.store.write() as transaction:
        for n in range(queues):
            properties = {
                103: text(f"C15\\q{n:03}"),
                108: text(label or f"label {n % 3 + 4}"),
                105: ui4(n * 7 % 11),
            }
            id_, seq = number(0x5000 + n), SequenceNumber(10_000 + n)
            transaction.insert(replace(like, id=id_, seq=seq, properties=properties))


def everybody(_obj: DirectoryObject) -> bool:
    return True


def _begin(world: World, query: Query) -> LookupState:
    with world.store.read() as view:
        return finish_walk(walk_directory(view, query, everybody))


def _next(state: LookupState) -> Row:
    """The next object, as S_DSLookupNext takes one with a buffer for just that."""
    rows = state.page(len(state.columns))
    state.position += len(rows)
    return rows[0] if rows else ()


def _values(state: LookupState) -> list[tuple[Value, ...]]:
    found = []
    while row := _next(state):
        found.append(tuple(variant.value for variant in row))
    return found


class TestLookup:
    @pytest.mark.req("MQDS-3.1.1.13-01", "MQDS-3.1.6.7-01")
    def test_what_an_iterator_holds(self, world: World) -> None:
        state = _begin(world, Query.make([203, 202, 203]))
        assert state.object_type is MACHINE
        assert state.columns == (203, 202, 203)
        assert state.position == 0

    def test_one_object_at_a_time_then_nothing_again_and_again(self, world: World) -> None:
        state = _begin(world, Query.make([301, 302], (), [SortKey(PropId.S_PATHNAME)]))
        first = _next(state)
        assert first == (text("Alpha"), guid(SITE_A))
        assert [row[0] for row in _values(state)] == ["Beta", "Far"]
        assert _next(state) == ()
        assert _next(state) == ()

    @pytest.mark.req("MQDS-3.1.6.8-02")
    @pytest.mark.parametrize("size", range(9))
    def test_pages_are_whole_objects(self, world: World, size: int) -> None:
        state = _begin(world, Query.make([301, 302]))
        page = state.page(size)
        assert len(page) == min(size // 2, 3)
        assert all(len(row) == 2 for row in page)
        assert state.position == 0

    @pytest.mark.req("MQDS-3.1.6.7-06")
    def test_later_changes_do_not_show(self, world: World) -> None:
        state = _begin(world, Query.make([103]))
        world.delete(world.one(QUEUE))
        world.create(QUEUE, "C14\\new", {})
        assert _values(state) == [("C13\\bills",), ("C14\\orders",), ("C15\\stock",)]

    @pytest.mark.departs("MQDS-3.1.6.7-03")
    def test_networks_are_searched_too(self, world: World) -> None:
        equal = Restriction(Relation.EQ, PropId.CN_NAME, prop(PropId.CN_NAME, "net"))
        assert _values(_begin(world, Query.make([503], [equal]))) == [(NET,)]

    @pytest.mark.req("MQDS-3.1.4.18-05")
    def test_an_absent_value_keeps_its_place(self) -> None:
        state = _begin(World(described=False), Query.make([202, 241, 203]))
        null = PropVariant(VarType.NULL, None)
        assert _next(state) == (guid(C13), null, text("C13"))
        assert _next(state) == (guid(C14), null, text("C14"))

    def test_a_sorted_lookup_leaves_out_what_does_not_match_or_is_not_admitted(
        self, world: World
    ) -> None:
        crowd(world, 20)
        some = Restriction(Relation.GE, PropId.Q_LABEL, prop(PropId.Q_LABEL, "label 5"))
        query = Query.make([103], [some], [SortKey(PropId.Q_LABEL)])
        with world.store.read() as view:
            expected = [obj.path for obj in query.objects(view) if obj.path != OUT]
            state = finish_walk(walk_directory(view, query, lambda obj: obj.path != OUT))
        assert [row[0] for row in _values(state)] == expected
        assert len(expected) == 12

    def test_only_what_is_admitted(self, world: World) -> None:
        with world.store.read() as view:
            walk = walk_directory(view, Query.make([203]), lambda obj: obj.path == "C15")
            state = finish_walk(walk)
        assert _values(state) == [("C15",)]

    @pytest.mark.req("MQDS-3.1.6.9-01")
    def test_the_end_frees_the_rows(self, world: World) -> None:
        state = _begin(world, Query.make([203]))
        _next(state)
        end_directory_lookup(state)
        assert (state.rows, state.position) == ((), 0)
        assert _next(state) == ()

    @pytest.mark.req("SEC-7-01")
    def test_a_walk_has_a_step_for_each_object_it_looks_at(self, world: World) -> None:
        crowd(world, 20)
        some = Restriction(Relation.LT, PropId.Q_LABEL, prop(PropId.Q_LABEL, "label 5"))
        with world.store.read() as view:
            walk = walk_directory(view, Query.make([108], [some]), lambda obj: obj.path != OUT)
            steps = list(walk)
            count = view.count(QUEUE)
        assert len(steps) == count
        assert 0 < sum(1 for added in steps if added) < count

    @pytest.mark.req("SEC-7-02")
    def test_a_lookup_is_as_large_as_its_cells(self, world: World) -> None:
        crowd(world, 20)
        narrow, wide = _begin(world, Query.make([101])), _begin(world, Query.make([101, 103, 108]))
        assert len(narrow.rows) == len(wide.rows)
        assert wide.size - narrow.size > sum(2 * len("C15\\q000") for _ in wide.rows)
        repeated = _begin(world, Query.make([101] * 128))
        assert repeated.size == narrow.size
        assert len(_next(repeated)) == 128

    @pytest.mark.parametrize("count", [0, 5, 255, 256, 700])
    @pytest.mark.parametrize("order", list(Order))
    def test_runs_are_merged_to_what_sorting_gives(
        self, world: World, count: int, order: Order
    ) -> None:
        crowd(world, count)
        query = Query.make([103], (), [SortKey(PropId.Q_LABEL, order), SortKey(PropId.Q_QUOTA)])
        with world.store.read() as view:
            expected = [obj.path for obj in query.objects(view)]
            added = list(walk_directory(view, query, everybody))
        assert [row[0] for row in _values(_begin(world, query))] == expected
        state = _begin(world, query)
        # What keys have taken is given back.
        assert sum(added) == state.size
        assert max(added) > state.size / len(state.rows)

    @pytest.mark.departs("MQDS-3.1.4.18-03")
    def test_an_answer_has_few_rows_where_they_are_large(self, world: World) -> None:
        crowd(world, 100, "x" * 60_000)
        state = _begin(world, Query.make([108]))
        pages = []
        while rows := state.page(128):
            pages.append(len(rows))
            state.position += len(rows)
        assert sum(pages) == len(state.rows)
        assert max(pages) < 40  # and not 100: each has 120,000 bytes
        assert len(_begin(world, Query.make([108] * 30 + [101] * 98)).rows) == len(state.rows)
        code = refusal(lambda: _begin(world, Query.make([108] * 128)))
        assert code == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES

    def test_tombstones_are_not_looked_up(self) -> None:
        with_deleted = [int(DELETED) * 100 + 1]
        assert refusal(lambda: Query.make(with_deleted)) == HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS


def test_pages_take_no_more_room_than_they_have() -> None:
    pages = LookupPages(room=10)
    pages.keep("first", 2, b"six456")
    pages.keep("second", 1, b"five5")
    pages.keep("third", 1, b"four")
    pages.keep("third", 9, b"four")
    assert pages.known == {"first": (2, b"six456"), "third": (1, b"four")}
    assert pages.room == 0
