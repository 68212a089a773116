"""Change requests that somebody recorded and sends again, and other messages too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.clock import Instant
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.effects import RequestDecided
from mqis.protocol.replication.replays import forget_old_answers, next_stamp
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.protocol.replication.work import Work
from mqis.storage.memory_store import MemoryStore
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangeReply, ChangeRequest, Message
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, Node, Parcel, guid_of, number

SITE_A, SITE_B = guid_of("A"), guid_of("B")
QUEUE = ObjectType.QUEUE
DAY_S = 86_400
NO_RESPONSE = HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise(ReplicationSettings(heartbeat_s=DAY_S, clock_skew_s=300.0))
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_psc("far", "C")
    made.add_bsc("bsc", "psc")
    made.run(70)
    for node in made.nodes.values():
        node.machine.watched = True
    return made


def work_of(enterprise: Enterprise, node: Node, tx: Transaction, unix: float = 0.0) -> Work:
    at = Instant(enterprise.now, unix or enterprise.at.unix)
    machine = node.machine
    return Work(tx, at, node.server, machine.settings, machine.memory, machine._entropy)


def forget(enterprise: Enterprise, name: str) -> None:
    """As happens after so many answers."""
    node = enterprise.nodes[name]
    with node.store.write() as tx:
        forget_old_answers(work_of(enterprise, node, tx))


def recorded(enterprise: Enterprise, sender: str, machine: str) -> list[Parcel]:
    return [
        p
        for p in enterprise.sent
        if (p.sender, p.machine) == (sender, machine) and isinstance(p.message, ChangeRequest)
    ]


def created_and_deleted(enterprise: Enterprise, by: str = "psc") -> Parcel:
    """The request by which a queue was created that is deleted now."""
    node = enterprise.nodes[by]
    enterprise.create_queue(node, "pec\\q")
    enterprise.run(5)
    enterprise.delete(enterprise.nodes["pec"], QUEUE, "pec\\q")
    enterprise.run(5)
    return recorded(enterprise, "psc", "pec")[0]


def decided(node: Node) -> int:
    return sum(isinstance(effect, RequestDecided) for effect in node.told)


def answers(enterprise: Enterprise, to: str) -> list[int]:
    return [m.result for m in enterprise.messages(ChangeReply, to=to)]


@pytest.mark.req("SEC-4-01")
@pytest.mark.parametrize("days", [0.01, 1.5, 40 * 365])
def test_a_request_that_is_sent_again_is_not_executed_again(
    enterprise: Enterprise, days: float
) -> None:
    pec = enterprise.nodes["pec"]
    request = created_and_deleted(enterprise)
    enterprise.now += days * DAY_S
    forget(enterprise, "pec")
    enterprise.sent.clear()
    before = decided(pec)
    enterprise.deliver(request)
    enterprise.run(5)
    assert decided(pec) == before
    assert pec.find(QUEUE, "pec\\q") is None
    known = days < 1
    assert answers(enterprise, "psc")[0] == (HResult.MQ_OK if known else NO_RESPONSE)
    assert ("too old" in "".join(pec.refusals())) is not known


@pytest.mark.req("SEC-4-01")
def test_forgetting_for_want_of_room_lets_nothing_in_again() -> None:
    made = Enterprise(ReplicationSettings(max_replies=4))
    pec = made.add_pec("pec", "A")
    psc = made.add_psc("psc", "B")
    made.run(70)
    for n in range(8):
        made.create_queue(psc, f"pec\\q{n}")
        made.run(1)
    forget(made, "pec")
    requests = recorded(made, "psc", "pec")
    for n in range(8):
        made.delete(pec, QUEUE, f"pec\\q{n}")
    for request in requests:
        made.deliver(request)
    assert [n for n in range(8) if pec.find(QUEUE, f"pec\\q{n}")] == []


@pytest.mark.req("SEC-4-01")
def test_requests_that_were_answered_out_of_order_are_all_forgotten_for_good(
    enterprise: Enterprise,
) -> None:
    """The answer that is forgotten last belongs to the older request; the horizon stays."""
    pec = enterprise.nodes["pec"]
    older = created_and_deleted(enterprise)
    newer = by_a_fast_clock(enterprise, older, 99)
    executed_and_undone(enterprise, newer)
    late = replace(newer, request_id=98, change=stamped(newer, before(newer)))
    executed_and_undone(enterprise, late)
    enterprise.now += 2 * DAY_S
    forget(enterprise, "pec")
    for request in (newer, late):
        enterprise.inject("psc", "pec", request)
        assert pec.find(QUEUE, "pec\\q") is None
        assert "too old" in pec.refusals()[-1]


@pytest.mark.req("SEC-4-01")
def test_an_answer_that_is_forgotten_last_does_not_lower_the_horizon(
    enterprise: Enterprise,
) -> None:
    """The second request overtakes the first: the first one's answer is forgotten last."""
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    release = enterprise.lose(lambda p: isinstance(p.message, ChangeRequest))
    for name in ("first", "second"):
        enterprise.create_queue(psc, f"pec\\{name}")
    release()
    requests = recorded(enterprise, "psc", "pec")[:2]
    first, second = requests
    for request in (second, first):
        enterprise.deliver(request)
        enterprise.now += 1.0
    enterprise.run(5)
    for name in ("first", "second"):
        enterprise.delete(pec, QUEUE, f"pec\\{name}")
    enterprise.now += 2 * DAY_S
    forget(enterprise, "pec")
    before = decided(pec)
    for request in requests:
        enterprise.deliver(request)
    assert decided(pec) == before
    assert [pec.find(QUEUE, f"pec\\{name}") for name in ("first", "second")] == [None, None]


