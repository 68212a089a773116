"""Runs ``mqis up`` with five servers under mixed load and random kills, as long as you like.

Usage: python tools/soak_enterprise.py [--minutes 30] [--seed N] [--keep DIR] [--no-kills]
           [--no-audit]

Clients with an account create, change, delete and look up queues through all servers, so most
changes are forwarded. From time to time a server is killed, half of the time by its supervisor,
which restarts it. The last two fifths are without kills. At the end:

- every acknowledged change exists, and nothing else;
- all replicas are equal, stores and journals are whole;
- the memory of no server grows once its caches are full: the slope is measured and printed;
- the pipeline's audit over all journals and exports finds no difference (if Spark is installed).

If not, it prints the faults and the seed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mqis.admin.transfer import export_file
from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.nodes import NodePlace, Nodes, NodesError, load_nodes
from mqis.config.stores import open_store
from mqis.enterprise.collect import Collector
from mqis.enterprise.control import ask
from mqis.enterprise.example import EXAMPLE
from mqis.enterprise.polling import fetch
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError
from mqis.runtime.authentication.initiator import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.client import Credentials
from mqis.storage.journal.checking import check_journal
from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import props
from mqis.wire.propvariant import PropVariant
from tools.chaos_enterprise import Copy, copy_of
from tools.replication_chaos import Ledger, State

QUEUE = ObjectType.QUEUE
#: The errors of a server that does not know whether the authority has made a change.
UNKNOWN = (
    HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER,
    HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE,
)
WORKERS = 10
#: Machines whose queues are changed: one in each site, so that every server forwards.
MACHINES = ("C14", "ams-desk1", "ber-app1")
#: The number of queues of a worker; above it, the worker deletes, so that the directory stays
#: small.
MOST_QUEUES = 60
KILL_EVERY_S = (8.0, 20.0)
#: The share of a run that is without kills, at its end: a server has to run for a while to show
#: that its memory does not grow.
CALM = 0.4
SAMPLE_S = 2.0
#: The size of a server's object cache: small, so that it is full soon and later growth is a leak.
REMEMBERED = 2048
#: A process that has seen fewer changes may still fill its caches: about three of four changes add
#: an object to the cache.
FULL = 2 * REMEMBERED
#: The time that it has to be watched from then on.
WATCHED_S = 30.0
HEAL_S = 180.0
#: A steeper slope is more than noise.
MAX_SLOPE_MB_H = 60.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


# --- load -----------------------------------------------------------------------------------------


@dataclass
class Load:
    """The state that all clients share."""

    nodes: Nodes
    user: Secret
    ledger: Ledger = field(default_factory=Ledger)
    done: Counter[str] = field(default_factory=Counter)
    #: By server: the number of changes made through it.
    through: Counter[str] = field(default_factory=Counter)

    async def connect(self, node: NodePlace) -> DirectoryClient:
        initiator = PyspnegoInitiator(self.user)
        credentials = Credentials(initiator, AuthType.SPNEGO, AuthLevel.INTEGRITY, node.address)
        address = ServerAddress(node.address, node.rpc_port)
        return await DirectoryClient.connect([address], credentials=credentials, timeout_s=15.0)


class Worker:
    """A client that changes only its own queues, so that it knows their state."""

    def __init__(self, number: int, load: Load, rng: random.Random) -> None:
        self._number = number
        self._load = load
        self._rng = rng
        self._queues: dict[str, str] = {}
        self._made = 0
        self._client: DirectoryClient | None = None
        self._server = ""

    async def run(self, until: float) -> None:
        while time.monotonic() < until:
            try:
                await self._step(await self._connected())
            except (MqisError, OSError):  # the connection failed, nothing was requested
                await self._leave()
                await asyncio.sleep(0.2)
            if self._rng.random() < 0.03:
                await self._leave()  # to another server
        await self._leave()

    async def _step(self, client: DirectoryClient) -> None:
        choice = self._rng.random()
        if choice < 0.25:
            await self._look_up(client)
        elif len(self._queues) >= MOST_QUEUES or (self._queues and choice < 0.40):
            path = self._rng.choice(sorted(self._queues))
            if await self._change("delete", path, None, client.delete(QUEUE, path=path)):
                self._queues.pop(path, None)
        elif not self._queues or choice < 0.65:
            await self._create(client)
        else:
            path = self._rng.choice(sorted(self._queues))
            label = f"{self._rng.randrange(1_000_000)}"
            call = client.set(QUEUE, _labelled(label), path=path)
            if await self._change("update", path, label, call):
                self._queues[path] = label

    async def _create(self, client: DirectoryClient) -> None:
        self._made += 1
        path = f"{self._rng.choice(MACHINES)}\\q{self._number}-{self._made}"
        label = f"{self._made}"
        if await self._change("create", path, label, client.create(QUEUE, path, _labelled(label))):
            self._queues[path] = label

    async def _look_up(self, client: DirectoryClient) -> None:
        """Looks up a queue by label, or one of its own by path; the server may not have it yet."""
        if self._queues and self._rng.random() < 0.5:
            path = self._rng.choice(sorted(self._queues))
            with suppress(DirectoryError):
                await client.get(QUEUE, [PropId.Q_LABEL], path=path)
        else:
            async for _ in client.queues(label=f"{self._rng.randrange(200)}"):
                pass
        self._load.done["lookup"] += 1

    async def _change(
        self, what: str, path: str, state: State, call: Coroutine[Any, Any, object]
    ) -> bool:
        """Makes a change and records its outcome; an unanswered change may have been made."""
        ledger = self._load.ledger
        try:
            await call
        except DirectoryError as error:
            if error.hresult in UNKNOWN:
                self._forget(path, state)
            else:  # for example, the queue has not been replicated to this server yet
                ledger.refused += 1
                await asyncio.sleep(0.05)
            return False
        except (MqisError, OSError):
            self._forget(path, state)
            await self._leave()
            return False
        ledger.done(path, state)
        self._load.done[what] += 1
        self._load.through[self._server] += 1
        return True

    def _forget(self, path: str, state: State) -> None:
        """Leaves the queue alone from now on: it may have the old or the new state."""
        self._load.ledger.maybe(path, state)
        self._queues.pop(path, None)

    async def _connected(self) -> DirectoryClient:
        if self._client is None:
            node = self._rng.choice(self._load.nodes.nodes)
            self._client = await self._load.connect(node)
            self._server = node.name
        return self._client

    async def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(MqisError, OSError):
                await client.close()


def _labelled(label: str) -> dict[int, PropVariant]:
    return props({PropId.Q_LABEL: label})


# --- kills ----------------------------------------------------------------------------------------


async def killer(run: Path, ledger: Ledger, rng: random.Random, until: float) -> None:
    while time.monotonic() < until:
        await asyncio.sleep(rng.uniform(*KILL_EVERY_S))
        node = rng.choice(load_nodes(run).nodes)
        if node.pid is None:
            continue
        with suppress(NodesError, ProcessLookupError):  # it is just restarting
            if rng.random() < 0.5:
                await asyncio.to_thread(ask, run, "kill", node.name)
            else:
                os.kill(node.pid, signal.SIGKILL)
            ledger.kills += 1


# --- memory ---------------------------------------------------------------------------------------


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


def resident(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return None
    return int(fields[1]) * _PAGE


# --- judging --------------------------------------------------------------------------------------


@dataclass
class Outcome:
    load: Load
    memory: Memory
    seconds: float = 0.0
    healed_s: float = 0.0
    restarts: int = 0
    objects: int = 0
    faults: list[str] = field(default_factory=list)
    #: The result of the pipeline's audit, or why it did not run.
    audit: str = ""


def judge(outcome: Outcome, nodes: Nodes) -> None:
    """Examines stores and journals, and adds the faults; the servers must have ended."""
    copies = {node.name: copy_of(Path(node.store)) for node in nodes}
    first_name, first = next(iter(copies.items()))
    outcome.objects = len(first)
    for name, copy in copies.items():
        if copy != first:
            different = {
                key for key in first.keys() | copy.keys() if first.get(key) != copy.get(key)
            }
            some = ", ".join(sorted(different)[:3])
            outcome.faults.append(f"{name} and {first_name} differ in {len(different)}: {some}")
    outcome.faults += lost(outcome.load.ledger, first)
    for node in nodes:
        with closing(open_store(node.store)) as store:
            outcome.faults += [f"{node.name}: {fault}" for fault in store.check()]
        outcome.faults += [
            f"{node.name}: journal: {f}"
            for f in [str(fault) for fault in check_journal(Path(node.journal)).faults]
        ]


def lost(ledger: Ledger, held: Copy) -> list[str]:
    """Describes the acknowledged changes that are missing."""
    labels: dict[str, str] = {}
    for key, value in held.items():
        if key.startswith("queue "):
            properties = value[2]  # type: ignore[index]
            path = str(properties[PropId.Q_PATHNAME].value)
            labels[path] = str(properties[PropId.Q_LABEL].value)
    return [
        f"{path} is {labels.get(path)!r}, but was acknowledged as {sorted(map(str, states))}"
        for path, states in sorted(ledger.expected.items())
        if labels.get(path) not in states
    ]


def audit(run: Path, nodes: Nodes) -> tuple[str, list[str]]:
    """Runs the pipeline's audit; returns a summary and the faults."""
    try:
        from mqis.pipeline.runs import audit as job  # noqa: PLC0415
        from mqis.pipeline.runs import ingest  # noqa: PLC0415
        from mqis.pipeline.session import Engine, session  # noqa: PLC0415
        from mqis.pipeline.tables import TableDirectory  # noqa: PLC0415
    except ImportError:
        return "not run: Spark is not installed ('make pipeline')", []
    exports = run / "exports"
    exports.mkdir(exist_ok=True)
    for node in nodes:
        with closing(open_store(node.store)) as store:
            export_file(store, exports / f"{node.name}.jsonl")
    with session(Engine(master="local[2]")) as spark:
        tables = TableDirectory(spark, run / "tables")
        read = ingest(tables, ",".join(node.journal for node in nodes), str(exports))
        found = job(tables)
    amount = f"{read.records:,} journal records and {read.objects:,} objects of {found.servers}"
    faults = []
    if found.differences or found.unaudited or read.errors or found.servers != len(nodes.nodes):
        faults.append(
            f"audit: {found.differences} differences, {len(found.unaudited)} partitions without "
            f"an authority, {read.errors} places that cannot be read, {found.servers} servers"
        )
    return f"{amount} servers: {found.differences} differences", faults


