"""Lookups: what is refused, what is found, in which order and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.lookup_query import Order, Query, SortKey
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.read_mapping import read_property
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import (
    ALICE_SID,
    BARE_CERTIFICATE,
    BILLS,
    BOB_SID,
    C14,
    C15,
    CN,
    LINK,
    LINK_AB,
    LINK_AF,
    LINK_FB,
    MACHINE,
    ORDERS,
    QUEUE,
    SITE,
    SITE_A,
    SITE_B,
    SITE_F,
    STOCK,
    USER,
    World,
    blob,
    digest,
    guid,
    guids,
    number,
    text,
    ui1,
    ui4,
)

EQ, NE, GT = Relation.EQ, Relation.NE, Relation.GT
UP, DOWN = Order.ASCENDING, Order.DESCENDING

COLUMNS = HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS
RESTRICTION_ID = HResult.MQ_ERROR_ILLEGAL_RESTRICTION_PROPID
SORT_ID = HResult.MQ_ERROR_ILLEGAL_SORT_PROPID


def where(relation: Relation, propid: int, constant: PropVariant) -> Restriction:
    return Restriction(relation, PropId(propid), constant)


def by(propid: int, order: Order = UP) -> SortKey:
    return SortKey(PropId(propid), order)


def run(world: World, query: Query) -> list[tuple[object, ...]]:
    with world.store.read() as view:
        return [tuple(variant.value for variant in row) for row in query.rows(view)]


def refusal(*arguments: Any) -> int:
    with pytest.raises(DirectoryError) as caught:
        Query.make(*arguments)
    return caught.value.hresult


@pytest.fixture
def queues() -> World:
    """Five queues of C14: q1 to q5, with labels and quotas to sort by."""
    world = World(empty=True)
    world.create(SITE, "Alpha", {302: guid(SITE_A)})
    world.create(MACHINE, "C14", {201: guid(SITE_A), 202: guid(C14)})
    for name, label, quota, priority in [
        ("q1", "pear", 30, 0),
        ("q2", "Apple", 10, 0),
        ("q3", "apple", 20, 0),
        ("q4", "Pear", 30, 1),
        ("q5", "fig", 10, 1),
    ]:
        world.create(
            QUEUE,
            f"C14\\{name}",
            {108: text(label), 105: ui4(quota), 104: ui1(priority)},
        )
    return world


def names(rows: list[tuple[object, ...]]) -> str:
    return " ".join(str(row[0]).removeprefix("C14\\") for row in rows)


class TestObjectType:
    @pytest.mark.req("MQDS-3.1.6.7-01")
    @pytest.mark.parametrize(
        ("columns", "object_type"),
        [
            ([101, 108], QUEUE),
            ([203], MACHINE),
            ([301, 302], SITE),
            ([502], CN),
            ([601], ObjectType.ENTERPRISE),
            ([706], USER),
            ([803], LINK),
        ],
    )
    def test_is_that_of_the_columns(self, columns: list[int], object_type: ObjectType) -> None:
        assert Query.make(columns).object_type is object_type

    @pytest.mark.req("MQDS-3.1.6.7-01")
    @pytest.mark.parametrize(
        "columns",
        [
            pytest.param([], id="none"),
            pytest.param([101, 202], id="two types"),
            pytest.param([1101], id="private"),
            pytest.param([101, 1101], id="private beside public"),
            pytest.param([1405], id="tombstones"),
            pytest.param([120], id="undefined"),
            pytest.param([618], id="undefined, inside the range"),
            pytest.param([0xFFFFFFFF], id="nonsense"),
        ],
    )
    def test_cannot_be_told(self, columns: list[int]) -> None:
        assert refusal(columns) == COLUMNS

    @pytest.mark.req("MQDS-3.1.4.21.8.1-01")
    @pytest.mark.parametrize("propid", [117, 118, 125, 211, 213, 308, 505, 608, 704, 805])
    def test_what_no_read_table_lists_is_no_column(self, propid: int) -> None:
        assert refusal([propid]) == COLUMNS

    @pytest.mark.req("MQDS-3.1.6.7-01")
    def test_restrictions_and_keys_are_of_the_same_type(self) -> None:
        other = where(EQ, 203, text("C14"))
        private = where(EQ, 1101, blob(b""))
        unreadable = where(EQ, 118, ui4(1))
        for restriction in (other, private, unreadable):
            assert refusal([101], [restriction]) == RESTRICTION_ID
        for propid in (203, 1101, 118, 117):
            assert refusal([101], [], [by(propid)]) == SORT_ID
        assert refusal([101], [], [SortKey(120)]) == SORT_ID  # type: ignore[arg-type]


class TestLimits:
    @pytest.mark.parametrize("what", ["columns", "restrictions", "sort"])
    def test_128_entries(self, what: str) -> None:
        arguments: dict[str, list[Any]] = {"columns": [101]}
        entry: dict[str, Any] = {
            "columns": 101,
            "restrictions": where(EQ, 105, ui4(1)),
            "sort": by(105),
        }
        arguments[what] = [entry[what]] * 128
        if what == "sort":  # the same key twice is another error
            with pytest.raises(DirectoryError) as caught:
                Query.make(**arguments)
            assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_SORT
        else:
            Query.make(**arguments)
        arguments[what] = [entry[what]] * 129
        with pytest.raises(DirectoryError) as caught:
            Query.make(**arguments)
        assert caught.value.hresult == HResult.MQ_ERROR_INVALID_PARAMETER

    def test_a_key_twice(self) -> None:
        code = refusal([101], [], [by(105), by(108), by(105, DOWN)])
        assert code == HResult.MQ_ERROR_ILLEGAL_SORT

    @pytest.mark.req("MQDS-2.2.14-51")
    def test_orders(self) -> None:
        assert {int(order): order.name for order in Order} == {0: "ASCENDING", 1: "DESCENDING"}
        assert [Order.from_wire(0), Order.from_wire(1)] == [UP, DOWN]
        for code in (2, -1, 0xFFFFFFFF):
            with pytest.raises(DirectoryError) as caught:
                Order.from_wire(code)
            assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_SORT


class TestRestrictions:
    @pytest.mark.req("MQDS-2.2.12-02")
    def test_all_must_hold(self, queues: World) -> None:
        both = [where(EQ, 105, ui4(30)), where(EQ, 104, ui1(1))]
        assert names(run(queues, Query.make([103], both))) == "q4"
        assert names(run(queues, Query.make([103], both[:1], [by(103)]))) == "q1 q4"
        contradiction = [where(EQ, 105, ui4(30)), where(NE, 105, ui4(30))]
        assert run(queues, Query.make([103], contradiction)) == []

    @pytest.mark.req("MQDS-2.2.12-02")
    def test_none_selects_all_of_the_type(self, queues: World) -> None:
        assert names(run(queues, Query.make([103], [], [by(103)]))) == "q1 q2 q3 q4 q5"
        assert run(queues, Query.make([203])) == [("C14",)]

    @pytest.mark.req("MQDS-3.1.4.17-03", "MQDS-3.1.4.17-04")
    def test_computed_values(self) -> None:
        world = World()
        world.create(MACHINE, "PSC1", {222: guids(SITE_A, SITE_B), 210: ui4(4)})
        world.create(MACHINE, "ROUTER", {222: guids(SITE_B, SITE_A), 210: ui4(1)})
        servers = Query.make([203], [where(GT, 210, ui4(1))])
        assert run(world, servers) == [("PSC1",)]
        in_site = Query.make([203], [where(EQ, 201, guid(SITE_A))], [by(203)])
        assert run(world, in_site) == [("C14",), ("PSC1",)]
        dear = Query.make([801, 802, 812, 803], [where(GT, 803, ui4(999_999))], [by(812)])
        assert run(world, dear) == [(SITE_F, SITE_B, 3, 1_000_002), (SITE_A, SITE_F, 7, 1_000_006)]


class TestColumns:
    @pytest.mark.req("MQDS-3.1.6.7-02", "MQDS-3.1.4.17-03")
    def test_in_the_clients_order_duplicates_included(self, queues: World) -> None:
        query = Query.make([108, 103, 105, 108], [where(EQ, 103, text("c14\\Q3"))])
        assert query.columns == (108, 103, 105, 108)
        assert run(queues, query) == [("apple", "C14\\q3", 20, "apple")]

    def test_a_missing_value_is_null(self) -> None:
        world = World()
        with world.store.read() as view:
            rows = list(Query.make([123, 101]).rows(view))
        null = PropVariant(VarType.NULL, None)
        assert rows == [(null, guid(queue)) for queue in (BILLS, ORDERS, STOCK)]


class TestSort:
    @pytest.mark.req("MQDS-3.1.6.7-04")
    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            ([by(103)], "q1 q2 q3 q4 q5"),
            ([by(103, DOWN)], "q5 q4 q3 q2 q1"),
            # The first key is the most significant one.
            ([by(105), by(103)], "q2 q5 q3 q1 q4"),
            ([by(105), by(103, DOWN)], "q5 q2 q3 q4 q1"),
            ([by(105, DOWN), by(103)], "q1 q4 q3 q2 q5"),
            ([by(104, DOWN), by(105), by(103)], "q5 q4 q2 q3 q1"),
            # Text ignores case.
            ([by(108), by(103)], "q2 q3 q5 q1 q4"),
            ([by(108, DOWN), by(103, DOWN)], "q4 q1 q5 q3 q2"),
        ],
    )
    def test_keys(self, queues: World, keys: list[SortKey], expected: str) -> None:
        assert names(run(queues, Query.make([103], [], keys))) == expected

    @pytest.mark.req("MQDS-3.1.6.7-05")
    def test_a_key_need_not_be_a_column(self, queues: World) -> None:
        rows = run(queues, Query.make([103], [], [by(105, DOWN), by(108), by(104)]))
        assert names(rows) == "q1 q4 q3 q2 q5"
        assert {len(row) for row in rows} == {1}

    def test_objects_without_a_value_come_first(self, queues: World) -> None:
        obj = queues.find(QUEUE, "C14\\q3")
        assert obj is not None
        queues.update(obj, {123: text("suffix")})
        assert names(run(queues, Query.make([103], [], [by(123), by(103)]))) == "q1 q2 q4 q5 q3"
        assert names(run(queues, Query.make([103], [], [by(123, DOWN), by(103)]))) == (
            "q3 q1 q2 q4 q5"
        )

    @pytest.mark.req("MQDS-3.1.4.17-04")
    def test_by_what_a_property_shows(self) -> None:
        world = World()
        shown = [(LINK_AB,), (LINK_FB,), (LINK_AF,)]  # 5, 1,000,002, 1,000,006
        assert run(world, Query.make([806], [], [by(803)])) == shown
        stored = [(LINK_FB,), (LINK_AB,), (LINK_AF,)]  # 3, 5, 7
        assert run(world, Query.make([806], [], [by(812)])) == stored

    def test_without_keys_by_identifier(self) -> None:
        world = World(empty=True)
        world.create(SITE, "Alpha", {302: guid(SITE_A)})
        for n in (7, 3, 9, 1):
            world.create(MACHINE, f"M{n}", {201: guid(SITE_A), 202: guid(number(n))})
        expected = [(number(n),) for n in (1, 3, 7, 9)]
        assert run(world, Query.make([202])) == expected
        assert run(world, Query.make([202], [where(EQ, 201, guid(SITE_A))])) == expected


class NoScan:
    """A view that answers from its indexes only."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        if name == "objects":
            raise AssertionError("all objects of the type were read")
        return getattr(self._view, name)


