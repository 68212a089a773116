"""Pauses between attempts: doubled after each failure, up to the longest."""

from __future__ import annotations

import pytest

from mqis.protocol.clock import pause_after


def test_each_failure_doubles_the_pause_up_to_the_longest() -> None:
    assert [pause_after(n, 0.5, 3.0) for n in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize("failures", [0, -1, 1])
def test_the_first_pause_is_the_shortest(failures: int) -> None:
    assert pause_after(failures, 2.0, 60.0) == 2.0


def test_the_first_pause_is_no_longer_than_the_longest() -> None:
    assert pause_after(1, 10.0, 3.0) == 3.0


def test_any_number_of_failures_has_a_pause() -> None:
    """A server that was alone for months has counted millions."""
    assert pause_after(10**9, 0.001, 30.0) == 30.0
