"""Reduces a failing scenario to few steps that still break the same rule."""

from __future__ import annotations

from collections.abc import Callable

#: The limit of tries; each is a whole run.
MAX_TRIES = 120


def fewest(count: int, fails: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """Returns the indexes of the steps that are needed to fail, within ``MAX_TRIES`` tries.

    Delta debugging: leaves out halves, then quarters and so on, as long as the run still fails.
    """
    kept = tuple(range(count))
    parts = 2
    tries = 0
    while kept and tries < MAX_TRIES:
        size = -(-len(kept) // parts)
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            tries += 1
            if fails(fewer):
                kept, parts = fewer, max(2, parts - 1)
                break
            if tries >= MAX_TRIES:
                return kept
        else:
            if size <= 1:
                return kept
            parts = min(len(kept), 2 * parts)
    return kept
