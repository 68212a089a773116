"""The limit of answers to one source, at moments that do not add up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.discovery.limiter import RateLimit, RateLimiter, SharedLimiter


@given(
    now=st.floats(0, 1e7),
    per_second=st.floats(0.001, 100),
    burst=st.integers(1, 50),
)
def test_a_burst_at_one_moment_is_as_large_as_it_is_said_to_be(
    now: float, per_second: float, burst: int
) -> None:
    limiter = RateLimiter(RateLimit(per_second=per_second, burst=burst))
    answered = [limiter.allows("a", now) for _ in range(burst + 3)]
    assert answered == [True] * burst + [False] * 3


def test_all_sources_together_have_a_limit_too() -> None:
    limiter = SharedLimiter(RateLimit(1, 1), RateLimit(1, 3))
    assert [limiter.allows(f"source {n}", 0.0) for n in range(5)] == [True] * 3 + [False] * 2
    assert not limiter.allows("source 0", 0.5)
    assert limiter.allows("source 9", 1.0)
    assert all(SharedLimiter(RateLimit(1, 1)).allows(f"source {n}", 0.0) for n in range(5))


def test_who_asks_too_often_takes_nothing_from_the_others() -> None:
    limiter = SharedLimiter(RateLimit(0.001, 1), RateLimit(0.001, 2))
    assert [limiter.allows("greedy", 0.0) for _ in range(10)].count(True) == 1
    assert limiter.allows("modest", 0.0)
