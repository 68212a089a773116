"""Measures calls at each level of protection by NTLM, beside the same server with pyspnego's way.

Both servers are ours and take the same bytes. The peer signs and seals messages through pyspnego,
as mqis did before it did so itself. CPU per call is that of the server process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import uvloop

from bench.load import cpu_s
from bench.measure import Sample, contest
from bench.processes import Cores, Served, kept_to
from bench.results import Aim, Results, Row, ratio
from bench.rpc import CLIENTS, Load, plural, start_server
from bench.run import Bench, Run
from mqis.protocol.authentication import AuthLevel

CALL = "is_server_listening"
LEVELS = {
    "none": AuthLevel.NONE,
    "connect": AuthLevel.CONNECT,
    "integrity": AuthLevel.INTEGRITY,
    "privacy": AuthLevel.PRIVACY,
}
AIM = 2


def _run(run: Run) -> Results:
    results = Results()
    cores = Cores.available()
    run.say("signed: starting servers")
    with kept_to(cores.server):
        servers = {"mqis": start_server(run, "mqis"), "pyspnego": start_server(run, "pyspnego")}
    loop = uvloop.new_event_loop()
    run.resources.callback(loop.close)
    with kept_to(cores.clients):
        for clients in CLIENTS:
            for name, level in LEVELS.items():
                run.say(f"signed: {name}, {plural(clients)}")
                _level(run, results, loop, servers, clients=clients, name=name, level=level)
    return results


def _level(
    run: Run,
    results: Results,
    loop: asyncio.AbstractEventLoop,
    servers: dict[str, Served],
    *,
    clients: int,
    name: str,
    level: AuthLevel,
) -> None:
    """Runs the rounds of one level; the peer takes part where messages are protected."""
    protected = level > AuthLevel.CONNECT
    takes_part = servers if protected else {"mqis": servers["mqis"]}
    meters = {
        contender: _Meter(Load(loop, served.port, CALL, clients, level.value), served.pid)
        for contender, served in takes_part.items()
    }
    most = run.scaled(20_000, 800)
    timed: dict[str, Callable[[], Sample]] = {
        contender: (lambda meter=meter: meter.sample(run.sample_s, most))  # type: ignore[misc]
        for contender, meter in meters.items()
    }
    try:
        samples = contest(run.rounds, timed)
    finally:
        for meter in meters.values():
            meter.close()
    table = f"{CALL}, NTLM, {plural(clients)}"
    ours, theirs = samples["mqis"], samples.get("pyspnego")
    peer = None if theirs is None else ("pyspnego", theirs)
    row = Row.of(table, name, ours, peer=peer)
    results.rows.append(replace(row, cpu_us=meters["mqis"].cpu_us))
    if theirs is not None:
        row = Row.of(table, f"{name}, pyspnego", theirs)
        results.rows.append(replace(row, cpu_us=meters["pyspnego"].cpu_us))
        found = ratio(ours, theirs)
        goal = f">= {AIM}x pyspnego's way at {name}, {plural(clients)}"
        results.aims.append(Aim(goal, f"{found:.2f}x", found >= AIM))


class _Meter:
    """A load, and the CPU time that its server used for it."""

    def __init__(self, load: Load, pid: int) -> None:
        self._load, self._pid = load, pid
        self._calls, self._cpu_s = 0, 0.0

    def sample(self, seconds: float, most: int) -> Sample:
        before = cpu_s(self._pid)
        sample = self._load.sample(seconds, most)
        self._cpu_s += cpu_s(self._pid) - before
        self._calls += sample.operations
        return sample

    @property
    def cpu_us(self) -> float:
        return self._cpu_s * 1e6 / self._calls

    def close(self) -> None:
        self._load.close()


BENCH = Bench("signed", "calls at each level of protection, and pyspnego's way", _run)
