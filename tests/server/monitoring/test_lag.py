"""The lag of neighbours, from one measurement to the next."""

from __future__ import annotations

from mqis.server.monitoring.status_sources import MAX_LOOKS, LagWatch
from mqis.wire.guid import Guid

P = Guid(bytes(15) + b"\1")
Q = Guid(bytes(15) + b"\2")


def test_what_is_not_sent_is_lacking_and_ages() -> None:
    lag = LagWatch()
    lag.observe(10.0, {P: 5}, {"a": False})
    assert lag.of("a", P, 5, 3, 10.0) == (2, 0.0)
    lag.observe(20.0, {P: 7}, {"a": False})
    assert lag.of("a", P, 7, 3, 25.0) == (4, 15.0), "the oldest was there at 10"
    assert lag.of("a", P, 7, 5, 25.0) == (2, 5.0), "what came at 20"
    assert lag.of("a", P, 7, 7, 25.0) == (0, 0.0)


def test_nothing_waits_so_what_was_there_a_look_ago_has_arrived() -> None:
    lag = LagWatch()
    lag.observe(1.0, {P: 5, Q: 9}, {"a": True, "b": False})
    assert lag.of("a", P, 5, 0, 1.0)[0] == 5, "a change may be on its way into the queue"
    lag.observe(2.0, {P: 6, Q: 9}, {"a": True, "b": False})
    assert lag.of("a", P, 6, 0, 2.0) == (1, 0.0)
    assert lag.of("a", Q, 9, 0, 2.0) == (0, 0.0)
    assert lag.of("b", P, 6, 0, 2.0)[0] == 6


def test_what_has_arrived_stays_arrived() -> None:
    lag = LagWatch()
    for second, idle in enumerate((True, True, False, False)):
        lag.observe(float(second), {P: 5}, {"a": idle})
    assert lag.of("a", P, 5, 0, 9.0) == (0, 0.0)
    assert lag.of("a", P, 8, 0, 9.0) == (3, 0.0), "newer than any look"


def test_who_is_no_neighbour_any_more_is_forgotten() -> None:
    lag = LagWatch()
    for second in (0.0, 1.0):
        lag.observe(second, {P: 5}, {"a": True})
    lag.observe(2.0, {P: 5}, {})
    lag.observe(3.0, {P: 5}, {"a": False})
    assert lag.of("a", P, 5, 0, 3.0)[0] == 5
    lag.observe(4.0, {Q: 1}, {"a": False})
    assert lag.of("a", P, 5, 0, 4.0) == (5, 0.0)


def test_a_neighbour_that_is_away_for_long() -> None:
    """The looks that are kept have an end; the first of them stays within a factor of two."""
    lag = LagWatch()
    for second in range(10 * MAX_LOOKS):
        lag.observe(float(second), {P: second + 1}, {"a": False})
    now = float(10 * MAX_LOOKS)
    changes, age = lag.of("a", P, 10 * MAX_LOOKS, 0, now)
    assert changes == 10 * MAX_LOOKS
    assert age > now / 2
    assert len(lag._seen[P]) <= MAX_LOOKS
