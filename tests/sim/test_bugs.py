"""Bugs that are put in are seen, each in a small scenario; without the bug no rule breaks."""

from __future__ import annotations

from random import Random

import pytest

from mqis.protocol.directory.objects import Scope
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.sim.directed import directed
from mqis.sim.mutations import MUTATIONS
from mqis.sim.run_trace import Violation
from mqis.sim.runner import Options, run, run_seed
from mqis.sim.scenario import Scenario, enterprise
from mqis.sim.steps import (
    Backup,
    Change,
    Crash,
    CrashPoint,
    Cut,
    FailCommit,
    Isolate,
    Operate,
    Restore,
    Retire,
    Step,
)
from mqis.sim.workload import roamer
from mqis.wire.mqds.propid import PropId
from tests.sim.mirror.mutations import BUGS
from tests.sim.test_regressions import in_order, updating, work
from tools.simulation_doc import DOCUMENT, known

#: PEC, PSC1, PSC2, BSC1a
SERVERS = enterprise((0, 1, 0))
SMALL = ReplicationSettings(max_changes=2, purge_buffer=2, purge_step=2, ack_step=2)


def broken(
    *steps: Step, mutation: str | None = None, sqlite: bool = False, streams: bool = False
) -> Violation | None:
    ordered = in_order(*steps)
    scenario = Scenario(
        3,
        SERVERS,
        settings=SMALL,
        steps=ordered,
        fault_s=ordered[-1].at + 60.0,
        sqlite=sqlite,
        streams=streams,
    )
    return run(scenario, Options(mutation=mutation)).violation


def taken_name() -> list[Step]:
    """A machine moves to another site while PSC2 still has the old one under its name."""
    salt = next(salt for salt in range(100) if roamer(Random(salt)) == "roamer0")
    return [
        Operate(10.0, 0, Change.RECREATE_MACHINE, salt),
        Cut(60.0, 0, 2, True, 3000.0),
        Operate(65.0, 0, Change.RECREATE_MACHINE, salt),
        Operate(80.0, 1, Change.RECREATE_MACHINE, salt),
        *work(90.0, 1, 8, Change.CREATE_MACHINE),
        Operate(2900.0, 1, Change.UPDATE_MACHINE, 5),
    ]


def unanswered() -> list[Step]:
    """PSC1 asks the PEC for changes, and the first answers do not arrive."""
    created = Operate(5.0, 0, Change.CREATE_NETWORK, 1)
    return [created, *work(20.0, 1, 3, Change.UPDATE_NETWORK), Cut(19.0, 0, 1, True, 7.0)]


def purged(restored: int = 2) -> list[Step]:
    """A server loses deletions and comes back when their tombstones are gone."""
    created = work(5.0, 0, 8, Change.CREATE_USER)
    deleted = work(700.0, 0, 6, Change.DELETE_USER)
    return [
        *created,
        Backup(20.0, restored),
        *deleted,
        *work(800.0, 0, 9, Change.CREATE_NETWORK, Change.UPDATE_NETWORK),
        # Replicas hear at the next heartbeat what the authority has purged.
        *work(2800.0, 0, 9, Change.CREATE_NETWORK, Change.UPDATE_NETWORK),
        Restore(2900.0, restored, 5.0),
    ]


def missed() -> list[Step]:
    """The messages of the PEC to PSC2 expire; later ones arrive."""
    kinds = Change.CREATE_NETWORK, Change.UPDATE_NETWORK
    return [Cut(6.0, 0, 2, True, 1500.0), *work(10.0, 0, 8, *kinds), *work(1490.0, 0, 8, *kinds)]


def hidden() -> list[Step]:
    """A queue that only its site knows, and another site that asks for all changes."""
    inside = updating((PropId.Q_SCOPE, Scope.SITE))
    return [
        Operate(5.0, 0, Change.CREATE_QUEUE, updating((PropId.Q_LABEL, None))),
        Backup(6.0, 2),
        Operate(20.0, 0, Change.UPDATE_QUEUE, inside),
        Restore(30.0, 2, 5.0),
    ]


