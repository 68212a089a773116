"""Small scenarios in which replication once went wrong; each was found by a seed."""

from __future__ import annotations

from random import Random

import pytest

from mqis.protocol.directory.objects import PurgeState, Scope
from mqis.protocol.replication import sync_answers
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.protocol.replication.work import Work
from mqis.sim.runner import Options, RunResult, run, run_seed
from mqis.sim.scenario import Scenario, Weather, enterprise
from mqis.sim.steps import (
    Backup,
    Change,
    Cut,
    Falsehood,
    Isolate,
    Join,
    Lie,
    Operate,
    Promote,
    Restore,
    Retire,
    Step,
)
from mqis.sim.workload import queue_properties, roamer
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import SyncRequest

QUICK = ReplicationSettings(max_changes=2)


def suffered(servers: tuple[int, ...], *steps: Step, signed: bool = False) -> RunResult:
    """Nothing goes wrong but the steps."""
    ordered = in_order(*steps)
    until = max((step.at for step in ordered), default=0.0) + 300
    scenario = Scenario(
        1, enterprise(servers), settings=QUICK, steps=ordered, fault_s=until, signed=signed
    )
    return run(scenario)


def in_order(*steps: Step) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=lambda step: step.at))


def work(start: float, server: int, count: int, *changes: Change) -> list[Step]:
    kinds = changes or (Change.CREATE_USER, Change.CREATE_NETWORK, Change.CREATE_QUEUE)
    return [Operate(start + n, server, kinds[n % len(kinds)], n) for n in range(count)]


def test_signed_heartbeats_of_a_known_authority_start_nothing() -> None:
    result = suffered((0, 0), signed=True)
    assert result.violation is None
    assert result.messages < 60


def test_a_copy_that_a_restored_authority_did_not_hear_of_loses_what_was_lost() -> None:
    """PSC2 alone has the last changes, and is cut off while the PEC asks around."""
    result = suffered(
        (0, 0, 0),
        Backup(5.0, 0),
        Cut(8.0, 0, 1, False, 1000.0),
        *work(10.0, 0, 9),
        Isolate(30.0, 2, 600.0),
        Restore(40.0, 0, 10.0),
    )
    assert result.violation is None
    assert result.counts["recovered with silence"] > 0


def test_a_new_authority_that_nobody_answers_waits() -> None:
    """It would serve an empty partition, and everybody would forget its machine."""
    for at in range(10):  # somewhere between the enterprise and the answers
        result = suffered((0, 0, 0), Join(10.0, 2), Isolate(10.0 + at / 100, 2, 500.0))
        assert result.violation is None
        assert result.counts["introduced again"] == 0


def test_a_restored_authority_without_neighbours_gives_out_no_number_twice() -> None:
    result = suffered(
        (1,), Backup(1.0, 0), *work(5.0, 0, 5), Restore(20.0, 0, 5.0), *work(40.0, 0, 5)
    )
    assert result.violation is None


def updating(*wanted: tuple[PropId, int | None]) -> int:
    """A salt with which the only queue there is gets just these values; None: any."""
    for salt in range(100_000):
        random = Random(salt)
        random.choice([None])  # which queue
        drawn = queue_properties(random)
        values = {propid: drawn[propid].value for propid, _ in wanted if propid in drawn}
        if len(drawn) == len(wanted) == len(values) and all(
            value is None or values[propid] == value for propid, value in wanted
        ):
            return salt
    raise AssertionError("nothing draws that")


def test_a_queue_that_comes_out_of_its_site() -> None:
    """Other sites have an old copy, which a part of the object does not mend."""
    inside, outside = ((PropId.Q_SCOPE, scope) for scope in Scope)
    result = suffered(
        (0, 0),
        Operate(5.0, 0, Change.CREATE_QUEUE, updating((PropId.Q_LABEL, None))),
        Operate(20.0, 0, Change.UPDATE_QUEUE, updating(inside)),
        Cut(30.0, 0, 1, True, 1400.0),
        Operate(40.0, 0, Change.UPDATE_QUEUE, updating((PropId.Q_QUOTA, None))),
        Operate(4000.0, 0, Change.UPDATE_QUEUE, updating(outside)),
    )
    assert result.violation is None
    assert result.counts["expired"] > 0


def test_a_name_that_is_taken_still_passes_through_a_psc_to_its_bsc() -> None:
    """In parts, behind the object that was set aside; the BSC gets it when the PSC does."""
    salt = next(salt for salt in range(100) if roamer(Random(salt)) == "roamer0")
    recreate = Change.RECREATE_MACHINE
    result = suffered(
        (0, 0, 1),
        Operate(10.0, 0, recreate, salt),
        Cut(60.0, 0, 2, True, 3000.0),
        Operate(65.0, 0, recreate, salt),
        Operate(80.0, 1, recreate, salt),
        *work(90.0, 1, 12, Change.CREATE_MACHINE),
        Operate(2900.0, 1, Change.UPDATE_MACHINE, 5),
    )
    assert result.violation is None
    assert result.counts["set aside"] > 0