# --- a run ----------------------------------------------------------------------------------------


def mqis(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mqis.cli.main", *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={k: v for k, v in os.environ.items() if not k.startswith("MQIS_")},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"mqis {words[0]}: {done.stdout}{done.stderr}")


async def soak(
    directory: Path, seconds: float, seed: int, show: Console, *, kills: bool = True
) -> Outcome:
    """Starts the servers, loads and kills them, waits for agreement, stops and examines them.

    Does not run the audit.
    """
    rng = random.Random(seed)
    run = directory / "run"
    plan = directory / "enterprise.toml"
    plan.write_text(f"{EXAMPLE}\n[options.store]\nremembered = {REMEMBERED}\n", encoding="utf-8")
    await asyncio.to_thread(mqis, "up", str(plan), "--run", str(run), "--detach")
    try:
        nodes = load_nodes(run)
        password = (run / "passwords" / "admin").read_text(encoding="utf-8").strip()
        outcome = Outcome(Load(nodes, Secret("admin", "MERIDIAN", password)), Memory())
        await _load(run, outcome, seconds, rng, show, kills=kills)
        outcome.healed_s = await _healed(run, outcome)
        outcome.restarts = sum(node.restarts for node in load_nodes(run))
    finally:
        await asyncio.to_thread(mqis, "down", "--run", str(run))
    judge(outcome, nodes)
    return outcome


async def _load(
    run: Path, outcome: Outcome, seconds: float, rng: random.Random, show: Console, *, kills: bool
) -> None:
    load, began = outcome.load, time.monotonic()
    until = began + seconds
    workers = [Worker(n, load, random.Random(rng.random())) for n in range(WORKERS)]
    working = [asyncio.create_task(worker.run(until)) for worker in workers]
    background = [
        asyncio.create_task(outcome.memory.watch(run)),
        asyncio.create_task(_progress(load, seconds, show)),
    ]
    if kills:
        trouble = killer(run, load.ledger, random.Random(rng.random()), until - CALM * seconds)
        background.append(asyncio.create_task(trouble))
    try:
        await asyncio.gather(*working)
        outcome.seconds = time.monotonic() - began
        for task in background:
            if task.done():
                task.result()  # raises if it failed
    finally:
        for task in (*working, *background):
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)


