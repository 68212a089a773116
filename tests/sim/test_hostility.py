"""Somebody hostile in the simulation: rules hold, and without a protection they visibly do not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mqis.protocol.replication.settings import ReplicationSettings
from mqis.sim.mutations import MUTATIONS
from mqis.sim.runner import Options, RunResult, run
from mqis.sim.scenario import Scenario, ScenarioServer, enterprise
from mqis.sim.steps import (
    OVERREACHES,
    Backup,
    Change,
    Crash,
    CrashPoint,
    Cut,
    Falsehood,
    Lie,
    Operate,
    Restore,
    Step,
    Stranger,
    Trick,
)

#: PEC, PSC1, PSC2, BSC0a, BSC1a
SERVERS = enterprise((1, 1, 0))
LIAR = 4
#: Answers are forgotten and tombstones purged within a run.
SETTINGS = ReplicationSettings(
    reply_memory_s=60.0, forget_step=1, purge_buffer=2, purge_step=2, ack_step=4, max_changes=5
)
LASTS_S = 1200.0
_KINDS = (
    Change.CREATE_QUEUE,
    Change.CREATE_QUEUE,
    Change.DELETE_QUEUE,
    Change.UPDATE_QUEUE,
    Change.CREATE_USER,
    Change.CREATE_MACHINE,
)


def work(random: Random, count: int = 60) -> list[Step]:
    """Clients everywhere, most of them at servers that have to forward what they want."""
    return [
        Operate(
            random.uniform(0, LASTS_S),
            random.choice((0, 1, 2, 3, 3, 4, 4)),
            random.choice(_KINDS),
            random.getrandbits(32),
        )
        for _ in range(count)
    ]


def lies(random: Random, *falsehoods: Falsehood, count: int = 30) -> list[Lie]:
    moments = range(count if falsehoods else 0)
    return [
        Lie(random.uniform(0, LASTS_S), LIAR, random.choice(falsehoods), random.getrandbits(32))
        for _ in moments
    ]


def tricks(random: Random, *kinds: Trick, count: int = 30) -> list[Stranger]:
    return [
        Stranger(random.uniform(0, LASTS_S), random.choice(kinds), random.getrandbits(32))
        for _ in range(count)
    ]


def attacked(
    seed: int,
    *hostile: Step,
    servers: tuple[ScenarioServer, ...] = SERVERS,
    settings: ReplicationSettings = SETTINGS,
    mutation: str | None = None,
    skew_s: float = 0.0,
    streams: bool = False,
) -> RunResult:
    steps = sorted((*work(Random(seed)), *hostile), key=lambda step: step.at)
    scenario = Scenario(
        seed,
        servers,
        settings=settings,
        steps=tuple(steps),
        fault_s=LASTS_S,
        signed=True,
        duplicate_s=60.0,
        streams=streams,
        skew_s=skew_s,
    )
    return run(scenario, Options(mutation=mutation))


#: What breaks a rule if a protection is gone.
ATTACKS: dict[str, tuple[Trick, ...] | tuple[Falsehood, ...]] = {
    "S01": (Trick.REWRITE, Trick.UNSIGN),
    "S02": (Trick.REPLAY, Trick.REORDER),
    "S03": (Trick.REPLAY, Trick.REORDER),
    "S04": (Falsehood.PURGE,),
    "S05": (Falsehood.IMPERSONATION,),
    "S06": (Falsehood.ROLE, Falsehood.KEY, Falsehood.SITE, Falsehood.DESCRIPTOR),
    "S07": (Falsehood.SERVER, Falsehood.COLLISION, Falsehood.MISPLACED),
}


def hostile_steps(name: str) -> list[Lie] | list[Stranger]:
    random, kinds = Random(name), ATTACKS[name]
    false = [kind for kind in kinds if isinstance(kind, Falsehood)]
    return lies(random, *false) or tricks(random, *(k for k in kinds if isinstance(k, Trick)))


@pytest.mark.req("SEC-11-01")
@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_a_missing_protection_is_seen(name: str) -> None:
    steps = hostile_steps(name)
    assert any(attacked(seed, *steps, mutation=name).violation is not None for seed in range(1, 5))


@pytest.mark.req("SEC-11-01")
def test_an_acknowledgement_in_another_name_would_purge_too_early() -> None:
    """The PSC is cut off, and a backup controller says that it has everything."""
    random = Random(8)
    cut = Cut(60.0, 0, 1, False, LASTS_S)
    false = [replace(lie, server=2) for lie in lies(random, Falsehood.ACKNOWLEDGEMENT, count=60)]
    sites = enterprise((1, 0))
    assert attacked(1, cut, *false, servers=sites).violation is None
    violation = attacked(1, cut, *false, servers=sites, mutation="S08").violation
    assert violation is not None
    assert violation.rule == "nothing purged that someone needs"


@pytest.mark.req("SEC-11-01")
def test_a_server_that_asks_for_all_queues_would_get_those_of_another_site() -> None:
    """BSC1a asks every server; one queue in twenty is known in its site alone."""
    queues = [Operate(5.0 * n, n % 3, Change.CREATE_QUEUES, n) for n in range(16)]
    steps: list[Step] = [*queues, *lies(Random(9), Falsehood.SYNC_REQUEST)]
    whole = replace(SETTINGS, max_changes=1000)  # replies are not cut into parts
    assert attacked(1, *steps, settings=whole).violation is None
    violation = attacked(1, *steps, settings=whole, mutation="S09").violation
    assert violation is not None
    assert violation.rule == "site-only queues stay in their site"


def test_every_protection_has_its_attack() -> None:
    assert {name for name in MUTATIONS if name.startswith("S")} == {*ATTACKS, "S08", "S09"}


@pytest.mark.req("SEC-11-01")
@pytest.mark.parametrize("streams", [False, True])
def test_a_stranger_who_replays_reorders_and_alters_messages_breaks_no_rule(streams: bool) -> None:
    random = Random(1)
    result = attacked(11, *tricks(random, *Trick, count=120), streams=streams)
    assert result.violation is None
    assert all(result.counts[f"fault {trick}"] for trick in Trick)
    assert result.counts["refused: the signature is wrong"] > 0
    assert result.counts["refused: not signed"] > 0
    assert result.counts["hostile message delivered"] > 0


@pytest.mark.req("SEC-11-01")
@pytest.mark.parametrize("streams", [False, True])
def test_a_lying_backup_controller_breaks_no_rule(streams: bool) -> None:
    random = Random(2)
    told = [falsehood for falsehood in Falsehood if falsehood not in OVERREACHES]
    result = attacked(12, *lies(random, *told, count=120), streams=streams)
    assert result.violation is None
    assert all(result.counts[f"lie {falsehood}"] for falsehood in told)
    assert result.counts["refused"] > 50


def test_a_psc_does_not_reach_the_objects_of_others() -> None:
    """It gives numbers of its own partition to changes that name them."""
    told = [Lie(300.0 + 40 * n, 1, OVERREACHES[n % 2], n) for n in range(20)]
    result = attacked(14, *told)
    assert result.violation is None
    assert all(result.counts[f"lie {falsehood}"] for falsehood in OVERREACHES)
    for name in ("B09", "B14"):
        assert attacked(14, *told, mutation=name).violation is not None


@pytest.mark.req("SEC-4-01", "SEC-11-01")
@pytest.mark.parametrize("skew_s", [0.0, 300.0])
def test_a_request_from_before_a_restore_is_not_executed_again(skew_s: float) -> None:
    """Its answer is lost with the disk, and the clock of who asked is ahead."""
    steps: tuple[Step, ...] = (
        Backup(5.0, 0),
        Operate(300.0, 1, Change.CREATE_USER, 7),
        Operate(320.0, 0, Change.DELETE_USER, 7),
        Restore(450.0, 0, 5.0),
        *(Stranger(600.0 + n, Trick.REPLAY, n) for n in range(60)),
    )
    scenario = Scenario(
        1,
        enterprise((0, 0)),
        ReplicationSettings(clock_skew_s=300.0),
        steps=steps,
        fault_s=900.0,
        signed=True,
        skew_s=skew_s,
    )
    result = run(scenario, Options(keep_lines=True))
    assert result.violation is None
    assert any("from before this server was the authority" in line for line in result.lines)


@pytest.mark.req("SEC-11-01")
def test_a_stranger_amid_crashes_breaks_no_rule() -> None:
    random = Random(3)
    crashes = [Crash(100.0 + 100 * n, n % 5, list(CrashPoint)[n % 3], 5.0) for n in range(10)]
    result = attacked(13, *crashes, *tricks(random, Trick.REPLAY, Trick.REORDER, count=60))
    assert result.violation is None
