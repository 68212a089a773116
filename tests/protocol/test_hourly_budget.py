"""Hours of accounts begin, end and are forgotten."""

from __future__ import annotations

from mqis.protocol.budget import HOUR_S, HourlyBudget, UsedUp

BEGAN = 1_000_000.0


def test_an_account_has_its_hour_to_itself() -> None:
    budget = HourlyBudget()
    assert budget.use("ann", 6, 10, BEGAN) is None
    assert budget.use("bob", 6, 10, BEGAN + 1) is None
    assert budget.use("ann", 5, 10, BEGAN + 2) == UsedUp(6, 10, BEGAN + HOUR_S, first=True)
    assert budget.use("ann", 5, 10, BEGAN + 3) == UsedUp(6, 10, BEGAN + HOUR_S, first=False)
    assert budget.refusals == 2
    assert budget.use("ann", 4, 10, BEGAN + 4) is None
    assert budget.use("ann", 5, 10, BEGAN + HOUR_S) is None


def test_what_did_not_happen_is_given_back() -> None:
    budget = HourlyBudget()
    budget.use("ann", 6, 10, BEGAN)
    budget.give_back("ann", 4)
    assert budget.use("ann", 8, 10, BEGAN) is None
    budget.give_back("ann", 99)
    assert budget.use("ann", 10, 10, BEGAN) is None
    budget.give_back("nobody", 1)
    assert budget.use("nobody", 10, 10, BEGAN) is None


def test_hours_that_have_ended_are_forgotten_and_others_are_not() -> None:
    """The memory does not grow with each account that ever wrote; nobody gets a second hour."""
    budget = HourlyBudget()
    for number in range(1023):
        budget.use(number, 10, 10, BEGAN)
    budget.use("ann", 10, 10, BEGAN + 100)
    now = BEGAN + HOUR_S + 1
    budget.use("bob", 10, 10, now)
    assert set(budget._hours) == {"ann", "bob"}
    assert budget.use("ann", 1, 10, now) == UsedUp(10, 10, BEGAN + 100 + HOUR_S, first=True)
    for number in range(2000):
        budget.use(number, 10, 10, now)
    assert budget.use(0, 1, 10, now) is not None
    assert len(budget._hours) == 2002


def test_a_clock_that_is_set_back_makes_no_hour_longer() -> None:
    budget = HourlyBudget()
    budget.use("ann", 10, 10, BEGAN)
    assert budget.use("ann", 1, 10, BEGAN - 10) is None
    assert budget.use("ann", 10, 10, BEGAN) == UsedUp(1, 10, BEGAN - 10 + HOUR_S, first=True)
