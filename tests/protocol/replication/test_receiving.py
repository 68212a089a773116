"""3.1.7.2.2 to 3.1.7.2.4 and 3.2.7.1: changes as they come in, numbers as they are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    Heartbeat,
    PartitionSeqNumbers,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, guid_of, number

SITE_A, SITE_B = guid_of("A"), guid_of("B")


@pytest.fixture
def enterprise() -> Enterprise:
    """The PEC is silent: the test speaks for it."""
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.run(70)
    made.sent.clear()
    made.lose(lambda parcel: parcel.machine == "pec")
    return made


def create(name: str, seq: int, previous: int | None = None, purged: int = 0) -> DirectoryChange:
    properties = (
        pair(PropId.Q_INSTANCE, guid_of(name)),
        pair(PropId.Q_QMID, guid_of("pec")),
        pair(PropId.Q_PATHNAME, f"pec\\{name}"),
    )
    return DirectoryChange(
        Command.CREATE,
        f"pec\\{name}",
        None,
        SITE_A,
        number(seq - 1 if previous is None else previous),
        number(seq),
        number(purged),
        properties,
    )


def tell(enterprise: Enterprise, *changes: DirectoryChange, flush: int = 0) -> None:
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, changes, flush=flush))


def beat(enterprise: Enterprise, *numbers: tuple[Guid, int, int]) -> None:
    records = tuple(PartitionSeqNumbers(p, number(a), number(b)) for p, a, b in numbers)
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (), Heartbeat("pec", records)))


def has(enterprise: Enterprise, name: str, at: str = "psc") -> bool:
    return enterprise.nodes[at].find(ObjectType.QUEUE, f"pec\\{name}") is not None


@pytest.mark.req("MQDSRP-3.1.7.2.2-02", "MQDSRP-3.1.7.2.3-05", "MQDSRP-3.1.7.2.3-02")
@pytest.mark.parametrize(("behind", "step"), [(1, 1), (0, 1), (1, 4)])
def test_a_change_in_turn_is_applied_at_once(
    enterprise: Enterprise, behind: int, step: int
) -> None:
    """Also if it names an earlier number as the one before it, or skips superseded ones."""
    last = enterprise.nodes["psc"].last(SITE_A)
    tell(enterprise, create("q", last + step, last - 1 + behind))
    assert has(enterprise, "q")
    assert enterprise.nodes["psc"].last(SITE_A) == last + step


@pytest.mark.departs("MQDSRP-3.1.7.2.2-01")
def test_what_is_old_or_from_before_the_purge_is_dropped(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    tell(enterprise, create("old", last, last - 1))
    assert not has(enterprise, "old")
    with psc.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, purged_seq=number(last)))
    tell(enterprise, create("early", last + 1, purged=last - 1))
    assert not has(enterprise, "early")
    assert len(enterprise.messages(SyncRequest, to="pec", sender="psc")) == 1, "the authority knows"
    tell(enterprise, create("right", last + 1, purged=last))
    assert has(enterprise, "right")


@pytest.mark.req(
    "MQDSRP-3.1.7.2.2-03",
    "MQDSRP-3.1.7.2.2-04",
    "MQDSRP-3.1.7.2.4-02",
    "MQDSRP-3.1.7.2.4-03",
    "MQDSRP-3.2.7.1-01",
)
def test_pending_changes_follow_as_soon_as_they_can(enterprise: Enterprise) -> None:
    """Two after the gap, then another gap: the first two are applied, the third waits."""
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    tell(enterprise, create("c", last + 3), create("b", last + 2), create("f", last + 6))
    assert not has(enterprise, "b")
    assert len(enterprise.messages(SyncRequest, sender="psc")) == 1
    tell(enterprise, create("a", last + 1))
    assert [has(enterprise, name) for name in "abcf"] == [True, True, True, False]
    assert psc.last(SITE_A) == last + 3
    assert list(psc.machine.memory.partitions[SITE_A].pending) == [number(last + 6)]
    assert len(enterprise.messages(SyncRequest, sender="psc")) == 1


@pytest.mark.req("MQDSRP-3.1.7.2.6-01", "MQDSRP-3.2.7.1-01")
@pytest.mark.parametrize("by", ["path", "GUID"])
def test_an_update_gives_the_object_its_number(enterprise: Enterprise, by: str) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    update = replace(
        create("q", last + 2),
        command=Command.UPDATE,
        path="pec\\q" if by == "path" else None,
        guid=None if by == "path" else guid_of("q"),
        properties=(pair(PropId.Q_LABEL, "new"),),
    )
    tell(enterprise, create("q", last + 1), update)
    found = psc.find(ObjectType.QUEUE, "pec\\q")
    assert found is not None
    assert (found.id, found.partition, found.seq) == (guid_of("q"), SITE_A, number(last + 2))
    assert found.value(PropId.Q_LABEL) == "new"
    assert enterprise.messages(SyncRequest, sender="psc") == []


@pytest.mark.req("MQDSRP-3.2.7.1-01")
def test_the_numbers_of_a_message_count_after_its_changes(enterprise: Enterprise) -> None:
    """They name the last change of the message, so nothing is missing; one more is."""
    last = enterprise.nodes["psc"].last(SITE_A)
    for ahead, requests in ((0, 0), (1, 1)):
        change = create(f"q{ahead}", last + 1 + ahead)
        numbers = PartitionSeqNumbers(SITE_A, number(last + 1 + 2 * ahead), number(0))
        message = ChangePropagation(SITE_A, (change,), Heartbeat("pec", (numbers,)))
        enterprise.inject("pec", "psc", message)
        assert has(enterprise, f"q{ahead}")
        assert len(enterprise.messages(SyncRequest, sender="psc")) == requests


@pytest.mark.req("MQDSRP-3.1.7.2.2-03", "MQDSRP-3.1.7.2.3-04")
def test_after_a_failed_change_nothing_else_happens_but_a_request(
    enterprise: Enterprise,
) -> None:
    """An update of an object that is not there: last stays, the one behind it waits (E56)."""
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    missing = replace(
        create("x", last + 1),
        command=Command.UPDATE,
        path=None,
        guid=guid_of("nobody"),
        properties=(pair(PropId.Q_LABEL, "x"),),
    )
    tell(enterprise, create("behind", last + 2))
    tell(enterprise, missing)
    assert psc.last(SITE_A) == last
    assert not has(enterprise, "behind")
    assert list(psc.machine.memory.partitions[SITE_A].pending) == [number(last + 2)]
    told = enterprise.messages(ChangePropagation, sender="psc")
    assert not any(message.changes for message in told), "nothing is relayed"
    assert all(not n.available for n in psc.machine.memory.neighbors.values())
    assert len(enterprise.messages(SyncRequest, sender="psc")) == 1
    assert "not here" in psc.refusals()[-1]


@pytest.mark.req("MQDSRP-3.1.7.2.2-05", "MQDSRP-3.1.7.2.2-06")
def test_a_hundred_changes_wait_each_once(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    wanted = [create(f"q{index}", last + 2 + index) for index in range(120)]
    tell(enterprise, *reversed(wanted[:50]), *wanted[:50])
    pending = psc.machine.memory.partitions[SITE_A].pending
    assert len(pending) == 50
    tell(enterprise, create("other", last + 2), *wanted[1:])
    assert sorted(pending) == [change.seq for change in wanted[:100]]
    tell(enterprise, create("missing", last + 1))
    assert psc.last(SITE_A) == last + 101, "in the order of their numbers"
    assert has(enterprise, "q0")
    assert not has(enterprise, "other"), "the first one with a number stays"


@pytest.mark.req("MQDSRP-3.1.7.2.4-02")
def test_a_gap_that_a_reply_leaves_is_asked_for(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    tell(enterprise, create("f", last + 6))
    part = SyncReply(SITE_A, SITE_A, number(last), number(last + 3), SequenceNumber.MIN, Sync0.NONE)
    enterprise.inject("pec", "psc", part)
    requests = enterprise.messages(SyncRequest, sender="psc")
    assert [request.from_seq for request in requests] == [number(last), number(last + 3)]
    assert not has(enterprise, "f")


@pytest.mark.req("MQDSRP-3.1.7.2.4-01")
def test_a_pending_change_from_before_the_purge_is_removed(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    tell(enterprise, create("early", last + 2, purged=last - 1))
    tell(enterprise, create("late", last + 3, last + 1, purged=last))
    tell(enterprise, create("gap", last + 5, purged=last))
    with psc.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, purged_seq=number(last)))
    tell(enterprise, create("first", last + 1, purged=last))
    assert not has(enterprise, "early")
    assert has(enterprise, "late"), "the walk goes on behind the removed one"
    assert list(psc.machine.memory.partitions[SITE_A].pending) == [number(last + 5)]


@pytest.mark.req(
    "MQDSRP-3.1.7.2.3-06",
    "MQDSRP-3.1.1.5.2-01",
    "MQDSRP-2.2.6.9-02",
    "MQDSRP-2.2.6.9-03",
    "MQDSRP-3.1.5.2-02",
)
@pytest.mark.parametrize("flush", [0, 1])
def test_a_psc_relays_to_its_bscs_and_to_nobody_else(enterprise: Enterprise, flush: int) -> None:
    """Unchanged: at once, or if the sender does not want that, with the BSC's timer."""
    last = enterprise.nodes["psc"].last(SITE_A)
    change = create("q", last + 1)
    tell(enterprise, change, flush=flush)

    def relayed() -> list[tuple[str, tuple[DirectoryChange, ...], int]]:
        return [
            (p.machine, p.message.changes, p.message.flush)
            for p in enterprise.sent
            if isinstance(p.message, ChangePropagation) and p.message.changes
        ]

    expected = [("bsc", (change,), 0)]
    assert relayed() == ([] if flush else expected)
    enterprise.run(1.9)
    assert relayed() == ([] if flush else expected)
    enterprise.run(0.2)
    assert relayed() == expected
    assert has(enterprise, "q", at="bsc")