class TestIndexes:
    @pytest.mark.parametrize(
        ("object_type", "propid", "constant"),
        [
            (QUEUE, 101, guid(ORDERS)),
            (QUEUE, 102, guid(number(0x102))),
            (QUEUE, 103, text("c14\\orders")),
            (QUEUE, 108, text("ORDERS")),
            (QUEUE, 115, guid(C14)),
            (MACHINE, 201, guid(SITE_A)),
            (MACHINE, 202, guid(C14)),
            (MACHINE, 203, text("c14")),
            (SITE, 301, text("alpha")),
            (SITE, 302, guid(SITE_A)),
            (CN, 502, text("net")),
            (USER, 701, blob(ALICE_SID)),
        ],
    )
    def test_answer_without_a_scan(
        self, object_type: ObjectType, propid: int, constant: PropVariant
    ) -> None:
        world = World()
        world.update(world.one(QUEUE), {108: text("Orders"), 102: guid(number(0x102))})
        query = Query.make([propid], [where(EQ, propid, constant)])
        with world.store.read() as view:
            found = query.objects(NoScan(view))
        assert found == [world.one(object_type)]

    @pytest.mark.parametrize(
        ("propid", "site", "links"),
        [
            (801, SITE_A, (LINK_AB, LINK_AF)),
            (802, SITE_B, (LINK_FB, LINK_AB)),
            (801, SITE_F, (LINK_FB,)),
        ],
    )
    def test_links_of_a_site_without_a_scan(
        self, propid: int, site: Guid, links: tuple[Guid, ...]
    ) -> None:
        query = Query.make([propid], [where(EQ, propid, guid(site))])
        with World().store.read() as view:
            assert tuple(link.id for link in query.objects(NoScan(view))) == links

    @pytest.mark.parametrize(
        ("object_type", "propid", "constant"),
        [
            # What everything has that nobody chose is in no index.
            (QUEUE, 108, text("")),
            (QUEUE, 102, guid(Guid.NULL)),
            # A list is indexed by its elements, not as a whole.
            (MACHINE, 222, guids(SITE_A)),
            (USER, 705, guids(digest(BARE_CERTIFICATE))),
            # Never indexed.
            (QUEUE, 123, text("suffix")),
            (QUEUE, 105, ui4(0xFFFFFFFF)),
            (MACHINE, 216, text("")),
            (SITE, 304, text("psc1")),
        ],
    )
    def test_are_passed_by_where_they_do_not_help(
        self, object_type: ObjectType, propid: int, constant: PropVariant
    ) -> None:
        world = World()
        world.update(world.one(QUEUE), {123: text("Suffix")})
        query = Query.make([propid], [where(EQ, propid, constant)])
        with world.store.read() as view:
            assert world.one(object_type) in query.objects(view)

    def test_serve_equality_alone(self) -> None:
        world = World()
        query = Query.make([203], [where(NE, 203, text("C14"))])
        assert run(world, query) == [("C13",), ("C15",)]


