"""Loads a directory server with many concurrent clients; looks for errors, leaks and lost writes.

The server is a separate process (``directoryserver``) on a new SQLite store. Each client has its
own connection; every fourth one is authenticated by NTLM at level integrity. It reads, looks up,
creates, changes and deletes its own queues as fast as it gets answers, and checks every answer
against its earlier operations. At the end all clients leave, some after closing their handles, some
without, and the server's counters have to return to zero.

With ``--kill`` the server gets SIGKILL under that load. The store is opened again, and every
client's queues are compared with what was acknowledged. An operation that was pending at the kill
may have happened or not, but only as a whole. The server is started again on the same store,
accepts new clients, and does not know the old clients' handles.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TypeVar

import uvloop
from rich.box import SIMPLE_HEAD
from rich.table import Table

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import ColumnSet, PropertyRestriction, RestrictionSet
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import VarType
from mqis.wire.rpc.interfaces import Operation
from tools.harness.directoryserver import HOST, SOAKER
from tools.harness.ledger import Ledger, State, copy_of, labelled, lost, quota_of
from tools.harness.processes import ROOT, module
from tools.harness.scenario import Given, Scenario, Verdict
from tools.harness.workers import Worker

Q = TypeVar("Q")
R = TypeVar("R")

MACHINE = "ams-app1"
NULL = VarType.NULL
EQ = 4
#: The number of queues of a client: enough to have a choice, few enough to delete often.
MOST_QUEUES = 8
#: An answer that takes this long counts as an error.
TIMEOUT_S = 180.0
#: The time limit of the server to notice that all clients have left.
QUIET_S = 180.0
#: The weights of the operations.
MIX = {"read": 55, "look_up": 15, "create": 12, "change": 10, "delete": 8}


class SoakError(Exception):
    """A wrong answer of the server."""


@dataclass(slots=True)
class Report:
    """The results of all clients together."""

    ledger: Ledger = field(default_factory=Ledger)
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    elapsed_s: float = 0.0

    @property
    def operations(self) -> int:
        return sum(map(len, self.times.values()))


class Soaker:
    """One client, at the level of the RPC interface: its calls, and its worker."""

    def __init__(self, number: int, rpc: RpcClient, seed: int, report: Report) -> None:
        self._number = number
        self._rpc = rpc
        self._report = report
        rng = Random(f"{seed} {number}")
        self._worker = Worker(number, report.ledger, rng, MIX, [MACHINE], MOST_QUEUES)
        self.auth = ContextHandle.NULL
        #: A lookup that is never ended; it must be gone after a kill.
        self.lookup = ContextHandle.NULL

    async def call(
        self, operation: Operation[Q, R], request: Q, given: Mapping[str, int] | None = None
    ) -> R:
        got = await invoke(
            self._rpc, dscomm.DSCOMM, operation, request, given=given or {}, timeout_s=TIMEOUT_S
        )
        result = getattr(got, "result", 0)
        if result:
            raise SoakError(f"{operation.name} returned 0x{result:08x}")
        return got

    async def begin(self) -> None:
        request = dscomm.ValidateServer(Guid.NULL, 0, 1, 1, b"")
        self.auth = (await self.call(dscomm.VALIDATE_SERVER, request)).handle
        everything = dscomm.LookupBegin(None, None, ColumnSet((PropId.S_SITEID,)), None, self.auth)
        self.lookup = (await self.call(dscomm.LOOKUP_BEGIN, everything)).handle

    async def run(self, is_over: Callable[[], bool]) -> None:
        """Runs random operations, each of them timed, until ``is_over`` returns true."""
        while not is_over():
            kind = self._worker.choose()
            began = perf_counter()
            await self._worker.step(self, kind)
            self._report.times[kind].append(perf_counter() - began)

    async def run_to_death(self, dead: asyncio.Event) -> None:
        """Runs random operations until the server is killed, which ``dead`` tells."""
        try:
            await self.run(lambda: False)
        except RpcConnectionError as error:
            if not dead.is_set():
                self._report.errors[str(error)] += 1
        except (SoakError, RpcFault) as error:
            self._report.errors[str(error)] += 1
        self._rpc.abort()

    async def read(self, path: str | None, label: State) -> None:
        """Reads one of its own queues, or one of the demonstration's."""
        wanted = path or f"{MACHINE}\\orders"
        ids = (PropId.Q_LABEL, PropId.Q_QUOTA)
        request = dscomm.GetProps(ObjectType.QUEUE, wanted, ids, (NULL, NULL), self.auth, 64)
        got = await self.call(dscomm.GET_PROPS, request, {"cp": 2})
        if path is not None:
            _expect(path, label, got.values[0].value, got.values[1].value)

    async def look_up(self, path: str | None, label: State) -> None:
        """Looks up one of its own queues by its label, which is unique to the client."""
        constant = prop(PropId.Q_LABEL, label or "Incoming orders")
        restrictions = RestrictionSet((PropertyRestriction(EQ, PropId.Q_LABEL, constant),))
        columns = ColumnSet((PropId.Q_PATHNAME, PropId.Q_LABEL, PropId.Q_QUOTA))
        begin = dscomm.LookupBegin(None, restrictions, columns, None, self.auth)
        handle = (await self.call(dscomm.LOOKUP_BEGIN, begin)).handle
        following = dscomm.LookupNext(handle, 126, self.auth, 64)
        found = await self.call(dscomm.LOOKUP_NEXT, following, {"size": 126})
        if path is not None:
            values = [variant.value for variant in found.values]
            if len(values) != 3 or values[0] != path:
                raise SoakError(f"the lookup of {path} found {values[::3]}")
            _expect(path, label, values[1], values[2])
        await self.call(dscomm.LOOKUP_END, dscomm.HandleGiven(handle))

    async def create(self, path: str, label: str) -> None:
        properties = labelled(label)
        ids, values = tuple(properties), tuple(properties.values())
        request = dscomm.CreateObject(ObjectType.QUEUE, path, None, ids, values, Guid.NULL)
        await self.call(dscomm.CREATE_OBJECT, request)

    async def change(self, path: str, label: str) -> None:
        properties = labelled(label)
        ids, values = tuple(properties), tuple(properties.values())
        request = dscomm.SetProps(ObjectType.QUEUE, path, ids, values)
        await self.call(dscomm.SET_PROPS, request)

    async def delete(self, path: str) -> None:
        await self.call(dscomm.DELETE_OBJECT, dscomm.ByPath(ObjectType.QUEUE, path))

    async def leave(self) -> None:
        """Disconnects; every third client closes its handles first, the others rely on rundown."""
        if self._number % 3 == 0:
            await self.call(dscomm.LOOKUP_END, dscomm.HandleGiven(self.lookup))
            await self.call(dscomm.CLOSE_SERVER_HANDLE, dscomm.HandleGiven(self.auth))
        if self._number % 3 == 1:
            self._rpc.abort()
        await self._rpc.close()