# --- a PEC that was restored from before a PSC joined ---------------------------------------------


def test_a_restored_pec_does_not_number_in_the_place_of_a_psc() -> None:
    """Its BSC knows the PSC that it does not know, and it made machines of its own there."""
    result = suffered(
        (1, 0),
        Backup(5.0, 0),
        Join(20.0, 1),
        *work(40.0, 1, 6, Change.CREATE_MACHINE, Change.CREATE_QUEUE, Change.DELETE_QUEUE),
        Restore(100.0, 0, 5.0),
        *work(110.0, 0, 30, Change.CREATE_MACHINE),
        *work(300.0, 0, 30, Change.CREATE_MACHINE),
    )
    assert result.violation is None
    assert result.counts["introduced again"] == 0


def test_a_pec_restored_twice_makes_itself_no_authority() -> None:
    """The second backup has the site and not its PSC, which another PSC knows all the time."""
    result = suffered(
        (0, 0, 0),
        Backup(5.0, 0),
        Join(20.0, 2),
        *work(40.0, 2, 6, Change.CREATE_MACHINE),
        Restore(100.0, 0, 5.0),
        Backup(108.0, 0),
        Restore(400.0, 0, 5.0),
        *work(600.0, 0, 10, Change.CREATE_MACHINE),
    )
    assert result.violation is None


def test_a_site_that_was_lost_and_introduced_again() -> None:
    """Its copies go with it and begin anew, behind the number that they had reached."""
    result = suffered(
        (1, 0, 0),
        Backup(5.0, 0),
        Join(20.0, 1),
        *work(40.0, 1, 6, Change.CREATE_MACHINE),
        Cut(60.0, 0, 2, False, 400.0),
        Cut(60.0, 0, 3, False, 400.0),
        Restore(100.0, 0, 5.0),
    )
    assert result.violation is None
    assert result.counts["introduced again"] > 0


def test_a_site_that_takes_the_name_of_one_that_is_gone() -> None:
    """The one that held the name goes with its partition."""
    salts = [salt for salt in range(100) if Random(salt).randrange(8) == 0]
    result = suffered(
        (1,),
        Backup(5.0, 0),
        Operate(10.0, 0, Change.CREATE_SITE, salts[0]),
        Cut(20.0, 0, 1, False, 400.0),
        Restore(30.0, 0, 5.0),
        Operate(200.0, 0, Change.CREATE_SITE, salts[1]),
    )
    assert result.violation is None


# --- an authority that comes back empty while others synchronise with it --------------------------


def came_back_empty(at: float, *cuts: Cut, mutation: str | None = None) -> RunResult:
    """PSC2 is new and backed up at once. It takes office without an answer of PSC1, so that all
    others synchronise anew; at that moment it loses its disk."""
    steps = in_order(Join(10.0, 2), Backup(10.0, 2), *cuts, Restore(at, 2, 10.0))
    scenario = Scenario(1, enterprise((0, 0, 0)), settings=QUICK, steps=steps, fault_s=600.0)
    return run(scenario, Options(mutation=mutation))


MOMENTS = [130.0 + n / 100 for n in range(7, 14)]


def test_an_empty_authority_takes_the_copy_of_another_psc_if_the_pec_waits_for_it() -> None:
    """The PEC is in a full synchronisation with PSC2 and has no copy; PSC1 still has one."""
    cut = Cut(10.0, 1, 2, False, 150.0)
    assert [came_back_empty(at, cut).violation for at in MOMENTS] == [None] * len(MOMENTS)
    stuck = [came_back_empty(at, cut, mutation="B01").violation for at in MOMENTS]
    found = next(violation for violation in stuck if violation is not None)
    assert found.rule == "no circular wait"
    assert "PEC waits for PSC2 (it is in a full synchronisation" in found.detail
    assert "PSC2 waits for PEC (it recovers the partition" in found.detail


_receive_sync_request = sync_answers.receive_sync_request


def _silent_in_sync0(work: Work, sender: Sender, request: SyncRequest) -> None:
    """Answers nobody in a full synchronisation, not even a restored authority."""
    state = work.partition(request.partition)
    if state is None or state.purge_state is PurgeState.NORMAL:
        _receive_sync_request(work, sender, request)


