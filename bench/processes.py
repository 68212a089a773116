"""Servers of the benchmarks as processes, and the cores that they and the load are kept to.

Such a server is a module that prints its port and ends with its input.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.backends import ROOT

_STOPS_WITHIN_S = 180.0


@dataclass(frozen=True, slots=True)
class Cores:
    """A core for the server under test, the others for the load; the same if there is only one."""

    server: Set[int]
    clients: Set[int]

    @classmethod
    def available(cls) -> Cores:
        """The cores of this machine; none where processes cannot be kept to them."""
        if not hasattr(os, "sched_getaffinity"):
            return cls(frozenset(), frozenset())
        server, *others = sorted(os.sched_getaffinity(0))
        return cls({server}, set(others) or {server})


@contextmanager
def kept_to(cores: Set[int]) -> Iterator[None]:
    """Keeps this process, and those that it starts, to some cores during the block."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs."""

    process: subprocess.Popen[str]
    port: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        """Ends the server's input, and waits until it has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        end(self.process, by_signal=False)


def serve(resources: ExitStack, module: str, *arguments: str) -> Served:
    """Starts ``python -m module``; it is stopped with the resources, if not before."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    resources.callback(end, process)
    assert process.stdout is not None
    port = process.stdout.readline()
    if not port:
        raise RuntimeError(f"the server {' '.join((module, *arguments))} did not start")
    served = Served(process, int(port))
    resources.callback(served.stop)
    return served


def end(
    process: subprocess.Popen[str] | subprocess.Popen[bytes], *, by_signal: bool = True
) -> None:
    """Waits until a process has ended, after SIGTERM; kills it if that takes too long."""
    if by_signal:
        process.terminate()
    try:
        process.wait(_STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
