"""Scenarios 7 to 11: new servers, deletions, tombstones and their purge."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DeletedObject, Scope
from mqis.protocol.replication.acknowledging import acks_of
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangeRequest, PscAck, SyncRequest
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    carries,
    guid_of,
    site_properties,
)

SITE_A, SITE_B = guid_of("A"), guid_of("B")


def two_sites(settings: ReplicationSettings | None = None) -> Enterprise:
    made = Enterprise(settings)
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.run(70)
    return made


@pytest.mark.req("MQDSRP-4.1-02", "MQDSRP-4.1-03", "MQDSRP-1.3.1.1-04", "MQDSRP-3.3.3-05")
def test_scenario_7_a_new_psc_while_tombstones_exist() -> None:
    """It has none of the deleted objects, and their tombstones do not stop it (E11)."""
    enterprise = two_sites()
    pec = enterprise.nodes["pec"]
    for name in ("X", "Y"):
        enterprise.create(pec, ObjectType.SITE, site_properties(name, "nobody"))
        enterprise.delete(pec, ObjectType.SITE, name)
    enterprise.create_queue(pec, "pec\\gone")
    enterprise.delete(pec, ObjectType.QUEUE, "pec\\gone")
    enterprise.create_queue(pec, "pec\\there")
    enterprise.run(5)
    assert pec.tombstones(ENTERPRISE_PARTITION)
    far = enterprise.add_psc("far", "C")
    enterprise.run(70)
    enterprise.check_converged()
    assert far.find(ObjectType.QUEUE, "pec\\there") is not None
    assert far.find(ObjectType.SITE, "X") is None
    assert set(far.machine.memory.neighbors) == {"pec", "psc"}
    asked = {
        (p.message.partition, p.machine)
        for p in enterprise.sent
        if isinstance(p.message, SyncRequest)
        and p.sender == "far"
        and p.message.partition != far.server.site
    }
    assert asked >= {(ENTERPRISE_PARTITION, "pec"), (SITE_A, "pec"), (SITE_B, "psc")}


@pytest.mark.req("MQDSRP-4.2-01", "MQDSRP-3.2.7.3-04", "MQDSRP-3.1.7.2.5-07")
def test_scenario_7_a_new_bsc_behind_a_psc_that_owns_one_of_three_sites() -> None:
    """It gets all of them from its PSC (E09)."""
    enterprise = two_sites()
    enterprise.add_psc("far", "C")
    for owner in ("pec", "psc", "far"):
        enterprise.create_queue(enterprise.nodes[owner], f"{owner}\\q")
    enterprise.run(70)
    enterprise.sent.clear()
    bsc = enterprise.add_bsc("bsc", "psc")
    enterprise.run(70)
    enterprise.check_converged()
    for owner in ("pec", "psc", "far"):
        assert bsc.find(ObjectType.QUEUE, f"{owner}\\q") is not None
    from_bsc = {p.machine for p in enterprise.sent if p.sender == "bsc"}
    assert from_bsc == {"psc"}


@pytest.mark.req("MQDSRP-3.2.7.2-04", "MQDSRP-3.1.7.1.2-10", "MQDSRP-3.1.7.2.7-04", "MQDSRP-4.4-01")
@pytest.mark.parametrize("how", ["locally", "forwarded by GUID", "forwarded by path"])
def test_scenario_8_a_deletion_reaches_who_was_offline(how: str) -> None:
    enterprise = two_sites()
    psc = enterprise.nodes["psc"]
    bsc = enterprise.add_bsc("bsc", "psc")
    far = enterprise.add_psc("far", "C")
    enterprise.create_queue(psc, "psc\\q")
    enterprise.run(70)
    enterprise.crash("far")
    if how == "locally":
        enterprise.delete(psc, ObjectType.QUEUE, "psc\\q")
    elif how == "forwarded by GUID":
        request = enterprise.delete(bsc, ObjectType.QUEUE, "psc\\q")
        enterprise.run(1)
        assert bsc.answers() == {request: 0}
    else:
        _delete_by_path(enterprise, "psc\\q")
    enterprise.run(5)
    tombstone = _tombstone(enterprise, "psc", guid_of("psc\\q"))
    assert tombstone.object_type is ObjectType.QUEUE
    assert tombstone.scope is Scope.ENTERPRISE
    assert tombstone.seq.value == psc.last(SITE_B)
    enterprise.restart("far")
    enterprise.run(70)
    assert far.find(ObjectType.QUEUE, "psc\\q") is None
    enterprise.check_converged()


def _delete_by_path(enterprise: Enterprise, path: str) -> None:
    """As another implementation's BSC asks: by name, with the two properties of a deletion."""
    low = SequenceNumber.MIN
    properties = (
        pair(PropId.D_SCOPE, 1),
        pair(PropId.D_OBJTYPE, int(ObjectType.QUEUE)),
    )
    change = DirectoryChange(Command.DELETE, path, None, SITE_B, low, low, low, properties)
    request = ChangeRequest(SITE_B, SITE_B, 77, "bsc", "psc", change)
    enterprise.inject("bsc", "psc", request)


def _tombstone(enterprise: Enterprise, name: str, guid: object) -> DeletedObject:
    with enterprise.nodes[name].store.read() as view:
        return next(
            change
            for change in view.changes(SITE_B, SequenceNumber.MIN)
            if isinstance(change, DeletedObject) and change.id == guid
        )


