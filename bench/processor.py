"""Measures the processor time that the directory server takes for a call, without sockets.

A shared machine changes elapsed time more than processor time, so that this shows the effect of a
change of the code where the other entries show noise. Sixteen connections of one process get
prepared bytes; the clock runs while the server handles them, and stands while the clients read the
answers and prepare the next requests. Creates include the writer's thread and its flushes.

``python -m bench.processor none|integrity NAME`` profiles the event loop during one operation.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from cProfile import Profile
from dataclasses import replace
from itertools import cycle
from math import inf
from pathlib import Path
from pstats import SortKey, Stats
from tempfile import TemporaryDirectory
from time import process_time_ns, thread_time_ns
from typing import Any

import uvloop

from bench import calls, twins
from bench.calls import DSCOMM, Call, RpcPeer
from bench.enterprise import DESCRIPTOR
from bench.load import LoadError, Operation
from bench.results import Results, Row
from bench.rpc import DOMAIN, PASSWORD, USER, USER_SID, authenticator
from bench.run import Bench, Run
from bench.serving import SETTINGS
from bench.twins import Queue
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.client_side import AgreedContext, Bound, CallReturned, ClientConnection
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.directory.context import DirectoryContext
from mqis.runtime.directory.dscomm import DscommService
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.server_connection import ServerProtocol
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc import mgmt
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.security.sid import ANONYMOUS

CLIENTS = 16
ROUNDS, TIMES = 15, 25
#: Between two looks whether creates are acknowledged.
PAUSE_S = 0.002
Work = Callable[[RpcPeer], Operation]
LEVELS = {"none": AuthLevel.NONE, "integrity": AuthLevel.INTEGRITY}
NULL, READ, LOOKUP, CREATE = "null call", "read of 15 properties", "lookup of 1", "create"
COLD, ANEW = "first read of 15 properties", "read of another list"
FIRST_LOOKUP = "first lookup of 1"
#: The properties of a queue that its creator or the directory has set, except its descriptor.
READ_IDS = (
    PropId.Q_INSTANCE,
    PropId.Q_TYPE,
    PropId.Q_PATHNAME,
    PropId.Q_JOURNAL,
    PropId.Q_QUOTA,
    PropId.Q_BASEPRIORITY,
    PropId.Q_JOURNAL_QUOTA,
    PropId.Q_LABEL,
    PropId.Q_CREATE_TIME,
    PropId.Q_MODIFY_TIME,
    PropId.Q_AUTHENTICATE,
    PropId.Q_PRIV_LEVEL,
    PropId.Q_TRANSACTION,
    PropId.Q_SCOPE,
    PropId.Q_QMID,
)
_COLUMNS = (PropId.Q_INSTANCE, PropId.Q_PATHNAME)


class _Pipe(asyncio.Transport):
    """The transport of a connection within this process: keeps what the server writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        raise LoadError("the server ended a connection")

    def take(self) -> bytes:
        data = b"".join(self.written)
        self.written.clear()
        return data


class Client(RpcPeer):
    """One connection, and the client at its other end."""

    def __init__(self, server: RpcServer, level: int) -> None:
        super().__init__()
        self.pipe = _Pipe()
        self.protocol = ServerProtocol(server)
        self.protocol.connection_made(self.pipe)
        self._machine = ClientConnection()
        self._contexts = self._bind(level)

    def _bind(self, level: int) -> tuple[AgreedContext, ...]:
        channel = None
        if level > AuthLevel.NONE:
            initiator = PyspnegoInitiator(LogonCredentials(USER, DOMAIN, PASSWORD))
            context = initiator.initiator(AuthType.NTLM, level, "host/bench")
            channel = Channel(1, AuthType.NTLM, level, context)
        self._machine.bind([dscomm.SYNTAX, mgmt.SYNTAX], transfers=[NDR20], channel=channel)
        bound: tuple[AgreedContext, ...] = ()
        while not bound:
            self.protocol.data_received(self._machine.data_to_send())
            for event in self._machine.receive(self.pipe.take()):
                if isinstance(event, Bound):
                    bound = tuple(event.contexts)
        last = self._machine.data_to_send()
        if last:
            self.protocol.data_received(last)
        return bound

    def framed(self, call: Call, stub: bytes) -> bytes:
        self._machine.request(self._contexts[call.context != DSCOMM], call.opnum, stub)
        return self._machine.data_to_send()

    def reply(self) -> bytes:
        [event] = self._machine.receive(self.pipe.take())
        if not isinstance(event, CallReturned):
            raise LoadError(f"the server answered with {event}")
        return event.stub


