"""Budgets of callers on four levels; a refused request is not counted."""

from __future__ import annotations

import pytest

from mqis.protocol.authentication import Identity
from mqis.protocol.budget import Budget, Caller, Charge, Quota

STRANGER = Caller("a", "192.0.2.1")
KNOWN = Caller("b", "192.0.2.1", identity=Identity("LAB", "alice"))


def test_shares_of_what_the_process_has() -> None:
    assert Quota.of(1024, connection=1 / 16, address=1 / 4) == Quota(64, 256, 512, 1024)
    assert Quota.of(1, connection=1 / 16, address=1 / 4) == Quota(1, 1, 1, 1)


@pytest.mark.req("SEC-7-03")
@pytest.mark.parametrize(
    ("quota", "level"),
    [
        (Quota(3, 9, 9, 9), "this connection: 3 of 3 held"),
        (Quota(9, 3, 9, 9), "this address: 3 of 3 held"),
        (Quota(9, 9, 3, 9), "all anonymous callers together: 3 of 3 held"),
        (Quota(9, 9, 9, 3), "this server: 3 of 3 held"),
    ],
)
def test_each_level_refuses(quota: Quota, level: str) -> None:
    budget = Budget(quota)
    assert [budget.take(STRANGER) for _ in range(3)] == [None] * 3
    assert str(budget.take(STRANGER)) == level
    assert str(budget.take(STRANGER, 2)) == level
    budget.give_back(STRANGER)
    assert budget.take(STRANGER) is None
    assert budget.used == 3


@pytest.mark.req("SEC-7-05")
def test_strangers_do_not_use_up_what_others_have_at_the_same_address() -> None:
    budget = Budget(Quota(9, 3, 3, 9))
    assert budget.take(STRANGER, 3) is None
    assert budget.take(KNOWN, 3) is None
    assert budget.take(KNOWN) is not None
    other = Caller("c", "192.0.2.2")
    assert budget.take(other) is not None
    budget.give_back(STRANGER, 3)
    budget.give_back(KNOWN, 3)
    assert budget.used == 0
    assert budget.take(other, 3) is None


@pytest.mark.req("SEC-7-05")
def test_strangers_of_all_addresses_leave_half_of_it_to_others() -> None:
    budget = Budget(Quota.of(64, connection=1, address=1))
    strangers = [Caller(n, f"192.0.2.{n}") for n in range(16)]
    refused = [budget.take(stranger, 4) is not None for stranger in strangers]
    assert refused == [False] * 8 + [True] * 8
    assert budget.take(KNOWN, 32) is None


def test_who_holds_nothing_is_forgotten() -> None:
    budget = Budget(Quota(9, 9, 9, 9))
    for number in range(100):
        caller = Caller(number, number)
        budget.take(caller)
        budget.give_back(caller)
    assert (len(budget._connections), len(budget._addresses)) == (0, 0)


def test_a_charge_grows_and_shrinks_and_is_as_before_if_it_cannot() -> None:
    budget = Budget(Quota(10, 10, 10, 10))
    charge = Charge(budget, STRANGER)
    assert charge.change(7) is None
    assert charge.change(7) is None
    assert charge.change(11) is not None
    assert (charge.amount, budget.used) == (7, 7)
    assert charge.change(2) is None
    assert budget.used == 2
    charge.end()
    charge.end()
    assert budget.used == 0
