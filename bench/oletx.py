"""Measures user messages through OleTx connections, against hyper-h2 and a bare stream.

Sender and receiver are separate processes on uvloop, on one core each if there are two. Every
contender does the same: a session or socket between both, with several connections, messages of one
size round robin, and a receiver that takes each message singly. The clock stops when the receiver
has confirmed all messages. Senders wait for room after 64 KiB each; receivers of OleTx and h2 get
messages in a plain call, without a task for each connection.

h2        a connection is a stream, a message a DATA frame; windows are as large as they can be
stream    u32 length, u32 connection, body, over asyncio's StreamReader and StreamWriter: what one
          would write without any protocol

``python -m bench.oletx mqis|h2|stream PORT`` is such a receiver: it prints its port, and ends when
its input ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from struct import Struct
from time import perf_counter_ns
from typing import Any, Protocol

import uvloop

from bench.measure import Sample, contest
from bench.processes import Cores, kept_to, serve
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.runtime.oletx.application_connection import OleTxConnection
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import FixedResolver
from mqis.testing.ports import free_port

ADDRESS = "127.0.0.1"
HERE = NameObject.parse("SENDER/b51996ef-c434-4f79-a288-56efd302fc8e")
THERE = NameObject.parse("RECEIVER/a3afb37b-f64a-4e6c-9017-f6a96ba6f166")
TYPE = 0x101
SIZES = (64, 4096)
CONNECTIONS = (1, 100, 10_000)
H2_AIM, STREAM_AIM = 5.0, 0.3
#: A message of this size has the number of messages that follow; no other has this size.
MARKER = 4
#: Bytes that a sender gathers before it writes.
BATCH = 64 * 1024
_HEAD = Struct("<II")
#: No PINGs: a sender's loop does not run during the rounds of other contenders.
LIMITS = SessionLimits(request_slots=999, pings=False)
#: Time for the last answers to arrive, so that none is overdue when the loop continues.
SETTLE_S = 0.05


class Counter:
    """Counts the messages of a receiver, up to the announced number."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._left = 0

    def take(self, body: bytes) -> None:
        if len(body) == MARKER:
            self._left = int.from_bytes(body, "little")
            return
        self._left -= 1
        if not self._left:
            self._done()


class Sender(Protocol):
    async def open(self, port: int, connections: int) -> None: ...

    async def send(self, body: bytes, count: int) -> None:
        """Sends so many messages and waits until all are received."""

    async def close(self) -> None: ...


# --- OleTx ----------------------------------------------------------------------------------------


async def receive_oletx(port: int, ready: Callable[[int], None], end: asyncio.Event) -> None:
    """Receives messages; ``port`` is the sender's, which has to be called back."""
    resolver = FixedResolver({HERE.cid: (ADDRESS, port)})
    first: list[OleTxConnection] = []
    counter = Counter(lambda: first[0].send_nowait(2))

    async def handle(connection: OleTxConnection) -> None:
        if connection.id == 1:
            first[:] = [connection]
        take = counter.take
        connection.deliver_to(lambda _type, body: take(body))
        await connection.wait_closed()

    async with OleTxEndpoint(THERE, resolver=resolver, limits=LIMITS) as endpoint:
        endpoint.accept(TYPE, handle)
        ready(endpoint.port)
        await end.wait()


