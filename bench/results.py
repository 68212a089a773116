"""The results of an entry: rows of numbers, aims and whether they were met, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.measure import Sample


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table. Its ratio is its rate divided by the peer's: above 1, mqis is faster."""

    table: str
    name: str
    per_second: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    mb_per_second: float | None = None
    seconds: float | None = None
    ratio: float | None = None
    peer: str | None = None
    #: CPU time of the server for one operation.
    cpu_us: float | None = None

    @classmethod
    def of(
        cls,
        table: str,
        name: str,
        rounds: Sequence[Sample],
        *,
        peer: tuple[str, Sequence[Sample]] | None = None,
        size: float | None = None,
    ) -> Row:
        """Makes a row of the medians; ``size`` is the number of bytes of one operation."""
        rate = median(sample.per_second for sample in rounds)
        timed = [sample for sample in rounds if sample.latencies_ns]
        return cls(
            table,
            name,
            rate,
            p50_ms=median(sample.percentile_ms(50) for sample in timed) if timed else None,
            p99_ms=median(sample.percentile_ms(99) for sample in timed) if timed else None,
            mb_per_second=None if size is None else rate * size / 1e6,
            ratio=None if peer is None else ratio(rounds, peer[1]),
            peer=None if peer is None else peer[0],
        )


def ratio(ours: Sequence[Sample], peers: Sequence[Sample]) -> float:
    """The median of each round's ratio, so that a slow round affects both sides."""
    pairs = zip(ours, peers, strict=True)
    return median(our.per_second / peer.per_second for our, peer in pairs)


@dataclass(frozen=True, slots=True)
class Aim:
    """An aim of the project, and the measured value. A missed aim is no failure."""

    goal: str
    measured: str
    met: bool

    def __str__(self) -> str:
        return f"aim: {self.goal}: {self.measured}  {'met' if self.met else 'missed'}"


@dataclass(slots=True)
class Results:
    rows: list[Row] = field(default_factory=list)
    aims: list[Aim] = field(default_factory=list)
    #: Remarks for the reader: what was skipped and why, how something was counted.
    notes: list[str] = field(default_factory=list)
