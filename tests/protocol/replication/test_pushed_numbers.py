"""Numbers that somebody else than the authority pushed up: a replica finds out and starts over.

The forger speaks as the authority and is believed, as with ``signing = "accept"``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, PurgeState
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    ChangePropagation,
    Heartbeat,
    PartitionSeqNumbers,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, Node, guid_of, number

SITE_A, SITE_B = guid_of("A"), guid_of("B")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX
#: Less than what is out of all proportion.
FAR = 1 << 31
#: Longer than two heartbeats and the requests that follow them.
LONG_S = 3000


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise(ReplicationSettings(gather_s=0.0))
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.run(70)
    for name in ("a", "b", "c"):
        made.create_queue(made.nodes["pec"], f"pec\\{name}")
    made.run(5)
    made.sent.clear()
    return made


@pytest.fixture
def psc(enterprise: Enterprise) -> Node:
    return enterprise.nodes["psc"]


def beat(enterprise: Enterprise, last: int, purged: int = 0) -> None:
    numbers = PartitionSeqNumbers(SITE_A, number(last), number(purged))
    beat = ChangePropagation(SITE_A, (), Heartbeat("pec", (numbers,)))
    enterprise.inject("pec", "psc", beat)


def queue(seq: int, previous: int, purged: int = 0) -> DirectoryChange:
    properties = (
        pair(PropId.Q_INSTANCE, guid_of("evil")),
        pair(PropId.Q_PATHNAME, "pec\\evil"),
    )
    return DirectoryChange(
        Command.CREATE,
        "pec\\evil",
        None,
        SITE_A,
        number(previous),
        number(seq),
        number(purged),
        properties,
    )


def reply(from_seq: int, to_seq: int, purged: int = 0, sync0: Sync0 = Sync0.NONE) -> SyncReply:
    return SyncReply(SITE_A, SITE_A, number(from_seq), number(to_seq), number(purged), sync0)


def purge(enterprise: Enterprise, last: int) -> None:
    beat(enterprise, last + 1)
    enterprise.inject("pec", "psc", AlreadyPurged(SITE_A, SITE_A, number(last + FAR)))


def push_by_reply(enterprise: Enterprise, last: int) -> None:
    beat(enterprise, last + 1)
    enterprise.inject("pec", "psc", reply(last, last + FAR))


def push_by_change(enterprise: Enterprise, last: int) -> None:
    forged = ChangePropagation(SITE_A, (queue(last + FAR, last),))
    enterprise.inject("pec", "psc", forged)


def push_by_sync0(enterprise: Enterprise, last: int) -> None:
    """The announcement, and then an answer to what it makes the replica ask for."""
    purge(enterprise, last)
    forged = reply(0, last + FAR, last + FAR, Sync0.COMPLETE)
    enterprise.inject("pec", "psc", forged)


def push_by_half_a_sync0(enterprise: Enterprise, last: int) -> None:
    purge(enterprise, last)
    enterprise.inject("pec", "psc", reply(0, last + 5, last + FAR, Sync0.MORE))


def push_the_allowed_purge(enterprise: Enterprise, last: int) -> None:
    beat(enterprise, last, last)


PUSHES = {
    "an announced purge": purge,
    "a reply": push_by_reply,
    "a change": push_by_change,
    "a full synchronisation": push_by_sync0,
    "the first part of one": push_by_half_a_sync0,
    "a heartbeat that allows to purge": push_the_allowed_purge,
}


@pytest.mark.req("SEC-3-04")
@pytest.mark.parametrize("push", PUSHES.values(), ids=list(PUSHES))
def test_forged_numbers_do_not_wedge_a_partition(
    enterprise: Enterprise, psc: Node, push: Callable[[Enterprise, int], None]
) -> None:
    pec = enterprise.nodes["pec"]
    asked = psc.machine.counters.sync0_started
    stop_losing = enterprise.lose(lambda parcel: parcel.machine == "pec")
    push(enterprise, psc.last(SITE_A))
    stop_losing()
    for n in range(20):
        enterprise.create_queue(pec, f"pec\\later{n}")
    enterprise.run(LONG_S)
    enterprise.create_queue(pec, "pec\\last")
    enterprise.run(5)
    for name in ("psc", "bsc"):
        node = enterprise.nodes[name]
        assert node.find(ObjectType.QUEUE, "pec\\last") is not None
        assert node.find(ObjectType.QUEUE, "pec\\evil") is None
        assert node.partition(SITE_A).purged_seq <= pec.partition(SITE_A).last_seq
        assert node.partition(SITE_A).purge_state is PurgeState.NORMAL
    enterprise.check_converged()
    assert psc.machine.counters.sync0_started <= asked + 2, "and not again and again"


@pytest.mark.req("SEC-3-04")
def test_a_purge_that_a_forger_allowed_is_taken_back() -> None:
    """A replica that forgot tombstones too early has a purged number above the authority's."""
    made = Enterprise(ReplicationSettings(gather_s=0.0, purge_buffer=2, purge_step=1))
    pec = made.add_pec("pec", "A")
    psc = made.add_psc("psc", "B")
    made.run(70)
    made.crash("psc")  # so that the PEC purges nothing
    made.restart("psc")
    for turn in ("first", "second"):
        heal = made.lose(lambda parcel: parcel.machine == "pec")
        for n in range(8):
            made.create_queue(pec, f"pec\\{turn}{n}")
            made.run(1)
        beat(made, psc.last(SITE_A), psc.last(SITE_A))
        made.create_queue(pec, f"pec\\{turn}-more")
        made.run(1)
        assert psc.partition(SITE_A).purged_seq > pec.partition(SITE_A).purged_seq
        heal()
        made.create_queue(pec, f"pec\\{turn}-next")
        made.run(100)
        assert psc.find(ObjectType.QUEUE, f"pec\\{turn}-next") is not None
        assert psc.partition(SITE_A).purged_seq <= pec.partition(SITE_A).purged_seq
        made.check_converged()