class OleTxSender:
    def __init__(self, own_port: int) -> None:
        self._resolver = FixedResolver()
        self._endpoint = OleTxEndpoint(HERE, port=own_port, resolver=self._resolver, limits=LIMITS)
        self._connections: list[OleTxConnection] = []

    async def open(self, port: int, connections: int) -> None:
        self._resolver.add(THERE.cid, ADDRESS, port)
        await self._endpoint.start()
        made = [self._endpoint.open(THERE, TYPE) for _ in range(connections)]
        self._connections = [await connection.opened() for connection in made]

    async def send(self, body: bytes, count: int) -> None:
        connections = self._connections
        connections[0].send_nowait(1, count.to_bytes(MARKER, "little"))
        every = max(1, BATCH // len(body))
        for n in range(count):
            connections[n % len(connections)].send_nowait(1, body)
            if not n % every:
                await connections[0].drain()
        await connections[0].receive()

    async def close(self) -> None:
        await self._endpoint.close(grace_s=10.0)


# --- hyper-h2 -------------------------------------------------------------------------------------


def _h2(client: bool) -> Any:
    from h2.config import H2Configuration  # noqa: PLC0415
    from h2.connection import H2Connection  # noqa: PLC0415
    from h2.settings import SettingCodes, Settings  # noqa: PLC0415

    machine = H2Connection(H2Configuration(client_side=client, header_encoding="utf-8"))
    machine.local_settings = Settings(
        client=client,
        initial_values={
            SettingCodes.INITIAL_WINDOW_SIZE: 2**31 - 1,
            SettingCodes.MAX_CONCURRENT_STREAMS: 2 * CONNECTIONS[-1],
        },
    )
    machine.initiate_connection()
    machine.increment_flow_control_window(2**31 - 1 - 65_535)
    return machine


async def receive_h2(_port: int, ready: Callable[[int], None], end: asyncio.Event) -> None:
    from h2.events import DataReceived  # noqa: PLC0415

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        machine = _h2(client=False)
        counter = Counter(lambda: machine.ping(b"all here"))
        writer.write(machine.data_to_send())
        while data := await reader.read(BATCH):
            for event in machine.receive_data(data):
                if isinstance(event, DataReceived):
                    machine.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    counter.take(event.data)
            if out := machine.data_to_send():
                writer.write(out)
        writer.close()

    await _listen(serve, ready, end)


class H2Sender:
    def __init__(self, _own_port: int) -> None:
        self._machine = _h2(client=True)
        self._streams: list[int] = []

    async def open(self, port: int, connections: int) -> None:
        from h2.events import PingReceived, RemoteSettingsChanged  # noqa: PLC0415

        machine = self._machine
        self._reader, self._writer = await asyncio.open_connection(ADDRESS, port)
        self._all_here = asyncio.Event()
        settled = asyncio.Event()

        async def read() -> None:
            while data := await self._reader.read(BATCH):
                for event in machine.receive_data(data):
                    if isinstance(event, PingReceived):
                        self._all_here.set()
                    elif isinstance(event, RemoteSettingsChanged):
                        settled.set()
                self._flush()

        self._reading = asyncio.create_task(read())
        self._flush()
        await settled.wait()
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/")]
        self._streams = [2 * n + 1 for n in range(connections)]
        for stream in self._streams:
            machine.send_headers(stream, head)
        self._flush()

    def _flush(self) -> None:
        if out := self._machine.data_to_send():
            self._writer.write(out)

    async def send(self, body: bytes, count: int) -> None:
        machine, streams = self._machine, self._streams
        machine.send_data(streams[0], count.to_bytes(MARKER, "little"))
        every = max(1, BATCH // len(body))
        for n in range(count):
            machine.send_data(streams[n % len(streams)], body)
            if not n % every:
                self._flush()
                await self._writer.drain()
        self._flush()
        await self._all_here.wait()
        self._all_here.clear()

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()


# --- a bare stream --------------------------------------------------------------------------------


async def receive_stream(_port: int, ready: Callable[[int], None], end: asyncio.Event) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counter = Counter(lambda: writer.write(b"!"))
        try:
            while True:
                size, _connection = _HEAD.unpack(await reader.readexactly(_HEAD.size))
                counter.take(await reader.readexactly(size))
        except asyncio.IncompleteReadError:
            writer.close()

    await _listen(serve, ready, end)


class StreamSender:
    def __init__(self, _own_port: int) -> None:
        self._connections = 1

    async def open(self, port: int, connections: int) -> None:
        self._connections = connections
        self._reader, self._writer = await asyncio.open_connection(ADDRESS, port)

    async def send(self, body: bytes, count: int) -> None:
        pack, size = _HEAD.pack, len(body)
        parts = [pack(MARKER, 0), count.to_bytes(MARKER, "little")]
        every = max(1, BATCH // size)
        for n in range(count):
            parts.append(pack(size, n % self._connections))
            parts.append(body)
            if not n % every:
                self._writer.write(b"".join(parts))
                parts.clear()
                await self._writer.drain()
        self._writer.write(b"".join(parts))
        await self._reader.readexactly(1)

    async def close(self) -> None:
        self._writer.close()


# --- processes ------------------------------------------------------------------------------------


async def _listen(serve: Any, ready: Callable[[int], None], end: asyncio.Event) -> None:
    server = await asyncio.start_server(serve, ADDRESS, 0)
    ready(server.sockets[0].getsockname()[1])
    await end.wait()
    server.close()


RECEIVERS = {"mqis": receive_oletx, "h2": receive_h2, "stream": receive_stream}
SENDERS: dict[str, Callable[[int], Sender]] = {
    "mqis": OleTxSender,
    "h2": H2Sender,
    "stream": StreamSender,
}


async def _receiver(kind: str, port: int) -> None:
    end = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(end.set)

    waiting = loop.run_in_executor(None, wait)
    await RECEIVERS[kind](port, lambda bound: print(bound, flush=True), end)
    await waiting


class Contender:
    """A receiver in a separate process and a sender in this one, kept over the rounds."""

    def __init__(self, run: Run, kind: str, connections: int) -> None:
        self._loop = loop = uvloop.new_event_loop()
        run.resources.callback(loop.close)
        own_port = free_port()
        self._receiver = serve(run.resources, "bench.oletx", kind, str(own_port))
        self._sender = SENDERS[kind](own_port)
        loop.run_until_complete(self._sender.open(self._receiver.port, connections))
        loop.run_until_complete(asyncio.sleep(SETTLE_S))

    def sample(self, size: int, count: int) -> Sample:
        start = perf_counter_ns()
        self._loop.run_until_complete(self._sender.send(bytes(size), count))
        elapsed = perf_counter_ns() - start
        self._loop.run_until_complete(asyncio.sleep(SETTLE_S))
        return Sample(count, elapsed)

    def close(self) -> None:
        self._loop.run_until_complete(self._sender.close())
        self._receiver.stop()


# --- the entry ------------------------------------------------------------------------------------


def _run(run: Run) -> Results:
    results = Results()
    kinds = list(SENDERS)
    try:
        import h2  # noqa: F401, PLC0415
    except ImportError:
        results.notes.append("h2: skipped: it is not installed (make bench installs it)")
        kinds.remove("h2")
    for connections in CONNECTIONS[: 2 if run.quick else None]:
        _measure(run, results, kinds, connections)
    results.notes.append("oletx: stream is asyncio's StreamReader, two awaits for each message")
    return results


def _measure(
    run: Run,
    results: Results,
    kinds: list[str],
    connections: int,
) -> None:
    cores = Cores.available()
    run.say(f"oletx: opening {connections:,} connections")
    with kept_to(cores.server):
        contenders = {kind: Contender(run, kind, connections) for kind in kinds}
    try:
        for size in SIZES:
            count = max(connections, run.scaled(40_000 if size == 64 else 8_000, 400))
            run.say(f"oletx: {size} bytes, {connections:,} connections")
            with kept_to(cores.clients):
                samples = contest(
                    run.rounds,
                    {
                        kind: partial(contender.sample, size, count)
                        for kind, contender in contenders.items()
                    },
                )
            _compare(results, size, connections, samples)
    finally:
        for contender in contenders.values():
            contender.close()


def _compare(
    results: Results, size: int, connections: int, samples: dict[str, list[Sample]]
) -> None:
    table = f"{size} bytes, {connections:,} connection{'s' if connections > 1 else ''}"
    ours = samples["mqis"]
    against = "stream" if size == SIZES[1] or "h2" not in samples else "h2"
    results.rows.append(Row.of(table, "mqis", ours, peer=(against, samples[against]), size=size))
    results.rows += [
        Row.of(table, kind, rounds, size=size) for kind, rounds in samples.items() if kind != "mqis"
    ]
    if "h2" in samples and size == SIZES[0]:
        times = ratio(ours, samples["h2"])
        goal = f"{table}: messages per second, at least {H2_AIM:g} times hyper-h2"
        results.aims.append(Aim(goal, f"{times:.2f} times", times >= H2_AIM))
    if size == SIZES[1]:
        share = ratio(ours, samples["stream"])
        goal = f"{table}: MB/s, at least {STREAM_AIM:.0%} of a bare stream"
        results.aims.append(Aim(goal, f"{share:.0%}", share >= STREAM_AIM))


BENCH = Bench("oletx", "user messages through OleTx connections", _run)


if __name__ == "__main__":
    uvloop.run(_receiver(sys.argv[1], int(sys.argv[2])))
