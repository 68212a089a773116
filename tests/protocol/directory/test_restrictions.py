"""Restrictions: property, relation, constant."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.restrictions import Relation, Restriction, comparable
from mqis.protocol.errors import DirectoryError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES, prop
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.protocol.directory.world import (
    C14,
    C15,
    LINK,
    MACHINE,
    OTHER,
    QUEUE,
    SITE_A,
    SITE_B,
    SITE_F,
    World,
    blob,
    guid,
    guids,
    number,
    text,
    ui1,
    ui2,
    ui4,
)

LT, LE, GT, GE, EQ, NE = Relation


def holds(
    world: World, obj: DirectoryObject, relation: Relation, propid: int, v: PropVariant
) -> bool:
    with world.store.read() as view:
        restriction = Restriction(relation, PropId(propid), v)
        return PROPERTIES[propid].object_type is obj.type and restriction.test(view)(obj)


class TestRelation:
    @pytest.mark.req("MQDS-2.2.11-02", "MQDS-2.2.11-51")
    def test_numbers(self) -> None:
        expected = {"LT": 0, "LE": 1, "GT": 2, "GE": 3, "EQ": 4, "NE": 5}
        assert {relation.name: int(relation) for relation in Relation} == expected
        for code in range(6):
            assert Relation.from_wire(code) == code

    @pytest.mark.req("MQDS-2.2.11-02")
    @pytest.mark.parametrize("code", [6, 7, 8, 0x100, 0x200, 0xFFFFFFFF, -1])
    def test_other_numbers_are_illegal(self, code: int) -> None:
        """Also those that an IDL declares: PRRE, PRAllBits, PRSomeBits, PRAll, PRAny."""
        with pytest.raises(DirectoryError) as caught:
            Relation.from_wire(code)
        assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_RELATION

    @pytest.mark.req("MQDS-2.2.11-02")
    @pytest.mark.parametrize(
        ("relation", "below", "equal", "above"),
        [
            (LT, True, False, False),
            (LE, True, True, False),
            (GT, False, False, True),
            (GE, False, True, True),
            (EQ, False, True, False),
            (NE, True, False, True),
        ],
    )
    def test_the_property_stands_left_of_the_constant(
        self, relation: Relation, below: bool, equal: bool, above: bool
    ) -> None:
        world = World()
        for quota, expected in ((9, below), (10, equal), (11, above)):
            obj = world.update(world.one(QUEUE), {105: ui4(quota)})
            assert holds(world, obj, relation, 105, ui4(10)) is expected

    @pytest.mark.parametrize(
        ("relation", "shown"), list(zip(Relation, ["<", "<=", ">", ">=", "=", "!="], strict=True))
    )
    def test_text(self, relation: Relation, shown: str) -> None:
        assert (
            str(Restriction(relation, PropId.Q_QUOTA, prop(PropId.Q_QUOTA, 10)))
            == f"Q_QUOTA {shown} 10"
        )


class TestConstant:
    @pytest.mark.req("MQDS-2.2.11-03", "MQDS-2.2.11-52")
    @pytest.mark.parametrize(
        ("propid", "constant"),
        [
            (105, PropVariant(VarType.I4, 1)),
            (106, ui2(1)),
            (202, text(str(C14))),
            (202, blob(C14.raw)),
            (210, ui1(1)),
            (222, guid(SITE_A)),
            (108, PropVariant(VarType.NULL, None)),
        ],
    )
    def test_has_the_type_of_the_property(self, propid: int, constant: PropVariant) -> None:
        with pytest.raises(DirectoryError) as caught:
            Restriction(EQ, PropId(propid), constant)
        assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT

    @pytest.mark.req("MQDS-2.2.11-52")
    def test_the_declared_type_is_taken(self) -> None:
        for propid, constant in ((202, guid(C14)), (210, ui4(1)), (219, ui1(1))):
            assert Restriction(EQ, PropId(propid), constant).constant is constant

    def test_unknown_property(self) -> None:
        with pytest.raises(DirectoryError) as caught:
            Restriction(EQ, 120, ui4(1))  # type: ignore[arg-type]
        assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_RESTRICTION_PROPID


class TestComputedValues:
    """Restrictions compare what a property shows, not what is stored."""

    @pytest.mark.req("MQDS-3.1.4.17-04")
    @pytest.mark.parametrize(
        ("writes", "expected"),
        [
            ({210: ui4(0)}, False),
            ({210: ui4(1)}, False),
            ({210: ui4(2)}, True),
            ({210: ui4(0x11)}, True),
            ({228: ui1(1)}, False),  # stands alone: a directory server without a bit
        ],
    )
    def test_210_greater_than_1(self, writes: dict[int, PropVariant], expected: bool) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), writes)
        assert holds(world, obj, GT, 210, ui4(1)) is expected

    @pytest.mark.req("MQDS-3.1.4.17-04")
    def test_201_equal_to_a_site(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {222: guids(SITE_B, SITE_A)})
        assert holds(world, obj, EQ, 201, guid(SITE_B))
        assert not holds(world, obj, EQ, 201, guid(SITE_A))  # in the list, but not its first

    @pytest.mark.req("MQDS-3.1.4.17-04")
    def test_803_with_the_surcharge(self) -> None:
        world = World()
        obj = world.create(LINK, None, {801: guid(SITE_A), 802: guid(SITE_F), 812: ui4(5)})
        assert holds(world, obj, EQ, 803, ui4(1_000_004))
        assert not holds(world, obj, EQ, 803, ui4(5))
        assert holds(world, obj, EQ, 812, ui4(5))

    @pytest.mark.req("MQDS-3.1.4.17-04")
    def test_227_is_a_bit_of_210(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {210: ui4(0x11)})
        assert holds(world, obj, EQ, 227, ui1(1))
        assert not holds(world, world.get(MACHINE, C15), EQ, 227, ui1(1))

    def test_a_property_without_a_value_matches_nothing(self) -> None:
        world = World()
        for relation in Relation:
            assert not holds(world, world.one(QUEUE), relation, 123, text("x"))

    def test_a_default_is_a_value(self) -> None:
        world = World()
        obj = world.one(QUEUE)
        bare = DirectoryObject(obj.type, obj.id, obj.partition, obj.seq, {})
        assert holds(world, bare, EQ, 112, ui4(1))


class TestComparison:
    @pytest.mark.parametrize("relation", [EQ, LE, GE])
    def test_text_ignores_case(self, relation: Relation) -> None:
        world = World()
        obj = world.update(world.one(QUEUE), {108: text("Orders \u00c4")})
        assert holds(world, obj, relation, 108, text("oRDERS \u00e4"))
        assert not holds(world, obj, NE, 108, text("ORDERS \u00c4"))

    def test_text_order_ignores_case(self) -> None:
        world = World()
        obj = world.update(world.one(QUEUE), {108: text("Zebra")})
        assert holds(world, obj, GT, 108, text("ant"))

    def test_a_guid_is_ordered_as_its_text(self) -> None:
        smaller = Guid.parse("00010000-0000-0000-0000-000000000001")
        larger = Guid.parse("01000000-0000-0000-0000-000000000000")
        assert smaller.raw > larger.raw  # the packet bytes would say otherwise
        world = World()
        obj = world.update(world.one(QUEUE), {102: guid(larger)})
        assert holds(world, obj, GT, 102, guid(smaller))

    def test_lists_compare_element_by_element(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {208: guids(number(1), number(2))})
        assert holds(world, obj, EQ, 208, guids(number(1), number(2)))
        assert not holds(world, obj, EQ, 208, guids(number(2), number(1)))
        assert holds(world, obj, GT, 208, guids(number(1)))
        assert holds(world, obj, LT, 208, guids(number(2)))

    def test_variants_compare_by_type_first(self) -> None:
        assert comparable(PropVariant(VarType.UI1, 9)) < comparable(PropVariant(VarType.UI2, 1))

    @given(
        st.sampled_from(Relation),
        st.integers(0, 3),
        st.integers(0, 3),
    )
    def test_relations_are_those_of_the_operators(
        self, relation: Relation, left: int, right: int
    ) -> None:
        table: dict[Relation, Callable[[int, int], bool]] = {
            LT: operator.lt,
            LE: operator.le,
            GT: operator.gt,
            GE: operator.ge,
            EQ: operator.eq,
            NE: operator.ne,
        }
        world = World(empty=True)
        obj = DirectoryObject(QUEUE, OTHER, SITE_A, world.last(SITE_A), {105: ui4(left)})
        assert holds(world, obj, relation, 105, ui4(right)) is table[relation](left, right)
