"""Special cases of propagation: content and time of messages to neighbours."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import Scope
from mqis.protocol.replication.replicated import REPLICATED
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.messages import ChangePropagation
from mqis.wire.propvariant import PropVariant, VarType
from tests.protocol.replication.enterprise import Enterprise, carries, guid_of

SITE_A = guid_of("A")


def built(settings: ReplicationSettings | None = None) -> Enterprise:
    made = Enterprise(settings)
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.run(70)
    made.sent.clear()
    return made


def changes_in_messages(enterprise: Enterprise, to: str) -> list[int]:
    told = enterprise.messages(ChangePropagation, to=to)
    return [len(message.changes) for message in told if message.changes]


@pytest.mark.parametrize(("max_bytes", "expected"), [(1, [1, 1, 1, 1]), (1 << 20, [1, 3])])
def test_a_message_stops_growing_at_its_size(max_bytes: int, expected: list[int]) -> None:
    """One change goes however big it is; what does not fit follows in the next message."""
    enterprise = built(ReplicationSettings(max_bytes=max_bytes))
    pec = enterprise.nodes["pec"]
    for index in range(4):
        enterprise.create_queue(pec, f"pec\\q{index}")
    enterprise.run(1)
    assert changes_in_messages(enterprise, "psc") == expected
    enterprise.check_converged()


def test_a_site_without_an_interval_has_the_default_one() -> None:
    """A change that is not to be flushed at once waits for the timer, which is never zero (E62)."""
    enterprise = built(ReplicationSettings(intrasite_s=7.0))
    pec, bsc = enterprise.nodes["pec"], enterprise.nodes["bsc"]
    none = 0
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_INTERVAL1: none}))
    enterprise.run(5)
    enterprise.lose(carries(ChangePropagation, to="psc"))
    enterprise.create_queue(pec, "pec\\q")
    [held_back] = [p.message for p in enterprise.lost]
    assert isinstance(held_back, ChangePropagation)
    message = ChangePropagation(SITE_A, held_back.changes, flush=1)
    enterprise.inject("pec", "psc", message)
    assert enterprise.nodes["psc"].find(ObjectType.QUEUE, "pec\\q") is not None
    enterprise.run(6.9)
    assert bsc.find(ObjectType.QUEUE, "pec\\q") is None
    enterprise.run(0.2)
    assert bsc.find(ObjectType.QUEUE, "pec\\q") is not None


@pytest.mark.parametrize("scope", list(Scope))
def test_an_update_of_a_queue_that_its_site_alone_knew_has_all_of_it(scope: Scope) -> None:
    """Other sites may have an old copy, or none (E58); of other queues they have the rest."""
    enterprise = built()
    psc = enterprise.nodes["psc"]
    enterprise.create_queue(psc, "psc\\q", scope=PropVariant(VarType.UI1, int(scope)))
    enterprise.run(1)
    enterprise.sent.clear()
    enterprise.label(psc, "psc\\q", "new")
    enterprise.run(1)
    [message] = enterprise.messages(ChangePropagation, to="pec")
    [change] = message.changes
    assert change.command is Command.UPDATE
    told = [propid for propid, _ in change.properties]
    expected = list(REPLICATED[ObjectType.QUEUE])
    if scope is Scope.ENTERPRISE:
        expected = [PropId.Q_LABEL]
    assert told == expected
    assert dict(change.properties)[PropId.Q_LABEL].value == "new"
