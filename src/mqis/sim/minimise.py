"""A failing scenario with as few steps as still break the same rule."""

from __future__ import annotations

from collections.abc import Callable

#: Each try is a whole run.
MAX_TRIES = 120


def fewest(count: int, fails: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """Of ``count`` steps the indexes that are needed, as far as ``MAX_TRIES`` tries tell.

    Delta debugging: leave out halves, then quarters and so on, as long as it still fails.
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