@pytest.mark.req("MQDSRP-3.1.7.1.2-11", "MQDSRP-3.1.7.1.2-07")
def test_scenario_9_an_old_object_is_deleted_then_fifty_are_created() -> None:
    """The deletion takes a number of its own; none of the fifty is taken for old (E15)."""
    enterprise = two_sites()
    psc, pec = enterprise.nodes["psc"], enterprise.nodes["pec"]
    for index in range(50):
        enterprise.create_queue(psc, f"psc\\old{index}")
    enterprise.run(2)
    before = psc.last(SITE_B)
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\old7")
    assert psc.last(SITE_B) == before + 1
    for index in range(50):
        enterprise.create_queue(psc, f"psc\\new{index}")
    enterprise.run(2)
    enterprise.check_converged()
    assert pec.find(ObjectType.QUEUE, "psc\\old7") is None
    assert all(pec.find(ObjectType.QUEUE, f"psc\\new{index}") for index in range(50))


@pytest.mark.req("MQDSRP-3.2.7.3-06")
def test_scenario_10_tombstones_in_two_partitions() -> None:
    """A reply has those of its own partition: the other's numbers would lift the replica (E10)."""
    enterprise = two_sites()
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    for index in range(40):
        enterprise.create_queue(pec, f"pec\\q{index}")
    for index in range(40):
        enterprise.delete(pec, ObjectType.QUEUE, f"pec\\q{index}")
    enterprise.create_queue(psc, "psc\\a")
    enterprise.create_queue(psc, "psc\\b")
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\a")
    enterprise.run(5)
    far = enterprise.add_psc("far", "C")
    enterprise.run(70)
    enterprise.check_converged()
    assert far.tombstones(SITE_B) == psc.tombstones(SITE_B)
    assert far.last(SITE_B) == psc.last(SITE_B)
    assert len(far.tombstones(SITE_A)) == 40


# --- scenario 11 ----------------------------------------------------------------------------------


def _churn(enterprise: Enterprise, changes: int) -> None:
    """So many changes at the PEC's site, half of them deletions."""
    pec = enterprise.nodes["pec"]
    for index in range(changes // 2):
        enterprise.create_queue(pec, f"pec\\c{index}")
        enterprise.delete(pec, ObjectType.QUEUE, f"pec\\c{index}")
        if index % 100 == 99:
            enterprise.run(0.1)
    enterprise.run(2)


@pytest.mark.req("MQDSRP-3.1.7.2.9-01", "MQDSRP-3.1.7.2.9-02")
def test_scenario_11_nothing_is_purged_at_400() -> None:
    enterprise = two_sites()
    _churn(enterprise, 400)
    pec = enterprise.nodes["pec"]
    assert len(pec.tombstones(SITE_A)) == 200
    assert pec.partition(SITE_A).purged_seq == SequenceNumber.MIN


@pytest.mark.req(
    "MQDSRP-3.1.7.2.9-03",
    "MQDSRP-3.1.7.2.9-05",
    "MQDSRP-3.1.7.2.9-06",
    "MQDSRP-3.1.7.1.2-12",
    "MQDSRP-3.1.7.2.3-09",
)
@pytest.mark.parametrize("changes", [1300, 3000])
@pytest.mark.untraced
def test_scenario_11_all_but_the_last_1024_numbers_are_purged(changes: int) -> None:
    """Looked at every 256 numbers, with the acknowledgements that have come by then."""
    enterprise = two_sites()
    _churn(enterprise, changes)
    pec = enterprise.nodes["pec"]
    state = pec.partition(SITE_A)
    assert 0 < state.purged_seq.value <= state.last_seq.value - 1024
    assert state.last_seq.value - state.purged_seq.value <= 1024 + 2 * 256
    assert min(pec.tombstones(SITE_A)) > state.purged_seq.value
    enterprise.run(3000)
    enterprise.check_converged()


@pytest.mark.req("MQDSRP-3.1.7.2.9-03", "MQDSRP-1.3.2.4-01")
@pytest.mark.untraced
def test_scenario_11_a_missing_acknowledgement_stops_the_purge() -> None:
    enterprise = two_sites()
    enterprise.lose(carries(PscAck, sender="psc"))
    _churn(enterprise, 3000)
    pec = enterprise.nodes["pec"]
    with pec.store.read() as view:
        acked = acks_of(view, "psc").site
    assert pec.partition(SITE_A).purged_seq <= acked
    assert len(pec.tombstones(SITE_A)) >= 1400


@pytest.mark.req("MQDSRP-3.2.7.4-02")
@pytest.mark.untraced
def test_scenario_11_acknowledgements_never_go_back() -> None:
    enterprise = two_sites()
    _churn(enterprise, 1300)
    pec = enterprise.nodes["pec"]

    def acked() -> int:
        with pec.store.read() as view:
            return acks_of(view, "psc").site.value

    before = acked()
    assert before >= 1024
    enterprise.inject("psc", "pec", PscAck(SITE_B, SITE_B, SITE_A, SequenceNumber(256), "psc"))
    assert acked() == before
    future = SequenceNumber(pec.last(SITE_A) + 1)
    enterprise.inject("psc", "pec", PscAck(SITE_B, SITE_B, SITE_A, future, "psc"))
    assert acked() == before
    assert "never given out" in pec.refusals()[-1]


@pytest.mark.req("MQDSRP-3.1.7.2.9-01", "MQDSRP-3.1.7.2.9-03")
@pytest.mark.untraced
def test_scenario_11_without_neighbours_the_buffer_alone_counts() -> None:
    enterprise = Enterprise()
    pec = enterprise.add_pec("pec", "A")
    _churn(enterprise, 3000)
    state = pec.partition(SITE_A)
    assert 1024 <= state.last_seq.value - state.purged_seq.value <= 1024 + 257
    assert min(pec.tombstones(SITE_A)) > state.purged_seq.value