def _expect(path: str, expected: State, label: object, quota: object) -> None:
    if (label, quota) != (expected, quota_of(str(expected))):
        raise SoakError(f"{path} has label {label!r}, quota {quota!r}, not {expected!r}")


# --- the server -----------------------------------------------------------------------------------


@dataclass(slots=True)
class ServerProcess:
    process: asyncio.subprocess.Process
    port: int

    async def counters(self) -> dict[str, int]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"\n")
        async with asyncio.timeout(TIMEOUT_S):
            line = await self.process.stdout.readline()
        found: dict[str, int] = json.loads(line)
        return found

    async def quiet(self) -> dict[str, int]:
        """Waits until the counters are zero; returns the last counters after the time limit."""
        deadline = perf_counter() + QUIET_S
        while any((counters := await self.counters()).values()) and perf_counter() < deadline:
            await asyncio.sleep(0.05)
        return counters

    async def kill(self) -> None:
        self.process.kill()
        code = await self.process.wait()
        if code != -signal.SIGKILL:
            raise SoakError(f"the server ended before it was killed, with status {code}")


@asynccontextmanager
async def server(path: Path) -> AsyncIterator[ServerProcess]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *module("directoryserver", path), stdin=pipe, stdout=pipe, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            line = await process.stdout.readline()
        word, _, port = line.decode().partition(" ")
        if word != "listening":
            raise SoakError("the server did not start")
        yield ServerProcess(process, int(port))
    finally:
        if process.returncode is None:
            process.stdin.close()
            try:
                async with asyncio.timeout(10):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def connect(port: int, number: int, seed: int, report: Report) -> Soaker:
    credentials = None
    if number % 4 == 0:
        secret = Secret(SOAKER.name, SOAKER.domain, nt_hash=SOAKER.nt_hash)
        initiator = PyspnegoInitiator(secret)
        credentials = Credentials(initiator, AuthType.NTLM, AuthLevel.INTEGRITY, HOST)
    rpc = await RpcClient.connect(
        HOST, port, [dscomm.SYNTAX], credentials=credentials, timeout_s=TIMEOUT_S
    )
    soaker = Soaker(number, rpc, seed, report)
    await soaker.begin()
    return soaker


