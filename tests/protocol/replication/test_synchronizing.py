"""3.3.7.3, 3.3.7.5, 3.3.7.7, 3.3.7.10, 3.3.7.11: asking, and what the answers do."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from mqis.protocol.directory.objects import Partition, PurgeState
from mqis.protocol.directory.ownership import mark, objects_of
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.remains import INCOMPLETE
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
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, Node, guid_of, number

SITE_A, SITE_B = guid_of("A"), guid_of("B")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX


@pytest.fixture
def enterprise() -> Enterprise:
    """The PSC of site B has just asked for site A; the test answers for the PEC."""
    made = Enterprise(ReplicationSettings(gather_s=0.0))
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.run(70)
    made.lose(lambda parcel: parcel.machine == "pec")
    made.crash("psc")
    made.restart("psc")
    return made


@pytest.fixture
def psc(enterprise: Enterprise) -> Node:
    return enterprise.nodes["psc"]


def queue(name: str, seq: int, previous: int = 0) -> DirectoryChange:
    properties = (
        pair(PropId.Q_QMID, guid_of("pec")),
        pair(PropId.Q_PATHNAME, f"pec\\{name}"),
        pair(PropId.Q_LABEL, name),
    )
    return DirectoryChange(
        Command.SYNC,
        None,
        guid_of(name),
        SITE_A,
        number(previous),
        number(seq),
        MIN,
        properties,
    )


def update(name: str, seq: int, label: str) -> DirectoryChange:
    return DirectoryChange(
        Command.UPDATE,
        None,
        guid_of(name),
        SITE_A,
        number(seq - 1),
        number(seq),
        MIN,
        (pair(PropId.Q_LABEL, label),),
    )


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


def asked(node: Node) -> bool:
    return node.machine.memory.partitions[SITE_A].asked is not None


def label(node: Node, name: str) -> object:
    found = node.find(ObjectType.QUEUE, f"pec\\{name}")
    return None if found is None else found.value(PropId.Q_LABEL)


def set_state(node: Node, **changes: object) -> None:
    with node.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, **changes))  # type: ignore[arg-type]


# --- asking ---------------------------------------------------------------------------------------


@pytest.mark.req("MQDSRP-3.3.7.3-03", "MQDSRP-3.3.7.3-04")
@pytest.mark.parametrize(("name", "destination", "scope"), [("psc", "pec", 1), ("bsc", "psc", 0)])
def test_the_fields_of_a_request(
    enterprise: Enterprise, name: str, destination: str, scope: int
) -> None:
    node = enterprise.nodes[name]
    set_state(node, purged_seq=number(1))
    enterprise.crash(name)
    enterprise.sent.clear()
    enterprise.restart(name)
    [parcel] = [
        p
        for p in enterprise.sent
        if isinstance(p.message, SyncRequest) and p.message.partition == SITE_A
    ]
    last = number(node.last(SITE_A))
    assert parcel.machine == destination
    assert parcel.message == SyncRequest(SITE_B, SITE_A, last, MAX, number(1), False, scope, name)


@pytest.mark.departs("MQDSRP-3.1.1.2.3-05")
@pytest.mark.req("MQDSRP-3.3.7.3-06", "MQDSRP-3.1.1.5.3-03")
def test_a_request_is_repeated_after_a_minute_then_after_two(enterprise: Enterprise) -> None:
    """And so on up to twenty (E05). Nothing else asks meanwhile."""
    enterprise.sent.clear()
    times = []
    for _ in range(6000):
        enterprise.run(1)
        requests = enterprise.messages(SyncRequest, to="pec", sender="psc")
        if any(r.partition == SITE_A for r in requests):
            times.append(round(enterprise.now))
        enterprise.sent.clear()
    pauses = [b - a for a, b in pairwise(times)]
    assert pauses[:7] == [120, 240, 480, 960, 1200, 1200, 1200]


@pytest.mark.req("MQDSRP-3.3.7.3-01")
@pytest.mark.parametrize("purge_state", PurgeState)
def test_no_request_between_the_states_of_a_full_synchronisation(
    enterprise: Enterprise, psc: Node, purge_state: PurgeState
) -> None:
    set_state(psc, purge_state=purge_state)
    psc.machine.memory.partitions[SITE_A].asked = None
    enterprise.sent.clear()
    numbers = PartitionSeqNumbers(SITE_A, number(psc.last(SITE_A) + 5), MIN)
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (), Heartbeat("pec", (numbers,))))
    expected = purge_state in (PurgeState.NORMAL, PurgeState.IN_SYNC0)
    assert len(enterprise.messages(SyncRequest, to="pec", sender="psc")) == int(expected)


# --- replies --------------------------------------------------------------------------------------


@pytest.mark.departs("MQDSRP-3.3.7.5-04")
@pytest.mark.req("MQDSRP-3.3.7.5-02", "MQDSRP-3.3.7.5-05")
def test_a_reply_is_applied_whole_and_ends_the_request(enterprise: Enterprise, psc: Node) -> None:
    """Backwards too: a literal peer sorts so (E01). Last is what the reply says (E07)."""
    last = psc.last(SITE_A)
    answer(enterprise, last, last + 5, queue("b", last + 3), queue("a", last + 2))
    assert (label(psc, "a"), label(psc, "b")) == ("a", "b")
    assert psc.last(SITE_A) == last + 5
    assert not asked(psc)


@pytest.mark.req("MQDSRP-3.3.7.5-05")
def test_an_empty_reply_counts_as_well(enterprise: Enterprise, psc: Node) -> None:
    last = psc.last(SITE_A)
    answer(enterprise, last, last + 4)
    assert psc.last(SITE_A) == last + 4


@pytest.mark.parametrize("fault", ["gap", "backwards", "unknown partition"])
def test_a_reply_that_does_not_fit_is_ignored(
    enterprise: Enterprise, psc: Node, fault: str
) -> None:
    last = psc.last(SITE_A)
    if fault == "gap":
        answer(enterprise, last + 1, last + 3, queue("x", last + 3))
    elif fault == "backwards":
        answer(enterprise, last, last - 1, queue("x", last + 3))
    else:
        nowhere = SyncReply(SITE_A, guid_of("?"), MIN, number(9), MIN, Sync0.NONE)
        enterprise.inject("pec", "psc", nowhere)
    assert label(psc, "x") is None
    assert psc.last(SITE_A) == last
    assert asked(psc)


@pytest.mark.departs("MQDSRP-3.3.7.5-01")
def test_a_reply_that_has_purged_less_than_this_replica_starts_it_over(
    enterprise: Enterprise, psc: Node
) -> None:
    last = psc.last(SITE_A)
    enterprise.restart("psc")
    set_state(psc, purged_seq=number(last))
    answer(enterprise, last, last + 1, queue("x", last + 1), purged=last - 1)
    assert label(psc, "x") is None
    assert psc.partition(SITE_A).purge_state is PurgeState.IN_SYNC0


@pytest.mark.req("MQDSRP-3.1.5.2-03", "MQDSRP-3.3.7.5-06")
def test_what_waited_is_looked_at_after_the_last_change_of_a_reply(
    enterprise: Enterprise, psc: Node
) -> None:
    """A partial update that waits must not hide the whole object that the reply has (E04)."""
    last = psc.last(SITE_A)
    waiting = (update("x", last + 3, "partial"), update("x", last + 5, "later"))
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, waiting))
    full = replace(
        queue("x", last + 3), properties=(*queue("x", 1).properties, pair(PropId.Q_QUOTA, 9))
    )
    refused = psc.refusals()
    answer(enterprise, last, last + 4, queue("w", last + 2), full)
    assert psc.refusals() == refused, "the partial update had its turn nowhere in the reply"
    found = psc.find(ObjectType.QUEUE, "pec\\x")
    assert found is not None
    assert found.value(PropId.Q_QUOTA) == 9
    assert found.value(PropId.Q_LABEL) == "later"
    assert psc.last(SITE_A) == last + 5


@pytest.mark.departs("MQDSRP-3.3.7.5-07")
def test_more_is_coming_also_outside_sync0(enterprise: Enterprise, psc: Node) -> None:
    """The next part is asked for at once; changes that come meanwhile wait (E54)."""
    last = psc.last(SITE_A)
    enterprise.sent.clear()
    answer(enterprise, last, last + 2, queue("a", last + 1), sync0=Sync0.MORE)
    [request] = enterprise.messages(SyncRequest, to="pec")
    assert request.from_seq == number(last + 2)
    assert not request.is_sync0
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (update("a", last + 3, "early"),)))
    assert label(psc, "a") == "a"
    answer(enterprise, last + 2, last + 2)
    assert label(psc, "a") == "early"


def test_answers_that_come_again_do_not_multiply(enterprise: Enterprise, psc: Node) -> None:
    """Each part of a round asks for the next; an earlier one that comes again does not."""
    last = psc.last(SITE_A)
    part = (last, last + 2, queue("a", last + 1))
    answer(enterprise, *part, sync0=Sync0.MORE)
    enterprise.sent.clear()
    for _ in range(5):
        answer(enterprise, *part, sync0=Sync0.MORE)
    assert enterprise.messages(SyncRequest) == []
    assert psc.refusals()[-1] == "a reply to an earlier request"


@pytest.mark.parametrize("mark_", [MAX, INCOMPLETE])
def test_remains_for_a_restored_authority_are_no_copy_for_a_replica(
    enterprise: Enterprise, psc: Node, mark_: SequenceNumber
) -> None:
    """A PSC that has not heard of its promotion sends the PEC remains, counted from 1 (E72)."""
    last = psc.last(SITE_A)
    reply = SyncReply(
        SITE_A,
        SITE_A,
        number(last),
        number(last + 1),
        mark_,
        Sync0.COMPLETE,
        (queue("a", last + 1),),
    )
    enterprise.inject("pec", "psc", reply)
    assert psc.refusals()[-1] == "a reply for an authority that is restored"
    assert psc.last(SITE_A) == last
    assert psc.find(ObjectType.QUEUE, "pec\\a") is None
    answer(enterprise, last, last + 1, queue("a", last + 1))
    assert psc.last(SITE_A) == last + 1


@pytest.mark.req("MQDSRP-3.1.7.2.3-09")
def test_a_finished_synchronisation_is_acknowledged(enterprise: Enterprise, psc: Node) -> None:
    last = psc.last(SITE_A)
    enterprise.sent.clear()
    answer(enterprise, last, last + 1, queue("a", last + 1))
    acks = enterprise.messages(PscAck, to="pec")
    assert acks == [PscAck(SITE_B, SITE_B, SITE_A, number(last + 1), "psc")]


# --- between the parts of a reply (E73) -----------------------------------------------------------


def test_a_crash_between_two_parts_does_not_make_the_copy_complete(
    enterprise: Enterprise, psc: Node
) -> None:
    """The queue was changed again behind this part, so a part of an older change would spoil it."""
    last = psc.last(SITE_A)
    answer(enterprise, last, last + 2, queue("a", last + 2), sync0=Sync0.MORE)
    enterprise.crash("psc")
    enterprise.restart("psc")
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (update("a", last + 3, "old"),)))
    assert (psc.last(SITE_A), label(psc, "a")) == (last + 2, "a")
    answer(enterprise, last + 2, last + 5, queue("a", last + 5))
    assert psc.last(SITE_A) == last + 5
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (update("a", last + 6, "new"),)))
    assert (psc.last(SITE_A), label(psc, "a")) == (last + 6, "new")


def test_nobody_is_served_or_told_between_two_parts(enterprise: Enterprise, psc: Node) -> None:
    last = psc.last(SITE_A)
    answer(enterprise, last, last + 2, queue("a", last + 2), sync0=Sync0.MORE)
    request = SyncRequest(SITE_B, SITE_A, number(last), MAX, MIN, False, 0, "bsc")
    enterprise.sent.clear()
    enterprise.inject("bsc", "psc", request)
    enterprise.run(2 * psc.settings.heartbeat_s)
    replies = enterprise.messages(SyncReply, to="bsc", sender="psc")
    assert SITE_A not in {reply.partition for reply in replies}
    told = enterprise.messages(ChangePropagation, to="bsc", sender="psc")
    numbers = {n.partition for message in told for n in message.heartbeat.partitions}
    assert SITE_B in numbers
    assert SITE_A not in numbers
    answer(enterprise, last + 2, last + 3, queue("b", last + 3))
    enterprise.inject("bsc", "psc", request)
    (reply,) = enterprise.messages(SyncReply, to="bsc", sender="psc")[-1:]
    assert (reply.partition, reply.to_seq) == (SITE_A, number(last + 3))


def test_a_restored_authority_gets_an_incomplete_copy_as_what_it_is(
    enterprise: Enterprise, psc: Node
) -> None:
    last = psc.last(SITE_A)
    answer(enterprise, last, last + 2, queue("a", last + 2), sync0=Sync0.MORE)
    enterprise.sent.clear()
    enterprise.inject("pec", "psc", SyncRequest(SITE_A, SITE_A, MIN, MAX, MAX, True, 0, "pec"))
    (reply,) = enterprise.messages(SyncReply, to="pec", sender="psc")
    assert reply.purged_seq == INCOMPLETE
    assert reply.to_seq == number(last + 2)
    assert guid_of("a") in {change.guid for change in reply.changes}


@pytest.mark.req("MQDSRP-3.1.7.2.8-04")
def test_an_object_that_fails_again_and_again_is_set_aside(
    enterprise: Enterprise, psc: Node
) -> None:
    """The rest goes on; with the next request it is asked for once more (E56)."""
    last = psc.last(SITE_A)
    bad = replace(queue("bad", last + 1), properties=())
    for _ in range(2):
        answer(enterprise, last, last + 2, bad, queue("good", last + 2))
        assert psc.last(SITE_A) == last
        assert asked(psc)
    answer(enterprise, last, last + 2, bad, queue("good", last + 2))
    assert psc.last(SITE_A) == last + 2
    assert label(psc, "good") == "good"
    enterprise.crash("psc")
    enterprise.sent.clear()
    enterprise.restart("psc")
    request = next(r for r in enterprise.messages(SyncRequest, to="pec") if r.partition == SITE_A)
    assert request.from_seq == number(last)
    answer(enterprise, last, last + 2, queue("bad", last + 1), queue("good", last + 2))
    assert label(psc, "bad") == "bad"
    assert psc.machine.memory.partitions[SITE_A].quarantine == {}


def test_an_object_that_was_taken_after_all_is_not_set_aside_after_a_restart(
    enterprise: Enterprise, psc: Node
) -> None:
    last = psc.last(SITE_A)
    for _ in range(3):
        answer(enterprise, last, last + 1, replace(queue("bad", last + 1), properties=()))
    with psc.store.read() as view:
        assert [key for key, _ in view.states("quarantine")] == [SITE_A.raw + guid_of("bad").raw]
    enterprise.crash("psc")
    enterprise.restart("psc")
    answer(enterprise, last, last + 1, queue("bad", last + 1))
    with psc.store.read() as view:
        assert view.states("quarantine") == []
    enterprise.crash("psc")
    enterprise.sent.clear()
    enterprise.restart("psc")
    request = next(r for r in enterprise.messages(SyncRequest, to="pec") if r.partition == SITE_A)
    assert request.from_seq == number(last + 1)


def test_an_old_answer_does_not_bring_back_what_was_set_aside_and_deleted_since(
    enterprise: Enterprise, psc: Node
) -> None:
    """The deletion came in its turn while an answer from before it was still on its way."""
    last = psc.last(SITE_A)
    bad = replace(queue("bad", last + 1), properties=())
    for _ in range(3):
        answer(enterprise, last, last + 1, bad)
    assert list(psc.machine.memory.partitions[SITE_A].quarantine) == [guid_of("bad")]
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (update("x", last + 9, "asks"),)))
    assert asked(psc)
    gone = replace(queue("bad", last + 2, last + 1), command=Command.DELETE, properties=_deletion())
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (gone,)))
    assert psc.last(SITE_A) == last + 2
    answer(enterprise, last, last + 1, queue("bad", last + 1))
    assert psc.find(ObjectType.QUEUE, "pec\\bad") is None


# --- sync0 ----------------------------------------------------------------------------------------


def purge(enterprise: Enterprise, number_: int) -> None:
    enterprise.inject("pec", "psc", AlreadyPurged(SITE_A, SITE_A, number(number_)))


@pytest.mark.departs("MQDSRP-3.3.7.3-02", "MQDSRP-3.3.7.7-02", "MQDSRP-3.3.7.10-02")
@pytest.mark.req("MQDSRP-3.3.7.10-05", "MQDSRP-3.3.7.3-01")
def test_already_purged_starts_sync0(enterprise: Enterprise, psc: Node) -> None:
    last = psc.last(SITE_A)
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (update("x", last + 5, "waits"),)))
    enterprise.sent.clear()
    purge(enterprise, last + 50)
    state = psc.partition(SITE_A)
    assert state.purge_state is PurgeState.IN_SYNC0
    assert (state.last_seq, state.purged_seq) == (MIN, MIN), "what was announced is not stored"
    assert psc.machine.memory.partitions[SITE_A].pending == {}
    [request] = enterprise.messages(SyncRequest, to="pec")
    wanted = SyncRequest(SITE_B, SITE_A, MIN, MAX, MAX, True, 1, "psc")
    assert request == wanted


@pytest.mark.departs("MQDSRP-3.3.7.10-04", "MQDSRP-3.3.7.11-03")
@pytest.mark.req("MQDSRP-3.3.7.10-03", "MQDSRP-3.3.7.11-02", "MQDS-3.1.6.10-02")
def test_everything_is_marked_and_what_stays_marked_goes(enterprise: Enterprise, psc: Node) -> None:
    last = psc.last(SITE_A)
    gone = replace(queue("t", last + 2), command=Command.DELETE, properties=_deletion())
    answer(enterprise, last, last + 2, queue("kept", last + 1), gone)
    assert psc.tombstones(SITE_A) == [last + 2]
    enterprise.restart("psc")
    purge(enterprise, last + 50)
    with psc.store.read() as view:
        objects = [o for t in ObjectType for o in view.objects(t) if o.partition == SITE_A]
    assert {obj.seq for obj in objects} == {MIN}
    assert psc.tombstones(SITE_A) == []
    machine = _machine(last + 60)
    answer(
        enterprise, 0, last + 61, machine, queue("new", last + 61), purged=last + 50,
        sync0=Sync0.COMPLETE,
    )  # fmt: skip
    assert psc.partition(SITE_A).purge_state is PurgeState.NORMAL
    assert psc.partition(SITE_A).purged_seq == number(last + 50), "stored with what proves it"
    assert label(psc, "new") == "new"
    assert label(psc, "kept") is None
    assert psc.find(ObjectType.MACHINE, "pec") is not None


@pytest.mark.req("MQDSRP-3.1.1.2.3-03")
def test_the_purge_state_goes_through_its_four_numbers(
    enterprise: Enterprise, psc: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 before all is marked, 2 while replies come, 3 before the sweep, 0 after it (E39)."""
    last = psc.last(SITE_A)
    answer(enterprise, last, last + 2, queue("old", last + 1), queue("older", last + 2))
    enterprise.restart("psc")
    seen: list[tuple[int, int, int]] = []
    with psc.store.write() as tx:
        kind: Any = type(tx)
    put = kind.put_partition

    def noting(tx: Transaction, partition: Partition) -> None:
        if partition.id == SITE_A:
            numbers = [obj.seq for obj in objects_of(tx, SITE_A)]
            seen.append((int(partition.purge_state), len(numbers), numbers.count(MIN)))
        put(tx, partition)

    monkeypatch.setattr(kind, "put_partition", noting)
    with psc.store.read() as view:
        held = len(list(objects_of(view, SITE_A)))
    purge(enterprise, last + 50)
    # (purge state, objects, marked objects)
    assert seen == [(1, held, 0), (2, held, held)]
    seen.clear()
    answer(enterprise, 0, last + 55, _machine(last + 55), purged=last + 50, sync0=Sync0.MORE)
    assert {state for state, _, _ in seen} == {2}
    seen.clear()
    answer(
        enterprise, last + 55, last + 60, queue("new", last + 60), purged=last + 50,
        sync0=Sync0.COMPLETE,
    )  # fmt: skip
    came = 2
    assert [entry for entry in seen if entry[0] != 2] == [
        (3, held - 1 + came, held - 1),
        (0, came, 0),
    ]


