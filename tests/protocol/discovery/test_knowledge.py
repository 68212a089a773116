"""The knowledge that a discovery server reads from the directory."""

from __future__ import annotations

import pytest

from mqis.lab import demo
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.discovery.knowledge import queue_manager_of
from mqis.protocol.ports import View
from mqis.storage.memory import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import props


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