@pytest.mark.req("SEC-4-01")
def test_a_request_that_a_psc_passed_on_is_not_executed_again_by_another_way(
    enterprise: Enterprise,
) -> None:
    """A recorded request is executed neither when replayed to the authority nor to the PSC."""
    pec = enterprise.nodes["pec"]
    created_and_deleted(enterprise, by="bsc")
    [signed] = recorded(enterprise, "bsc", "psc")[:1]
    enterprise.now += 2 * DAY_S
    forget(enterprise, "pec")
    before = decided(pec)
    enterprise.deliver(replace(signed, machine="pec"))
    enterprise.deliver(signed)
    enterprise.run(30)
    assert decided(pec) == before
    assert pec.find(QUEUE, "pec\\q") is None
    assert len([r for r in pec.refusals() if "too old" in r]) >= 2


@pytest.mark.req("SEC-4-01")
def test_an_authority_from_a_backup_decides_nothing_of_before(enterprise: Enterprise) -> None:
    backup = enterprise.backup("pec")
    request = created_and_deleted(enterprise)
    enterprise.now += 10
    enterprise.restore("pec", backup, authority=True)
    enterprise.run(300)
    pec = enterprise.nodes["pec"]
    enterprise.deliver(request)
    assert pec.find(QUEUE, "pec\\q") is None
    assert "from before this server was the authority" in pec.refusals()[-1]
    local = enterprise.create_queue(enterprise.nodes["psc"], "pec\\new")
    enterprise.run(5)
    assert enterprise.nodes["psc"].answers()[local or 0] == HResult.MQ_OK


def by_a_fast_clock(enterprise: Enterprise, parcel: Parcel, number_: int) -> ChangeRequest:
    """The same request under another number, by a clock that is 200 seconds ahead."""
    assert isinstance(parcel.message, ChangeRequest)
    ahead = SequenceNumber(int((enterprise.at.unix + 200) * 1e6))
    change = stamped(parcel.message, ahead)
    return replace(parcel.message, request_id=number_, change=change)


def before(request: ChangeRequest) -> SequenceNumber:
    """A time that is a second earlier than the request's."""
    return SequenceNumber(request.change.seq.value - 1_000_000)


def executed_and_undone(enterprise: Enterprise, request: ChangeRequest) -> None:
    pec = enterprise.nodes["pec"]
    enterprise.inject("psc", "pec", request)
    assert pec.find(QUEUE, "pec\\q") is not None
    enterprise.delete(pec, QUEUE, "pec\\q")
    enterprise.run(5)