# --- indexes give what a scan gives ---------------------------------------------------------------

LABELS = ["", "alpha", "ALPHA", "beta"]
SITES = [Guid.NULL, SITE_A, SITE_B]
_guid_lists = st.lists(st.sampled_from(SITES[1:]), max_size=3).map(lambda ids: guids(*ids))

#: For each type: properties as they are stored, and the restrictions that can be put.
STORED: dict[ObjectType, dict[int, st.SearchStrategy[PropVariant]]] = {
    QUEUE: {
        102: st.sampled_from(SITES).map(guid),
        105: st.integers(0, 2).map(ui4),
        108: st.sampled_from(LABELS).map(text),
        123: st.sampled_from(LABELS).map(text),
        115: st.sampled_from([C14, C15, Guid.NULL]).map(guid),
    },
    MACHINE: {
        207: _guid_lists,
        210: st.sampled_from([0, 1, 4, 0x11]).map(ui4),
        222: st.lists(st.sampled_from(SITES[1:]), min_size=1, max_size=3).map(
            lambda ids: guids(*ids)
        ),
        228: st.integers(0, 1).map(ui1),
    },
    USER: {
        701: st.sampled_from([ALICE_SID, BOB_SID, b""]).map(blob),
        705: _guid_lists,
    },
    LINK: {
        801: st.sampled_from(SITES).map(guid),
        802: st.sampled_from(SITES).map(guid),
        812: st.integers(1, 3).map(ui4),
    },
}
ASKED: dict[ObjectType, dict[int, st.SearchStrategy[PropVariant]]] = {
    QUEUE: {
        **STORED[QUEUE],
        101: st.integers(0, 7).map(lambda n: guid(number(n))),
        103: st.sampled_from(["m\\q1", "M\\Q2", "m\\none"]).map(text),
    },
    MACHINE: {
        **STORED[MACHINE],
        201: st.sampled_from(SITES).map(guid),
        202: st.integers(0, 7).map(lambda n: guid(number(n))),
        203: st.sampled_from(["m1", "M2", "none"]).map(text),
        227: st.integers(0, 1).map(ui1),
    },
    USER: {**STORED[USER], 706: st.integers(0, 7).map(lambda n: guid(number(n)))},
    LINK: {
        **STORED[LINK],
        803: st.sampled_from([1, 2, 1_000_000]).map(ui4),
        806: st.integers(0, 7).map(lambda n: guid(number(n))),
    },
}
NAMES = {QUEUE: (103, "m\\q{}"), MACHINE: (203, "m{}")}


