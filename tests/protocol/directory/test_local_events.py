"""The events that replication and import use (3.1.6.3 to 3.1.6.5): numbers, partitions, types."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.directory.write_methods import as_properties
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propertybag import Properties
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import (
    BARE_CERTIFICATE,
    CN,
    DELETED,
    ENTERPRISE,
    LINK,
    MACHINE,
    OTHER,
    QUEUE,
    SECOND_CERTIFICATE,
    SITE,
    SITE_A,
    SITE_B,
    USER,
    World,
    blob,
    certificates,
    digest,
    guid,
    guids,
    i4,
    refusal,
    text,
    ui1,
    ui4,
)

#: For each type, the least that makes an object by the event.
LEAST: dict[ObjectType, Properties] = {
    QUEUE: {103: text("C14\\new"), 101: guid(OTHER)},
    MACHINE: {203: text("C16"), 202: guid(OTHER), 201: guid(SITE_A)},
    SITE: {301: text("Gamma"), 302: guid(OTHER)},
    CN: {502: text("Net2"), 503: guid(OTHER)},
    ENTERPRISE: {601: text("Other"), 609: guid(OTHER)},
    USER: {
        702: blob(certificates(SECOND_CERTIFICATE)),
        705: guids(digest(SECOND_CERTIFICATE)),
        706: guid(OTHER),
    },
    LINK: {801: guid(SITE_B), 802: guid(SITE_A), 812: ui4(5), 806: guid(OTHER)},
}
TYPES = list(LEAST)
FAR = SequenceNumber(1000)


@pytest.fixture
def world() -> World:
    return World()


def _create(
    world: World,
    object_type: ObjectType,
    *,
    partition: Guid | None = None,
    seq: SequenceNumber | None = None,
) -> DirectoryObject:
    with world.store.write() as tx:
        made = world.events(tx).create_directory_object(
            object_type, LEAST[object_type], partition=partition, seq=seq
        )
    return world.same(made)


class TestCreate:
    @pytest.mark.req("MQDS-3.1.6.3-01", "MQDS-3.1.6.3-05")
    @pytest.mark.parametrize("object_type", TYPES)
    def test_the_number_is_the_one_that_came(self, world: World, object_type: ObjectType) -> None:
        made = _create(world, object_type, seq=FAR)
        assert made.seq == FAR
        assert world.last(made.partition) == FAR
        assert world.store.check() == []

    @pytest.mark.req("MQDS-3.1.6.3-05")
    def test_an_old_number_does_not_take_the_partition_back(self, world: World) -> None:
        world.create_event(QUEUE, {103: text("C14\\a")})
        last = world.last(SITE_A)
        made = _create(world, QUEUE, seq=SequenceNumber(1))
        assert made.seq == SequenceNumber(1)
        assert world.last(SITE_A) == last

    @pytest.mark.req("MQDS-3.1.6.3-01", "MQDS-3.1.6.3-05")
    @pytest.mark.parametrize("object_type", TYPES)
    def test_partitions_are_given_to_queues_and_machines(
        self, world: World, object_type: ObjectType
    ) -> None:
        made = _create(world, object_type, partition=OTHER, seq=FAR)
        given = object_type in (QUEUE, MACHINE)
        assert made.partition == (OTHER if given else ENTERPRISE_PARTITION)
        assert world.last(made.partition) == FAR
        assert world.store.check() == []

    @pytest.mark.departs("MQDS-3.1.6.3-06")
    @pytest.mark.parametrize("object_type", [ENTERPRISE, CN])
    def test_a_replica_gets_enterprise_and_networks(
        self, world: World, object_type: ObjectType
    ) -> None:
        """The text has these fail; then no replica would ever have them (notes <125>, <126>)."""
        assert _create(world, object_type).id == OTHER

    @pytest.mark.req("MQDS-3.1.6.3-07")
    def test_another_enterprise_takes_the_place_of_the_one_there_is(self, world: World) -> None:
        made = _create(world, ENTERPRISE)
        with world.store.read() as view:
            assert [obj.id for obj in view.objects(ENTERPRISE)] == [made.id]

    @pytest.mark.req("MQDS-3.1.6.3-07")
    @pytest.mark.parametrize("object_type", [t for t in TYPES if t is not ENTERPRISE])
    def test_what_is_there_already_is_an_error(self, world: World, object_type: ObjectType) -> None:
        _create(world, object_type)
        before = world.snapshot()
        assert refusal(lambda: _create(world, object_type)) in (
            HResult.MQ_ERROR_QUEUE_EXISTS,
            HResult.MQ_ERROR_MACHINE_EXISTS,
        )
        assert world.snapshot() == before

    @pytest.mark.parametrize("object_type", TYPES)
    def test_no_properties(self, world: World, object_type: ObjectType) -> None:
        refused = refusal(lambda: world.create_event(object_type, {}))
        assert refused == HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES

    @pytest.mark.req("MQDS-3.1.6.3-01")
    def test_tombstones_are_no_type_to_create(self, world: World) -> None:
        refused = refusal(lambda: world.create_event(DELETED, {401: ui1(1)}))
        assert refused == HResult.MQ_ERROR_INVALID_PARAMETER

    @pytest.mark.parametrize("object_type", TYPES)
    def test_strange_identifiers_are_skipped(self, world: World, object_type: ObjectType) -> None:
        stranger = 103 if object_type is not QUEUE else 203
        properties = {**LEAST[object_type], stranger: text("C1\\x"), 4711: ui4(1)}
        made = world.create_event(object_type, properties)
        assert not {stranger, 4711} & set(made.properties)

    @pytest.mark.departs("MQDS-3.1.6.3-02", "MQDS-3.1.6.4-01")
    def test_what_the_tables_forbid_clients_is_stored(self, world: World) -> None:
        """A replica shows the times and names that the authority decided (E69)."""
        times = {109: i4(77), 110: i4(88)}
        made = world.create_event(QUEUE, {**LEAST[QUEUE], **times})
        assert (world.show(made, 109), world.show(made, 110)) == (77, 88)
        changed = world.update_event(made, {109: i4(99), 103: text("C14\\renamed")})
        assert (world.show(changed, 109), changed.path) == (99, "C14\\renamed")

    def test_a_wrong_variant_type_is_not_skipped(self, world: World) -> None:
        wrong = {**LEAST[SITE], 305: ui4(1)}
        refused = refusal(lambda: world.create_event(SITE, wrong))
        assert refused == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT

    @pytest.mark.req("MQDS-3.1.6.3-03")
    @pytest.mark.parametrize(
        ("object_type", "missing"),
        [(USER, 702), (USER, 705), (LINK, 801), (LINK, 802), (LINK, 812)],
    )
    def test_required_identifiers(
        self, world: World, object_type: ObjectType, missing: int
    ) -> None:
        least = {p: v for p, v in LEAST[object_type].items() if p != missing}
        refused = refusal(lambda: world.create_event(object_type, least))
        assert refused == HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES


@pytest.mark.req("MQDS-3.1.6.3-09")
def test_arrays_of_unequal_length_are_refused() -> None:
    refused = [
        refusal(lambda: as_properties([101, 102], [ui4(1)])),
        refusal(lambda: as_properties([101], [ui4(1), ui4(2)])),
        refusal(lambda: as_properties([], [ui4(1)])),
    ]
    assert set(refused) == {HResult.MQ_ERROR_INVALID_PARAMETER}
    assert as_properties([5, 6], [ui4(1), ui4(2)]) == {5: ui4(1), 6: ui4(2)}


def test_a_property_that_stands_twice_is_refused() -> None:
    refused = refusal(lambda: as_properties([101, 101], [ui4(1), ui4(2)]))
    assert refused == HResult.MQ_ERROR_INVALID_PARAMETER


#: For each type, a change and what it shows afterwards.
CHANGES: dict[ObjectType, tuple[int, Properties]] = {
    QUEUE: (108, {108: text("new")}),
    MACHINE: (216, {216: text("new")}),
    SITE: (304, {304: text("new")}),
    ENTERPRISE: (601, {601: text("new")}),
    LINK: (810, {810: text("new")}),
    CN: (502, {502: text("new")}),
    USER: (702, {702: blob(certificates(BARE_CERTIFICATE, SECOND_CERTIFICATE))}),
}


class TestUpdate:
    @pytest.mark.parametrize(
        "object_type",
        [
            *(
                pytest.param(t, marks=pytest.mark.req("MQDS-3.1.6.4-02"))
                for t in (QUEUE, MACHINE, SITE, ENTERPRISE, LINK)
            ),
            pytest.param(CN, marks=pytest.mark.req("MQDS-3.1.6.4-05")),
            pytest.param(USER, marks=pytest.mark.req("MQDS-3.1.6.4-05")),
        ],
    )
    def test_value_and_number(self, world: World, object_type: ObjectType) -> None:
        propid, change = CHANGES[object_type]
        old = world.one(object_type)
        with world.store.write() as tx:
            new = world.events(tx).update_directory_object(old, change, seq=FAR)
        assert world.same(new).seq == FAR
        assert world.show(new, propid) == change[propid].value
        assert new.partition == old.partition
        assert world.last(new.partition) == FAR

    def test_the_partition_stays_whatever_is_said(self, world: World) -> None:
        old = world.one(QUEUE)
        new = world.update_event(old, {116: guid(OTHER), 105: ui4(1), 9999: ui4(1)})
        assert new.partition == old.partition
        assert world.show(new, 105) == 1

    @pytest.mark.req("MQDS-3.1.6.4-03")
    def test_all_of_a_change_or_nothing(self, world: World) -> None:
        before = world.snapshot()
        change = {105: ui4(1), 108: text("x" * 125)}
        refused = refusal(lambda: world.update_event(world.one(QUEUE), change))
        assert refused == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
        assert world.snapshot() == before


class TestDelete:
    @pytest.mark.req("MQDS-3.1.6.5-01")
    @pytest.mark.parametrize("object_type", TYPES)
    def test_the_number_of_the_tombstone_is_the_one_that_came(
        self, world: World, object_type: ObjectType
    ) -> None:
        obj = world.one(object_type)
        with world.store.write() as tx:
            tombstone = world.events(tx).delete_directory_object(obj, seq=FAR)
        with world.store.read() as view:
            assert view.get(object_type, obj.id) is None
            assert view.tombstones(obj.id) == [tombstone]
        assert (tombstone.seq, tombstone.partition) == (FAR, obj.partition)
        assert world.last(obj.partition) == FAR
        assert world.store.check() == []

    @pytest.mark.req("MQDS-3.1.6.5-01")
    def test_without_one_it_is_the_next_of_the_partition(self, world: World) -> None:
        last = world.last(SITE_A)
        assert world.delete(world.one(QUEUE)).seq == last.increment()
