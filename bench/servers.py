"""Measures what an enterprise costs by the number of its servers, all of them on this computer.

``mqis up`` starts the servers of a plan with default settings: one site for each three of them, so
that most are backup controllers. The processor time and memory of an idle server, the replication
messages of a change, the time until every server has it, and the time in which one more server
joins and is equal. Larger enterprises are simulated: their times are those of the simulation's
clock, on lines of 1 to 20 ms, and their messages have to be as many as docs/replication.md says.
"""

from __future__ import annotations

import asyncio
import os
import re
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter_ns, process_time
from typing import NamedTuple

from bench.measure import Sample
from bench.results import Aim, Results, Row
from bench.run import Bench, Run
from mqis.client.directory import DirectoryClient
from mqis.config.nodes import NodePlace
from mqis.protocol.errors import DirectoryError
from mqis.sim.large_enterprise import CHANGE, JOIN, LargeEnterprise, Phase, Size
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tools.harness.enterprise import Load, started
from tools.harness.ledger import labelled
from tools.harness.processes import mqis, resident

SERVERS = (3, 10, 30)
SERVERS_PER_SITE = 3
#: Those of the simulated ones.
SIMULATED = (100, 1000)
#: The aims for an idle server: percent of a core, and megabytes.
MOST_PERCENT, MOST_MB = 0.2, 60
#: Seconds after the start until servers are idle, and those in which they are watched.
SETTLE_S, WATCH_S = 10.0, 30.0
CHANGES = 20
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SENT = re.compile(r"^mqis_transport_messages_sent_total (\S+)$", re.MULTILINE)


class Idle(NamedTuple):
    """An idle server: its part of a core in percent, and its memory."""

    percent: float
    mb: float


def _run(run: Run) -> Results:
    results = Results()
    for servers in SERVERS[:1] if run.quick else SERVERS:
        run.say(f"servers: {servers}")
        directory = run.directory / f"servers{servers}"
        directory.mkdir()
        asyncio.run(_measure(run, directory, servers, results))
    for servers in SERVERS[1:2] if run.quick else SIMULATED:
        run.say(f"simulated servers: {servers}")
        _simulate(servers, results)
    return results


BENCH = Bench("servers", "idle, changing and joining servers of mqis up, by their number", _run)


async def _measure(run: Run, directory: Path, servers: int, results: Results) -> None:
    table = f"{servers} servers of mqis up on one computer"
    began = perf_counter_ns()
    async with started(directory, plan(servers)) as place:
        rows = [_once(table, "start all of them", servers, perf_counter_ns() - began)]
        load = Load.of_run(place)
        idle = await _idle(load, run.scaled(10, 1) / 10)
        before = await asyncio.to_thread(_sent, load)
        changes = run.scaled(CHANGES, 3)
        spread = await _spread(load, changes)
        sent = await asyncio.to_thread(_sent, load) - before
        rows.append(Row.of(table, "a change until every server has it", [spread]))
        began = perf_counter_ns()
        (directory / "enterprise.toml").write_text(plan(servers + 1), encoding="utf-8")
        words = ("up", str(directory / "enterprise.toml"), "--run", str(place), "--yes")
        await asyncio.to_thread(mqis, *words)
        rows.append(_once(table, "one more joins and is equal", 1, perf_counter_ns() - began))
    results.rows += rows
    percent, mb = (median(values) for values in zip(*idle, strict=True))
    most = Idle(*(max(values) for values in zip(*idle, strict=True)))
    results.aims.append(
        Aim(
            f"{servers} servers, each idle: below {MOST_PERCENT} % of a core and {MOST_MB} MB",
            f"median {percent:.2f} % and {mb:.0f} MB, most {most.percent:.2f} % and {most.mb:.0f}",
            percent < MOST_PERCENT and mb < MOST_MB,
        )
    )
    results.notes.append(
        f"{servers} servers: {sent / changes:.1f} messages a change, heartbeats of that time "
        f"included; it has {servers - 1} replicas to reach"
    )