@pytest.mark.req("MQDSRP-3.1.5.2-01")
def test_changes_of_unknown_partitions_are_dropped_the_others_are_not(
    enterprise: Enterprise,
) -> None:
    last = enterprise.nodes["psc"].last(SITE_A)
    tell(
        enterprise,
        replace(create("x", last + 1), partition=guid_of("nowhere")),
        create("q", last + 1),
    )
    assert has(enterprise, "q")
    assert not has(enterprise, "x")
    assert not enterprise.nodes["psc"].knows(guid_of("nowhere"))


@pytest.mark.req("MQDSRP-3.1.7.2.3-09", "MQDSRP-3.1.1.5.2-02", "MQDSRP-3.3.7.4-01")
def test_an_acknowledgement_for_each_256_numbers(enterprise: Enterprise) -> None:
    """Also where the multiple itself was superseded and never came (E24)."""
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    assert last < 255
    tell(enterprise, *(create(f"q{n}", n) for n in range(last + 1, 255)))
    enterprise.sent.clear()
    tell(enterprise, create("far", 259, 254))
    acks = [(p.machine, p.message) for p in enterprise.sent if isinstance(p.message, PscAck)]
    assert acks == [("pec", PscAck(SITE_B, SITE_B, SITE_A, number(259), "psc"))]
    tell(enterprise, create("next", 260))
    assert len([p for p in enterprise.sent if isinstance(p.message, PscAck)]) == 1


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.departs("MQDSRP-3.2.7.1-02")
@pytest.mark.req("MQDSRP-3.2.7.1-03")
def test_what_a_heartbeat_raises(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    beat(enterprise, (guid_of("nowhere"), 99, 0), (SITE_A, last, 1))
    assert psc.partition(SITE_A).allowed_purge_seq == number(1)
    beat(enterprise, (SITE_A, last, 0))
    assert psc.partition(SITE_A).allowed_purge_seq == number(1)
    with psc.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, purged_seq=number(1)))
    beat(enterprise, (SITE_A, last + 5, 0))
    [request] = enterprise.messages(SyncRequest, sender="psc")
    assert request.from_seq == number(last), "asked whose number it is, not believed"
    assert psc.partition(SITE_A).allowed_purge_seq == number(1)


@pytest.mark.req(
    "MQDSRP-3.2.7.1-06", "MQDSRP-3.1.1.5.3-01", "MQDSRP-1.3.2.3-01", "MQDSRP-3.3.7.3-06"
)
def test_a_heartbeat_ahead_of_us_makes_us_ask_once(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    known = psc.last(ENTERPRISE_PARTITION)
    beat(enterprise, (SITE_A, last + 3, 0), (ENTERPRISE_PARTITION, known, 0))
    beat(enterprise, (SITE_A, last + 4, 0))
    [request] = enterprise.messages(SyncRequest, sender="psc")
    assert (request.partition, request.from_seq) == (SITE_A, number(last))
    assert request.to_seq == SequenceNumber.MAX
    empty = SyncReply(
        SITE_A, SITE_A, number(last), number(last + 2), SequenceNumber.MIN, Sync0.NONE
    )
    enterprise.inject("pec", "psc", empty)
    assert psc.last(SITE_A) == last + 2  # not one more than the PEC has said