@pytest.mark.req("SEC-4-01")
def test_a_fast_clock_lets_nothing_in_again_after_a_restore(enterprise: Enterprise) -> None:
    """The backup has never heard of the requester, which may be as fast as clocks are at most."""
    backup = enterprise.backup("pec")
    fast = by_a_fast_clock(enterprise, created_and_deleted(enterprise), 99)
    executed_and_undone(enterprise, fast)
    enterprise.restore("pec", backup, authority=True)
    enterprise.run(130)
    pec = enterprise.nodes["pec"]
    enterprise.inject("psc", "pec", fast)
    assert pec.find(QUEUE, "pec\\q") is None
    assert "from before this server was the authority" in pec.refusals()[-1]


@pytest.mark.req("SEC-4-01")
def test_a_fast_clock_that_a_restored_authority_knows_costs_no_time(enterprise: Enterprise) -> None:
    made = created_and_deleted(enterprise)
    executed_and_undone(enterprise, by_a_fast_clock(enterprise, made, 99))
    backup = enterprise.backup("pec")
    fast = by_a_fast_clock(enterprise, made, 100)
    executed_and_undone(enterprise, fast)
    enterprise.restore("pec", backup, authority=True)
    enterprise.run(130)
    pec = enterprise.nodes["pec"]
    enterprise.inject("psc", "pec", fast)
    assert pec.find(QUEUE, "pec\\q") is None
    executed_and_undone(enterprise, by_a_fast_clock(enterprise, made, 101))


# --- who is not locked out ------------------------------------------------------------------------


def test_a_requester_that_was_built_anew_is_served(enterprise: Enterprise) -> None:
    created_and_deleted(enterprise)
    enterprise.now += 2 * DAY_S
    forget(enterprise, "pec")
    enterprise.restore("psc", MemoryStore())
    enterprise.run(300)
    psc = enterprise.nodes["psc"]
    local = enterprise.create_queue(psc, "pec\\again")
    enterprise.run(5)
    assert psc.answers()[local or 0] == HResult.MQ_OK


