"""Scenarios 13, 15 and 16: forwarded changes, sites that change hands, heartbeats."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Heartbeat,
    SyncRequest,
)
from tests.protocol.replication.enterprise import Enterprise, carries, guid_of

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.add_psc("far", "C")
    made.run(70)
    made.check_converged()
    made.sent.clear()
    return made


@pytest.mark.req("MQDSRP-4.3-01", "MQDSRP-3.1.1.5.1-01", "MQDSRP-2.2.5.2-04", "MQDSRP-1.3.1.1-03")
def test_scenario_13_two_requests_with_one_number(enterprise: Enterprise) -> None:
    """BSC -> PSC -> PSC while the PSC has a request of its own under the same number (E46)."""
    psc, bsc = enterprise.nodes["psc"], enterprise.nodes["bsc"]
    bsc.machine.memory.last_request = psc.machine.memory.last_request
    theirs = enterprise.create_queue(bsc, "far\\theirs")
    ours = enterprise.create_queue(psc, "far\\ours")
    sent = [p.message for p in enterprise.sent if isinstance(p.message, ChangeRequest)]
    assert len({message.request_id for message in sent}) == 1
    enterprise.run(5)
    assert psc.answers() == {ours: HResult.MQ_OK}
    assert bsc.answers() == {theirs: HResult.MQ_OK}
    way = [
        (p.sender, p.machine)
        for p in enterprise.sent
        if isinstance(p.message, ChangeRequest | ChangeReply) and p.message.requester == "bsc"
    ]
    assert way == [("bsc", "psc"), ("psc", "far"), ("far", "psc"), ("psc", "bsc")]
    enterprise.check_converged()


@pytest.mark.req("MQDSRP-3.2.7.2-07", "MQDSRP-3.2.7.2-08")
def test_scenario_13_stale_owner_names_do_not_loop(enterprise: Enterprise) -> None:
    """Two PSCs that each take the other for the authority: the second says no (E48)."""
    psc, pec = enterprise.nodes["psc"], enterprise.nodes["pec"]
    for node, owner in ((psc, "pec"), (pec, "psc")):
        with node.store.write() as tx:
            state = tx.partition(SITE_C)
            assert state is not None
            tx.put_partition(replace(state, owner=owner))
    request = enterprise.create_queue(psc, "far\\q")
    enterprise.run(1)
    passed = [p for p in enterprise.sent if isinstance(p.message, ChangeRequest)]
    assert [(p.sender, p.machine) for p in passed] == [("psc", "pec")]
    assert psc.answers() == {request: HResult.MQDS_UNKNOWN_SOURCE}


@pytest.mark.req("MQDSRP-3.3.7.1-04", "MQDSRP-3.3.7.1-05", "MQDSRP-3.3.7.1-06")
def test_no_answer_is_no_response_after_ten_seconds(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    enterprise.crash("far")
    request = enterprise.create_queue(psc, "far\\q")
    enterprise.run(9.9)
    assert psc.answers() == {}
    enterprise.run(0.2)
    assert psc.answers() == {request: HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER}
    late = next(p.message for p in enterprise.sent if isinstance(p.message, ChangeRequest))
    enterprise.inject("far", "psc", ChangeReply(SITE_C, late.request_id, 0, "psc"))
    assert len(psc.answers()) == 1
    assert psc.refusals()[-1] == "an answer that nobody waits for"


@pytest.mark.req("MQDSRP-3.3.7.1-05")
def test_where_the_psc_has_to_pass_it_on_a_bsc_waits_twenty(enterprise: Enterprise) -> None:
    bsc = enterprise.nodes["bsc"]
    enterprise.crash("psc")
    request = enterprise.create_queue(bsc, "far\\q")
    enterprise.run(19.9)
    assert bsc.answers() == {}
    enterprise.run(0.2)
    assert bsc.answers() == {request: HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER}


def test_an_unknown_result_is_not_a_failed_change(enterprise: Enterprise) -> None:
    """The reply is lost, the request repeated: it is answered from memory, made once."""
    psc, far = enterprise.nodes["psc"], enterprise.nodes["far"]
    before = far.last(SITE_C)
    enterprise.lose_next(carries(ChangeReply, to="psc"))
    request = enterprise.create_queue(psc, "far\\q")
    enterprise.run(5)
    assert psc.answers() == {request: HResult.MQ_OK}
    assert far.last(SITE_C) == before + 1
    asked = [p for p in enterprise.sent if isinstance(p.message, ChangeRequest)]
    assert len(asked) == 2
    assert len({p.body for p in asked}) == 1


def test_the_memory_of_answers_survives_a_crash(enterprise: Enterprise) -> None:
    psc, far = enterprise.nodes["psc"], enterprise.nodes["far"]
    enterprise.lose_next(carries(ChangeReply, to="psc"))
    request = enterprise.create_queue(psc, "far\\q")
    enterprise.run(1)
    last = far.last(SITE_C)
    enterprise.crash("far")
    enterprise.restart("far")
    enterprise.run(5)
    assert psc.answers() == {request: HResult.MQ_OK}
    assert far.last(SITE_C) == last


@pytest.mark.req("MQDSRP-3.3.7.1-02")
def test_a_partition_that_nobody_knows(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    found = psc.find(ObjectType.MACHINE, "psc")
    assert found is not None
    stray = replace(found, partition=guid_of("nowhere"))
    enterprise.sent.clear()
    request = enterprise.forward(psc, OwnChange(ChangeKind.UPDATE, stray, stray, ()))
    assert psc.answers() == {request: HResult.MQDS_UNKNOWN_SOURCE}
    assert not enterprise.sent


# --- scenario 15 ----------------------------------------------------------------------------------


@pytest.mark.req("MQDSRP-3.1.7.2.11-02", "MQDSRP-3.1.7.2.5-06", "MQDSRP-3.1.7.2.6-02")
def test_scenario_15_the_psc_of_a_site_is_another_machine(enterprise: Enterprise) -> None:
    """Neighbour, requests and the BSC of that site follow; the old one stops deciding."""
    pec, far, bsc = (enterprise.nodes[name] for name in ("pec", "far", "bsc"))
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "new"}))
    enterprise.run(2)
    assert far.partition(SITE_B).owner == "new"
    assert set(far.machine.memory.neighbors) == {"pec", "new"}
    assert bsc.machine.memory.psc == "new"
    assert pec.partition(guid_of("B")).owner == "new"
    assert pec.partition(enterprise.nodes["pec"].server.site).owner == "pec"
    psc = enterprise.nodes["psc"]
    assert psc.partition(SITE_B).owner == "new"
    assert enterprise.create_queue(psc, "psc\\q") is not None  # it is forwarded


@pytest.mark.req("MQDSRP-3.1.7.2.7-02")
def test_scenario_15_a_site_is_deleted(enterprise: Enterprise) -> None:
    """Everybody forgets its partition, its objects and its PSC (E35)."""
    pec, psc, bsc = (enterprise.nodes[name] for name in ("pec", "psc", "bsc"))
    enterprise.create_queue(enterprise.nodes["far"], "far\\q")
    enterprise.run(2)
    assert bsc.find(ObjectType.QUEUE, "far\\q") is not None
    enterprise.delete(pec, ObjectType.SITE, "C")
    enterprise.run(2)
    for node in (pec, psc, bsc):
        assert not node.knows(SITE_C)
        assert node.find(ObjectType.QUEUE, "far\\q") is None
        assert "far" not in node.machine.memory.neighbors
        assert node.knows(guid_of("A"))
    assert pec.partition(guid_of("A")).owner == "pec"


# --- scenario 16 ----------------------------------------------------------------------------------


@pytest.mark.departs("MQDSRP-3.3.7.2-01")
@pytest.mark.req("MQDSRP-3.3.7.2-02")
def test_scenario_16_two_neighbours_over_an_hour(enterprise: Enterprise) -> None:
    """Each of them hears the numbers every twenty minutes (E52)."""
    enterprise.restart("pec")
    enterprise.run(1)
    enterprise.sent.clear()
    enterprise.run(3600)
    for name in ("psc", "far"):
        beats = [
            p.message.heartbeat
            for p in enterprise.sent
            if isinstance(p.message, ChangePropagation)
            and (p.sender, p.machine) == ("pec", name)
            and p.message.heartbeat != Heartbeat()
        ]
        assert len(beats) == 3
        assert [record.partition for record in beats[0].partitions] == [
            ENTERPRISE_PARTITION,
            SITE_A,
        ]
    assert not [p for p in enterprise.sent if isinstance(p.message, SyncRequest)]
