"""The verdict about health: grades, contents, jumps, and what a store at rest cannot prove."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mqis.enterprise.collected_status import compare
from mqis.enterprise.polling import Polled
from mqis.enterprise.roster import Roster, RosterEntry
from mqis.enterprise.status import EnterpriseStatus, Lag
from mqis.findings import Gravity
from mqis.server.monitoring.fetching import fetch
from mqis.server.monitoring.replicas import Distance
from mqis.server.monitoring.status import PartitionStatus, ServerStatus
from mqis.server.monitoring.verdict import FindingKind
from tests.enterprise.monitors import closing_monitors
from tests.enterprise.test_status import polled

SITE = "473b5461-f218-4d03-9e35-6f2a93e465f0"
ONE, TWO = f"{1:064x}", f"{2:064x}"
JUMP = 1 << 20


def copy(name: str, **values: object) -> Polled:
    """One partition at one server that answers."""
    made = polled(name, 20, authority=name == "a")
    assert made.status is not None
    partition = replace(made.status.partitions[0], id=SITE, name="Delft", digest=ONE)
    partition = replace(partition, **values)  # type: ignore[arg-type]
    return replace(made, status=replace(made.status, partitions=(partition,)))


def at_rest(name: str, **values: object) -> Polled:
    """The same, read from a store."""
    return replace(copy(name, **values), entry=RosterEntry(name, store="x.db"), answered=False)


def status(*servers: Polled) -> EnterpriseStatus:
    return compare(Roster("", None, ()), servers, {}, 100.0)


def number(value: int) -> str:
    return f"{value:016x}"


# --- contents -------------------------------------------------------------------------------------


def test_equal_means_number_and_contents() -> None:
    found = status(copy("a"), copy("b"))
    assert found.rows[0].cells[1].text == "equal"
    assert found.summary == "Every replica is equal to its authority"
    assert found.verdict.gravity is Gravity.OK


def test_other_contents_under_the_same_number_are_an_alarm() -> None:
    found = status(copy("a"), copy("b", digest=TWO), copy("c"))
    (finding,) = found.verdict.findings
    assert (finding.gravity, finding.check, finding.names) == (
        Gravity.ERROR,
        FindingKind.CONTENTS,
        ("b",),
    )
    assert finding.what == "b: Delft has the same last number as at a, but different contents"
    assert "'mqis diff --replicated server:b server:a'" in finding.todo
    assert [cell.lag for cell in found.rows[0].cells] == [Lag.AUTHORITY, Lag.DIFFERS, Lag.IN_STEP]
    assert found.rows[0].cells[1].text == "contents differ"
    assert not found.converged


def test_under_other_numbers_contents_are_not_compared() -> None:
    found = status(copy("a"), copy("b", digest=TWO, last_seq=number(19)))
    assert found.summary == "b: 1 change behind"
    assert found.verdict.gravity is Gravity.WARNING


def test_a_server_of_an_earlier_version_is_in_step() -> None:
    found = status(copy("a"), copy("b", digest=""))
    assert found.rows[0].cells[1].text == "in step"
    assert found.summary == "Every replica is in step with its authority"


def test_queues_of_the_site_alone() -> None:
    """Another site's copy may differ because of them, a copy in the site may not."""
    first = copy("a", site_only=1, site_digest=ONE, own_site=True)
    away = status(first, copy("b", digest=TWO))
    assert away.summary == "b: Delft may differ from the one at a"
    assert away.verdict.gravity is Gravity.WARNING
    within = status(first, copy("b", own_site=True, site_digest=TWO))
    assert within.verdict.gravity is Gravity.ERROR
    assert status(first, copy("b", site_digest=TWO)).converged


def test_without_an_authority_either_copy_may_be_wrong() -> None:
    found = status(copy("b", own_site=True), copy("c", digest=TWO, own_site=True))
    red = [f for f in found.verdict.findings if f.gravity is Gravity.ERROR]
    assert [f.names for f in red] == [("b", "c")]


def test_two_authorities_with_other_contents() -> None:
    found = status(copy("a"), copy("b", authority=True, digest=TWO))
    assert [f.names for f in found.verdict.findings] == [("a", "b")]


# --- stores at rest -------------------------------------------------------------------------------


def test_one_store_at_rest_proves_nothing() -> None:
    found = status(at_rest("a"))
    assert found.summary == "a: a store at rest, compared with no other copy"
    assert found.verdict.gravity is Gravity.WARNING