def _deletion() -> tuple[tuple[int, PropVariant], ...]:
    return (
        pair(PropId.D_SCOPE, 1),
        pair(PropId.D_OBJTYPE, 1),
    )


def _machine(seq: int) -> DirectoryChange:
    properties = (
        pair(PropId.QM_PATHNAME, "pec"),
        pair(PropId.QM_SITE_ID, SITE_A),
        pair(PropId.QM_SERVICE, 8),
    )
    return DirectoryChange(
        Command.SYNC, None, guid_of("pec"), SITE_A, MIN, number(seq), MIN, properties
    )


@pytest.mark.departs("MQDSRP-3.3.7.11-04")
@pytest.mark.req("MQDSRP-3.3.7.5-03", "MQDSRP-3.3.7.11-01")
def test_sync0_ends_with_the_reply_that_says_so(enterprise: Enterprise, psc: Node) -> None:
    last = psc.last(SITE_A)
    purge(enterprise, last + 50)
    enterprise.sent.clear()
    answer(enterprise, 0, last + 55, _machine(last + 55), purged=last + 50, sync0=Sync0.MORE)
    assert psc.partition(SITE_A).purge_state is PurgeState.IN_SYNC0
    [request] = enterprise.messages(SyncRequest, to="pec")
    assert (request.from_seq, request.is_sync0) == (number(last + 55), True)
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (update("q", last + 61, "waited"),)))
    answer(
        enterprise, last + 55, last + 60, queue("q", last + 60), purged=last + 50,
        sync0=Sync0.COMPLETE,
    )  # fmt: skip
    assert psc.partition(SITE_A).purge_state is PurgeState.NORMAL
    assert psc.last(SITE_A) in (last + 60, last + 61)


