"""Deleted objects found in journals, and restored so that all replicas agree again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Scope
from mqis.protocol.errors import DirectoryError
from mqis.protocol.undeletion.lost import LostObject
from mqis.protocol.undeletion.messages import UndeleteRequest
from mqis.server.undeletion.deleted_history import JournalHistory
from mqis.server.undeletion.planning import plan_undelete
from mqis.storage.journal import Appender, Journal
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from tests.protocol.replication.enterprise import (
    Enterprise,
    Node,
    guid_of,
    machine_properties,
    text,
)

QUEUE, MACHINE, SITE, LINK = (
    ObjectType.QUEUE,
    ObjectType.MACHINE,
    ObjectType.SITE,
    ObjectType.ROUTINGLINK,
)


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_psc("third", "C")
    made.add_bsc("bsc", "psc")
    psc = made.nodes["psc"]
    made.create(psc, MACHINE, machine_properties("app", "B", 0))
    for name in ("one", "two"):
        made.create_queue(psc, f"app\\{name}", label=text(name))
    link: dict[int, PropVariant] = {
        PropId.L_NEIGHBOR1: prop(PropId.L_NEIGHBOR1, guid_of("A")),
        PropId.L_NEIGHBOR2: prop(PropId.L_NEIGHBOR2, guid_of("B")),
        PropId.L_ACTUAL_COST: prop(PropId.L_ACTUAL_COST, 3),
    }
    made.create(made.nodes["pec"], LINK, link)
    made.label(psc, "app\\two", "changed")
    made.run(1300)  # until everybody has sent a heartbeat
    made.check_converged()
    return made


def history(node: Node, directory: Path) -> JournalHistory:
    return JournalHistory(directory, node.store, node.server.site)


def lost(node: Node, directory: Path) -> dict[Guid, LostObject]:
    found = history(node, directory).lost(lambda _lost: True)
    return {one.id: one for one in found}


def planned(node: Node, directory: Path, **conditions: str) -> list[LostObject]:
    request = UndeleteRequest("plan", **conditions)  # type: ignore[arg-type]
    return [one.lost for one in plan_undelete(history(node, directory), node.server, request)]


def restore(enterprise: Enterprise, node: Node, obj: DirectoryObject | None) -> int | None:
    assert obj is not None
    return enterprise.change(node, lambda events: events.restore_directory_object(obj))


def content(node: Node, kind: ObjectType, path: str) -> tuple[object, ...]:
    found = node.find(kind, path)
    assert found is not None
    return found.id, found.partition, dict(found.properties)


def test_a_queue_is_found_as_it_was_and_comes_back(enterprise: Enterprise, tmp_path: Path) -> None:
    psc = enterprise.nodes["psc"]
    multicast = prop(PropId.Q_MULTICAST_ADDRESS, "224.0.0.1:80")
    enterprise.update(psc, QUEUE, "app\\two", {PropId.Q_MULTICAST_ADDRESS: multicast})
    before = content(psc, QUEUE, "app\\two")
    enterprise.delete(psc, QUEUE, "app\\two")
    enterprise.run(30)
    assert set(lost(psc, tmp_path)) == {guid_of("app\\two")}
    (found,) = planned(psc, tmp_path, type="queue", name="APP\\two")
    assert found.obj is not None
    assert found.obj.value(PropId.Q_LABEL) == "changed"
    restore(enterprise, psc, found.obj)
    enterprise.run(30)
    assert content(psc, QUEUE, "app\\two") == before, "also what does not replicate"
    assert lost(psc, tmp_path) == {}
    enterprise.check_converged()


def test_another_server_finds_what_replicates_and_asks(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    psc, pec = enterprise.nodes["psc"], enterprise.nodes["pec"]
    before = psc.holds(guid_of("B"))
    enterprise.delete(psc, QUEUE, "app\\one")
    enterprise.delete(psc, MACHINE, "app")
    enterprise.run(30)
    found = planned(pec, tmp_path, under="app")
    assert [one.path for one in found] == ["app", "app\\one"]
    for one in found:
        assert restore(enterprise, pec, one.obj) is not None, "forwarded to the authority"
        enterprise.run(30)
    assert set(pec.answers().values()) == {0}
    after = psc.holds(guid_of("B"))
    assert {id_: held.content for id_, held in after.items()} == {
        id_: held.content for id_, held in before.items()
    }
    enterprise.check_converged()


def test_a_site_is_restored_by_the_pec_and_filled_by_its_own_servers(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    """No heartbeat is due meanwhile: everybody hears of it at once."""
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    before = {name: node.copy_of(guid_of("B")) for name, node in enterprise.nodes.items()}
    enterprise.delete(pec, SITE, "B")
    enterprise.run(30)
    assert not pec.knows(guid_of("B"))
    enterprise.create_queue(psc, "app\\meanwhile")  # its own clients go on
    enterprise.run(30)

    found = planned(pec, tmp_path, type="site", name="B")
    assert {(one.type, one.path) for one in found} == {
        (SITE, "B"),
        (MACHINE, "psc"),
        (MACHINE, "bsc"),
        (MACHINE, "app"),
        (QUEUE, "app\\one"),
        (QUEUE, "app\\two"),
    }
    assert [one.path for one in found[:2]] == ["B", "psc"]
    for one in found[:2]:
        restore(enterprise, pec, one.obj)
    enterprise.run(30)
    enterprise.check_converged()
    for name, node in enterprise.nodes.items():
        after = node.copy_of(guid_of("B"))
        assert after.pop(guid_of("app\\meanwhile"), None) is not None, name
        assert after == before[name], name
    enterprise.label(psc, "app\\one", "later")
    enterprise.run(30)
    enterprise.check_converged()


def test_the_content_comes_from_the_newest_snapshot_before_the_deletion(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    """Records before a snapshot may be gone; those after the deletion are not looked at."""
    psc = enterprise.nodes["psc"]
    journal = Journal(tmp_path, "psc", psc.server.id)
    appender = Appender(psc.store, journal)
    appender.flush()
    appender.snapshot()
    (tmp_path / "segment-0000000001.mqj").unlink()
    enterprise.label(psc, "app\\one", "after the snapshot")
    enterprise.delete(psc, QUEUE, "app\\one")
    enterprise.run(30)
    appender.flush()
    appender.snapshot()
    found = lost(psc, tmp_path)[guid_of("app\\one")]
    journal.close()
    assert found.obj is not None
    assert found.obj.value(PropId.Q_LABEL) == "after the snapshot"
    assert found.obj.value(PropId.Q_PATHNAME) == "app\\one", "from the snapshot"


def test_a_tombstone_alone_is_told(enterprise: Enterprise, tmp_path: Path) -> None:
    psc = enterprise.nodes["psc"]
    enterprise.delete(psc, QUEUE, "app\\one")
    with psc.store.write() as tx:
        tx.trim_outbox(1 << 40)  # nothing of it is in the journal
    request = UndeleteRequest("plan", name=str(guid_of("app\\one")))
    (found,) = plan_undelete(history(psc, tmp_path), psc.server, request)
    assert (found.entry.type, found.entry.state) == ("queue", "conflict")
    assert "no copy of its properties" in found.entry.reason


def test_an_object_is_not_deleted_by_the_tombstone_of_another_partition(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    psc = enterprise.nodes["psc"]
    wanted = guid_of("app\\one")
    with psc.store.write() as tx:
        state = tx.partitions()[0]
        tx.bury(DeletedObject(wanted, state.id, state.last_seq, QUEUE, Scope.ENTERPRISE))
    with pytest.raises(DirectoryError, match="no deleted object"):
        plan_undelete(history(psc, tmp_path), psc.server, UndeleteRequest("plan", name=str(wanted)))


def test_conflicts(enterprise: Enterprise, tmp_path: Path) -> None:
    psc, pec = enterprise.nodes["psc"], enterprise.nodes["pec"]
    enterprise.delete(psc, QUEUE, "app\\one")
    enterprise.delete(psc, QUEUE, "app\\two")
    enterprise.delete(psc, MACHINE, "app")
    again = machine_properties("app", "B", 0)
    again[PropId.QM_MACHINE_ID] = prop(PropId.QM_MACHINE_ID, guid_of("another app"))
    other = plan_undelete(history(psc, tmp_path), psc.server, UndeleteRequest("plan", type="queue"))
    assert {one.entry.reason.partition(";")[0] for one in other} == {"machine app is not there"}
    enterprise.create(psc, MACHINE, again)
    (found,) = plan_undelete(
        history(psc, tmp_path), psc.server, UndeleteRequest("plan", type="machine")
    )
    assert found.entry.reason.startswith(f"the name is taken by machine {guid_of('another app')}")
    enterprise.run(30)
    link = next(iter(lost_links(enterprise, pec, tmp_path)))
    assert link.startswith(f"site {guid_of('B')} is not there")


def lost_links(enterprise: Enterprise, pec: Node, directory: Path) -> list[str]:
    def operation(events: DirectoryEvents) -> None:
        for link in list(events.transaction.objects(LINK)):
            events.delete_directory_object(link)

    enterprise.change(pec, operation)
    enterprise.delete(pec, SITE, "B")
    found = plan_undelete(history(pec, directory), pec.server, UndeleteRequest("plan", type="link"))
    return [one.entry.reason for one in found]


def test_what_the_same_user_deleted_just_before_comes_along(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    psc = enterprise.nodes["psc"]

    def delete(kind: ObjectType, path: str, by: str) -> None:
        def operation(events: DirectoryEvents) -> None:
            own = replace(events, by=by)
            obj = own.transaction.find(kind, path)
            assert obj is not None
            own.delete_directory_object(obj)

        enterprise.change(psc, operation)
        enterprise.run(30)

    delete(QUEUE, "app\\one", "LAB\\bob")
    delete(QUEUE, "app\\two", "LAB\\alice")
    delete(MACHINE, "app", "LAB\\alice")
    together = planned(psc, tmp_path, type="machine", name="app")
    assert [one.path for one in together] == ["app", "app\\two"]
    assert [one.path for one in planned(psc, tmp_path, by="bob")] == ["app\\one"]
    assert [one.path for one in planned(psc, tmp_path, under="app", by="alice")] == [
        "app",
        "app\\two",
    ]
    assert len(planned(psc, tmp_path, under="B")) == 3


def test_even_the_enterprise_comes_back(tmp_path: Path) -> None:
    """It was there before the journal, which begins with a snapshot."""
    enterprise = Enterprise()
    pec = enterprise.add_pec("pec", "A")
    journal = Journal(tmp_path, "pec", pec.server.id)
    Appender(pec.store, journal).snapshot()
    journal.close()
    assert (tmp_path / f"snapshot-{0:020}.jsonl").exists()
    enterprise.add_psc("psc", "B")
    before = content(pec, ObjectType.ENTERPRISE, "E")
    enterprise.delete(pec, ObjectType.ENTERPRISE, "E")
    enterprise.run(30)
    (found,) = planned(pec, tmp_path, type="enterprise", name="e")
    restore(enterprise, pec, found.obj)
    enterprise.run(1300)
    assert content(pec, ObjectType.ENTERPRISE, "E") == before
    enterprise.check_converged()


def test_an_empty_descriptor_comes_back(enterprise: Enterprise, tmp_path: Path) -> None:
    """A server that stored an empty value has it in its record; only replicas drop such values."""
    psc = enterprise.nodes["psc"]
    nothing = prop(PropId.Q_SECURITY, b"")
    for name in ("bare", "stripped"):
        enterprise.create_queue(psc, f"app\\{name}", label=text(name), security=nothing)
    enterprise.label(psc, "app\\stripped", "later")
    before = [content(psc, QUEUE, f"app\\{name}") for name in ("bare", "stripped")]
    for name in ("bare", "stripped"):
        enterprise.delete(psc, QUEUE, f"app\\{name}")
    enterprise.run(30)
    for one in planned(psc, tmp_path, under="app"):
        assert one.obj is not None
        assert one.obj.value(PropId.Q_SECURITY) == b""
        restore(enterprise, psc, one.obj)
    enterprise.run(30)
    assert [content(psc, QUEUE, f"app\\{name}") for name in ("bare", "stripped")] == before
    enterprise.check_converged()