async def _exchange(clients: list[Client], requests: list[bytes], profile: Profile | None) -> int:
    """Gives each client's request to the server; returns its CPU time until all have an answer."""
    began = process_time_ns()
    if profile is not None:
        profile.enable()
    for client, request in zip(clients, requests, strict=True):
        client.protocol.data_received(request)
    await asyncio.sleep(0)
    while not all(client.pipe.written for client in clients):
        await asyncio.sleep(PAUSE_S)
    if profile is not None:
        profile.disable()
    return process_time_ns() - began


async def together(clients: list[Client], work: Work, profile: Profile | None = None) -> int:
    """One operation of each client, all at the same time; returns the server's CPU time."""
    operations = [work(client) for client in clients]
    requests = [next(operation) for operation in operations]
    spent = 0
    while requests:
        spent += await _exchange(clients, requests, profile)
        requests = []
        for client, operation in zip(clients, operations, strict=True):
            try:
                requests.append(operation.send(client.reply()))
            except StopIteration:
                continue
    return spent


def works(queues: int, level: int) -> dict[str, Work]:
    """The operations by name; reads and lookups go round a hundred queues.

    First reads go through the others. Reads of other lists ask each question once, of objects that
    are in memory.
    """
    some = [Queue(number) for number in range(0, queues, queues // 100)]
    owner = USER_SID if level > AuthLevel.NONE else ANONYMOUS
    descriptor = replace(DESCRIPTOR, owner=owner).to_bytes()
    bare = calls.listening()
    read = cycle([calls.get_props(queue.path, READ_IDS, queue.label) for queue in some])
    others = [Queue(number) for number in range(queues) if number % (queues // 100)] or some
    cold = cycle([calls.get_props(queue.path, READ_IDS, queue.label) for queue in others])
    anew = cycle(
        [calls.get_props(queue.path, ids, queue.path) for ids in _lists() for queue in some]
    )
    labels = [PropVariant(VarType.LPWSTR, queue.label) for queue in some]
    lookup = cycle([calls.lookup(PropId.Q_LABEL, label, _COLUMNS, 1) for label in labels])
    first = cycle(
        [
            calls.lookup(PropId.Q_LABEL, PropVariant(VarType.LPWSTR, queue.label), _COLUMNS, 1)
            for queue in others
        ]
    )
    create = twins.creates(
        queues * (1 + level),
        "utf-16-le",
        lambda queue: calls.create_queue(queue.path, queue.properties(), descriptor),
    )
    return {
        NULL: lambda peer: peer.call(bare),
        READ: lambda peer: peer.call(next(read)),
        COLD: lambda peer: peer.call(next(cold)),
        ANEW: lambda peer: peer.call(next(anew)),
        LOOKUP: lambda peer: peer.look_up(next(lookup)),
        FIRST_LOOKUP: lambda peer: peer.look_up(next(first)),
        CREATE: lambda peer: peer.create(next(create)),
    }


def _lists() -> list[tuple[PropId, ...]]:
    """Lists of eight to fifteen properties, with the path, in all rotations."""
    count = len(READ_IDS)
    turned = [READ_IDS[at:] + READ_IDS[:at] for at in range(count)]
    return [
        ids[:size]
        for size in range(8, count + 1)
        for ids in turned
        if PropId.Q_PATHNAME in ids[:size]
    ]


@asynccontextmanager
async def serving(path: Path, level: int) -> AsyncIterator[list[Client]]:
    """Yields clients of a server over the store at ``path``."""
    entropy = SystemEntropy()
    with closing(SqliteStore(path, create=False)) as store:
        writer = GroupCommitWriter(store)
        services = [
            DscommService(DirectoryContext(store, writer, entropy, SETTINGS)),
            ManagementService(lambda: server.endpoint),
        ]
        server = RpcServer(services, entropy, authenticator=authenticator(), turn_s=inf)
        clients = [Client(server, level) for _ in range(CLIENTS)]
        await together(clients, lambda peer: peer.validate())
        yield clients
        await writer.close()


async def _measured(run: Run, path: Path, level: int, queues: int) -> dict[str, float]:
    """The microseconds of each operation, in the round that was disturbed least."""
    operations = works(queues, level)
    found: dict[str, list[float]] = {name: [] for name in operations}
    times = run.scaled(TIMES, quick=2)
    async with serving(path, level) as clients:
        for _ in range(run.scaled(ROUNDS, quick=1)):
            for name, work in operations.items():
                spent = sum([await together(clients, work) for _ in range(times)])
                found[name].append(spent / times / CLIENTS / 1000)
    return {name: min(rounds) for name, rounds in found.items()}


def _run(run: Run) -> Results:
    results = Results()
    queues = run.scaled(10_000, quick=1_000)
    run.say(f"processor: {queues:,} queues")
    path = run.directory / "processor.db"
    fill(path, queues)
    for name, level in LEVELS.items():
        run.say(f"processor: protection {name}")
        measured = uvloop.run(_measured(run, path, level, queues))
        results.rows += [
            Row(f"protection: {name}", operation, 1e6 / cpu_us, cpu_us=cpu_us)
            for operation, cpu_us in measured.items()
        ]
    results.notes.append("processor: operations per second of processor time")
    return results


BENCH = Bench("processor", "processor time of calls in one process, without sockets", _run)


def fill(path: Path, queues: int) -> None:
    with closing(SqliteStore(path)) as store:
        twins.fill(store, queues // 10, queues)


# --- profiles -------------------------------------------------------------------------------------


async def _profiled(path: Path, level: int, name: str, queues: int, times: int) -> Profile:
    work = works(queues, level)[name]
    profile = Profile(thread_time_ns, 1e-9)
    async with serving(path, level) as clients:
        await together(clients, work)
        for _ in range(times):
            await together(clients, work, profile)
    return profile


def shares(stats: Mapping[tuple[str, int, str], Any]) -> dict[str, float]:
    """The share of each package in the time; built-in functions count where they are called."""
    spent: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in stats.items():
        if not callers or "/mqis/" in file:
            spent[_package(file)] += own
        else:
            for (caller, _, _), (*_, share, _) in callers.items():
                spent[_package(caller)] += share
    total = sum(spent.values())
    return {name: own / total for name, own in spent.most_common()}


def _package(file: str) -> str:
    """``wire/ndr`` for a file of src/mqis/wire/ndr."""
    _, found, below = file.partition("/mqis/")
    return "/".join(below.split("/")[:-1]) if found else "elsewhere"


def main() -> None:
    """Prints where the event loop's thread spends the time of an operation."""
    level, name = LEVELS[sys.argv[1]], " ".join(sys.argv[2:])
    with TemporaryDirectory(prefix="mqis-bench-", dir="/var/tmp") as directory:
        path = Path(directory) / "processor.db"
        fill(path, 1_000)
        profile = uvloop.run(_profiled(path, level, name, 1_000, 200))
    stats = Stats(profile)
    stats.sort_stats(SortKey.TIME).print_stats(45)
    for package, share in shares(stats.stats).items():  # type: ignore[attr-defined]
        print(f"{share:6.1%}  {package}")


if __name__ == "__main__":
    main()
