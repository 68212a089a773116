"""The limit of answers to one source, at moments that do not add up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.discovery.limiter import RateLimit, RateLimiter


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