@pytest.mark.req("SEC-4-01")
def test_the_time_of_requests_rises_though_the_clock_goes_back(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    unix = enterprise.at.unix
    clocks = (unix, unix + 3600, unix, unix, unix + 7200)
    with psc.store.write() as tx:
        stamps = [next_stamp(work_of(enterprise, psc, tx, clock)).value for clock in clocks]
    ahead = int((unix + 3600) * 1e6)
    assert stamps[1:4] == [ahead, ahead + 1, ahead + 2]
    assert stamps == sorted(set(stamps))


def test_a_clock_that_was_out_of_all_proportion_is_forgotten(enterprise: Enterprise) -> None:
    """Nobody took requests of that time, and nobody would take later ones."""
    psc = enterprise.nodes["psc"]
    unix = enterprise.at.unix
    with psc.store.write() as tx:
        next_stamp(work_of(enterprise, psc, tx, unix + 20 * 365 * DAY_S))
        assert next_stamp(work_of(enterprise, psc, tx, unix)).value == int(unix * 1e6)


@pytest.mark.req("SEC-4-01")
def test_a_request_from_the_far_future_is_refused(enterprise: Enterprise) -> None:
    """It would make the authority refuse all that the requester sends when its clock is right."""
    pec = enterprise.nodes["pec"]
    request = created_and_deleted(enterprise).message
    assert isinstance(request, ChangeRequest)
    ahead = SequenceNumber(int((enterprise.at.unix + 2 * DAY_S) * 1e6))
    forged = replace(request, change=stamped(request, ahead))
    enterprise.inject("psc", "pec", forged)
    assert "the clock of psc is 2 days ahead of ours" in pec.refusals()
    assert pec.find(QUEUE, "pec\\q") is None


# --- peers by the letter of the text --------------------------------------------------------------


def stamped(request: ChangeRequest, seq: SequenceNumber) -> DirectoryChange:
    change = request.change
    return DirectoryChange(
        change.command,
        change.path,
        change.guid,
        change.partition,
        change.previous_seq,
        seq,
        change.purged_seq,
        change.properties,
    )


def literal(request: Message, requester: str, number_: int = 7) -> ChangeRequest:
    """The same without a time, as the text has it."""
    assert isinstance(request, ChangeRequest)
    change = stamped(request, SequenceNumber.MIN)
    return replace(request, change=change, requester=requester, psc=None, request_id=number_)


def test_a_requester_without_time_is_served_and_remembered_for_a_day(
    enterprise: Enterprise,
) -> None:
    """As before, the same request number counts as a new request after a day."""
    pec = enterprise.nodes["pec"]
    request = literal(created_and_deleted(enterprise).message, "far")
    enterprise.inject("far", "pec", request)
    assert pec.find(QUEUE, "pec\\q") is not None
    enterprise.delete(pec, QUEUE, "pec\\q")
    enterprise.inject("far", "pec", request)
    assert pec.find(QUEUE, "pec\\q") is None
    enterprise.now += 2 * DAY_S
    enterprise.inject("far", "pec", request)
    assert pec.find(QUEUE, "pec\\q") is not None
    enterprise.now += 2 * DAY_S
    forget(enterprise, "pec")
    enterprise.delete(pec, QUEUE, "pec\\q")
    enterprise.inject("far", "pec", request)
    assert pec.find(QUEUE, "pec\\q") is not None


@pytest.mark.req("SEC-4-01")
def test_who_sends_the_time_always_does(enterprise: Enterprise) -> None:
    """So what it signed before it could is worth nothing."""
    pec = enterprise.nodes["pec"]
    request = literal(created_and_deleted(enterprise).message, "psc")
    enterprise.inject("psc", "pec", request)
    assert pec.find(QUEUE, "pec\\q") is None
    assert "without the time that psc sends" in pec.refusals()[-1]


# --- in whose name --------------------------------------------------------------------------------


@pytest.mark.req("SEC-4-01")
@pytest.mark.parametrize("requester", ["bsc", "pec", "nobody"])
def test_a_psc_speaks_for_its_own_backups_alone(enterprise: Enterprise, requester: str) -> None:
    """Else it could use up the times of others, and answer for them."""
    pec = enterprise.nodes["pec"]
    request = created_and_deleted(enterprise).message
    assert isinstance(request, ChangeRequest)
    forged = replace(request, requester=requester, psc="far", request_id=number(9).value)
    enterprise.inject("far", "pec", forged)
    assert pec.find(QUEUE, "pec\\q") is None
    assert f"far asks in the name of {requester}" in pec.refusals()[-1]


# --- everything else ------------------------------------------------------------------------------


@pytest.mark.req("SEC-4-01", "SEC-3-04")
@pytest.mark.untraced
def test_everything_that_was_ever_sent_is_sent_again_and_nothing_changes() -> None:
    """To whom it was meant for and to everybody else, in the order of then and backwards."""
    made = Enterprise(ReplicationSettings(gather_s=0.0, purge_buffer=4, purge_step=2))
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_psc("far", "C")
    made.add_bsc("bsc", "psc")
    for n in range(6):
        for name in ("psc", "bsc"):
            made.create_queue(made.nodes[name], f"pec\\{name}{n}")
            made.create_queue(made.nodes[name], f"psc\\{name}{n}")
        made.run(70)
        made.delete(made.nodes["pec"], QUEUE, f"pec\\psc{n}")
        made.delete(made.nodes["psc"], QUEUE, f"psc\\bsc{n}")
    made.run(3 * DAY_S)
    for name in made.nodes:
        forget(made, name)
    made.check_converged()
    before = {(n.name, s): n.holds(s) for n in made.nodes.values() for s in (SITE_A, SITE_B)}
    numbers = {key: made.nodes[key[0]].last(key[1]) for key in before}
    kinds = {type(parcel.message) for parcel in made.sent}
    assert len(kinds) >= 6, kinds
    everything = list(made.sent)
    for parcel in (*everything, *reversed(everything)):
        for machine in made.nodes:
            if machine != parcel.sender:
                made.deliver(replace(parcel, machine=machine, authenticated=True))
    made.run(DAY_S)
    made.check_converged()
    assert {key: made.nodes[key[0]].holds(key[1]) for key in before} == before
    assert {key: made.nodes[key[0]].last(key[1]) for key in before} == numbers
