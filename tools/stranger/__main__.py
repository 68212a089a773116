"""Runs a server under the load of strangers from 16 addresses, an administrator beside them.

Usage: python -m tools.stranger [--minutes 3] [--seed N]

``mqis up`` starts one server with the default limits, ``mqis console`` a console. The administrator
reads without a pause, first while nobody else is there, then beside strangers who do everything at
once: silent connections, binds, security contexts, large tokens, malformed PDUs, half fragments,
handles and lookups, packets at the queue port, discovery datagrams, HTTP heads. A table tells what
they did, what was refused, and what the server's metrics count. The exit status is 1 if

- a read of the administrator fails, or its p99 is more than 20 times that of the idle server;
- the server takes more memory than ``rpc.memory_mb`` + 150 MB;
- the server was restarted;
- strangers saw more refusals than the metrics count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from mqis.config.nodes import NodePlace, load_nodes
from mqis.config.sections import Config
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tools.harness.enterprise import Load, started
from tools.harness.processes import resident
from tools.stranger.attacks import (
    DISCOVERY,
    KINDS,
    MONITORING,
    QUEUE,
    RPC_KINDS,
    Tally,
    Target,
    attack,
)

LEAST_MINUTES = 0.1
PLAN = r"""
[enterprise]
name = "Meridian"
network = "Corporate IP"
[[site]]
name = "Amsterdam"
[[server]]
name = "ams-dir1"
site = "Amsterdam"
role = "pec"
[[machine]]
name = "ams-desk1"
site = "Amsterdam"
[[queue]]
path = 'ams-desk1\orders'
label = "Incoming orders"
[[account]]
name = "admin"
administrator = true
"""
READ = (PropId.Q_LABEL, PropId.Q_INSTANCE, PropId.Q_QUOTA)
#: The aims: the p99 of the administrator's reads beside that of an idle server, and megabytes
#: beside ``rpc.memory_mb``.
MOST_TIMES = 20.0
ROOM_MB = 150
#: The share of a run in which the server is idle.
IDLE = 0.2
#: A new logon of the administrator follows on so many seconds.
LOGON_EVERY_S = 1.0
#: The metrics that count refusals, by the port that they are about.
REFUSALS: Mapping[str, tuple[str, ...]] = {
    "RPC": (
        "mqis_rpc_connections_refused_total",
        "mqis_rpc_connections_evicted_total",
        "mqis_rpc_faults_total",
        "mqis_rpc_call_failures_total",
        "mqis_authentication_failures_total",
        "mqis_authentication_unjudged_total",
    ),
    QUEUE: (
        "mqis_transport_connections_refused_total",
        "mqis_transport_connections_closed_total",
    ),
    DISCOVERY: (
        'mqis_discovery_requests_total{outcome="limited"}',
        'mqis_discovery_requests_total{outcome="malformed"}',
    ),
    MONITORING: ("mqis_monitoring_connections_unanswered_total",),
}


@dataclass
class Reads:
    """The administrator's calls: milliseconds of each read and of each logon, and failures."""

    read_ms: list[float] = field(default_factory=list)
    logon_ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def p50_ms(self) -> float:
        return median(self.read_ms)

    @property
    def p99_ms(self) -> float:
        return quantiles(self.read_ms, n=100)[98]


@dataclass
class Outcome:
    idle: Reads = field(default_factory=Reads)
    loaded: Reads = field(default_factory=Reads)
    tally: Tally = field(default_factory=Tally)
    #: The growth of the server's counters.
    counted: Counter[str] = field(default_factory=Counter)
    peak_mb: float = 0.0
    restarts: int = 0
    seconds: float = 0.0

    @property
    def times(self) -> float:
        return self.loaded.p99_ms / self.idle.p99_ms

    @property
    def bound_mb(self) -> int:
        return Config().rpc.memory_mb + ROOM_MB

    def seen(self, port: str) -> int:
        """The refusals that strangers saw at a port."""
        kinds = RPC_KINDS if port == "RPC" else (port,)
        return sum(self.tally.refused[kind] for kind in kinds)

    def counted_at(self, port: str) -> int:
        return sum(self.counted[metric] for metric in REFUSALS[port])

    def faults(self) -> list[str]:
        """The faults that do not depend on the speed of the machine."""
        found = [*self.idle.failures, *self.loaded.failures][:5]
        if self.peak_mb > self.bound_mb:
            found.append(f"the server took {self.peak_mb:.0f} MB, more than {self.bound_mb}")
        if self.restarts:
            found.append(f"the server was restarted {self.restarts} times")
        found += [
            f"{port}: strangers saw {self.seen(port):,} refusals, the metrics count "
            f"{self.counted_at(port):,}"
            for port in REFUSALS
            if self.seen(port) > self.counted_at(port)
        ]
        return found


async def besiege(directory: Path, seconds: float, seed: int) -> Outcome:
    """Starts a server, measures it idle and under load, and stops it."""
    async with started(directory, PLAN) as run:
        with _console(run) as console_port:
            return await _measured(run, console_port, seconds, seed)


@contextmanager
def _console(run: Path) -> Iterator[int]:
    """A console for the server; gives its port."""
    words = ["console", "--run", str(run), "--port", "0", "--json"]
    with (run / "console.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mqis.cli.main", *words],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        port = urlsplit(json.loads(process.stdout.readline())["url"]).port
        assert port is not None
        yield port
    finally:
        process.terminate()
        process.wait(30)