def cleared() -> list[Step]:
    return [Operate(5.0 + n, 0, Change.UPDATE_DESCRIPTOR, n % 6) for n in range(24)]


def refused() -> list[Step]:
    """Commits fail at PSC1 and BSC1a while they forward changes."""
    return [
        *work(5.0, 3, 12, Change.CREATE_NETWORK),
        *(FailCommit(5.01 + n, 3) for n in range(12)),
    ]


CASES: dict[str, list[Step]] = {
    "B03": unanswered(),
    "B04": [Retire(20.0, 2)],
    "B06": purged(),
    "B07": cleared(),
    "B08": purged(restored=0),
    "B11": hidden(),
    "B12": refused(),
    "B13": taken_name(),
    "B15": taken_name(),
    "B16": [*work(5.0, 0, 6, Change.CREATE_QUEUE), Isolate(20.0, 2, 900.0),
            *work(30.0, 0, 6, Change.DELETE_QUEUE), *work(60.0, 0, 9, Change.CREATE_QUEUE)],
    "B17": [Isolate(5.0, 2, 1500.0), *work(10.0, 0, 5)],
    "B18": purged(),
    "B19": [Backup(5.0, 0), *work(10.0, 0, 5), Isolate(9.0, 0, 300.0), Restore(30.0, 0, 5.0),
            *work(400.0, 0, 5)],
    "B20": missed(),
    "B22": purged(),
    "B23": work(5.0, 3, 8, Change.DELETE_SITE, Change.CREATE_LINK, Change.UPDATE_LINK),
    "B24": work(5.0, 3, 4, Change.CREATE_NETWORK),
    "B26": [Backup(5.0, 0), *work(10.0, 0, 5), Restore(30.0, 0, 5.0)],
    "B27": [*taken_name(), Crash(2000.0, 2, CrashPoint.BEFORE_COMMIT, 5.0)],
    "B02": [*work(5.0, 0, 3, Change.CREATE_QUEUE), *work(20.0, 0, 8, Change.UPDATE_QUEUE)],
    "B29": taken_name(),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_bug_is_seen(name: str) -> None:
    assert broken(*CASES[name]) is None
    assert broken(*CASES[name], mutation=name) is not None, MUTATIONS[name][0]


def test_a_bug_of_databases_is_seen_where_a_server_has_one() -> None:
    steps = purged()
    assert broken(*steps, sqlite=True) is None
    assert broken(*steps, mutation="B30", sqlite=True) is not None
    assert broken(*steps, mutation="B30") is None


def test_a_bug_of_queue_managers_is_seen_over_connections() -> None:
    steps = [Cut(4.0, 0, 1, False, 60.0), *work(5.0, 0, 9)]
    assert broken(*steps, streams=True) is None
    found = broken(*steps, mutation="B28", streams=True)
    assert found is not None
    assert found.rule == "order of delivery"


def test_the_document_lists_every_mutation() -> None:
    """``tools.simulation_doc`` writes the table, and measures by name what is new in it."""
    listed = known(DOCUMENT.read_text("utf-8"))
    assert list(listed) == [*MUTATIONS, *BUGS]
    assert [name for name, count in listed.items() if count.tried == 0] == []


@pytest.mark.parametrize("name", ["B25", "B27", "B31", "B32", "B33", "B34", "S08", "S09"])
def test_a_directed_seed_finds_what_random_ones_do_not(name: str) -> None:
    """The seed that the document names finds it, and breaks the rule that it names."""
    count = known(DOCUMENT.read_text("utf-8"))[name]
    assert count.seeds is not None
    seed = count.seeds - 1
    assert directed(seed) is not None
    assert run_seed(seed).violation is None
    found = run_seed(seed, Options(mutation=name)).violation
    assert found is not None
    assert found.rule == count.rule


def test_most_seeds_are_random() -> None:
    assert [seed for seed in range(30) if directed(seed) is not None] == [2, 7, 12, 17, 22, 27]
