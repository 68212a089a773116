"""Scenarios 1 to 6: changes, requests and replies that are lost. What counts is the objects."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import Scope
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import AlreadyPurged, ChangePropagation, SyncReply, SyncRequest
from mqis.wire.propvariant import PropVariant, VarType
from tests.protocol.replication.enterprise import (
    Enterprise,
    Parcel,
    carries,
    guid_of,
)

SITE_B = guid_of("B")


@pytest.fixture
def enterprise() -> Enterprise:
    """PEC of site A; PSC and BSC of site B; PSC of site C."""
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_psc("far", "C")
    made.add_bsc("bsc", "psc")
    made.run(70)
    made.check_converged()
    made.sent.clear()
    return made


def requests(enterprise: Enterprise, sender: str, partition: object = SITE_B) -> list[Parcel]:
    return [
        p
        for p in enterprise.sent
        if isinstance(p.message, SyncRequest)
        and p.sender == sender
        and p.message.partition == partition
    ]


@pytest.mark.req("MQDSRP-3.2.7.3-07", "MQDSRP-1.3.1.2-03")
def test_scenario_1_three_changes_behind(enterprise: Enterprise) -> None:
    """Replica at 2, authority at 5: all three arrive."""
    psc = enterprise.nodes["psc"]
    stop = enterprise.lose(carries(ChangePropagation, to="far"))
    for label in "345":
        enterprise.create_queue(psc, f"psc\\q{label}")
        enterprise.run(1)
    stop()
    assert enterprise.nodes["far"].last(SITE_B) == psc.last(SITE_B) - 3
    enterprise.run(1300)
    enterprise.check_converged()
    for label in "345":
        assert enterprise.nodes["far"].find(ObjectType.QUEUE, f"psc\\q{label}") is not None


@pytest.mark.req("MQDSRP-3.1.7.2.2-04", "MQDSRP-3.3.7.3-06")
def test_scenario_2_one_lost_three_behind_it(enterprise: Enterprise) -> None:
    """Lose 6, deliver 7, 8, 9: at most two sync requests."""
    psc, far = enterprise.nodes["psc"], enterprise.nodes["far"]
    enterprise.lose_next(carries(ChangePropagation, to="far"))
    for label in "6789":
        enterprise.create_queue(psc, f"psc\\q{label}")
        enterprise.run(1)
    enterprise.check_converged()
    assert 1 <= len(requests(enterprise, "far")) <= 2
    assert far.find(ObjectType.QUEUE, "psc\\q6") is not None


@pytest.mark.req("MQDSRP-3.2.7.3-03", "MQDSRP-3.1.5.2-03")
def test_scenario_3_a_lost_partial_update_behind_a_later_one(enterprise: Enterprise) -> None:
    """No property is lost, neither of the update that was lost nor of the one that came."""
    psc, far = enterprise.nodes["psc"], enterprise.nodes["far"]
    enterprise.create_queue(psc, "psc\\x")
    enterprise.run(1)
    enterprise.lose_next(carries(ChangePropagation, to="far"))
    enterprise.label(psc, "psc\\x", "lost on the way")
    enterprise.run(1)
    held = enterprise.lose(carries(SyncRequest, sender="far"))
    enterprise.create_queue(psc, "psc\\y")
    enterprise.run(1)
    quota: dict[int, PropVariant] = props({PropId.Q_QUOTA: 7})
    enterprise.update(psc, ObjectType.QUEUE, "psc\\x", quota)
    enterprise.run(1)
    held()
    enterprise.run(1300)
    enterprise.check_converged()
    found = far.find(ObjectType.QUEUE, "psc\\x")
    assert found is not None
    assert found.value(PropId.Q_LABEL) == "lost on the way"
    assert found.value(PropId.Q_QUOTA) == 7


@pytest.mark.req("MQDSRP-3.1.1.5.3-03")
@pytest.mark.parametrize("kind", [SyncRequest, SyncReply])
def test_scenario_4_a_lost_request_or_reply(
    enterprise: Enterprise, kind: type[SyncRequest | SyncReply]
) -> None:
    """It converges without a restart, and without another change."""
    psc = enterprise.nodes["psc"]
    enterprise.lose_next(carries(ChangePropagation, to="far"))
    enterprise.create_queue(psc, "psc\\a")
    enterprise.run(1)
    enterprise.lose_next(carries(kind))
    enterprise.create_queue(psc, "psc\\b")
    enterprise.run(1)
    assert len(enterprise.lost) == 2
    enterprise.run(65)
    enterprise.check_converged()


@pytest.mark.untraced
def test_scenario_4_a_lost_already_purged() -> None:
    enterprise = Enterprise(ReplicationSettings(purge_buffer=4, purge_step=2))
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.add_psc("far", "C")
    enterprise.run(5)
    backup = enterprise.backup("far")
    for index in range(700):
        enterprise.create_queue(psc, f"psc\\q{index}")
        if index % 2:
            enterprise.delete(psc, ObjectType.QUEUE, f"psc\\q{index}")
        if index % 50 == 0:
            enterprise.run(0.1)
    enterprise.run(3000)
    assert psc.partition(SITE_B).purged_seq > psc.partition(SITE_B).purged_seq.MIN
    enterprise.lose_next(carries(AlreadyPurged, to="far"))
    enterprise.restore("far", backup)
    enterprise.run(1)
    assert [type(p.message) for p in enterprise.lost] == [AlreadyPurged]
    enterprise.run(200)
    enterprise.check_converged()


@pytest.mark.req("MQDSRP-3.3.7.5-05", "MQDSRP-3.2.7.8-08")
def test_scenario_5_only_a_queue_of_the_site_was_lost(enterprise: Enterprise) -> None:
    """The reply is empty and yet counts; the next change is not dropped as old."""
    psc, far = enterprise.nodes["psc"], enterprise.nodes["far"]
    enterprise.lose_next(carries(ChangePropagation, to="far"))
    local = PropVariant(VarType.UI1, int(Scope.SITE))
    enterprise.create_queue(psc, "psc\\local", scope=local)
    enterprise.run(1300)
    assert far.find(ObjectType.QUEUE, "psc\\local") is None
    assert far.last(SITE_B) == psc.last(SITE_B)
    enterprise.create_queue(psc, "psc\\next")
    enterprise.run(1)
    assert far.find(ObjectType.QUEUE, "psc\\next") is not None
    enterprise.check_converged()


@pytest.mark.req("MQDSRP-3.2.7.1-05")
def test_scenario_6_last_change_and_one_request_lost_then_silence(
    enterprise: Enterprise,
) -> None:
    psc = enterprise.nodes["psc"]
    enterprise.lose_next(carries(ChangePropagation, to="far"))
    enterprise.create_queue(psc, "psc\\last")
    enterprise.lose_next(carries(SyncRequest, sender="far"))
    enterprise.run(1300)
    enterprise.run(120)
    enterprise.check_converged()
    assert len(enterprise.lost) == 2