@st.composite
def populations(draw: st.DrawFn) -> tuple[list[DirectoryObject], list[Restriction]]:
    object_type = draw(st.sampled_from(list(STORED)))
    made: list[DirectoryObject] = []
    for n in range(draw(st.integers(0, 6))):
        stored = {
            propid: draw(strategy)
            for propid, strategy in STORED[object_type].items()
            if draw(st.integers(0, 3))  # one in four is missing
        }
        if object_type in NAMES:
            propid, form = NAMES[object_type]
            stored[propid] = text(form.format(n))
        made.append(DirectoryObject(object_type, number(n), SITE_A, SequenceNumber(n + 1), stored))
    asked = draw(st.lists(st.sampled_from(sorted(ASKED[object_type])), min_size=1, max_size=3))
    relations = st.sampled_from([EQ, EQ, EQ, *Relation])
    restrictions = [where(draw(relations), p, draw(ASKED[object_type][p])) for p in asked]
    return made, restrictions


def _plain(value: object) -> Any:
    """Comparable, by this test's own reading of the rules."""
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, Guid):
        return str(value)
    if isinstance(value, tuple):
        return [str(element) for element in value]
    return value


def _holds(obj: DirectoryObject, restriction: Restriction, view: View) -> bool:
    shown = read_property(obj, restriction.propid, view)
    if shown is None:
        return False
    left, right = _plain(shown.value), _plain(restriction.constant.value)
    answer: bool = {
        0: lambda: left < right,
        1: lambda: left <= right,
        2: lambda: left > right,
        3: lambda: left >= right,
        4: lambda: left == right,
        5: lambda: left != right,
    }[int(restriction.relation)]()
    return answer


