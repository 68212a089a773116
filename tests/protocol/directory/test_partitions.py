"""Remove Directory Objects: what a full synchronisation does to a replica (3.1.6.10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.directory.ownership import (
    check_ready,
    mark,
    objects_of,
    remove,
)
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import (
    ENTERPRISE,
    LINK,
    MACHINE,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    SITE_B,
    USER,
    World,
    guid,
    refusal,
    text,
)

Objects = dict[tuple[ObjectType, Guid], DirectoryObject]


def _objects(world: World) -> Objects:
    with world.store.read() as view:
        found = [obj for kind in ObjectType for obj in view.objects(kind)]
    return {(obj.type, obj.id): obj for obj in found}


def _within(world: World, partition: Guid) -> Objects:
    return {key: obj for key, obj in _objects(world).items() if obj.partition == partition}


SITE_TYPES = {QUEUE, MACHINE}


@pytest.mark.departs("MQDS-3.1.6.10-01")
@pytest.mark.req("MQDS-3.1.6.10-02", "MQDS-3.1.6.10-03")
@pytest.mark.parametrize("partition", [SITE_A, ENTERPRISE_PARTITION])
def test_operation_0_zeroes_the_numbers(partition: Guid) -> None:
    world = World()
    before, within = _objects(world), _within(world, partition)
    enterprise_wide = partition == ENTERPRISE_PARTITION
    assert within
    assert all((kind in SITE_TYPES) is not enterprise_wide for kind, _ in within)
    with world.store.write() as tx:
        mark(tx, partition)
    zeroed = {key: replace(obj, seq=SequenceNumber.MIN) for key, obj in within.items()}
    assert _objects(world) == before | zeroed
    assert world.store.check() == []


@pytest.mark.departs("MQDS-3.1.6.10-01")
@pytest.mark.req("MQDS-3.1.6.10-02", "MQDS-3.1.6.10-03")
@pytest.mark.parametrize("partition", [SITE_A, SITE_B, ENTERPRISE_PARTITION, OTHER])
def test_operation_1_removes_everything(partition: Guid) -> None:
    world = World()
    before, within = _objects(world), _within(world, partition)
    with world.store.write() as tx:
        removed = remove(tx, partition)
    assert {(obj.type, obj.id): obj for obj in removed} == within
    assert _objects(world) == {key: obj for key, obj in before.items() if key not in within}
    with world.store.read() as view:
        assert all(view.tombstones(obj.id) == [] for obj in within.values())


# --- what has to be there before a directory is served --------------------------------------------


@pytest.mark.req("MQDS-1.5-01")
def test_a_directory_that_can_be_served() -> None:
    world = World()
    with world.store.read() as view:
        check_ready(view, SITE_A)


@pytest.mark.req("MQDS-1.5-01")
@pytest.mark.parametrize(
    ("inhabitants", "own_site"),
    [
        ([], SITE_A),
        ([(SITE, {301: text("Alpha"), 302: guid(SITE_A)})], SITE_A),
        ([(ENTERPRISE, {601: text("Corp")})], SITE_A),
        ([(ENTERPRISE, {601: text("Corp")}), (SITE, {301: text("A"), 302: guid(SITE_A)})], None),
        ([(ENTERPRISE, {601: text("Corp")}), (SITE, {301: text("A"), 302: guid(SITE_A)})], SITE_B),
    ],
    ids=["nothing", "no enterprise", "no site", "own site not configured", "own site unknown"],
)
def test_a_directory_that_cannot(
    inhabitants: list[tuple[ObjectType, dict[int, object]]], own_site: Guid | None
) -> None:
    world = World(empty=True)
    for object_type, properties in inhabitants:
        world.create_event(object_type, properties)  # type: ignore[arg-type]
    with world.store.read() as view:
        code = refusal(lambda: check_ready(view, own_site))
    assert code == HResult.MQ_ERROR_MQIS_SERVER_EMPTY


def test_links_and_users_are_the_enterprises() -> None:
    world = World()
    with world.store.read() as view:
        kinds = {o.type for o in objects_of(view, ENTERPRISE_PARTITION)}
    assert {LINK, USER, SITE, ENTERPRISE} < kinds
    assert not kinds & SITE_TYPES
