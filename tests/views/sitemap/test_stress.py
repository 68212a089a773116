"""The layout of few sites: distances on the plane are those of the graph."""

from __future__ import annotations

import math

import pytest

from mqis.views.sitemap.stress import stress_layout


def test_a_chain_is_a_line() -> None:
    places = stress_layout(range(5), {(n, n + 1): 1.0 for n in range(4)}, 1.6)
    for a in range(5):
        for b in range(a):
            assert math.dist(places[a], places[b]) == pytest.approx(a - b, rel=0.05)


def test_a_square_has_four_sides_and_longer_diagonals() -> None:
    sides = {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0, (0, 3): 1.0}
    places = stress_layout(range(4), sides, 1.6)
    for a, b in sides:
        assert math.dist(places[a], places[b]) == pytest.approx(1.0, rel=0.02)
    for a, b in ((0, 2), (1, 3)):
        assert math.dist(places[a], places[b]) == pytest.approx(math.sqrt(2), rel=0.02)


def test_lengths_count() -> None:
    places = stress_layout(range(3), {(0, 1): 1.0, (1, 2): 4.0}, 1.6)
    near, far = math.dist(places[0], places[1]), math.dist(places[1], places[2])
    assert far / near == pytest.approx(4.0, rel=0.05)


def test_pieces_lie_apart_from_the_largest() -> None:
    places = stress_layout(range(4), {(0, 1): 1.0, (1, 2): 1.0}, 2.0)
    assert math.dist(places[1], places[3]) == pytest.approx(2.0, rel=0.1)
    assert stress_layout(range(2), {}, 1.6) == {0: (0.0, 0.0), 1: (1.6, 0.0)}
    assert stress_layout([7], {}, 1.6) == {7: (0.0, 0.0)}
    assert stress_layout([], {}, 1.6) == {}
