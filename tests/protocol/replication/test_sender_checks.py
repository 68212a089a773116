"""Messages that only one server may send, from another one that the receiver knows and trusts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, PurgeState
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.effects import Refusal, RefusalReason
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import pair, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    SyncReply,
)
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, carries, guid_of, number

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")
MIN = SequenceNumber.MIN


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


@pytest.mark.req("MQDSRP-3.1.5.2-04")
@pytest.mark.parametrize(
    ("sender", "machine", "partition"),
    [("bsc", "psc", SITE_A), ("far", "psc", ENTERPRISE_PARTITION), ("pec", "bsc", SITE_A)],
)
def test_a_purge_announced_by_another_server_starts_no_full_synchronisation(
    enterprise: Enterprise, sender: str, machine: str, partition: object
) -> None:
    """The receiver waits for the answer to a request; the genuine answer still counts after it."""
    node = enterprise.nodes[machine]
    state = next(s for s in (SITE_A, ENTERPRISE_PARTITION) if s == partition)
    enterprise.lose(carries(SyncReply, to=machine))
    enterprise.restart(machine)
    enterprise.run(1)
    assert node.machine.memory.partitions[state].asked is not None
    purged = number(node.last(state) + 50)
    enterprise.inject(sender, machine, AlreadyPurged(SITE_B, state, purged))
    assert node.partition(state).purge_state is PurgeState.NORMAL
    refusal = node.told[-1]
    assert isinstance(refusal, Refusal)
    assert refusal.reason is RefusalReason.WRONG_SOURCE
    genuine = "psc" if machine == "bsc" else "pec"
    enterprise.inject(genuine, machine, AlreadyPurged(SITE_B, state, purged))
    assert node.partition(state).purge_state is PurgeState.IN_SYNC0


@pytest.mark.req("MQDSRP-3.1.7.2.3-01", "MQDSRP-3.1.7.2.3-02")
def test_a_create_names_its_object_by_its_path(enterprise: Enterprise) -> None:
    """A peer that follows the text does not repeat the name among the properties."""
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    create = DirectoryChange(
        Command.CREATE,
        "pec\\foreign",
        None,
        SITE_A,
        number(last),
        number(last + 1),
        MIN,
        (pair(PropId.Q_INSTANCE, guid_of("foreign")), pair(PropId.Q_LABEL, "from afar")),
    )
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (create,)))
    queue = psc.find(ObjectType.QUEUE, "pec\\foreign")
    assert queue is not None
    assert (queue.id, queue.value(PropId.Q_LABEL)) == (guid_of("foreign"), "from afar")
    assert queue.value(PropId.Q_PATHNAME) == "pec\\foreign"
    assert psc.last(SITE_A) == last + 1
    enterprise.run(15)
    assert enterprise.nodes["bsc"].find(ObjectType.QUEUE, "pec\\foreign") == queue


@pytest.mark.req("MQDSRP-1.3.1.1-02")
def test_a_backup_controller_owns_nothing_even_if_its_site_names_it(
    enterprise: Enterprise,
) -> None:
    """The directory says that it is the PSC, but its role does not: it forwards changes."""
    pec, bsc = enterprise.nodes["pec"], enterprise.nodes["bsc"]
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "bsc"}))
    enterprise.run(15)
    assert bsc.partition(SITE_B).owner == "bsc"
    with bsc.store.read() as view:
        assert not owns(view, bsc.server, SITE_B)
        assert not owns(view, replace(bsc.server, pec="bsc"), ENTERPRISE_PARTITION)
    before = bsc.last(SITE_B)
    assert enterprise.create_queue(bsc, "bsc\\q") is not None  # forwarded
    assert (bsc.find(ObjectType.QUEUE, "bsc\\q"), bsc.last(SITE_B)) == (None, before)


@pytest.mark.req("MQDSRP-3.2.7.2-07")
@pytest.mark.parametrize("taken", [False, True])
def test_a_request_of_an_own_backup_is_forwarded_and_blocks_nothing(
    enterprise: Enterprise, taken: bool
) -> None:
    """While the owner has not answered, the PSC goes on receiving; then it passes the status on."""
    psc, bsc = enterprise.nodes["psc"], enterprise.nodes["bsc"]
    if taken:
        enterprise.create_queue(enterprise.nodes["far"], "far\\q")
    found = enterprise.lose(carries(ChangeReply, sender="far"))
    request = enterprise.create_queue(bsc, "far\\q")
    enterprise.run(1)
    (asked,) = enterprise.messages(ChangeRequest, to="psc", sender="bsc")
    (passed,) = enterprise.messages(ChangeRequest, to="far", sender="psc")
    assert (passed.requester, passed.request_id, passed.psc) == ("bsc", asked.request_id, "psc")
    enterprise.create_queue(enterprise.nodes["pec"], "pec\\meanwhile")
    enterprise.run(1)
    assert psc.find(ObjectType.QUEUE, "pec\\meanwhile") is not None
    assert enterprise.messages(ChangeReply, to="bsc") == []
    assert bsc.answers() == {}
    found()
    enterprise.run(6)
    (reply,) = enterprise.messages(ChangeReply, to="bsc", sender="psc")
    expected = HResult.MQ_ERROR_QUEUE_EXISTS if taken else HResult.MQ_OK
    assert reply.result == expected
    assert bsc.answers() == {request: expected}


@pytest.mark.req("MQDSRP-3.2.7.2-07")
def test_a_request_of_anybody_else_is_answered_with_an_error(enterprise: Enterprise) -> None:
    """The far PSC takes psc for the owner of the PEC's site; psc does not forward for it."""
    far = enterprise.nodes["far"]
    with far.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, owner="psc"))
    request = enterprise.create_queue(far, "pec\\q")
    enterprise.run(1)
    assert enterprise.messages(ChangeRequest, sender="psc") == []
    assert far.answers() == {request: HResult.MQDS_UNKNOWN_SOURCE}
