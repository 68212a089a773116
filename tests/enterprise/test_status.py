"""The status that answers amount to: one definition of "behind", one wording of each state."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mqis.enterprise.collected_status import Since, compare
from mqis.enterprise.polling import Polled
from mqis.enterprise.roster import Roster, RosterEntry
from mqis.enterprise.states import ProcessState, Supervised
from mqis.enterprise.status import EnterpriseStatus, Lag, MemberState
from mqis.server.monitoring.status import NeighbourStatus, PartitionStatus, ServerStatus

P = "00000000-0000-0000-0000-000000000000"
MONITOR = "http://127.0.0.1:1"


def polled(
    name: str,
    last: int | None,
    *,
    authority: bool = False,
    state: str = "normal",
    supervised: ProcessState | None = None,
) -> Polled:
    known = None if supervised is None else Supervised(supervised, 50.0, "why")
    entry = RosterEntry(name, monitor=MONITOR, supervised=known)
    if last is None:
        return Polled(entry, None, False, f"does not answer at {MONITOR}")
    numbers = f"{last:016x}", f"{0:016x}", f"{0:016x}"
    partition = PartitionStatus(P, "enterprise", "a", authority, *numbers, state, 0)
    peers = (NeighbourStatus("z", True, 3, {}),)
    told = ServerStatus(name, "psc", "A", "E", 1, 1.0, (partition,), peers, {})
    return Polled(entry, told, supervised is None)


def status(*servers: Polled, since: Since | None = None, now: float = 100.0) -> EnterpriseStatus:
    return compare(Roster("", None, ()), servers, {} if since is None else since, now)


A = polled("a", 20, authority=True)


def test_a_replica_is_measured_by_its_authority() -> None:
    found = status(
        A,
        polled("b", 20),
        polled("c", 17),
        polled("d", 21),
        polled("e", 20, state="sync0"),
        polled("f", None),
    )
    cells = found.rows[0].cells
    assert [(cell.lag, cell.text) for cell in cells] == [
        (Lag.AUTHORITY, "authority"),
        (Lag.IN_STEP, "in step"),
        (Lag.BEHIND, "3 behind"),
        (Lag.AHEAD, "1 ahead"),
        (Lag.RESYNC, "in step, full resync"),
        (Lag.UNKNOWN, "unknown"),
    ]
    assert found.summary == (
        "2 of 6 servers are fine; f does not answer; 2 servers have other numbers than their "
        "authorities: c, d; enterprise: full resync"
    )
    assert not found.converged
    assert found.enterprise == "E"


@pytest.mark.parametrize(
    ("state", "text", "converged"),
    [
        ("normal", "in step", True),
        ("sync", "in step, changes requested", True),
        ("restoring", "in step, recovering", False),
        ("start_sync0", "in step, full resync requested", False),
        ("sync0", "in step, full resync", False),
        ("complete_sync0", "in step, full resync ending", False),
        ("of_a_newer_server", "in step, of a newer server", False),
    ],
)
def test_each_wait_has_its_words(state: str, text: str, converged: bool) -> None:
    found = status(A, polled("b", 20, state=state))
    assert found.rows[0].cells[1].text == text
    assert found.converged is converged


def test_a_wait_is_told_beside_the_numbers() -> None:
    found = status(
        polled("a", 20, authority=True, state="restoring"), polled("b", 2, state="sync0")
    )
    assert [cell.text for cell in found.rows[0].cells] == [
        "authority, recovering",
        "18 behind, full resync",
    ]
    assert not found.converged


def test_without_the_authority_the_farthest_gives_a_lower_bound() -> None:
    found = status(polled("b", 20), polled("c", 17))
    first, second = (cell.replica for cell in found.rows[0].cells if cell.replica is not None)
    assert (first.lag, first.behind, first.text) == (Lag.UNKNOWN, None, "authority not in sight")
    assert (second.lag, second.behind, second.text) == (Lag.BEHIND, 3, "at least 3 behind")
    assert found.summary == "c: 3 changes behind; no authority is in sight for enterprise"


def test_two_authorities_are_compared_with_the_farther_one() -> None:
    found = status(A, polled("b", 18, authority=True))
    assert [cell.text for cell in found.rows[0].cells] == ["authority", "2 behind"]


def test_it_is_told_since_when_a_replica_is_behind() -> None:
    since: Since = {}

    def text(last: int, now: float) -> str:
        return status(A, polled("b", last), since=since, now=now).rows[0].cells[1].text

    assert text(19, 100.0) == "1 behind"
    assert text(19, 107.0) == "1 behind for 7 s"
    assert text(18, 340.0) == "2 behind for 4 min"
    assert text(20, 350.0) == "in step"
    assert text(19, 360.0) == "1 behind", "it caught up in between"


def test_a_server_without_a_replica_is_named() -> None:
    other = polled("b", 20)
    assert other.status is not None
    empty = Polled(other.entry, ServerStatus("b", "", "", "", 1, 1.0, (), (), {}), True)
    found = status(A, empty)
    assert found.rows[0].cells[1].text == "no replica"
    assert found.summary == "b has no replica of enterprise"
    assert status(empty).summary == "No server reports a partition"


def test_a_partition_that_few_servers_have_is_told_once() -> None:
    """A command deleted its site: each of the others was said to lack a replica."""
    odd = polled("f", 20)
    assert odd.status is not None
    own = replace(odd.status.partitions[0], id="another", name="Lisbon", authority=True)
    alone = replace(odd, status=replace(odd.status, partitions=(*odd.status.partitions, own)))
    found = status(A, *(polled(name, 20) for name in "bcde"), alone)
    assert found.summary == "only f has Lisbon"
    assert "then 'mqis up --remove' its servers" in found.verdict.findings[0].todo


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (ProcessState.WAITING, "waiting"),
        (ProcessState.STARTING, "starting"),
        (ProcessState.PAUSING, "pausing"),
        (ProcessState.STOPPING, "stopping"),
        (ProcessState.STOPPED, "stopped"),
        (ProcessState.FAILED, "failed"),
    ],
)
def test_the_supervisor_has_the_word_of_a_silent_server(state: ProcessState, text: str) -> None:
    found = status(A, polled("b", 20, supervised=state), polled("c", 20, supervised=state))
    server = found.servers[1]
    assert (server.state.text, server.since, server.reason, server.up) == (text, 50.0, "why", False)
    assert found.summary == f"b, c are {text}"
    assert found.rows[0].cells[1].text == "in step", "its store was read"


def test_servers_that_answer_or_need_not() -> None:
    def state(entry: RosterEntry, told: ServerStatus | None, problem: str = "") -> MemberState:
        return status(Polled(entry, told, False, problem)).servers[0].state

    told = A.status
    by_store = RosterEntry("x", store="x.db")
    assert state(by_store, told) is MemberState.STORED
    assert state(by_store, None, "not a store") is MemberState.UNREADABLE
    assert state(RosterEntry("x"), None) is MemberState.UNASKED
    assert state(RosterEntry("x", monitor=MONITOR), told, "refused") is MemberState.DOWN
    assert status(A).servers[0].state is MemberState.READY
    odd = status(A, Polled(by_store, None, False, "not a store"))
    assert odd.summary == "x: store cannot be read"
    assert status(A, Polled(RosterEntry("x"), None, False)).converged
    assert status(polled("a", None), polled("b", None)).findings[0] == "a, b do not answer"


def test_programs_find_the_keys_of_earlier_versions() -> None:
    shown = json.loads(json.dumps(status(A, polled("b", None)).to_json()))
    keys = "enterprise taken supervisor servers converged verdict"
    assert shown.keys() == set(keys.split())
    assert shown["verdict"]["grade"] == "red"
    up, down = shown["servers"]
    member = "name role site address pid restarts up state since reason partitions queued "
    member += "connected version memory_bytes disk_free lost_files"
    assert up.keys() == down.keys() == {*member.split(), "neighbours", "counters", "problems"}
    assert (up["up"], up["state"], up["queued"], up["connected"]) == (True, "ready", 3, 1)
    assert (down["up"], down["state"], down["partitions"]) == (False, "down", [])
    replica = {"id", "name", "authority", "state", "last_seq", "purged_seq", "behind", "behind_s"}
    assert replica <= up["partitions"][0].keys()
