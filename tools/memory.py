"""Measures a process and its descendants: memory, its peak, and processor time."""

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


def _family() -> Iterator[tuple[int, list[str]]]:
    """This process and its descendants, with the fields of ``stat`` from the state on."""
    known: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            known[int(entry.name)] = fields
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        if process in known:
            yield process, known[process]


def memory_mib() -> int:
    """The memory of this process and its descendants; shared memory counts once."""
    kib = 0
    for process, _ in _family():
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kib += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib >> 10


def cpu_seconds() -> float:
    """The processor time of this process and its descendants, those included that have ended."""
    ticks = sum(sum(map(int, fields[11:15])) for _, fields in _family())
    return float(ticks / os.sysconf("SC_CLK_TCK"))


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
