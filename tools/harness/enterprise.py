"""Five servers of ``mqis up`` under load, killed and cut off: the scenarios chaos and soak.

Clients with an account create, change, delete and look up queues through all servers, so most
changes are forwarded. Meanwhile servers are killed, in ``chaos`` also cut off from each other. Then
all faults end. At the end:

- every acknowledged change exists, and nothing else;
- all replicas are equal, stores and journals are whole.

``soak`` runs as long as you like. The last two fifths are without kills, and then also:

- the memory of no server grows once its caches are full: the slope is measured and printed;
- the pipeline's audit over all journals and exports finds no difference (if Spark is installed).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mqis.admin.transfer import export_file
from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, Nodes, load_nodes
from mqis.config.stores import open_store
from mqis.enterprise.collected_status import Collector
from mqis.enterprise.control import ask
from mqis.enterprise.example import EXAMPLE
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tools.harness.ledger import (
    Ledger,
    State,
    copy_of,
    differences,
    labelled,
    lost,
    own_faults,
)
from tools.harness.links import Link, cutter, proxied
from tools.harness.memory import REMEMBERED, Memory, memory_faults
from tools.harness.processes import mqis
from tools.harness.scenario import Given, Scenario, Verdict, bar
from tools.harness.workers import Worker

QUEUE = ObjectType.QUEUE
WORKERS = 12
#: Machines whose queues are changed: one in each site, so that every server forwards.
MACHINES = ("C14", "ams-desk1", "ber-app1")
MOST_QUEUES = 60
#: The weights of the operations.
CHANGES = {"create": 50, "change": 35, "delete": 15}
EVERYTHING = {"read": 12, "look_up": 13, "create": 25, "change": 35, "delete": 15}
#: Seconds between two kills, and until a server that its supervisor does not start is started.
KILL_EVERY_S, DOWN_S = (8.0, 20.0), (0.2, 2.0)
CHAOS_KILL_EVERY_S = (2.0, 5.0)
#: The share of a soak that is without kills, at its end: a server has to run for a while to show
#: that its memory does not grow.
CALM = 0.4
HEAL_S = 180.0


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

    @classmethod
    def of_run(cls, run: Path) -> Load:
        """The load of the account that administers the enterprise of a plan."""
        password = (run / "passwords" / "admin").read_text(encoding="utf-8").strip()
        nodes = load_nodes(run)
        return cls(nodes, Secret("admin", nodes.enterprise.upper(), password))

    async def connect(self, node: NodePlace) -> DirectoryClient:
        initiator = PyspnegoInitiator(self.user)
        credentials = Credentials(initiator, AuthType.SPNEGO, AuthLevel.INTEGRITY, node.address)
        address = ServerAddress(node.address, node.rpc_port)
        return await DirectoryClient.connect([address], credentials=credentials, timeout_s=15.0)


@dataclass(frozen=True, slots=True)
class ClientCalls:
    """The calls of a worker through the public client; a replica may not have a change yet."""

    client: DirectoryClient
    server: str

    async def create(self, path: str, label: str) -> None:
        await self.client.create(QUEUE, path, labelled(label))

    async def change(self, path: str, label: str) -> None:
        await self.client.set(QUEUE, labelled(label), path=path)

    async def delete(self, path: str) -> None:
        await self.client.delete(QUEUE, path=path)

    async def read(self, path: str | None, _label: State) -> None:
        with suppress(DirectoryError):
            await self.client.get(QUEUE, [PropId.Q_LABEL], path=path or "C14\\orders")

    async def look_up(self, _path: str | None, label: State) -> None:
        async for _ in self.client.queues(label=label or "Incoming orders"):
            pass


async def work(worker: Worker, load: Load, is_over: Callable[[], bool]) -> None:
    """Lets a worker work through one server after the other."""
    calls: ClientCalls | None = None
    while not is_over():
        kind, rng = worker.choose(), worker.random
        try:
            if calls is None:
                node = rng.choice(load.nodes.nodes)
                calls = ClientCalls(await load.connect(node), node.name)
            await worker.step(calls, kind)
        except DirectoryError:  # for example, the queue has not been replicated to this server yet
            await asyncio.sleep(0.05)
        except (MqisError, OSError):
            calls = await _left(calls)
            await asyncio.sleep(0.2)
        else:
            load.done[kind] += 1
            load.through[calls.server] += kind in CHANGES
        if rng.random() < 0.03:
            calls = await _left(calls)  # to another server
    await _left(calls)


async def _left(calls: ClientCalls | None) -> ClientCalls | None:
    """Closes a connection; returns None, as there is no other."""
    if calls is not None:
        with suppress(MqisError, OSError):
            await calls.client.close()
    return None


async def killer(
    run: Path,
    ledger: Ledger,
    rng: random.Random,
    is_over: Callable[[], bool],
    every_s: tuple[float, float],
) -> None:
    """Kills servers: directly, by their supervisor, and so that they stay down for a while."""
    while not is_over():
        await asyncio.sleep(rng.uniform(*every_s))
        node = rng.choice(load_nodes(run).nodes)
        if node.pid is None or is_over():
            continue
        way = rng.randrange(3)
        with suppress(NodesError, ProcessLookupError):  # it is just restarting
            if way == 0:
                os.kill(node.pid, signal.SIGKILL)
            else:
                await asyncio.to_thread(ask, run, "kill", node.name, stay=way == 1)
            ledger.kills += 1
            if way == 1:
                await asyncio.sleep(rng.uniform(*DOWN_S))
                await asyncio.to_thread(ask, run, "start", node.name)


# --- a run ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Course:
    """A run: its end, its operations and its faults."""

    #: It ends after so many seconds (0: no limit) or acknowledged changes.
    seconds: float
    changes: float = float("inf")
    mix: Mapping[str, int] = field(default_factory=lambda: EVERYTHING)
    kill_every_s: tuple[float, float] | None = KILL_EVERY_S
    cuts: bool = False
    #: The share of the run at its end that is without faults.
    calm: float = CALM
    #: The enterprise file.
    plan: str = f"{EXAMPLE}\n[options.store]\nremembered = {REMEMBERED}\n"


@dataclass
class Outcome:
    course: Course
    load: Load
    memory: Memory = field(default_factory=Memory)
    seconds: float = 0.0
    healed_s: float = 0.0
    restarts: int = 0
    objects: int = 0
    faults: list[str] = field(default_factory=list)


@asynccontextmanager
async def started(directory: Path, plan: str) -> AsyncIterator[Path]:
    """Starts the servers of a plan and stops them at the end; gives their run directory."""
    run, file = directory / "run", directory / "enterprise.toml"
    file.write_text(plan, encoding="utf-8")
    await asyncio.to_thread(mqis, "up", str(file), "--run", str(run), "--detach")
    try:
        yield run
    finally:
        await asyncio.to_thread(mqis, "down", "--run", str(run))


async def trouble(directory: Path, course: Course, seed: int, console: Console) -> Outcome:
    """Starts the servers, loads and disturbs them, waits for agreement, stops and examines them."""
    rng = random.Random(seed)
    async with AsyncExitStack() as stack:
        run = await stack.enter_async_context(started(directory, course.plan))
        outcome = Outcome(course, Load.of_run(run))
        links = []
        if course.cuts:
            links = await stack.enter_async_context(proxied(run, outcome.load.nodes))
        await _load(run, outcome, rng, links, console=console)
        outcome.healed_s = await _healed(run, outcome)
        outcome.restarts = sum(node.restarts for node in load_nodes(run))
    judge(outcome)
    return outcome


async def _load(
    run: Path, outcome: Outcome, rng: random.Random, links: list[Link], *, console: Console
) -> None:
    course = outcome.course
    load, ledger, began = outcome.load, outcome.load.ledger, time.monotonic()

    def passed(share: float) -> bool:
        """Returns whether this share of the run is over."""
        late = course.seconds and time.monotonic() - began >= share * course.seconds
        return bool(late) or ledger.acknowledged >= course.changes

    workers = [
        Worker(number, ledger, random.Random(rng.random()), course.mix, MACHINES, MOST_QUEUES)
        for number in range(WORKERS)
    ]
    working = [work(worker, load, lambda: passed(1)) for worker in workers]
    if course.kill_every_s is not None:
        kills, faults_end = random.Random(rng.random()), lambda: passed(1 - course.calm)
        working.append(killer(run, ledger, kills, faults_end, course.kill_every_s))
    if links:
        cuts = random.Random(rng.random())
        working.append(cutter(links, ledger, cuts, lambda: passed(1)))
    watching = [
        asyncio.create_task(outcome.memory.watch(run)),
        asyncio.create_task(_show(ledger, course, console)),
    ]
    try:
        async with asyncio.TaskGroup() as group:  # the first that fails ends all
            for each in working:
                group.create_task(each)
        outcome.seconds = time.monotonic() - began
        for task in watching:
            if task.done():
                task.result()  # raises if it failed
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def _show(ledger: Ledger, course: Course, console: Console) -> None:
    began = time.monotonic()
    with bar(console, course.seconds or course.changes) as show:
        while True:
            done = time.monotonic() - began if course.seconds else ledger.acknowledged
            text = f"{ledger.acknowledged:,} changes, {ledger.kills} kills, {ledger.cuts} cuts"
            show(done, text)
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


# --- judging --------------------------------------------------------------------------------------


def judge(outcome: Outcome) -> None:
    """Examines stores and journals, and adds the faults; the servers must have ended."""
    copies = {}
    for node in outcome.load.nodes:
        with closing(open_store(node.store)) as store:
            copies[node.name] = copy_of(store)
            outcome.faults += own_faults(node.name, store, Path(node.journal))
    first = next(iter(copies.values()))
    outcome.objects = len(first)
    outcome.faults += [*differences(copies), *lost(outcome.load.ledger, first)]


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


# --- the scenarios --------------------------------------------------------------------------------


def _summary(outcome: Outcome) -> str:
    ledger, done = outcome.load.ledger, outcome.load.done
    kinds = ", ".join(f"{done[kind]:,} {kind}" for kind in EVERYTHING)
    return (
        f"{outcome.seconds:.0f} s: {ledger.acknowledged:,} changes acknowledged "
        f"({ledger.acknowledged / max(outcome.seconds, 1):.0f}/s; {kinds}), {ledger.unknown} "
        f"without an answer, {ledger.refused} refused; {ledger.kills} kills, {ledger.cuts} cuts, "
        f"{outcome.restarts} restarts; all replicas equal {outcome.healed_s:.1f} s after the "
        f"load; {outcome.objects:,} objects"
    )


def _table(outcome: Outcome) -> Table:
    made = Table("server", "changes through it", "processes", "memory MB", "longest life", "slope")
    for node in outcome.load.nodes:
        low, high = outcome.memory.range_mb(node.name)
        slope = outcome.memory.slope(node.name)
        growth = "caches not full" if slope is None else f"{slope * 3600 / 1e6:+.1f} MB/h"
        made.add_row(
            node.name,
            f"{outcome.load.through[node.name]:,}",
            str(len(outcome.memory.lives.get(node.name, {}))),
            f"{low:.0f} to {high:.0f}",
            f"{outcome.memory.longest_s(node.name):.0f} s",
            growth,
        )
    return made


RIGHT = "nothing was lost, all replicas are equal"


def chaos_course(changes: float, seconds: float, signing: str = "require") -> Course:
    """A run with kills and cuts to its end."""
    plan = EXAMPLE.replace('signing = "require"', f'signing = "{signing}"')
    return Course(seconds, changes, CHANGES, CHAOS_KILL_EVERY_S, cuts=True, calm=0.0, plan=plan)


def _chaos(given: Given) -> Verdict:
    options = given.options
    course = chaos_course(options.changes, options.seconds, options.signing)
    outcome = asyncio.run(trouble(given.directory, course, given.seed, given.console))
    return Verdict(_summary(outcome), outcome.faults, RIGHT)


def _chaos_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--changes", type=int, default=10_000, help="acknowledged changes")
    parser.add_argument("--seconds", type=float, default=0.0, help="time limit; 0: none")
    parser.add_argument("--signing", choices=("none", "accept", "require"), default="require")


def _soak(given: Given) -> Verdict:
    options = given.options
    every_s = None if options.no_kills else KILL_EVERY_S
    course = Course(60 * options.minutes, kill_every_s=every_s)
    outcome = asyncio.run(trouble(given.directory, course, given.seed, given.console))
    outcome.faults += memory_faults(outcome.memory, outcome.load.nodes)
    audited = "not asked"
    if not options.no_audit:
        audited, faults = audit(given.directory / "run", outcome.load.nodes)
        outcome.faults += faults
    summary = f"{_summary(outcome)}; audit: {audited}"
    return Verdict(summary, outcome.faults, RIGHT, [_table(outcome)])


def _soak_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--no-kills", action="store_true", help="no kills; best for memory")
    parser.add_argument("--no-audit", action="store_true", help="do not run the pipeline's audit")


CHAOS = Scenario(
    "chaos", "five servers, killed and cut off from each other", _chaos, _chaos_options
)
SOAK = Scenario("soak", "five servers under load, killed at random", _soak, _soak_options)