@pytest.mark.req("MQDSRP-3.3.7.5-03")
def test_sync0_goes_on_after_a_reply_that_does_not_say_that_it_is_the_last(
    enterprise: Enterprise, psc: Node
) -> None:
    last = psc.last(SITE_A)
    purge(enterprise, last + 50)
    enterprise.sent.clear()
    answer(enterprise, 0, last + 55, _machine(last + 55), purged=last + 50)
    assert psc.partition(SITE_A).purge_state is PurgeState.IN_SYNC0
    [request] = enterprise.messages(SyncRequest, to="pec")
    assert (request.from_seq, request.is_sync0) == (number(last + 55), True)


@pytest.mark.req("MQDSRP-3.3.7.11-01", "MQDSRP-3.3.7.11-02")
@pytest.mark.parametrize("purge_state", [PurgeState.NORMAL, PurgeState.COMPLETING_SYNC0])
def test_only_a_full_synchronisation_ends_with_the_sweep(
    enterprise: Enterprise, psc: Node, purge_state: PurgeState
) -> None:
    """A reply that calls itself complete ends none; a start ends one that a crash cut off."""
    with psc.store.write() as tx:
        mark(tx, SITE_A)
    last = psc.last(SITE_A)
    set_state(psc, purge_state=purge_state)
    enterprise.crash("psc")
    enterprise.restart("psc")
    answer(enterprise, last, last + 1, queue("q", last + 1), sync0=Sync0.COMPLETE)
    assert psc.partition(SITE_A).purge_state is PurgeState.NORMAL
    kept = psc.find(ObjectType.MACHINE, "pec") is not None
    assert kept is (purge_state is PurgeState.NORMAL)


