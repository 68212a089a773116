"""What an entry is, and what a run gives to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bench.results import Results

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the benchmarks: how long, where, and what its entries share."""

    #: A slice that shows that everything runs; its numbers mean little.
    quick: bool
    #: Holds stores; removed at the end.
    directory: Path
    #: Tells whoever watches what is under way.
    say: Callable[[str], None]
    #: Closed when all entries are done.
    resources: ExitStack
    _shared: dict[str, Any] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 5

    @property
    def sample_s(self) -> float:
        """How long one round of one contender takes."""
        return 0.05 if self.quick else 0.5

    def scaled(self, count: int, quick: int) -> int:
        return quick if self.quick else count

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` gave the first entry that asked for it."""
        if name not in self._shared:
            self._shared[name] = make()
        found: T = self._shared[name]
        return found


@dataclass(frozen=True, slots=True)
class Bench:
    """An entry: a module defines one, ``bench.__main__`` lists it."""

    name: str
    what: str
    run: Callable[[Run], Results]