async def _measured(run: Path, console_port: int, seconds: float, seed: int) -> Outcome:
    load = Load.of_run(run)
    (node,) = load.nodes
    outcome = Outcome()
    ports = (node.rpc_port, node.queue_port, node.discovery_port, node.monitor_port)
    target = Target(node.address, *ports, console_port)
    await _administer(load, node, time.monotonic() + IDLE * seconds, outcome.idle)
    before = await asyncio.to_thread(_metrics, node)
    watching = asyncio.create_task(_watch(node, outcome))
    with _strangers(target, (1 - IDLE) * seconds, seed) as told:
        await asyncio.to_thread(told)
        began = time.monotonic()
        await _administer(load, node, began + (1 - IDLE) * seconds, outcome.loaded)
        tally = await asyncio.to_thread(told)
    assert isinstance(tally, Tally)
    outcome.tally = tally
    watching.cancel()
    outcome.seconds = time.monotonic() - began
    outcome.counted = await asyncio.to_thread(_metrics, node)
    outcome.counted.subtract(before)
    outcome.restarts = sum(node.restarts for node in load_nodes(run))
    return outcome


@contextmanager
def _strangers(target: Target, seconds: float, seed: int) -> Iterator[Callable[[], object]]:
    """The strangers as a process; gives a function that returns when they begin, then the tally."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe(duplex=False)
    process = spawn.Process(target=attack, args=(target, seconds, seed, there))
    process.start()
    there.close()
    try:
        yield here.recv
    finally:
        process.join(30)
        if process.is_alive():
            process.terminate()


async def _administer(load: Load, node: NodePlace, until: float, reads: Reads) -> None:
    """Reads as the administrator, and logs on again and again."""
    while time.monotonic() < until:
        try:
            began = time.perf_counter()
            async with await load.connect(node) as client:
                reads.logon_ms.append(1e3 * (time.perf_counter() - began))
                again = time.monotonic() + LOGON_EVERY_S
                while time.monotonic() < min(again, until):
                    began = time.perf_counter()
                    await client.get(ObjectType.QUEUE, READ, path="ams-desk1\\orders")
                    reads.read_ms.append(1e3 * (time.perf_counter() - began))
                    await asyncio.sleep(0.01)
        except (MqisError, OSError) as error:
            reads.failures.append(f"a call of the administrator failed: {error}")
            await asyncio.sleep(0.2)


async def _watch(node: NodePlace, outcome: Outcome) -> None:
    while True:
        size = resident(node.pid) if node.pid is not None else None
        outcome.peak_mb = max(outcome.peak_mb, (size or 0) / 1e6)
        await asyncio.sleep(0.5)


def _metrics(node: NodePlace) -> Counter[str]:
    """The server's counters: each with its labels, and all of one name together."""
    text, url = "", f"{node.monitor_url}/metrics"
    for _ in range(20):  # strangers may have all places for a moment
        with suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
            text = answer.read().decode()
        if text:
            break
        time.sleep(0.5)
    found: Counter[str] = Counter()
    for name, labels, value in re.findall(r"^(mqis_\w+_total)(\{.*\})? (\S+)$", text, re.MULTILINE):
        found[name] += int(float(value))
        if labels:
            found[name + labels] += int(float(value))
    return found


# --- output ---------------------------------------------------------------------------------------


def show(outcome: Outcome, console: Console) -> None:
    load = Table("load", "steps", "refusals seen", title=f"{outcome.seconds:.0f} s of strangers")
    for kind in KINDS:
        load.add_row(kind, f"{outcome.tally.taken[kind]:,}", f"{outcome.tally.refused[kind]:,}")
    console.print(load)
    refused = Table("port", "metric", "counted", "refusals seen")
    for port, metrics in REFUSALS.items():
        for metric in metrics:
            refused.add_row(port, metric, f"{outcome.counted[metric]:,}")
        counted, seen = outcome.counted_at(port), outcome.seen(port)
        refused.add_row(port, "together", f"{counted:,}", f"{seen:,}")
    console.print(refused)
    reads = Table("administrator", "reads", "p50 ms", "p99 ms", "logons", "logon p50 ms", "failed")
    for name, found in (("idle", outcome.idle), ("under load", outcome.loaded)):
        reads.add_row(
            name,
            f"{len(found.read_ms):,}",
            f"{found.p50_ms:.2f}",
            f"{found.p99_ms:.2f}",
            f"{len(found.logon_ms):,}",
            f"{median(found.logon_ms):.1f}",
            f"{len(found.failures)}",
        )
    console.print(reads)
    console.print(
        f"p99 {outcome.times:.1f} times that of the idle server (aim: below {MOST_TIMES:.0f}); "
        f"{outcome.peak_mb:.0f} MB of memory (aim: below {outcome.bound_mb}); "
        f"{outcome.restarts} restarts"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args(arguments)
    if options.minutes < LEAST_MINUTES:
        parser.error(f"--minutes: at least {LEAST_MINUTES}, to have something to measure")
    # As Ctrl-C: what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(width=None if sys.stdout.isatty() else 140)
    with tempfile.TemporaryDirectory(prefix="mqis-stranger-") as directory:
        outcome = asyncio.run(besiege(Path(directory), 60 * options.minutes, options.seed))
    show(outcome, console)
    faults = outcome.faults()
    if outcome.times > MOST_TIMES:
        faults.append(f"p99 is {outcome.times:.1f} times that of the idle server")
    for fault in faults:
        console.print(f"WRONG: {fault}", markup=False)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