def test_two_stores_at_rest_are_compared() -> None:
    assert status(at_rest("a"), at_rest("b")).verdict.gravity is Gravity.OK
    found = status(at_rest("a"), at_rest("b", digest=TWO))
    assert found.verdict.gravity is Gravity.ERROR
    assert "different contents" in found.summary


# --- jumps ----------------------------------------------------------------------------------------


def test_a_jump_is_no_change() -> None:
    """A promoted authority skipped 2^20 numbers and then made three changes."""
    last = 20 + JUMP + 3
    first = copy("a", last_seq=number(last), jumps=((number(20), number(20 + JUMP)),))
    found = status(first, copy("b"))
    assert found.summary == "b: 3 changes and a jump of 1,048,576 numbers behind"
    replica = found.servers[1].replicas[0]
    assert (replica.behind, replica.skipped, replica.jumps) == (JUMP + 3, JUMP, 1)
    assert replica.text == "3 changes and a jump of 1,048,576 numbers behind"


@pytest.mark.parametrize(
    ("low", "high", "jumps", "text"),
    [
        (5, 8, [], "3 changes"),
        (5, 6, [(1, 4)], "1 change"),
        (5, 5 + JUMP + 2, [], "2 changes and a jump of 1,048,576 numbers"),
        (5, 100, [(5, 100)], "a jump of 95 numbers"),
        (5, 400, [(10, 100), (200, 300)], "205 changes and 2 jumps of 190 numbers"),
        (50, 400, [(10, 100)], "300 changes and a jump of 50 numbers"),
    ],
)
def test_distances(low: int, high: int, jumps: list[tuple[int, int]], text: str) -> None:
    assert Distance.between(low, high, jumps).text == text
    assert Distance.between(low, high, jumps).numbers == high - low


# --- servers --------------------------------------------------------------------------------------


def test_the_problems_of_a_server_are_everybodys() -> None:
    """A journal that is not written is in /health; so it is in every other view."""
    sick = copy("b")
    assert sick.status is not None
    told = replace(sick.status, problems=("the journal is not written; the log says why",))
    found = status(copy("a"), replace(sick, status=told))
    assert found.summary == "b: the journal is not written; the log says why"
    assert found.verdict.gravity is Gravity.ERROR


def test_a_server_that_does_not_serve_yet_is_starting() -> None:
    new = copy("b")
    assert new.status is not None
    found = status(copy("a"), replace(new, status=replace(new.status, serving=False)))
    assert found.summary == "b is starting"
    assert found.verdict.gravity is Gravity.WARNING


def test_the_gravest_comes_first() -> None:
    found = status(copy("a"), copy("b", last_seq=number(19)), polled("c", None))
    assert [f.gravity for f in found.verdict.findings] == [Gravity.ERROR, Gravity.WARNING]


def test_the_role_of_the_directory_wins() -> None:
    """The run directory has the old role until 'mqis up' runs again."""
    made = copy("a")
    told = replace(made, entry=replace(made.entry, role="bsc"))
    assert status(told).servers[0].role == "psc"


def test_a_lost_server_that_was_replaced() -> None:
    """The others know a new authority; the lost one's store still names itself."""
    lost = polled("z", None)
    found = status(copy("a"), replace(lost, entry=replace(lost.entry, role="psc")))
    assert found.servers[1].role == "former psc"
    owner = polled("a", None)
    found = status(copy("b"), replace(owner, entry=replace(owner.entry, role="psc")))
    assert found.servers[1].role == "psc", "nobody took its place"


# --- what a hostile server answers ----------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        {"digest": "x"},
        {"digest": "-" + "1" * 63},
        {"digest": 5},
        {"digest": "z" * 64},
        {"site_digest": "1" * 65},
        {"site_only": -1},
        {"site_only": "many"},
        {"site_only": 1 << 64},
        {"jumps": [["1", "2"]]},
        {"jumps": [["0" * 16]]},
        {"jumps": 7},
    ],
)
def test_a_malformed_status_is_no_status(values: dict[str, object]) -> None:
    one = number(1)
    partition = PartitionStatus(SITE, "Delft", "a", True, one, one, one, "normal", 0)
    answer = ServerStatus("a", "psc", "A", "E", 1, 1.0, (partition,), (), {}).to_json()
    content = json.loads(json.dumps(answer))
    with closing_monitors() as monitors:
        port = monitors.add(content)
        assert isinstance(fetch(f"http://127.0.0.1:{port}"), ServerStatus)
        content["partitions"][0].update(values)
        assert str(fetch(f"http://127.0.0.1:{port}")).endswith("as a server does")