@pytest.mark.req("MQDS-3.1.4.17-03", "MQDS-2.2.12-02")
@given(populations())
def test_a_lookup_finds_exactly_what_a_scan_finds(
    population: tuple[list[DirectoryObject], list[Restriction]],
) -> None:
    """Whichever index answers: candidates are neither lost nor let through unchecked."""
    made, restrictions = population
    world = World(empty=True)
    with world.store.write() as transaction:
        for obj in made:
            transaction.insert(obj)
    query = Query.make([restrictions[0].propid], restrictions)
    with world.store.read() as view:
        expected = [obj for obj in made if all(_holds(obj, r, view) for r in restrictions)]
        assert query.objects(view) == expected


def test_a_directory_that_compares_by_itself_is_asked(queues: World) -> None:
    """What it returns is still tested, as it may be more."""
    query = Query.make([103], [where(EQ, 108, text("fig"))])
    asked: list[tuple[ObjectType, int]] = []

    class Comparing:
        def __init__(self, view: View) -> None:
            self._view = view

        def compared(
            self, object_type: ObjectType, restrictions: Sequence[Restriction]
        ) -> Iterator[DirectoryObject]:
            asked.append((object_type, len(restrictions)))
            return self._view.objects(object_type)

    with queues.store.read() as view:
        found = [obj for obj in query.matching(cast(View, Comparing(view))) if obj is not None]
        assert found == query.objects(view)
    assert asked == [(QUEUE, 1)]
    assert len(found) == 1
