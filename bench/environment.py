"""Describes the machine of a run, without which its numbers cannot be compared with others."""

from __future__ import annotations

import os
import platform
import sqlite3
import sysconfig
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
    #: The optimisations that its Python was built with.
    build: str
    sqlite: str
    system: str
    directory: str
    #: Median time to write 4 KiB and flush them to the disk.
    flush_ms: float

    def __str__(self) -> str:
        return (
            f"{self.cores} cores (load {self.load:.1f} at the start), Python {self.python} "
            f"({self.build}), SQLite {self.sqlite}, {self.system}; "
            f"{self.directory}: {self.flush_ms:.3f} ms to flush 4 KiB"
        )


def environment(directory: Path, flush_s: float) -> Environment:
    return Environment(
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        load=load(),
        python=platform.python_version(),
        build=python_build(sysconfig.get_config_var("CONFIG_ARGS") or ""),
        sqlite=sqlite3.sqlite_version,
        system=f"{platform.system()} {platform.machine()}",
        directory=str(directory.parent),
        flush_ms=median(_flush_times(directory / "flush", flush_s).latencies_ns) / 1e6,
    )


def python_build(options: str) -> str:
    """The optimisations among the options that a Python was configured with.

    Distributions may add them in other ways: Debian's Python has PGO and does not list it.
    """
    named = {"PGO": "--enable-optimizations", "LTO": "--with-lto"}
    found = [name for name, option in named.items() if option in options]
    return f"built with {' and '.join(found)}" if found else "no PGO or LTO in its build options"


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