async def connect_all(port: int, clients: int, seed: int, report: Report) -> list[Soaker]:
    """Connects the clients in groups, as a listener's queue is finite."""
    found: list[Soaker] = []
    for start in range(0, clients, 50):
        numbers = range(start, min(start + 50, clients))
        group = (connect(port, number, seed, report) for number in numbers)
        found += await asyncio.gather(*group)
    return found


# --- the two kinds of run -------------------------------------------------------------------------


async def soak(path: Path, clients: int, seconds: float, seed: int) -> tuple[Report, list[str]]:
    """Loads the server, then lets all clients leave; returns the results and the faults."""
    report = Report()
    async with server(path) as running:
        soakers = await connect_all(running.port, clients, seed, report)
        loaded = await running.counters()
        began = perf_counter()
        runs = (soaker.run(lambda: perf_counter() - began >= seconds) for soaker in soakers)
        await _gathered(runs, report)
        report.elapsed_s = perf_counter() - began
        await _gathered((soaker.leave() for soaker in soakers), report)
        left = await running.quiet()
    faults = [f"{count} x {error}" for error, count in report.errors.items()]
    if loaded["connections"] != clients or loaded["lookups"] != clients:
        faults.append(f"under load the server counted {loaded}")
    if any(left.values()):
        faults.append(f"when all clients had left, the server still counted {left}")
    return report, [*faults, *examine(path, report.ledger)]


async def soak_and_kill(
    path: Path, clients: int, seconds: float, seed: int
) -> tuple[Report, list[str]]:
    """Loads the server, kills it and examines the store; returns the results and the faults."""
    report = Report()
    dead = asyncio.Event()
    async with server(path) as running:
        soakers = await connect_all(running.port, clients, seed, report)
        began = perf_counter()
        runs = [asyncio.create_task(soaker.run_to_death(dead)) for soaker in soakers]
        await asyncio.sleep(seconds)
        dead.set()
        await running.kill()
        report.elapsed_s = perf_counter() - began
        await asyncio.gather(*runs)
    faults = [f"{count} x {error}" for error, count in report.errors.items()]
    faults += examine(path, report.ledger)
    async with server(path) as running:
        revived = await connect(running.port, clients, seed, report)
        old = dscomm.LookupNext(soakers[0].lookup, 8, revived.auth, 64)
        try:
            await revived.call(dscomm.LOOKUP_NEXT, old, {"size": 8})
            faults.append("a lookup from before the kill still exists")
        except RpcFault as fault:
            if fault.status != FaultStatus.CONTEXT_MISMATCH:
                faults.append(f"a lookup from before the kill ends in {fault}")
        more = iter(range(20))
        await revived.run(lambda: next(more, None) is None)
        await revived.leave()
        left = await running.quiet()
    if any(left.values()):
        faults.append(f"after the restart the server still counts {left}")
    return report, [*faults, *examine(path, report.ledger)]


async def _gathered(runs: Iterable[Awaitable[None]], report: Report) -> None:
    for outcome in await asyncio.gather(*runs, return_exceptions=True):
        if isinstance(outcome, BaseException):
            report.errors[f"{type(outcome).__name__}: {outcome}"] += 1


def examine(path: Path, ledger: Ledger) -> list[str]:
    """Compares the store with the clients' acknowledged operations; describes the differences."""
    with closing(SqliteStore(path)) as store:
        return [*store.check(), *lost(ledger, copy_of(store))]


# --- for people -----------------------------------------------------------------------------------


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def table(report: Report) -> Table:
    found = Table(box=SIMPLE_HEAD)
    found.add_column("operation")
    for name in ("count", "per second", "median ms", "p99 ms", "slowest ms"):
        found.add_column(name, justify="right")
    everything = [t for times in report.times.values() for t in times]
    for kind, times in [*report.times.items(), ("all", everything)]:
        if times:
            found.add_row(
                kind,
                f"{len(times):,}",
                f"{len(times) / report.elapsed_s:,.0f}",
                f"{percentile(times, 0.5) * 1000:.1f}",
                f"{percentile(times, 0.99) * 1000:.1f}",
                f"{max(times) * 1000:.1f}",
            )
    return found


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kill", action="store_true", help="kill -9 the server under the load")


def _run(given: Given) -> Verdict:
    options = given.options
    kind = soak_and_kill if options.kill else soak
    path = given.directory / "soak.db"
    report, faults = uvloop.run(kind(path, options.clients, options.seconds, given.seed))
    how = "killed under load" if options.kill else "no handle left"
    summary = f"{options.clients} clients, {report.operations:,} operations, {how}"
    return Verdict(summary, faults, "no faults", [table(report)])


SCENARIO = Scenario("directory", "one directory server under many clients", _run, _options)