@pytest.mark.req("MQDSRP-3.3.7.11-05")
def test_tombstones_that_come_again_are_kept(enterprise: Enterprise, psc: Node) -> None:
    last = psc.last(SITE_A)
    purge(enterprise, last + 50)
    gone = replace(queue("t", last + 58), command=Command.DELETE, properties=_deletion())
    answer(
        enterprise, 0, last + 60, _machine(last + 55), gone, purged=last + 50,
        sync0=Sync0.COMPLETE,
    )  # fmt: skip
    assert psc.tombstones(SITE_A) == [last + 58]


@pytest.mark.req("MQDSRP-3.3.7.7-01", "MQDSRP-3.3.7.10-01")
def test_a_purge_that_we_are_past_starts_nothing(enterprise: Enterprise, psc: Node) -> None:
    purge(enterprise, psc.last(SITE_A))
    assert psc.partition(SITE_A).purge_state is PurgeState.NORMAL
    set_state(psc, purged_seq=number(psc.last(SITE_A) + 9))
    purge(enterprise, psc.last(SITE_A) + 9)
    assert psc.partition(SITE_A).purge_state is PurgeState.NORMAL
    enterprise.inject("pec", "psc", AlreadyPurged(SITE_A, guid_of("?"), number(99)))
    assert psc.refusals()[-1] == "a purge of a partition that is unknown here"
