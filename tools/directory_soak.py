"""Loads a directory server with many concurrent clients; looks for errors, leaks and lost writes.

Usage: python tools/directory_soak.py [--clients 500] [--seconds 60] [--kill] [--seed N]

The server is a separate process (``tools/directory_soak_server.py``) on a new SQLite store. Each
client has its own connection; every fourth one is authenticated by NTLM at level integrity. It
reads, looks up, creates, changes and deletes its own queues as fast as it gets answers, and checks
every answer against its earlier operations. At the end all clients leave, some after closing their
handles, some without, and the server's counters have to return to zero.

With ``--kill`` the server gets SIGKILL under that load. The store is opened again, and every
client's queues are compared with what was acknowledged. An operation that was pending at the kill
may have happened or not, but only as a whole. The server is started again on the same store,
accepts new clients, and does not know the old clients' handles.

The exit status is 1 if there was a fault. A killed process loses its memory but not what it gave to
the kernel; ``tools/flushcheck.py`` shows that acknowledged writes are on the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, TypeVar

import uvloop
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.runtime.authentication.initiator import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.client import Credentials, RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query import ColumnSet, PropertyRestriction, RestrictionSet
from mqis.wire.mqds.values import prop, props
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.operation import Operation
from tools.directory_soak_server import HOST, SOAKER

Q = TypeVar("Q")
R = TypeVar("R")

SERVER = Path(__file__).resolve().with_name("directory_soak_server.py")
MACHINE = "ams-app1"
PREFIX = f"{MACHINE}\\soak-"
NULL = VarType.NULL
EQ = 4
#: The number of queues of a client: enough to have a choice, few enough to delete often.
MOST_QUEUES = 8
#: An answer that takes this long counts as an error.
TIMEOUT_S = 180.0
#: The time limit of the server to notice that all clients have left.
QUIET_S = 180.0
#: The weights of the operations.
MIX = {"read": 55, "lookup": 15, "create": 12, "change": 10, "delete": 8}


def quota_of(label: str) -> int:
    """The quota that belongs to a label; both are always written together."""
    return zlib.crc32(label.encode())


@dataclass(slots=True)
class Kept:
    """A queue as a client knows it: its acknowledged label, and possible later ones."""

    #: None: the deletion is acknowledged, or the creation never was.
    label: str | None = None
    #: The label that an unanswered operation may have set.
    pending: tuple[str | None, ...] = ()

    @property
    def possible(self) -> set[str | None]:
        return {self.label, *self.pending}


@dataclass(slots=True)
class Report:
    """The results of all clients together."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    elapsed_s: float = 0.0

    @property
    def operations(self) -> int:
        return sum(map(len, self.times.values()))


