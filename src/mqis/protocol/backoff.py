"""The pause before the next attempt, doubled after each failure up to the longest.

Everything that tries again asks here, and counts its failures itself: it knows which of them count,
and which success ends them.
"""

from __future__ import annotations

#: More doublings than any pause needs, and few enough for a float.
_MOST_DOUBLINGS = 60


def pause_after(failures: int, first_s: float, longest_s: float) -> float:
    """The pause after this many failures in a row: ``first_s`` after one, twice that after two."""
    return min(first_s * 2.0 ** min(max(failures, 1) - 1, _MOST_DOUBLINGS), longest_s)
