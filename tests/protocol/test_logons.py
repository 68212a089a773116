"""Failed logons: who has to wait, for how long, and what is forgotten."""

from __future__ import annotations

import pytest

from mqis.protocol.security.logons import Counted, FailedLogons, LogonLimits

pytestmark = pytest.mark.req("SEC-5-03")
LIMITS = LogonLimits(per_account=3, per_address=10, wait_s=60.0)
HERE, THERE = "192.0.2.1", "192.0.2.2"


def fail(logons: FailedLogons, times: int, account: str = "alice", now: float = 0.0) -> Counted:
    for _ in range(times):
        counted = logons.failed(HERE, account, now)
    return counted


def test_a_few_failures_pass() -> None:
    logons = FailedLogons(LIMITS)
    assert fail(logons, 2) == Counted()
    assert logons.account_wait_s(HERE, "alice", 0.0) == 0.0


def test_the_wait_doubles_up_to_its_limit() -> None:
    logons = FailedLogons(LIMITS)
    waits = [fail(logons, 1).wait_s for _ in range(11)]
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert fail(FailedLogons(LogonLimits(wait_s=1e12)), 500).wait_s == 1e12


def test_a_wait_ends() -> None:
    logons = FailedLogons(LIMITS)
    fail(logons, 3, now=100.0)
    assert logons.account_wait_s(HERE, "alice", 100.25) == 0.75
    assert logons.account_wait_s(HERE, "alice", 101.0) == 0.0
    assert logons.account_wait_s(HERE, "alice", 200.0) == 0.0


def test_only_that_account_at_that_address_waits() -> None:
    logons = FailedLogons(LIMITS)
    fail(logons, 4)
    assert logons.account_wait_s(HERE, "alice", 0.0) == 2.0
    assert logons.account_wait_s(HERE, "bob", 0.0) == 0.0
    assert logons.account_wait_s(THERE, "alice", 0.0) == 0.0
    assert logons.address_wait_s(HERE, 0.0) == 0.0


def test_nobody_locks_an_account_out_elsewhere() -> None:
    """However often it fails, at however many addresses: a first attempt is always judged."""
    logons = FailedLogons(LIMITS)
    for number in range(1000):
        logons.failed(f"198.51.100.{number}", "alice", 0.0)
    assert logons.account_wait_s(HERE, "alice", 0.0) == 0.0


def test_an_account_that_many_addresses_guess_at_has_them_wait_sooner() -> None:
    logons = FailedLogons(LIMITS)
    for number in range(12):
        assert logons.failed(f"198.51.100.{number}", "alice", 0.0).wait_s == 0.0
    assert logons.failed(HERE, "alice", 0.0).wait_s == 1.0
    assert logons.failed(HERE, "alice", 0.0).wait_s == 2.0
    assert logons.failed(HERE, "bob", 0.0).wait_s == 0.0


def test_alarms_become_rarer() -> None:
    logons = FailedLogons(LIMITS)
    alarms = [logons.failed(f"10.0.0.{n}", "alice", 0.0).alarm for n in range(100)]
    assert [alarm for alarm in alarms if alarm] == [12, 24, 48, 96]


def test_an_address_waits_for_all_accounts() -> None:
    logons = FailedLogons(LIMITS)
    for number in range(9):
        assert logons.failed(HERE, f"guess {number}", 0.0).wait_s == 0.0
    assert logons.failed(HERE, "", 0.0) == Counted(1.0)
    assert logons.address_wait_s(HERE, 0.0) == 1.0
    assert logons.address_wait_s(THERE, 0.0) == 0.0


def test_an_exempt_address_waits_by_account_only() -> None:
    logons = FailedLogons(LIMITS)
    for number in range(100):
        logons.failed(HERE, f"guess {number}", 0.0, exempt=True)
        logons.failed(HERE, "alice", 0.0, exempt=True)
    assert logons.address_wait_s(HERE, 0.0) == 0.0
    assert logons.account_wait_s(HERE, "alice", 0.0) == 60.0


def test_failures_are_forgiven_one_by_one() -> None:
    logons = FailedLogons(LIMITS)
    fail(logons, 5)
    assert fail(logons, 1, now=59.0).wait_s == 8.0
    assert fail(logons, 1, now=60.0).wait_s == 8.0, "one was forgiven before this one"
    assert fail(logons, 1, now=119.0).wait_s == 16.0
    assert fail(logons, 1, now=1e6) == Counted(), "all of them"


def test_a_clock_that_goes_back_forgives_nothing() -> None:
    logons = FailedLogons(LIMITS)
    fail(logons, 2, now=100.0)
    assert fail(logons, 1, now=0.0).wait_s == 1.0


def test_a_success_forgets_the_account_there_and_not_the_address() -> None:
    logons = FailedLogons(LIMITS)
    fail(logons, 9)
    logons.succeeded(HERE, "alice")
    logons.succeeded(HERE, "bob")
    assert logons.account_wait_s(HERE, "alice", 0.0) == 0.0
    assert logons.failed(HERE, "bob", 0.0).wait_s == 1.0, "the tenth failure of the address"


def test_it_remembers_so_many_and_forgets_the_oldest() -> None:
    logons = FailedLogons(LogonLimits(per_account=1, remembered=50))
    for number in range(1000):
        logons.failed(f"10.0.{number // 256}.{number % 256}", f"name {number}", float(number))
    assert len(logons) == 150
    assert logons.account_wait_s("10.0.3.231", "name 999", 999.0) == 1.0
    assert logons.account_wait_s("10.0.0.0", "name 0", 0.0) == 0.0