class Soaker:
    """One client: its operations, and the queues that the server must have because of them."""

    def __init__(self, number: int, rpc: RpcClient, seed: int, report: Report) -> None:
        self._number = number
        self._rpc = rpc
        self._random = Random(f"{seed} {number}")
        self._report = report
        self._auth = ContextHandle.NULL
        self._made = 0
        #: By path, in its original upper and lower case.
        self.queues: dict[str, Kept] = {}
        #: A lookup that is never ended; it must be gone after a kill.
        self.lookup = ContextHandle.NULL

    async def _call(
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
        self._auth = (await self._call(dscomm.VALIDATE_SERVER, request)).handle
        everything = dscomm.LookupBegin(None, None, ColumnSet((PropId.S_SITEID,)), None, self._auth)
        self.lookup = (await self._call(dscomm.LOOKUP_BEGIN, everything)).handle

    async def run(self, until: Callable[[], bool]) -> None:
        """Runs random operations, each of them timed, until ``until`` returns true."""
        while not until():
            kind, operation = self._choose()
            began = perf_counter()
            await operation()
            self._report.times[kind].append(perf_counter() - began)

    def _choose(self) -> tuple[str, Callable[[], Awaitable[None]]]:
        kind = self._random.choices(list(MIX), list(MIX.values()))[0]
        mine = [path for path, kept in self.queues.items() if kept.label is not None]
        if kind in ("change", "delete") and not mine:
            kind = "create"
        if kind == "create" and len(mine) >= MOST_QUEUES:
            kind = "delete"
        path = self._random.choice(mine) if mine else None
        operations = {
            "read": lambda: self._read(path),
            "lookup": lambda: self._look_up(path),
            "create": self._create,
            "change": lambda: self._change(str(path)),
            "delete": lambda: self._delete(str(path)),
        }
        return kind, operations[kind]

    async def _read(self, path: str | None) -> None:
        """Reads one of its own queues, or one of the demonstration's."""
        wanted = path or f"{MACHINE}\\orders"
        ids = (PropId.Q_LABEL, PropId.Q_QUOTA)
        request = dscomm.GetProps(ObjectType.QUEUE, wanted, ids, (NULL, NULL), self._auth, 64)
        got = await self._call(dscomm.GET_PROPS, request, {"cp": 2})
        if path is not None:
            self._expect(path, got.values[0].value, got.values[1].value)

    async def _look_up(self, path: str | None) -> None:
        """Looks up one of its own queues by its label, which is unique to the client."""
        label = self.queues[path].label if path else "Incoming orders"
        assert label is not None
        constant = label
        restrictions = RestrictionSet(
            (PropertyRestriction(EQ, PropId.Q_LABEL, prop(PropId.Q_LABEL, constant)),)
        )
        columns = ColumnSet((PropId.Q_PATHNAME, PropId.Q_LABEL, PropId.Q_QUOTA))
        begin = dscomm.LookupBegin(None, restrictions, columns, None, self._auth)
        handle = (await self._call(dscomm.LOOKUP_BEGIN, begin)).handle
        following = dscomm.LookupNext(handle, 126, self._auth, 64)
        found = await self._call(dscomm.LOOKUP_NEXT, following, {"size": 126})
        if path is not None:
            values = [variant.value for variant in found.values]
            if len(values) != 3 or values[0] != path:
                raise SoakError(f"the lookup of {path} found {values[::3]}")
            self._expect(path, values[1], values[2])
        await self._call(dscomm.LOOKUP_END, dscomm.HandleGiven(handle))

    def _expect(self, path: str, label: object, quota: object) -> None:
        expected = self.queues[path].label
        if (label, quota) != (expected, quota_of(str(expected))):
            raise SoakError(f"{path} has label {label!r}, quota {quota!r}, not {expected!r}")

    async def _create(self) -> None:
        self._made += 1
        path = f"{PREFIX}{self._number}-{self._made}"
        label = self._new_label()
        self.queues[path] = Kept(None, (label,))
        properties = _properties(label)
        ids, values = tuple(properties), tuple(properties.values())
        request = dscomm.CreateObject(ObjectType.QUEUE, path, None, ids, values, Guid.NULL)
        await self._call(dscomm.CREATE_OBJECT, request)
        self.queues[path] = Kept(label)

    async def _change(self, path: str) -> None:
        label = self._new_label()
        self.queues[path].pending = (label,)
        properties = _properties(label)
        ids, values = tuple(properties), tuple(properties.values())
        request = dscomm.SetProps(ObjectType.QUEUE, path, ids, values)
        await self._call(dscomm.SET_PROPS, request)
        self.queues[path] = Kept(label)

    async def _delete(self, path: str) -> None:
        self.queues[path].pending = (None,)
        await self._call(dscomm.DELETE_OBJECT, dscomm.ByPath(ObjectType.QUEUE, path))
        self.queues[path] = Kept(None)

    def _new_label(self) -> str:
        return f"{self._number} {self._random.getrandbits(64):x}"

    async def leave(self) -> None:
        """Disconnects; every third client closes its handles first, the others rely on rundown."""
        if self._number % 3 == 0:
            await self._call(dscomm.LOOKUP_END, dscomm.HandleGiven(self.lookup))
            await self._call(dscomm.CLOSE_SERVER_HANDLE, dscomm.HandleGiven(self._auth))
        if self._number % 3 == 1:
            self._rpc.abort()
        await self._rpc.close()


class SoakError(Exception):
    """A wrong answer of the server."""


def _properties(label: str) -> dict[int, PropVariant]:
    return props(
        {
            PropId.Q_LABEL: label,
            PropId.Q_QUOTA: quota_of(label),
        }
    )


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
        sys.executable, str(SERVER), str(path), stdin=pipe, stdout=pipe
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
        runs = (_run(soaker, lambda: perf_counter() - began >= seconds) for soaker in soakers)
        await _gathered(runs, report)
        report.elapsed_s = perf_counter() - began
        await _gathered((soaker.leave() for soaker in soakers), report)
        left = await running.quiet()
    faults = [f"{count} x {error}" for error, count in report.errors.items()]
    if loaded["connections"] != clients or loaded["lookups"] != clients:
        faults.append(f"under load the server counted {loaded}")
    if any(left.values()):
        faults.append(f"when all clients had left, the server still counted {left}")
    return report, [*faults, *examine(path, soakers)]


async def soak_and_kill(
    path: Path, clients: int, seconds: float, seed: int
) -> tuple[Report, list[str]]:
    """Loads the server, kills it and examines the store; returns the results and the faults."""
    report = Report()
    dead = asyncio.Event()
    async with server(path) as running:
        soakers = await connect_all(running.port, clients, seed, report)
        began = perf_counter()
        runs = [asyncio.create_task(_run_to_death(soaker, dead, report)) for soaker in soakers]
        await asyncio.sleep(seconds)
        dead.set()
        await running.kill()
        report.elapsed_s = perf_counter() - began
        await asyncio.gather(*runs)
    faults = [f"{count} x {error}" for error, count in report.errors.items()]
    faults += examine(path, soakers)
    async with server(path) as running:
        revived = await connect(running.port, clients, seed, report)
        old = dscomm.LookupNext(soakers[0].lookup, 8, revived._auth, 64)
        try:
            await revived._call(dscomm.LOOKUP_NEXT, old, {"size": 8})
            faults.append("a lookup from before the kill still exists")
        except RpcFault as fault:
            if fault.status != FaultStatus.CONTEXT_MISMATCH:
                faults.append(f"a lookup from before the kill ends in {fault}")
        for _ in range(20):
            _, operation = revived._choose()
            await operation()
        await revived.leave()
        left = await running.quiet()
    if any(left.values()):
        faults.append(f"after the restart the server still counts {left}")
    return report, [*faults, *examine(path, [*soakers, revived])]


async def _run(soaker: Soaker, until: Callable[[], bool]) -> None:
    await soaker.run(until)


async def _run_to_death(soaker: Soaker, dead: asyncio.Event, report: Report) -> None:
    try:
        await soaker.run(lambda: False)
    except RpcConnectionError as error:
        if not dead.is_set():
            report.errors[str(error)] += 1
    except (SoakError, RpcFault) as error:
        report.errors[str(error)] += 1
    soaker._rpc.abort()


async def _gathered(runs: Iterator[Awaitable[None]], report: Report) -> None:
    for outcome in await asyncio.gather(*runs, return_exceptions=True):
        if isinstance(outcome, BaseException):
            report.errors[f"{type(outcome).__name__}: {outcome}"] += 1


def examine(path: Path, soakers: list[Soaker]) -> list[str]:
    """Compares the store with the clients' acknowledged operations; describes the differences."""
    store = SqliteStore(path)
    faults = store.check()
    with store.read() as view:
        held = {q.path: q for q in view.objects(ObjectType.QUEUE) if q.path is not None}
    expected = {queue: kept for soaker in soakers for queue, kept in soaker.queues.items()}
    for queue, kept in expected.items():
        found = held.get(queue)
        label = None if found is None else found.value(PropId.Q_LABEL)
        if label not in kept.possible:
            faults.append(f"{queue} has label {label!r}, possible are {kept.possible}")
        elif found is not None and found.value(PropId.Q_QUOTA) != quota_of(str(label)):
            faults.append(f"{queue} is half-written: {dict(found.properties)}")
    known = expected.keys()
    faults += [f"{q} exists, but no client made it" for q in held if _is_ours(q) and q not in known]
    store.close()
    return faults


def _is_ours(path: str) -> bool:
    return path.startswith(PREFIX)


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


async def run(options: argparse.Namespace, path: Path) -> tuple[Report, list[str]]:
    kind: Callable[..., Any] = soak_and_kill if options.kill else soak
    outcome: tuple[Report, list[str]] = await kind(
        path, options.clients, options.seconds, options.seed
    )
    return outcome


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Loads one directory server with many clients.")
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1801)
    parser.add_argument("--kill", action="store_true", help="kill -9 the server under the load")
    options = parser.parse_args(arguments)
    console = Console()
    with tempfile.TemporaryDirectory() as directory:
        report, faults = uvloop.run(run(options, Path(directory) / "soak.db"))
    console.print(table(report))
    how = "killed under load" if options.kill else "no handle left"
    verdict = f"{options.clients} clients, {report.operations:,} operations, {how}"
    for fault in faults[:20]:
        console.print(f"fault: {fault}", style="red", highlight=False)
    console.print(f"{verdict}: {len(faults) or 'no'} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