# --- old numbers, which are replayed --------------------------------------------------------------


@pytest.mark.departs("MQDSRP-3.2.7.1-04")
@pytest.mark.req("SEC-3-04")
def test_an_old_heartbeat_makes_the_replica_ask_once_and_start_nothing(
    enterprise: Enterprise, psc: Node
) -> None:
    last, started = psc.last(SITE_A), psc.machine.counters.sync0_started
    for _ in range(5):
        beat(enterprise, last - 2)
    [request] = enterprise.messages(SyncRequest, sender="psc")
    assert (request.from_seq, request.is_sync0) == (number(last - 2), False)
    enterprise.run(5)
    for _ in range(5):
        beat(enterprise, last - 2)
    enterprise.run(5)
    assert len(enterprise.messages(SyncRequest, sender="psc")) == 1, "not before its time"
    assert psc.machine.counters.sync0_started == started
    enterprise.check_converged()


def test_a_probe_that_gets_no_answer_is_not_repeated(enterprise: Enterprise, psc: Node) -> None:
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    beat(enterprise, psc.last(SITE_A) - 2)
    enterprise.run(100)
    assert len(enterprise.messages(SyncRequest, sender="psc")) == 1
    assert psc.machine.memory.partitions[SITE_A].asked is None
    beat(enterprise, psc.last(SITE_A) - 2)
    assert len(enterprise.messages(SyncRequest, sender="psc")) == 2


def test_what_is_missing_does_not_wait_for_a_probe(enterprise: Enterprise, psc: Node) -> None:
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    last = psc.last(SITE_A)
    beat(enterprise, last - 2)
    beat(enterprise, last + 1)
    starts = [m.from_seq.value for m in enterprise.messages(SyncRequest, sender="psc")]
    assert starts == [last - 2, last]


def test_nobody_to_ask_is_asked_nothing(enterprise: Enterprise, psc: Node) -> None:
    with psc.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, purge_state=PurgeState.IN_SYNC0))
    beat(enterprise, psc.last(SITE_A) - 2)
    assert enterprise.messages(SyncRequest, sender="psc") == []