async def _progress(load: Load, seconds: float, show: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    began = time.monotonic()
    with Progress(*columns, console=show, transient=True, disable=not show.is_terminal) as bar:
        task = bar.add_task("", total=seconds)
        while True:
            ledger = load.ledger
            text = f"{ledger.acknowledged:,} changes, {ledger.kills} kills"
            bar.update(task, completed=time.monotonic() - began, description=text)
            await asyncio.sleep(0.5)


async def _healed(run: Path, outcome: Outcome) -> float:
    """Returns the seconds until all servers run and no replica is behind."""
    began = time.monotonic()
    collector = Collector.of_run(run)
    while True:
        status = await asyncio.to_thread(collector.collect)
        took = time.monotonic() - began
        if status.converged:
            return took
        if took > HEAL_S:
            outcome.faults.append(f"not in step after {HEAL_S:.0f} s: {status.summary}")
            return took
        await asyncio.sleep(0.5)


def memory_faults(memory: Memory, nodes: Nodes) -> list[str]:
    faults = []
    for node in nodes:
        slope = memory.slope(node.name)
        if slope is not None and slope * 3600 / 1e6 > MAX_SLOPE_MB_H:
            faults.append(f"{node.name}: its memory grows by {slope * 3600 / 1e6:.0f} MB an hour")
    return faults


def print_summary(outcome: Outcome, nodes: Nodes, show: Console) -> None:
    ledger, done = outcome.load.ledger, outcome.load.done
    made = Table("server", "changes through it", "restarts", "memory MB", "longest life", "slope")
    for node in nodes:
        low, high = outcome.memory.range_mb(node.name)
        slope = outcome.memory.slope(node.name)
        growth = "caches not full" if slope is None else f"{slope * 3600 / 1e6:+.1f} MB/h"
        made.add_row(
            node.name,
            f"{outcome.load.through[node.name]:,}",
            str(len(outcome.memory.lives.get(node.name, {})) - 1),
            f"{low:.0f} to {high:.0f}",
            f"{outcome.memory.longest_s(node.name):.0f} s",
            growth,
        )
    show.print(made)
    kinds = ", ".join(
        f"{done[kind]:,} {kind}s" for kind in ("create", "update", "delete", "lookup")
    )
    show.print(
        f"{outcome.seconds:.0f} s: {ledger.acknowledged:,} changes acknowledged "
        f"({ledger.acknowledged / max(outcome.seconds, 1):.0f}/s; {kinds}), {ledger.unknown} "
        f"without an answer, {ledger.refused} refused; {ledger.kills} kills, {outcome.restarts} "
        f"restarts; equal {outcome.healed_s:.1f} s after the load; {outcome.objects:,} objects; "
        f"audit: {outcome.audit}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--keep", type=Path, help="a new directory for everything")
    parser.add_argument("--no-kills", action="store_true", help="no kills; best for memory")
    parser.add_argument("--no-audit", action="store_true", help="do not run the pipeline's audit")
    options = parser.parse_args(arguments)
    show = Console(width=None if sys.stdout.isatty() else 160)
    with tempfile.TemporaryDirectory(prefix="mqis-soak-") as made:
        directory = options.keep or Path(made)
        directory.mkdir(parents=True, exist_ok=True)
        seconds, kills = 60 * options.minutes, not options.no_kills
        outcome = asyncio.run(soak(directory, seconds, options.seed, show, kills=kills))
        nodes = outcome.load.nodes
        outcome.faults += memory_faults(outcome.memory, nodes)
        if options.no_audit:
            outcome.audit = "not asked"
        else:
            outcome.audit, faults = audit(directory / "run", nodes)
            outcome.faults += faults
    print_summary(outcome, nodes, show)
    for fault in outcome.faults[:20]:
        show.print(f"WRONG: {fault}", markup=False)
    if outcome.faults:
        show.print(f"{len(outcome.faults)} faults; repeat with --seed {options.seed}")
    else:
        show.print(f"seed {options.seed}: nothing was lost, all replicas are equal")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
