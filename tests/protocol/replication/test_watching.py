"""Counters and events of replication; observing does not change what it does."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.ownchange import ChangeKind
from mqis.protocol.replication.effects import ChangeApplied, RequestDecided, RequestPassedOn
from mqis.wire.hresult import HResult
from mqis.wire.mqdsrp.messages import ChangePropagation, ChangeRequest, decode_message
from tests.protocol.replication.enterprise import Enterprise, Node, guid_of

SITE_C = guid_of("C")


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
    for node in made.nodes.values():
        node.told.clear()
        node.machine.watched = True
    return made


def applied(node: Node) -> list[ChangeApplied]:
    return [effect for effect in node.told if isinstance(effect, ChangeApplied)]


def decided(node: Node) -> list[RequestDecided]:
    return [effect for effect in node.told if isinstance(effect, RequestDecided)]


def test_every_station_of_a_forwarded_change(enterprise: Enterprise) -> None:
    pec, psc, bsc, far = (enterprise.nodes[name] for name in ("pec", "psc", "bsc", "far"))
    enterprise.create_queue(bsc, "far\\q")
    enterprise.run(5)
    asked = next(p.message for p in enterprise.sent if isinstance(p.message, ChangeRequest))
    names = "bsc", asked.request_id
    assert [e for e in psc.told if isinstance(e, RequestPassedOn)] == [
        RequestPassedOn(*names, "far")
    ]
    (decision,) = decided(far)
    assert (decision.requester, decision.number, decision.result) == (*names, HResult.MQ_OK)
    (change,) = decision.changes
    assert (change.kind, change.obj.path) == (ChangeKind.CREATE, "far\\q")
    number = change.obj.seq
    assert applied(pec) == applied(psc) == [ChangeApplied("far", SITE_C, number)]
    assert applied(bsc) == [ChangeApplied("psc", SITE_C, number)]
    assert not applied(far)
    assert not decided(pec)
    assert not decided(psc)


def test_a_request_that_is_refused(enterprise: Enterprise) -> None:
    far, psc = enterprise.nodes["far"], enterprise.nodes["psc"]
    enterprise.create_queue(far, "far\\q")  # psc has not heard of it when it asks for another
    enterprise.create_queue(psc, "far\\q")
    enterprise.run(5)
    (decision,) = decided(far)
    assert (decision.result, decision.changes) == (HResult.MQ_ERROR_QUEUE_EXISTS, ())


def test_a_request_that_comes_again_is_not_decided_again(enterprise: Enterprise) -> None:
    far, psc = enterprise.nodes["far"], enterprise.nodes["psc"]
    enterprise.create_queue(psc, "far\\q")
    enterprise.run(1)
    asked = next(p.message for p in enterprise.sent if isinstance(p.message, ChangeRequest))
    enterprise.inject("psc", "far", asked)
    assert len(decided(far)) == 1
    assert far.machine.counters.decided == 1


def test_nobody_watches(enterprise: Enterprise) -> None:
    """The same messages, and no word more."""
    for node in enterprise.nodes.values():
        node.machine.watched = False
    enterprise.create_queue(enterprise.nodes["bsc"], "far\\q")
    enterprise.run(5)
    told = [effect for node in enterprise.nodes.values() for effect in node.told]
    assert not any(isinstance(e, ChangeApplied | RequestDecided | RequestPassedOn) for e in told)
    enterprise.check_converged()


def test_counters(enterprise: Enterprise) -> None:
    pec, psc, bsc, far = (enterprise.nodes[name] for name in ("pec", "psc", "bsc", "far"))
    counters = {name: node.machine.counters for name, node in enterprise.nodes.items()}
    before = {name: (c.made, c.decided, c.applied) for name, c in counters.items()}
    enterprise.create_queue(bsc, "far\\theirs")
    enterprise.create_queue(far, "far\\own")
    enterprise.run(5)

    def added(name: str) -> tuple[int, ...]:
        now = (counters[name].made, counters[name].decided, counters[name].applied)
        return tuple(a - b for a, b in zip(now, before[name], strict=True))

    assert added("far") == (2, 1, 0)
    assert added("pec") == added("psc") == added("bsc") == (0, 0, 2)
    assert counters["psc"].relayed_requests == 1
    assert counters["bsc"].sync_requests >= counters["bsc"].sync_replies > 0
    assert counters["pec"].syncs_served > 0
    assert {pec.machine.counters.unanswered_requests, psc.machine.counters.sync0_started} == {0}
    enterprise.crash("far")
    enterprise.create_queue(psc, "far\\never")
    enterprise.run(30)
    assert psc.machine.counters.unanswered_requests == 1


def test_what_was_heard_of_and_is_not_here(enterprise: Enterprise) -> None:
    """The number of a change that came too early, and of a heartbeat."""
    far, pec = enterprise.nodes["far"], enterprise.nodes["pec"]
    back = enterprise.lose(lambda p: p.machine == "pec" and p.sender == "far")
    enterprise.create_queue(far, "far\\lost")
    enterprise.run(1)
    back()
    progress = pec.machine.memory.partitions[SITE_C]
    assert progress.heard <= pec.last(SITE_C)
    silent = enterprise.lose(lambda p: p.sender == "far" and not _is_propagation(p.body))
    enterprise.create_queue(far, "far\\seen")
    enterprise.run(1)
    assert progress.heard == pec.last(SITE_C) + 2
    silent()
    enterprise.run(130)
    assert progress.heard == pec.last(SITE_C)


def _is_propagation(body: bytes) -> bool:
    return isinstance(decode_message(body), ChangePropagation)