def test_an_empty_authority_takes_the_remains_of_copies_if_nobody_has_a_whole_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PSC1 is heard again just before PSC2 loses its disk: both others have lost their numbers."""
    cut = Cut(10.0, 1, 2, True, 120.05)
    runs = [came_back_empty(at, cut) for at in MOMENTS]
    assert [result.violation for result in runs] == [None] * len(MOMENTS)
    assert not any(result.counts["introduced again"] for result in runs)
    monkeypatch.setattr(sync_answers, "receive_sync_request", _silent_in_sync0)
    stuck = [came_back_empty(at, cut).violation for at in MOMENTS]
    assert {v.rule for v in stuck if v is not None} == {"no circular wait"}


def test_a_psc_between_two_parts_does_not_serve_its_bsc_as_if_it_had_all() -> None:
    """The BSC would show a number, and lack objects that were changed again behind it."""
    kinds = (
        Change.UPDATE_NETWORK,
        Change.UPDATE_NETWORK,
        Change.CREATE_USER,
        Change.UPDATE_DESCRIPTOR,
    )
    steps = (*work(5.0, 0, 4, Change.CREATE_NETWORK), *work(20.0, 0, 40, *kinds))
    scenario = Scenario(
        1,
        enterprise((0, 1)),
        settings=QUICK,
        steps=steps,
        fault_s=100.0,
        weather=Weather(loss=0.1, max_delay_s=5.0),
    )
    assert run(scenario).violation is None
    found = run(scenario, Options(mutation="B05")).violation
    assert found is not None
    assert found.rule == "a copy is complete at its number"


def test_a_lying_authority_gives_out_no_numbers_while_it_is_being_restored() -> None:
    """They are not its own then: others hold changes under them that it has lost."""
    result = suffered(
        (0, 0),
        *work(5.0, 1, 6, Change.CREATE_QUEUE),
        Backup(6.0, 1),
        *work(7.0, 1, 6, Change.CREATE_QUEUE),
        Restore(20.0, 1, 10.0),
        *(Lie(21.0 + n, 1, Falsehood.FOREIGN_DELETE, n) for n in range(6)),
        Isolate(24.0, 1, 60.0),
        *(Lie(200.0 + n, 1, Falsehood.FOREIGN_DELETE, n) for n in range(6)),
        signed=True,
    )
    assert result.violation is None
    assert result.counts[f"lie {Falsehood.FOREIGN_DELETE}"] > 0


def test_servers_do_not_agree_while_an_authority_is_being_restored() -> None:
    """The PEC, the last server there is, has lost the deletion of a site with its disk."""
    steps = in_order(Backup(6.0, 0), Retire(20.0, 1), Restore(900.0, 0, 1.0))
    scenario = Scenario(1, enterprise((0, 0)), settings=QUICK, steps=steps, fault_s=900.5)
    result = run(scenario)
    assert result.violation is None
    assert result.healed_s > QUICK.recovery_retry_s


def test_nobody_waits_for_the_parts_of_a_retired_server() -> None:
    """A backup from the middle of a long reply, restored after the server of it was retired.

    Nobody knows any more that it was: the PEC asks it as long as its site is in the directory.
    """
    result = run_seed(743)
    assert result.violation is None
    assert {"fault retire", "fault restore authority"} <= result.counts.keys()


# --- a backup controller that was promoted and does not know it yet -------------------------------


@pytest.mark.parametrize("back_s", [None, 60.0])
def test_a_backup_does_not_turn_back_to_the_former_psc(back_s: float | None) -> None:
    """BSC1b lacks a change and asks BSC1a, which is promoted and cannot hear of it yet."""
    result = suffered(
        (0, 2),
        Cut(60.0, 1, 3, False, 400.0),
        Operate(90.0, 0, Change.CREATE_USER, 1),
        Cut(140.0, 0, 2, False, 100.0),
        Promote(150.0, 2, back_s),
    )
    assert result.violation is None


def test_nobody_gets_a_site_whose_psc_was_named_by_hand() -> None:
    """PSC1 followed BSC1a by hand and is promoted again, before the PEC can tell it anything."""
    result = suffered(
        (0, 1),
        Cut(60.0, 1, 2, False, 150.0),
        Operate(90.0, 0, Change.CREATE_USER, 1),
        Cut(140.0, 0, 1, False, 200.0),
        Cut(140.0, 0, 2, False, 200.0),
        Promote(150.0, 2, 5.0),
        Promote(200.0, 1, 5.0),
    )
    assert result.violation is None


def test_an_old_heartbeat_does_not_bring_a_former_psc_back() -> None:
    """The stranger sends it to the PEC, which has not heard of the new PSC's role yet."""
    result = run_seed(1279, Options(steps=(35, 67)))
    assert result.violation is None
    assert result.counts["fault replay in another order"] > 0


def test_a_second_promotion_loses_nothing_of_the_first() -> None:
    """BSC1a serves for a while; PSC1 is promoted again, and asks it before it has its office."""
    result = suffered(
        (0, 1),
        Cut(140.0, 0, 1, False, 400.0),
        Cut(140.0, 1, 2, False, 90.0),
        Promote(150.0, 2, 5.0),
        Promote(200.0, 1, 5.0),
    )
    assert result.violation is None


def test_the_machine_of_an_undeleted_site_has_the_first_number_again() -> None:
    """With what it was when the site was deleted, until its PSC tells its own (seed 1021)."""
    result = run_seed(1021, Options(steps=(16, 41, 45)))
    assert result.violation is None
    assert result.counts["fault slip"] == 1