@pytest.mark.req("SEC-3-04")
def test_an_announced_purge_is_no_answer_to_who_asks_for_everything(
    enterprise: Enterprise, psc: Node
) -> None:
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    last, started = psc.last(SITE_A), psc.machine.counters.sync0_started
    beat(enterprise, last + 1)
    for n in range(5):
        announced = AlreadyPurged(SITE_A, SITE_A, number(last + FAR + n))
        enterprise.inject("pec", "psc", announced)
    assert psc.machine.counters.sync0_started == started + 1
    assert psc.refusals()[-1] == "a purge that this replica is past"


def test_a_purge_between_the_parts_starts_over(enterprise: Enterprise, psc: Node) -> None:
    """An object of the first part may have been deleted since, and its tombstone purged."""
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    last, started = psc.last(SITE_A), psc.machine.counters.sync0_started
    beat(enterprise, last + 1)
    enterprise.inject("pec", "psc", AlreadyPurged(SITE_A, SITE_A, number(last + 10)))
    enterprise.inject("pec", "psc", reply(0, last, last + 10, Sync0.MORE))
    request = enterprise.messages(SyncRequest, sender="psc")[-1]
    assert (request.from_seq, request.known_purged_seq) == (number(last), number(last + 10))
    enterprise.inject("pec", "psc", AlreadyPurged(SITE_A, SITE_A, number(last + 20)))
    assert psc.machine.counters.sync0_started == started + 2
    request = enterprise.messages(SyncRequest, sender="psc")[-1]
    assert (request.from_seq, request.known_purged_seq) == (MIN, MAX)


def test_a_purge_that_was_known_before_the_full_synchronisation_starts_it_over(
    enterprise: Enterprise,
) -> None:
    """A PSC from an old backup sends a first part; then it is up to date, and has purged since."""
    psc, bsc = enterprise.nodes["psc"], enterprise.nodes["bsc"]
    last = psc.last(SITE_A)
    for node in enterprise.nodes.values():
        with node.store.write() as tx:
            tx.put_partition(replace(node.partition(SITE_A), purged_seq=number(last)))
    with bsc.store.write() as tx:
        state = replace(bsc.partition(SITE_A), purge_state=PurgeState.IN_SYNC0)
        tx.put_partition(replace(state, last_seq=number(last - 1)))
    enterprise.restart("bsc")
    enterprise.run(LONG_S)
    assert bsc.partition(SITE_A).purge_state is PurgeState.NORMAL
    enterprise.check_converged()


@pytest.mark.departs("MQDSRP-3.3.7.2-03")
def test_a_partition_that_is_being_copied_is_not_told_of(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    with psc.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, purge_state=PurgeState.IN_SYNC0, last_seq=MIN))
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    enterprise.run(1300)
    beats = enterprise.messages(ChangePropagation, to="bsc", sender="psc")
    told = {numbers.partition for beat in beats for numbers in beat.heartbeat.partitions}
    assert told == {ENTERPRISE_PARTITION, SITE_B}


# --- copies for an authority that was restored ----------------------------------------------------


@pytest.mark.req("SEC-3-04")
@pytest.mark.parametrize(
    ("copy", "reason"),
    [
        (SyncReply(SITE_A, SITE_B, MIN, MAX, MIN, Sync0.COMPLETE), "out of all proportion"),
        (
            SyncReply(SITE_A, SITE_B, MIN, number(9), number(10), Sync0.COMPLETE),
            "more is purged than there is",
        ),
        (
            SyncReply(
                SITE_A,
                SITE_B,
                MIN,
                number(9),
                MIN,
                Sync0.COMPLETE,
                (replace(queue(10, 9), partition=SITE_B),),
            ),
            "ends before its changes do",
        ),
    ],
)
def test_a_forged_copy_does_not_move_the_numbers_of_a_restored_authority(
    enterprise: Enterprise, psc: Node, copy: SyncReply, reason: str
) -> None:
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    enterprise.crash("psc")
    enterprise.restart("psc", restored=True)
    survivor = psc.machine.memory.recoveries[SITE_B].survivors["pec"]
    probe = SyncReply(SITE_A, SITE_B, survivor.from_seq, survivor.from_seq, MIN, Sync0.COMPLETE)
    enterprise.inject("pec", "psc", probe)
    enterprise.inject("pec", "psc", copy)
    assert reason in psc.refusals()[-1]
    assert not survivor.complete
    assert survivor.holds == {}
