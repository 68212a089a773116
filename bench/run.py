"""An entry of the benchmarks, and the run that it gets."""

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
    """One run of the benchmarks: its duration, directory and shared resources."""

    #: A short run to show that everything works; its numbers mean little.
    quick: bool
    #: For stores; removed at the end.
    directory: Path
    #: Shows the user the current step.
    say: Callable[[str], None]
    #: Closed when all entries are done.
    resources: ExitStack
    _shared: dict[str, Any] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 5

    @property
    def sample_s(self) -> float:
        """The duration of one round of one contender."""
        return 0.05 if self.quick else 0.5

    def scaled(self, count: int, quick: int) -> int:
        return quick if self.quick else count

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """The result of ``make``, which runs once for all entries that ask for ``name``."""
        if name not in self._shared:
            self._shared[name] = make()
        found: T = self._shared[name]
        return found


@dataclass(frozen=True, slots=True)
class Bench:
    """An entry; a module defines it, and ``bench.__main__`` lists it."""

    name: str
    what: str
    run: Callable[[Run], Results]
