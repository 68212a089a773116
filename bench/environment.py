"""Describes the machine of a run, without which its numbers cannot be compared with others."""

from __future__ import annotations

import os
import platform
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.measure import Sample, timed_alone

_flush = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True, slots=True)
class Environment:
    cores: int
    load: float
    python: str
    sqlite: str
    system: str
    directory: str
    #: Median time to write 4 KiB and flush them to the disk.
    flush_ms: float

    def __str__(self) -> str:
        return (
            f"{self.cores} cores (load {self.load:.1f} at the start), Python {self.python}, "
            f"SQLite {self.sqlite}, {self.system}; "
            f"{self.directory}: {self.flush_ms:.3f} ms to flush 4 KiB"
        )


def environment(directory: Path, flush_s: float) -> Environment:
    return Environment(
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        load=load(),
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        system=f"{platform.system()} {platform.machine()}",
        directory=str(directory.parent),
        flush_ms=median(_flush_times(directory / "flush", flush_s).latencies_ns) / 1e6,
    )


def load() -> float:
    """The load average of the last minute, this benchmark included."""
    return os.getloadavg()[0]


def _flush_times(path: Path, seconds: float) -> Sample:
    """Times of overwriting and flushing one page, as a write-ahead log does when it wraps."""
    page = bytes(4096)
    with path.open("wb", buffering=0) as file:
        file.write(page)
        os.fsync(file.fileno())

        def flush() -> None:
            os.pwrite(file.fileno(), page, 0)
            _flush(file.fileno())

        return timed_alone(flush, seconds)
