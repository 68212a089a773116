"""Measures the memory of a process and its descendants, and its peak."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SAMPLE_S = 2.0


@dataclass(slots=True)
class Peak:
    mib: int = 0


def memory_mib() -> int:
    """The memory of this process and its descendants; shared memory counts once."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting, kib = [os.getpid()], 0
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kib += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib >> 10


@contextmanager
def watched_memory() -> Iterator[Peak]:
    """Measures the peak while the block runs; 0 if the system does not report memory."""
    peak, over = Peak(), threading.Event()

    def poll() -> None:
        while not over.wait(_SAMPLE_S):
            peak.mib = max(peak.mib, memory_mib())

    thread = threading.Thread(target=poll, daemon=True)
    measurable = Path("/proc/self/smaps_rollup").exists()
    if measurable:
        peak.mib = memory_mib()
        thread.start()
    try:
        yield peak
    finally:
        over.set()
        if measurable:
            thread.join()
