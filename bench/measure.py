"""Timing. A sample is one round of one contender; a contest runs rounds of all in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns


@dataclass(frozen=True, slots=True)
class Sample:
    operations: int
    elapsed_ns: int
    #: The latency of each operation, ascending; empty if operations are too short to be timed.
    latencies_ns: Sequence[int] = ()

    @property
    def per_second(self) -> float:
        return self.operations * 1e9 / self.elapsed_ns

    def percentile_ms(self, percent: int) -> float:
        """The latency that ``percent`` of a hundred operations do not exceed."""
        rank = -(-len(self.latencies_ns) * percent // 100)
        return self.latencies_ns[rank - 1] / 1e6


def timed_alone(operation: Callable[[], object], seconds: float) -> Sample:
    """Times each operation, one after the other."""
    latencies = []
    start = now = perf_counter_ns()
    stop = start + int(seconds * 1e9)
    while now < stop:
        operation()
        before, now = now, perf_counter_ns()
        latencies.append(now - before)
    return Sample(len(latencies), now - start, sorted(latencies))


def timed_together(batch: Callable[[], int], seconds: float) -> Sample:
    """Times calls of ``batch`` as a whole; it returns the number of operations that it did."""
    operations = 0
    start = now = perf_counter_ns()
    stop = start + int(seconds * 1e9)
    while now < stop:
        operations += batch()
        now = perf_counter_ns()
    return Sample(operations, now - start)


def timed_tasks(operation: Callable[[], Awaitable[object]], tasks: int, seconds: float) -> Sample:
    """Times operations of concurrent tasks; each starts its next one when the last is done."""

    async def client(stop: int, latencies: list[int]) -> None:
        now = perf_counter_ns()
        while now < stop:
            await operation()
            before, now = now, perf_counter_ns()
            latencies.append(now - before)

    async def clients() -> Sample:
        latencies: list[int] = []
        start = perf_counter_ns()
        stop = start + int(seconds * 1e9)
        await asyncio.gather(*(client(stop, latencies) for _ in range(tasks)))
        return Sample(len(latencies), perf_counter_ns() - start, sorted(latencies))

    return asyncio.run(clients())


def once(operation: Callable[[], int]) -> Sample:
    """Times one call that is too long to repeat; it returns the number of operations."""
    start = perf_counter_ns()
    operations = operation()
    return Sample(operations, perf_counter_ns() - start)


def contest(rounds: int, contenders: Mapping[str, Callable[[], Sample]]) -> dict[str, list[Sample]]:
    """Runs every contender once per round, so that a busy minute of the machine affects all."""
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    for number in range(rounds):
        names = list(contenders)
        first = number % len(names)  # so that no contender always starts
        for name in names[first:] + names[:first]:
            samples[name].append(contenders[name]())
    return samples
