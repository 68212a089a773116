"""The memory of servers over time: it must not grow once their caches are full."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from mqis.config.nodes import NodePlace, Nodes, load_nodes
from mqis.enterprise.polling import fetch
from tools.harness.processes import resident

SAMPLE_S = 2.0
#: The size of a server's object cache: small, so that it is full soon and later growth is a leak.
REMEMBERED = 2048
#: A process that has seen fewer changes may still fill its caches: about three of four changes add
#: an object to the cache.
FULL = 2 * REMEMBERED
#: The time that it has to be watched from then on.
WATCHED_S = 30.0
#: A steeper slope is more than noise.
MAX_SLOPE_MB_H = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The memory of a process at one time."""

    #: Seconds since the process was first seen.
    age: float
    size: int
    #: The number of changes that it has made or applied.
    changes: float


@dataclass
class Memory:
    """Samples of the memory of all processes."""

    #: server -> pid -> samples
    lives: dict[str, dict[int, list[Sample]]] = field(default_factory=dict)
    _began: dict[int, float] = field(default_factory=dict)

    async def watch(self, run: Path) -> None:
        while True:
            await asyncio.gather(*(self._sample(node) for node in load_nodes(run)))
            await asyncio.sleep(SAMPLE_S)

    async def _sample(self, node: NodePlace) -> None:
        status = await asyncio.to_thread(fetch, node.monitor_url)
        if isinstance(status, str) or (size := resident(status.pid)) is None:
            return
        now = time.monotonic()
        age = now - self._began.setdefault(status.pid, now)
        # A server that has just started and has no directory yet has no such counter.
        changes = sum(status.counters.get(f"changes_{what}", 0) for what in ("made", "applied"))
        lives = self.lives.setdefault(node.name, {})
        lives.setdefault(status.pid, []).append(Sample(age, size, changes))

    def slope(self, server: str) -> float | None:
        """Growth in bytes a second of processes with full caches; None if no process ran so long.

        A server caches a fixed number of the objects that it has read last. Until the cache is full
        the process grows, which is no leak.
        """
        points = []
        for life in self.lives.get(server, {}).values():
            full = [sample for sample in life if sample.changes > FULL]
            if full and full[-1].age - full[0].age >= WATCHED_S:
                age = sum(sample.age for sample in full) / len(full)
                size = sum(sample.size for sample in full) / len(full)
                points += [(sample.age - age, sample.size - size) for sample in full]
        spread = sum(age * age for age, _ in points)
        return sum(age * size for age, size in points) / spread if spread else None

    def range_mb(self, server: str) -> tuple[float, float]:
        lives = self.lives.get(server, {}).values()
        sizes = [sample.size for life in lives for sample in life]
        return (min(sizes) / 1e6, max(sizes) / 1e6) if sizes else (0.0, 0.0)

    def longest_s(self, server: str) -> float:
        return max((life[-1].age for life in self.lives.get(server, {}).values()), default=0.0)


def memory_faults(memory: Memory, nodes: Nodes) -> list[str]:
    faults = []
    for node in nodes:
        slope = memory.slope(node.name)
        if slope is not None and slope * 3600 / 1e6 > MAX_SLOPE_MB_H:
            faults.append(f"{node.name}: its memory grows by {slope * 3600 / 1e6:.0f} MB an hour")
    return faults