def _simulate(servers: int, results: Results) -> None:
    size = Size.usual(servers)
    table = f"{servers} servers in {size.sites} sites, by the clock of the simulation"
    began = process_time()
    phases = list(LargeEnterprise(size).phases())
    used_s = process_time() - began
    changes = [phase for phase in phases if phase.name == CHANGE]
    spread = [_ns(phase) for phase in changes]
    sample = Sample(len(spread), sum(spread), sorted(spread))
    results.rows.append(Row.of(table, "a change until every server has it", [sample]))
    results.rows += [
        _once(table, "one more joins and is equal", 1, _ns(phase))
        for phase in phases
        if phase.name == JOIN
    ]
    told = "; ".join(f"{p.name} {p.messages:,} ({p.bytes:,} bytes)" for p in phases)
    results.notes.append(f"{servers} simulated servers, {used_s:.0f} s of processor: {told}")
    sent = sum(phase.messages for phase in phases)
    expected = sum(phase.predicted.total() for phase in phases)
    results.aims.append(
        Aim(
            f"{servers} simulated servers: equal after each phase, messages as predicted",
            f"{sent:,} messages, {expected:,} predicted",
            all(phase.sent == phase.predicted for phase in phases),
        )
    )


def _ns(phase: Phase) -> int:
    return round((phase.spread_s or 0.0) * 1e9)


def plan(servers: int) -> str:
    """An enterprise file: the first server of a site is its authority, the others its backups."""
    sites = max(1, min(servers, SERVERS[-1]) // SERVERS_PER_SITE)
    lines = ['[enterprise]\nname = "Meridian"\nnetwork = "Corporate IP"']
    lines += [f'[[site]]\nname = "site{number}"' for number in range(sites)]
    for number in range(servers):
        role = "pec" if not number else "psc" if number < sites else "bsc"
        site = f"site{number % sites}"
        lines.append(f'[[server]]\nname = "dir{number}"\nsite = "{site}"\nrole = "{role}"')
    lines.append('[[machine]]\nname = "desk"\nsite = "site0"')
    lines.append('[[account]]\nname = "admin"\nadministrator = true')
    return "\n".join(lines) + "\n"


def _once(table: str, name: str, operations: int, elapsed_ns: int) -> Row:
    rate = Sample(operations, elapsed_ns).per_second
    return Row(table, name, rate, seconds=elapsed_ns / 1e9)


async def _idle(load: Load, share: float) -> list[Idle]:
    await asyncio.sleep(share * SETTLE_S)
    before, began = [_processor_s(node) for node in load.nodes], monotonic()
    await asyncio.sleep(share * WATCH_S)
    elapsed = monotonic() - began
    return [
        Idle(100 * (_processor_s(node) - first) / elapsed, _memory_mb(node))
        for node, first in zip(load.nodes, before, strict=True)
    ]


async def _spread(load: Load, changes: int) -> Sample:
    """Creates queues at the PEC, one after the other, each when all servers have the last."""
    clients = [await load.connect(node) for node in load.nodes]
    latencies = []
    for number in range(changes):
        path = f"desk\\queue{number}"
        began = perf_counter_ns()
        await clients[0].create(ObjectType.QUEUE, path, labelled(f"label {number}"))
        await asyncio.gather(*(_until(_has(client, path)) for client in clients[1:]))
        latencies.append(perf_counter_ns() - began)
    for client in clients:
        await client.close()
    return Sample(changes, sum(latencies), sorted(latencies))


def _has(client: DirectoryClient, path: str) -> Callable[[], Awaitable[bool]]:
    async def asked() -> bool:
        try:
            await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path=path)
        except DirectoryError:
            return False
        return True

    return asked


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():
        await asyncio.sleep(0.01)


def _processor_s(node: NodePlace) -> float:
    fields = Path(f"/proc/{node.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _memory_mb(node: NodePlace) -> float:
    assert node.pid is not None
    return (resident(node.pid) or 0) / 1e6


def _sent(load: Load) -> float:
    """The messages that all servers have sent."""
    total = 0.0
    for node in load.nodes:
        with urllib.request.urlopen(f"{node.monitor_url}/metrics", timeout=30) as answer:
            total += sum(float(value) for value in _SENT.findall(answer.read().decode()))
    return total
