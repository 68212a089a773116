"""The knowledge that a discovery server reads from the directory."""

from __future__ import annotations

import pytest

from mqis.lab import demo
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.discovery.announced import DiscoveryQueueManager, queue_manager_of
from mqis.protocol.ports import View
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests import builders
from tests.builders import guid


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    made = MemoryStore()
    demo.build(made)
    return made


def found(view: View, object_type: ObjectType, name: str) -> Guid:
    obj = view.find(object_type, name)
    assert obj is not None
    return obj.id


@pytest.mark.req("MQSD-3.2.1.1-01")
def test_a_server_of_the_demonstration_enterprise(store: MemoryStore) -> None:
    with store.read() as view:
        site = found(view, ObjectType.SITE, "Amsterdam")
        own = queue_manager_of(view, "AMS-DIR2", site)
        assert own.enterprise_id == next(iter(view.objects(ObjectType.ENTERPRISE))).id
        assert own.site_ids == (site,)
        assert own.directory_servers == ("ams-dir1", "ams-dir2")  # the authority first
        assert own.connected_networks == (found(view, ObjectType.CN, "Corporate IP"),)


@pytest.mark.req("MQSD-3.2.1.1-01")
def test_every_server_announces_its_own_site_and_networks() -> None:
    """Three sites, each with its own servers, on networks of their own."""
    store = MemoryStore()
    networks = {n: (guid(0x500 + n), guid(0x600 + n)) for n in (1, 2, 3)}
    with store.write() as tx:
        tx.insert(builders.enterprise())
        for n, own in networks.items():
            tx.insert(builders.site(n, psc=f"psc{n}"))
            for kind, service in (("psc", 0x4), ("bsc", 0x2), ("router", 0x1)):
                machine = builders.machine(
                    0x10 * service + n,
                    f"{kind}{n}",
                    sites=(guid(n),),
                    networks=own,
                    service=service,
                )
                tx.insert(machine)
    with store.read() as view:
        for n, own in networks.items():
            assert queue_manager_of(view, f"bsc{n}", guid(n)) == DiscoveryQueueManager(
                guid(0x6001), (guid(n),), (f"psc{n}", f"bsc{n}"), own
            )


def test_a_server_that_the_directory_does_not_know_names_itself(store: MemoryStore) -> None:
    with store.read() as view:
        site = found(view, ObjectType.SITE, "Chicago")
        own = queue_manager_of(view, "newcomer", site)
        assert own.directory_servers == ("chi-dir1", "newcomer")
        assert own.connected_networks == ()


def test_configured_networks_take_the_place_of_the_directorys(store: MemoryStore) -> None:
    with store.read() as view:
        site = found(view, ObjectType.SITE, "Berlin")
        branch = found(view, ObjectType.CN, "Branch IP")
        own = queue_manager_of(view, "ber-dir1", site, (branch,))
        assert own.connected_networks == (branch,)


def test_a_machine_in_several_sites() -> None:
    store = MemoryStore()
    demo.build(store)
    with store.write() as tx:
        sites = [found(tx, ObjectType.SITE, name) for name in ("Amsterdam", "Berlin")]
        machine = tx.find(ObjectType.MACHINE, "ber-dir1")
        assert machine is not None
        events = DirectoryEvents(tx, demo.NOW, demo.SeededEntropy(7))
        listed = tuple(sites)
        events.update_directory_object(machine, props({PropId.QM_SITE_IDS: listed}))
    with store.read() as view:
        own = queue_manager_of(view, "ber-dir1", sites[1])
    assert own.site_ids == (sites[1], sites[0])  # the configured one first
    assert own.site_id == sites[1]


def test_an_empty_directory() -> None:
    with MemoryStore().read() as view:
        own = queue_manager_of(view, "alone", Guid(b"the site it has."))
    assert own.directory_servers == ("alone",)
    assert own.enterprise_id == Guid.NULL
