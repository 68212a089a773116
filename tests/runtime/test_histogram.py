"""Counting in buckets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.runtime.histogram import CALL_SECONDS, FLUSH_SECONDS, SIZES, Histogram

INF = float("inf")


def test_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram((1, 2, 4))
    for value in (0, 1, 1.5, 2, 3, 4, 5, 100):
        histogram.observe(value)
    assert histogram.buckets() == [(1, 2), (2, 4), (4, 6), (INF, 8)]
    assert (histogram.count, histogram.total) == (8, 116.5)


@given(st.lists(st.floats(0, 20)), st.sampled_from([CALL_SECONDS, FLUSH_SECONDS, SIZES]))
def test_nothing_is_lost(values: list[float], bounds: tuple[float, ...]) -> None:
    histogram = Histogram(bounds)
    for value in values:
        histogram.observe(value)
    assert histogram.buckets() == [(b, sum(v <= b for v in values)) for b in (*bounds, INF)]
    assert histogram.total == pytest.approx(sum(values))
