"""Partitions and their authorities."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.directory.ownership import (
    SITE_TYPES,
    authority,
    enterprise,
    machine_of,
    partition_or_new,
    site_of,
)
from mqis.protocol.errors import DirectoryError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.directory.world import (
    C14,
    C15,
    CN,
    ENTERPRISE,
    ENTERPRISE_ID,
    LINK,
    MACHINE,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    SITE_B,
    SITE_F,
    USER,
    World,
    guid,
    guids,
    text,
)


@pytest.mark.req("MQDSRP-1.3.1.2-01", "MQDSRP-3.1.1.2.3-01")
@pytest.mark.parametrize(
    ("object_type", "partition", "owner"),
    [
        (ENTERPRISE, Guid.NULL, "PEC0"),
        (SITE, Guid.NULL, "PEC0"),
        (LINK, Guid.NULL, "PEC0"),
        (CN, Guid.NULL, "PEC0"),
        (USER, Guid.NULL, "PEC0"),
        (MACHINE, SITE_A, "PSC1"),
        (QUEUE, SITE_A, "PSC1"),
    ],
)
def test_where_objects_lie_and_who_decides(
    object_type: ObjectType, partition: Guid, owner: str
) -> None:
    world = World()
    assert world.one(object_type).partition == partition
    assert (object_type in SITE_TYPES) is (partition != ENTERPRISE_PARTITION)
    with world.store.read() as view:
        assert authority(partition, view) == owner


class TestAuthority:
    @pytest.mark.req("MQDSRP-3.1.1.2.3-01")
    def test_each_site_has_its_own(self) -> None:
        with World().store.read() as view:
            assert authority(SITE_B, view) == "PSC2"

    def test_nobody(self) -> None:
        """A site without a controller, a site that nobody knows, no enterprise at all."""
        with World().store.read() as view:
            assert authority(SITE_F, view) is None
            assert authority(OTHER, view) is None
        with World(empty=True).store.read() as view:
            assert authority(ENTERPRISE_PARTITION, view) is None

    def test_follows_the_directory(self) -> None:
        world = World()
        world.update(world.one(SITE), {304: text("PSC9")})
        with world.store.read() as view:
            assert authority(SITE_A, view) == "PSC9"

    def test_a_new_partition_is_owned_by_it(self) -> None:
        with World().store.read() as view:
            assert partition_or_new(SITE_F, view) == Partition(SITE_F, "")
        with World().store.read() as view:
            assert view.partition(SITE_F) is None
        world = World(empty=True)
        world.create(SITE, "Alpha", {302: guid(SITE_A), 304: text("PSC1")})
        with world.store.read() as view:
            assert partition_or_new(SITE_A, view) == Partition(SITE_A, "PSC1")

    def test_a_stored_partition_stays_as_it_is(self) -> None:
        world = World()
        with world.store.read() as view:
            stored = view.partition(SITE_A)
            assert stored is not None
            assert partition_or_new(SITE_A, view) == stored


@pytest.mark.req("MQDS-3.1.1.14-02")
def test_the_enterprise_is_found_without_its_name() -> None:
    world = World()
    world.update_event(world.one(ENTERPRISE), {601: text("Renamed")})
    with world.store.read() as view:
        root = enterprise(view)
    assert root is not None
    assert (root.id, root.path) == (ENTERPRISE_ID, "Renamed")
    with World(empty=True).store.read() as view:
        assert enterprise(view) is None


class TestHosts:
    @pytest.mark.req("MQDS-3.1.4.21.8.3-09")
    def test_the_computer_part_of_the_path(self) -> None:
        with World().store.read() as view:
            assert machine_of("c14\\anything", view).id == C14
            assert machine_of("C15\\C14", view).id == C15

    @pytest.mark.req("MQDS-3.1.4.21.8.3-09")
    def test_unknown_computer(self) -> None:
        with World().store.read() as view, pytest.raises(DirectoryError) as caught:
            machine_of("C99\\orders", view)
        assert caught.value.hresult == HResult.MQ_ERROR_MACHINE_NOT_FOUND

    def test_the_first_site_of_a_machine(self) -> None:
        assert site_of({222: guids(SITE_B, SITE_A)}) == SITE_B
        for stored in ({}, {222: guids()}):
            with pytest.raises(DirectoryError) as caught:
                site_of(stored)
            assert caught.value.hresult == HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES
