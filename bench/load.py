"""Generates load from any number of connections, each with one pending operation.

An operation is a generator that yields requests, gets their replies, and raises ``LoadError`` if
one is wrong, so failures never count. Requests are prepared bytes, so that the server is the
bottleneck and not the generator.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Generic, Protocol, TypeVar, cast

import uvloop

from bench.measure import Sample

Operation = Generator[bytes, Any, None]
#: Longer than any operation takes; a server that never answers ends the run.
TIMEOUT_S = 180.0
#: The share of an ordinary round that first requests take, so that no round repeats one.
FIRST_SHARE = 0.3


class LoadError(Exception):
    """A server gave a wrong answer."""


class Peer(Protocol):
    """The protocol's side of one connection."""

    def greet(self) -> Operation:
        """The operation before the first one, which is not timed."""

    def feed(self, data: bytes) -> object | None:
        """Takes received bytes; returns the reply to the last request once it is complete."""


P = TypeVar("P", bound=Peer)


class _Connection(asyncio.Protocol, Generic[P]):
    def __init__(self, peer: P) -> None:
        self.peer = peer
        self._transport: asyncio.Transport | None = None
        self._operation: Operation | None = None
        self._next: Callable[[P], Operation] | None = None
        self._stop = self._since = 0
        self._latencies: list[int] = []
        self._done: asyncio.Future[list[int]] | None = None

    def run(self, operations: Callable[[P], Operation], stop: int) -> asyncio.Future[list[int]]:
        """Runs one operation after the other until ``stop``; returns the time of each."""
        self._done = asyncio.get_running_loop().create_future()
        self._next, self._stop, self._latencies = operations, stop, []
        self._since = perf_counter_ns()
        self._begin()
        return self._done

    def _begin(self) -> None:
        assert self._next is not None
        assert self._transport is not None
        self._operation = self._next(self.peer)
        self._transport.write(next(self._operation))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has another class

    def data_received(self, data: bytes) -> None:
        try:
            reply = self.peer.feed(data)
            if reply is not None:
                self._proceed(reply)
        except Exception as error:  # it ends the run
            self._fail(error)

    def _proceed(self, reply: object) -> None:
        assert self._operation is not None
        assert self._transport is not None
        try:
            self._transport.write(self._operation.send(reply))
        except StopIteration:
            now = perf_counter_ns()
            self._latencies.append(now - self._since)
            self._since = now
            if now < self._stop:
                self._begin()
            elif self._done is not None:
                self._done.set_result(self._latencies)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(LoadError(f"the server closed the connection: {exc}"))

    def _fail(self, error: Exception) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


@dataclass(frozen=True, slots=True)
class Load:
    """The results of one round, and the CPU time of both sides."""

    sample: Sample
    server_cpu_s: float
    client_cpu_s: float

    @property
    def client_share(self) -> float:
        """The share of its core that the load generator used; near 1, it was the bottleneck."""
        return self.client_cpu_s * 1e9 / self.sample.elapsed_ns


def cpu_us(rounds: Sequence[Load]) -> float:
    """The server's CPU time for one operation, over all rounds: the clock is too coarse for one."""
    operations = sum(one.sample.operations for one in rounds)
    return sum(one.server_cpu_s for one in rounds) * 1e6 / operations


@dataclass(frozen=True, slots=True)
class Target(Generic[P]):
    """A server on loopback, and the peer for its protocol."""

    pid: int
    port: int
    connect: Callable[[], P]


def load(
    target: Target[P], operations: Callable[[P], Operation], clients: int, seconds: float
) -> Load:
    """Loads a server; ``operations`` returns the next operation for an idle connection."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_load(target, operations, clients, seconds))


async def _load(
    target: Target[P], operations: Callable[[P], Operation], clients: int, seconds: float
) -> Load:
    connections = [await _connect(target) for _ in range(clients)]
    try:
        server, client = cpu_s(target.pid), time.process_time()
        start = perf_counter_ns()
        stop = start + int(seconds * 1e9)
        running = [connection.run(operations, stop) for connection in connections]
        async with asyncio.timeout(seconds + TIMEOUT_S):
            done = await asyncio.gather(*running)
        elapsed = perf_counter_ns() - start
        server, client = cpu_s(target.pid) - server, time.process_time() - client
    finally:
        for connection in connections:
            connection.close()
    latencies = sorted(latency for each in done for latency in each)
    return Load(Sample(len(latencies), elapsed, latencies), server, client)


def complete(
    target: Target[P], work: Callable[[P], Operation], clients: int, within_s: float
) -> int:
    """Runs one long operation on each connection; returns the nanoseconds until all are done."""

    async def run() -> int:
        connections = [await _connect(target) for _ in range(clients)]
        try:
            start = perf_counter_ns()
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(connection.run(work, 0) for connection in connections))
            return perf_counter_ns() - start
        finally:
            for connection in connections:
                connection.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


class Line(Generic[P]):
    """One blocking connection, for single operations."""

    def __init__(self, target: Target[P], timeout_s: float = TIMEOUT_S) -> None:
        self.peer = target.connect()
        self._socket = socket.create_connection(("127.0.0.1", target.port), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.run(self.peer.greet())

    def run(self, operation: Operation) -> None:
        """Runs an operation; raises ``LoadError`` if it fails."""
        request = next(operation)
        while True:
            reply = self.exchange(request)
            try:
                request = operation.send(reply)
            except StopIteration:
                return

    def exchange(self, request: bytes) -> Any:
        self._socket.sendall(request)
        while True:
            data = self._socket.recv(1 << 16)
            if not data:
                raise LoadError("the server closed the connection")
            reply = self.peer.feed(data)
            if reply is not None:
                return reply

    def close(self) -> None:
        self._socket.close()


async def _connect(target: Target[P]) -> _Connection[P]:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(
        lambda: _Connection(target.connect()), "127.0.0.1", target.port
    )
    async with asyncio.timeout(TIMEOUT_S):
        await connection.run(lambda peer: peer.greet(), 0)
    return connection


# --- cores ----------------------------------------------------------------------------------------


def cpu_s(pid: int) -> float:
    """The CPU time that all threads of a process have used, user and system (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
