"""Replies that bring less than was hoped for, and copies of which a part is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import Partition, PurgeState
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.acknowledging import purge
from mqis.protocol.replication.incoming_changes import drain
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.protocol.replication.work import Work
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
)
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    CountedEntropy,
    Enterprise,
    Node,
    guid_of,
    number,
)

SITE_A, SITE_B = guid_of("A"), guid_of("B")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX


@pytest.fixture
def enterprise() -> Enterprise:
    """The PSC of site B has just asked for site A; the test answers for the PEC."""
    made = Enterprise(ReplicationSettings(max_failures=1))
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.run(70)
    made.lose(lambda parcel: parcel.machine == "pec")
    made.crash("psc")
    made.restart("psc")
    made.run(0)
    made.sent.clear()
    return made


@pytest.fixture
def psc(enterprise: Enterprise) -> Node:
    return enterprise.nodes["psc"]


def queue(name: str, seq: int) -> DirectoryChange:
    properties = (
        pair(PropId.Q_QMID, guid_of("pec")),
        pair(PropId.Q_PATHNAME, f"pec\\{name}"),
    )
    return DirectoryChange(
        Command.SYNC, None, guid_of(name), SITE_A, number(seq - 1), number(seq), MIN, properties
    )


def unusable(name: str, seq: int) -> DirectoryChange:
    return replace(queue(name, seq), properties=())


def tell(enterprise: Enterprise, *changes: DirectoryChange) -> None:
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, changes))


def answer(
    enterprise: Enterprise,
    from_seq: int,
    to_seq: int,
    *changes: DirectoryChange,
    purged: int = 0,
    sync0: Sync0 = Sync0.NONE,
) -> None:
    reply = SyncReply(
        SITE_A, SITE_A, number(from_seq), number(to_seq), number(purged), sync0, changes
    )
    enterprise.inject("pec", "psc", reply)


def has(node: Node, name: str) -> bool:
    return node.find(ObjectType.QUEUE, f"pec\\{name}") is not None


def requests(enterprise: Enterprise) -> list[SyncRequest]:
    found = enterprise.messages(SyncRequest, to="pec")
    return [request for request in found if request.partition == SITE_A]


def work_of(enterprise: Enterprise, node: Node, tx: Transaction) -> Work:
    entropy = CountedEntropy("work")
    memory = node.machine.memory
    return Work(tx, enterprise.at, node.server, node.settings, memory, entropy)


def state_of(tx: Transaction) -> Partition:
    found = tx.partition(SITE_A)
    assert found is not None
    return found


# --- replies --------------------------------------------------------------------------------------


def test_a_reply_without_what_is_missing_is_not_followed_by_the_same_request(
    enterprise: Enterprise, psc: Node
) -> None:
    """The authority lacks it too: to ask at once would go round without end. Time repeats it."""
    last = psc.last(SITE_A)
    tell(enterprise, queue("ahead", last + 3))
    answer(enterprise, last, last)
    assert requests(enterprise) == []
    assert list(psc.machine.memory.progress(SITE_A).pending) == [number(last + 3)]
    enterprise.run(61)
    assert [request.from_seq for request in requests(enterprise)] == [number(last)]
    answer(enterprise, last, last + 2, queue("first", last + 1), queue("second", last + 2))
    assert psc.last(SITE_A) == last + 3
    assert has(psc, "ahead")


def test_sync0_does_not_end_with_a_reply_that_does_not_say_so(
    enterprise: Enterprise, psc: Node
) -> None:
    """It is neither a part of one nor its end, so the rest is asked for."""
    last = psc.last(SITE_A)
    enterprise.inject("pec", "psc", AlreadyPurged(SITE_A, SITE_A, number(last + 50)))
    enterprise.sent.clear()
    answer(enterprise, 0, last + 60, queue("new", last + 60), purged=last + 50)
    assert psc.partition(SITE_A).purge_state is PurgeState.IN_SYNC0
    assert psc.find(ObjectType.MACHINE, "pec") is not None, "what is marked is not swept yet"
    [request] = requests(enterprise)
    assert (request.from_seq, request.is_sync0) == (number(last + 60), True)
    answer(enterprise, last + 60, last + 60, purged=last + 50, sync0=Sync0.COMPLETE)
    assert psc.partition(SITE_A).purge_state is PurgeState.NORMAL
    assert psc.find(ObjectType.MACHINE, "pec") is None


def test_a_purge_up_to_a_number_that_nobody_reaches_starts_nothing(
    enterprise: Enterprise, psc: Node
) -> None:
    before = psc.partition(SITE_A)
    beyond = before.last_seq.value + psc.settings.max_jump + 1
    enterprise.inject("pec", "psc", AlreadyPurged(SITE_A, SITE_A, number(beyond)))
    assert psc.partition(SITE_A) == before
    assert "out of all proportion" in psc.refusals()[-1]
    assert requests(enterprise) == []


# --- what waits -----------------------------------------------------------------------------------


def test_behind_a_waiting_change_that_fails_nothing_is_applied(
    enterprise: Enterprise, psc: Node
) -> None:
    """The gap closes, the next one cannot be applied: it is asked for, and the last one waits.

    The last one does not name it as its predecessor, and would hide that it is missing.
    """
    last = psc.last(SITE_A)
    answer(enterprise, last, last)
    behind = replace(queue("behind", last + 3), previous_seq=number(last + 1))
    tell(enterprise, unusable("bad", last + 2), behind)
    enterprise.sent.clear()
    answer(enterprise, last, last + 1, queue("first", last + 1))
    assert psc.last(SITE_A) == last + 1
    assert has(psc, "first")
    assert not has(psc, "behind")
    assert list(psc.machine.memory.progress(SITE_A).pending) == [number(last + 3)]
    assert [request.from_seq for request in requests(enterprise)] == [number(last + 1)]


def test_what_waits_goes_on_waiting_while_the_partition_is_synchronised(
    enterprise: Enterprise, psc: Node
) -> None:
    last = psc.last(SITE_A)
    psc.machine.memory.progress(SITE_A).pending[number(last + 1)] = queue("waits", last + 1)
    for purge_state in (PurgeState.IN_SYNC0, PurgeState.NORMAL):
        with psc.store.write() as tx:
            tx.put_partition(replace(state_of(tx), purge_state=purge_state))
            drain(work_of(enterprise, psc, tx), SITE_A)
        assert has(psc, "waits") is (purge_state is PurgeState.NORMAL)


def test_tombstones_stay_while_the_partition_is_synchronised() -> None:
    alone = Enterprise(ReplicationSettings(purge_buffer=0))
    pec = alone.add_pec("pec", "A")
    alone.create_queue(pec, "pec\\q")
    alone.delete(pec, ObjectType.QUEUE, "pec\\q")
    kept = pec.tombstones(SITE_A)
    assert kept == [pec.last(SITE_A)]
    for purge_state in (PurgeState.IN_SYNC0, PurgeState.NORMAL):
        with pec.store.write() as tx:
            state = replace(state_of(tx), purge_state=purge_state)
            purge(work_of(alone, pec, tx), state)
        assert pec.tombstones(SITE_A) == ([] if purge_state is PurgeState.NORMAL else kept)
    assert pec.partition(SITE_A).purged_seq == pec.partition(SITE_A).last_seq


# --- a copy of which an object was set aside ------------------------------------------------------


def test_nothing_behind_an_object_that_was_set_aside_is_passed_on(
    enterprise: Enterprise, psc: Node
) -> None:
    """Our BSC would take it for all there is. It gets everything once the object is here (E56)."""
    bsc, last = enterprise.nodes["bsc"], psc.last(SITE_A)
    answer(enterprise, last, last + 2, unusable("late", last + 1), queue("second", last + 2))
    assert psc.machine.memory.progress(SITE_A).quarantine == {guid_of("late"): number(last + 1)}
    tell(enterprise, queue("third", last + 3))
    assert has(psc, "third")
    enterprise.run(5)
    told = enterprise.messages(ChangePropagation, to="bsc", sender="psc")
    assert [change.seq for message in told for change in message.changes] == []
    assert bsc.last(SITE_A) == last

    enterprise.sent.clear()
    asks = SyncRequest(SITE_B, SITE_A, number(last), MAX, MIN, False, 0, "bsc")
    enterprise.inject("bsc", "psc", asks)
    assert enterprise.messages(SyncReply, to="bsc") == []

    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (queue("gap", last + 9),)))
    every = [queue(n, last + i) for i, n in enumerate(("late", "second", "third"), 1)]
    answer(enterprise, last, last + 8, *every)
    enterprise.run(5)
    assert [has(bsc, name) for name in ("late", "second", "third", "gap")] == [True] * 4
    assert bsc.last(SITE_A) == last + 9


@pytest.mark.parametrize("full", [False, True])
def test_what_is_before_an_object_that_was_set_aside_is_a_part(
    enterprise: Enterprise, psc: Node, full: bool
) -> None:
    """Earlier versions of what was changed behind the object are here no more (E73).

    So a full synchronisation does not end there either: the copy would lose those objects.
    """
    last = psc.last(SITE_A)
    bad = unusable("late", last + 2)
    answer(enterprise, last, last + 3, queue("first", last + 1), bad, queue("second", last + 3))
    assert list(psc.machine.memory.progress(SITE_A).quarantine) == [guid_of("late")]
    enterprise.sent.clear()
    begin = MIN if full else number(last)
    asks = SyncRequest(SITE_B, SITE_A, begin, MAX, MAX, full, 0, "bsc")
    enterprise.inject("bsc", "psc", asks)
    [reply] = enterprise.messages(SyncReply, to="bsc")
    assert (reply.changes[-1].seq, reply.to_seq) == (number(last + 1), number(last + 1))
    assert reply.complete_sync0 is Sync0.MORE
    enterprise.sent.clear()
    rest = replace(asks, from_seq=number(last + 1))
    enterprise.inject("bsc", "psc", rest)
    assert enterprise.messages(SyncReply, to="bsc") == []
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (queue("gap", last + 9),)))
    answer(enterprise, last + 1, last + 8, queue("late", last + 2), queue("second", last + 3))
    enterprise.sent.clear()
    enterprise.inject("bsc", "psc", rest)
    [reply] = enterprise.messages(SyncReply, to="bsc")
    assert [change.seq for change in reply.changes] == [number(last + n) for n in (2, 3, 9)]
    assert reply.complete_sync0 is (Sync0.COMPLETE if full else Sync0.NONE)
