"""A part of a reply waits for the next operation: the next part is asked for before it is applied.

Whatever happens between the two, the replica is as it would be without that.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    ChangePropagation,
    Sync0,
    SyncReply,
    SyncRequest,
    encode_message,
)
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, Node, Parcel, guid_of, number

SITE_A, SITE_B = guid_of("A"), guid_of("B")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX
EARLIER = "a reply to an earlier request"


@pytest.fixture
def enterprise() -> Enterprise:
    """The PSC of site B has just asked for site A; the test answers for the PEC."""
    made = Enterprise(ReplicationSettings(gather_s=0.0))
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.run(70)
    made.lose(lambda parcel: parcel.machine == "pec")
    made.crash("psc")
    made.restart("psc")
    made.sent.clear()
    made.nodes["psc"].told.clear()
    return made


@pytest.fixture
def psc(enterprise: Enterprise) -> Node:
    return enterprise.nodes["psc"]


def queue(name: str, seq: int) -> DirectoryChange:
    properties = (
        pair(PropId.Q_QMID, guid_of("pec")),
        pair(PropId.Q_PATHNAME, f"pec\\{name}"),
        pair(PropId.Q_LABEL, name),
    )
    return DirectoryChange(
        Command.SYNC, None, guid_of(name), SITE_A, MIN, number(seq), MIN, properties
    )


def part(
    enterprise: Enterprise,
    from_seq: int,
    to_seq: int,
    *changes: DirectoryChange,
    more: bool = True,
) -> None:
    """Hands a part over to the PSC; what that leaves to be done is left."""
    kind = Sync0.MORE if more else Sync0.NONE
    reply = SyncReply(SITE_A, SITE_A, number(from_seq), number(to_seq), MIN, kind, changes)
    identifier = MessageIdentifier(guid_of("pec"), 1_000_000 + from_seq)
    enterprise.hand_over(Parcel("pec", "psc", identifier, encode_message(reply)))


def asked_from(enterprise: Enterprise) -> list[int]:
    """The From of each request for site A that the PSC has sent."""
    requests = enterprise.messages(SyncRequest, to="pec", sender="psc")
    return [r.from_seq.value for r in requests if r.partition == SITE_A]


def has(node: Node, name: str) -> bool:
    return node.find(ObjectType.QUEUE, f"pec\\{name}") is not None


def test_the_next_part_is_asked_for_before_this_one_is_applied(
    enterprise: Enterprise, psc: Node
) -> None:
    last = psc.last(SITE_A)
    part(enterprise, last, last + 2, queue("a", last + 1))
    assert asked_from(enterprise) == [last + 2]
    assert (psc.last(SITE_A), has(psc, "a")) == (last, False)
    assert psc.machine.next_timer() == enterprise.now
    enterprise.ring(psc)
    assert (psc.last(SITE_A), has(psc, "a")) == (last + 2, True)
    assert asked_from(enterprise) == [last + 2]
    part(enterprise, last + 2, last + 3, queue("b", last + 3), more=False)
    assert (psc.last(SITE_A), has(psc, "b")) == (last + 3, True)


def test_a_next_part_that_is_quick_finds_this_one_applied(
    enterprise: Enterprise, psc: Node
) -> None:
    last = psc.last(SITE_A)
    part(enterprise, last, last + 2, queue("a", last + 1))
    part(enterprise, last + 2, last + 4, queue("b", last + 4))
    assert (psc.last(SITE_A), has(psc, "a"), has(psc, "b")) == (last + 2, True, False)
    part(enterprise, last + 4, last + 5, queue("c", last + 5), more=False)
    assert psc.last(SITE_A) == last + 5
    assert all(has(psc, name) for name in "abc")
    assert asked_from(enterprise) == [last + 2, last + 4]
    assert psc.refusals() == []


@pytest.mark.parametrize("number_of_parts", [1, 2])
def test_every_message_finds_a_part_applied(
    enterprise: Enterprise, psc: Node, number_of_parts: int
) -> None:
    """A change that follows on the part must not be taken for one that leaves a gap."""
    last = psc.last(SITE_A)
    begin = last
    for _ in range(number_of_parts):
        part(enterprise, begin, begin + 2, queue(f"q{begin}", begin + 1))
        begin += 2
    enterprise.hand_over(
        Parcel(
            "pec",
            "psc",
            MessageIdentifier(guid_of("pec"), 7),
            encode_message(ChangePropagation(SITE_A, ())),
        )
    )
    assert psc.last(SITE_A) == begin
    assert not psc.holds_a_reply


def test_a_part_that_cannot_be_applied_is_asked_for_again(
    enterprise: Enterprise, psc: Node
) -> None:
    """The answer to the request that went out ahead is refused."""
    last = psc.last(SITE_A)
    bad = replace(queue("bad", last + 1), properties=())
    part(enterprise, last, last + 2, bad, queue("good", last + 2))
    assert asked_from(enterprise) == [last + 2]
    enterprise.ring(psc)
    assert (psc.last(SITE_A), has(psc, "good")) == (last, False)
    part(enterprise, last + 2, last + 3, queue("b", last + 3), more=False)
    assert (psc.last(SITE_A), has(psc, "b"), psc.refusals()[-1]) == (last, False, EARLIER)
    enterprise.run(psc.settings.retry_s + 1)
    assert asked_from(enterprise) == [last + 2, last]
    part(enterprise, last, last + 2, queue("bad", last + 1), queue("good", last + 2))
    part(enterprise, last + 2, last + 3, queue("b", last + 3), more=False)
    assert psc.last(SITE_A) == last + 3
    assert has(psc, "bad")


def test_a_crash_loses_a_part_that_was_not_applied(enterprise: Enterprise, psc: Node) -> None:
    last = psc.last(SITE_A)
    part(enterprise, last, last + 2, queue("a", last + 1))
    enterprise.crash("psc")
    enterprise.restart("psc")
    assert asked_from(enterprise)[-1] == last
    part(enterprise, last + 2, last + 3, queue("b", last + 3), more=False)
    assert (psc.last(SITE_A), psc.refusals()[-1]) == (last, EARLIER)
    part(enterprise, last, last + 3, queue("a", last + 1), queue("b", last + 3), more=False)
    assert psc.last(SITE_A) == last + 3


def test_a_change_of_a_client_does_not_wait_for_a_part(enterprise: Enterprise, psc: Node) -> None:
    """It shares no transaction with what another server sent."""
    last = psc.last(SITE_A)
    part(enterprise, last, last + 2, queue("a", last + 1))
    enterprise.create_queue(psc, "psc\\own")
    assert has(psc, "a") is False
    assert psc.find(ObjectType.QUEUE, "psc\\own") is not None
    assert psc.machine.next_timer() == enterprise.now
    enterprise.ring(psc)
    assert has(psc, "a")


def test_a_purge_is_heard_after_the_part(enterprise: Enterprise, psc: Node) -> None:
    """It answers the request that went out ahead: what came so far may have been deleted since."""
    last, started = psc.last(SITE_A), psc.machine.counters.sync0_started
    part(enterprise, last, last + 2, queue("a", last + 1))
    enterprise.inject("pec", "psc", AlreadyPurged(SITE_A, SITE_A, number(last + 9)))
    assert psc.machine.counters.sync0_started == started + 1
    assert (asked_from(enterprise), psc.last(SITE_A)) == ([last + 2, 0], 0)
    assert has(psc, "a")


def test_a_part_that_brings_nothing_further_is_not_asked_past(
    enterprise: Enterprise, psc: Node
) -> None:
    last = psc.last(SITE_A)
    part(enterprise, last, last)
    assert not psc.holds_a_reply
    assert asked_from(enterprise) == [last]


@pytest.mark.parametrize("full", [False, True])
def test_a_synchronisation_asks_once_for_each_part(full: bool) -> None:
    enterprise = Enterprise(ReplicationSettings(max_changes=5))
    pec = enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.crash("psc")
    for index in range(40):
        enterprise.create_queue(pec, f"pec\\q{index}")
    enterprise.run(5)
    enterprise.sent.clear()
    enterprise.restart("psc")
    if full:
        purged = AlreadyPurged(SITE_A, SITE_A, number(pec.last(SITE_A)))
        enterprise.inject("pec", "psc", purged)
    enterprise.run(5)
    enterprise.check_converged()
    assert psc.machine.counters.sync0_started == int(full)
    asked = asked_from(enterprise)
    assert len(asked) > 7
    assert len(set(asked)) == len(asked)
    assert (EARLIER in psc.refusals()) is full  # the answer to what was asked before the purge
