"""Each refusal carries its reason, whatever names stand in its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mqis.protocol.replication.effects import HARMLESS, Refusal, RefusalReason
from mqis.wire.journal import RecordState
from mqis.wire.mqds.catalogue import pair, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeRequest,
    Message,
    PscAck,
)
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, Node, Parcel, guid_of
from tests.protocol.replication.test_scenario_hostile import FORGERIES, queue_change

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")
R = RefusalReason

#: The reason of each message that scenario 17 forges.
OF_FORGERIES = {
    "a heartbeat of a stranger": R.STRANGER,
    "a heartbeat of a server that is not the authority": R.WRONG_SOURCE,
    "a heartbeat for our own partition": R.OWN_PARTITION,
    "a heartbeat from the far future": R.INCONSISTENT,
    "a heartbeat that purges more than there is": R.INCONSISTENT,
    "a change of a stranger": R.STRANGER,
    "a change for a partition of somebody else": R.WRONG_SOURCE,
    "a change for our own partition": R.OWN_PARTITION,
    "a change to a BSC from another than its PSC": R.WRONG_SOURCE,
    "a change for an unknown partition": R.UNKNOWN_PARTITION,
    "a number from the future": R.INCONSISTENT,
    "a reply that nobody asked for": R.UNSOLICITED,
    "a reply for our own partition": R.OWN_PARTITION,
    "a purge that nobody asked about": R.UNSOLICITED,
    "a purge of our own partition": R.OWN_PARTITION,
    "a sync request of a stranger": R.STRANGER,
    "a sync request in another's name": R.IMPERSONATION,
    "a change request of a stranger": R.STRANGER,
    "a change request in another's name": R.IMPERSONATION,
    "an answer that nobody waits for": R.UNSOLICITED,
    "an acknowledgement of a stranger": R.IMPERSONATION,
    "an acknowledgement from the future": R.INCONSISTENT,
    "an acknowledgement of another site": R.IMPERSONATION,
    "a sign of life in a BSC's name": R.IMPERSONATION,
}
#: Reasons that take more than one forged message: tests below, and for a name that nothing can be
#: sent to ``tests/protocol/node/test_node.py``.
OTHERS = {R.MALFORMED, R.UNREACHABLE, R.REPLAYED, R.CLOCK, R.OUTDATED, R.NOT_APPLIED}
assert FORGERIES.keys() == OF_FORGERIES.keys()


def make_enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.add_psc("far", "C")
    made.run(70)
    return made


@pytest.fixture(scope="module")
def shared() -> Enterprise:
    """For messages that change nothing."""
    return make_enterprise()


@pytest.fixture
def enterprise() -> Enterprise:
    return make_enterprise()


def refusals(node: Node) -> list[Refusal]:
    return [effect for effect in node.told if isinstance(effect, Refusal)]


def refused(enterprise: Enterprise, sender: str, machine: str, message: Message) -> Refusal:
    """The one refusal that a message leads to."""
    node = enterprise.nodes[machine]
    before = len(refusals(node))
    enterprise.inject(sender, machine, message)
    (found,) = refusals(node)[before:]
    return found


def test_every_reason_is_driven_here() -> None:
    assert set(OF_FORGERIES.values()) | OTHERS == set(RefusalReason)
    assert set(RefusalReason) > HARMLESS


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_message_has_its_reason(shared: Enterprise, name: str) -> None:
    sender, machine, make = FORGERIES[name]
    found = refused(shared, sender, machine, make(shared.nodes[machine]))
    assert found.reason is OF_FORGERIES[name], found.text


def test_bytes_that_are_no_message(shared: Enterprise) -> None:
    identifier = MessageIdentifier(guid_of("pec"), 1)
    shared.deliver(Parcel("pec", "psc", identifier, b"", authenticated=True))
    assert refusals(shared.nodes["psc"])[-1].reason is R.MALFORMED


def forwarded(enterprise: Enterprise) -> ChangeRequest:
    """A request of psc that the PEC has answered; far asks with it later under its own name."""
    enterprise.create_queue(enterprise.nodes["psc"], "pec\\q")
    enterprise.run(5)
    (request,) = enterprise.messages(ChangeRequest, sender="psc")
    return request


def later(request: ChangeRequest, stamp: int) -> ChangeRequest:
    """The same request under a new number and another time."""
    change = replace(request.change, seq=SequenceNumber(stamp))
    return replace(request, request_id=request.request_id + 1000, change=change)


def test_requests_of_another_time(enterprise: Enterprise) -> None:
    request = forwarded(enterprise)
    now = int(enterprise.at.unix * 1e6)
    ahead = later(request, now + 2 * 24 * 3600 * 1_000_000)
    assert refused(enterprise, "psc", "pec", ahead).reason is R.CLOCK
    assert refused(enterprise, "psc", "pec", later(request, 0)).reason is R.REPLAYED


def test_a_change_that_the_directory_refuses(enterprise: Enterprise) -> None:
    """An update of an object that is not there."""
    last = enterprise.nodes["psc"].last(SITE_A)
    missing = replace(
        queue_change(SITE_A, last + 1, last),
        command=Command.UPDATE,
        path=None,
        guid=guid_of("nobody"),
        properties=(pair(PropId.Q_LABEL, "x"),),
    )
    found = refused(enterprise, "pec", "psc", ChangePropagation(SITE_A, (missing,)))
    assert found.reason is R.NOT_APPLIED
    with enterprise.nodes["psc"].store.read() as view:
        records = [record for _, record in view.outbox(0, 10**6)]
    (record,) = (r for r in records if (r.state, r.seq.value) == (RecordState.REFUSED, last + 1))
    said = record.operation, record.partition, record.object_id
    assert said == (Command.UPDATE, SITE_A, guid_of("nobody"))


def test_a_purge_that_the_replica_is_past(enterprise: Enterprise) -> None:
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    psc = enterprise.nodes["psc"]
    ahead = queue_change(SITE_A, psc.last(SITE_A) + 2, psc.last(SITE_A) + 1)
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (ahead,)))  # now it asks
    old = AlreadyPurged(SITE_A, SITE_A, SequenceNumber(psc.last(SITE_A)))
    assert refused(enterprise, "pec", "psc", old).reason is R.OUTDATED


# --- hostile names --------------------------------------------------------------------------------

#: Texts of other reasons, as a peer may call itself or others.
SENTENCES = (
    "not a replication message",
    "far asks in the name of pec",
    "x answers for y",
    "a backup controller serves nobody",
    "the partition is unknown here",
    "a reply that nobody asked for",
    "the clock of x is 9 seconds ahead of ours",
    "a purge that this replica is past",
    "duplicate",
)


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda name: PscAck(SITE_C, SITE_C, SITE_B, SequenceNumber(1), name), R.STRANGER),
        (lambda name: BscAck(SITE_B, guid_of("b"), name), R.STRANGER),
        (
            lambda name: ChangeRequest(SITE_C, SITE_B, 7, name, None, queue_change(SITE_B, 0, 0)),
            R.IMPERSONATION,
        ),
    ],
)
def test_a_name_in_a_message_does_not_choose_the_reason(
    shared: Enterprise, make: Callable[[str], Message], reason: RefusalReason, sentence: str
) -> None:
    found = refused(shared, "far", "psc", make(sentence))
    assert sentence in found.text
    assert found.reason is reason


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_name_of_a_peer_does_not_choose_the_reason(sentence: str) -> None:
    """The machine object of a peer carries a sentence as its name."""
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    with psc.store.write() as tx:
        machine = tx.find(ObjectType.MACHINE, "pec")
        assert machine is not None
        named = props({**machine.properties, PropId.QM_PATHNAME: sentence})
        tx.insert(replace(machine, id=guid_of("peer"), properties=named))
    change = queue_change(SITE_A, 99, 98)
    found = refused(enterprise, "peer", "psc", ChangePropagation(SITE_A, (change,)))
    assert found.sender == sentence
    assert sentence in found.text
    assert found.reason is R.WRONG_SOURCE
