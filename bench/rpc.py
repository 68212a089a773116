"""Measures calls per second of mqis' RPC server, against Samba's and impacket's.

Each server is a separate process on one core, the load generator is on another if there are two.
All get the same bytes on the same kind of connection; the generator reads only the length and type
of an answer. Signed and sealed requests (``bench.signed``) are prepared before the clock starts,
so that only the server's work is measured.

``python -m bench.rpc mqis|pyspnego|impacket`` is such a server: it prints its port, and ends when
its input ends. ``pyspnego`` is mqis with messages that pyspnego signs and seals.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import cast

import uvloop

from bench.measure import Sample, contest
from bench.processes import Cores, Served, kept_to, serve
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.client_side import AgreedContext, Bound, ClientConnection
from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.runtime.authentication import spnego_context
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.authentication.protection import PyspnegoProtection
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import EndpointMapperService, ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.rpc.pdu_header import PacketType
from mqis.wire.rpc.tower import Tower
from mqis.wire.security.sid import Sid

ADDRESS = "127.0.0.1"
DOMAIN, USER, PASSWORD = "BENCH", "user", "secret"
USER_SID = Sid.parse("S-1-5-21-1-2-3-1000")
CLIENTS = (1, 16)
SAMBA_AIM, IMPACKET_AIM = 1.3, 50
RESPONSE = PacketType.RESPONSE.value


# --- calls ----------------------------------------------------------------------------------------


def _map_stub() -> bytes:
    tower = epmapper.TowerOctets(Tower.tcp(epmapper.SYNTAX, 0, "0.0.0.0").to_bytes())
    request = epmapper.MapAsked(None, tower, ContextHandle.NULL, 4)
    return epmapper.EPT_MAP.request.encode(request, Syntax.NDR20)


#: By name: interface, operation number, stub.
CALLS: dict[str, tuple[SyntaxId, int, bytes]] = {
    "is_server_listening": (mgmt.SYNTAX, mgmt.IS_SERVER_LISTENING.opnum, b""),
    "ept_map": (epmapper.SYNTAX, epmapper.EPT_MAP.opnum, _map_stub()),
}


# --- the load -------------------------------------------------------------------------------------


class Caller(asyncio.Protocol):
    """A connection that sends its next request when the last one is answered."""

    def __init__(self, call: tuple[SyntaxId, int, bytes], level: int) -> None:
        self._interface, self._opnum, self._stub = call
        self._machine = ClientConnection()
        self._channel: Channel | None = None
        if level > AuthLevel.NONE:
            initiator = PyspnegoInitiator(LogonCredentials(USER, DOMAIN, PASSWORD))
            context = initiator.initiator(AuthType.NTLM, level, "host/bench")
            self._channel = Channel(1, AuthType.NTLM, level, context)
        loop = asyncio.get_running_loop()
        self.bound: asyncio.Future[AgreedContext] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self._buffer = b""
        self._requests: list[bytes] = []
        self._latencies: list[int] = []
        self._stop = self._sent = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._machine.bind([self._interface], transfers=[NDR20], channel=self._channel)
        self._transport.write(self._machine.data_to_send())

    def prepare(self, count: int) -> None:
        """Prepares requests in their order; unprotected ones are all the same."""
        if self._channel is None:
            self._requests = [self._request()] * count
            return
        while len(self._requests) < count:
            self._requests.append(self._request())
        self._requests.reverse()

    def _request(self) -> bytes:
        self._machine.request(self.bound.result(), self._opnum, self._stub)
        return self._machine.data_to_send()

    def start(self, stop_ns: int) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self._latencies, self._stop = [], stop_ns
        self._send(perf_counter_ns())

    def _send(self, now: int) -> None:
        self._sent = now
        self._transport.write(self._requests.pop())

    def data_received(self, data: bytes) -> None:
        if not self.bound.done():
            for event in self._machine.receive(data):
                if isinstance(event, Bound):
                    self.bound.set_result(event.contexts[0])
            out = self._machine.data_to_send()
            if out:
                self._transport.write(out)
            return
        data = self._buffer + data if self._buffer else data
        if len(data) < 16 or len(data) < int.from_bytes(data[8:10], "little"):
            self._buffer = data
            return
        self._buffer = b""
        if data[2] != RESPONSE:
            self.done.set_exception(RuntimeError(f"the server answered with PDU type {data[2]}"))
            return
        now = perf_counter_ns()
        self._latencies.append(now - self._sent)
        if now < self._stop and self._requests:
            self._send(now)
        else:
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.bound, self.done):
            if not future.done():
                future.set_exception(RuntimeError("the server closed the connection"))

    def take(self) -> list[int]:
        self._requests.reverse()
        return self._latencies

    def close(self) -> None:
        self.done.cancel()
        self._transport.abort()


class Load:
    """Several connections to a server, kept over the rounds."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, port: int, name: str, clients: int, level: int
    ) -> None:
        self._loop = loop
        self._where = (ADDRESS, port)
        self._call, self._clients, self._level = CALLS[name], clients, level
        self._callers: list[Caller] = []

    def sample(self, seconds: float, most: int) -> Sample:
        """Runs a round; ``most`` is more requests than any server can answer in it."""
        return self._loop.run_until_complete(self._sample(seconds, most))

    async def _sample(self, seconds: float, most: int) -> Sample:
        if not self._callers:
            loop = asyncio.get_running_loop()
            for _ in range(self._clients):
                made = lambda: Caller(self._call, self._level)  # noqa: E731
                _, caller = await loop.create_connection(made, *self._where)
                await caller.bound
                self._callers.append(caller)
        for caller in self._callers:
            caller.prepare(most // self._clients)
        start = perf_counter_ns()
        for caller in self._callers:
            caller.start(start + int(seconds * 1e9))
        await asyncio.gather(*(caller.done for caller in self._callers))
        elapsed = perf_counter_ns() - start
        latencies = sorted(n for caller in self._callers for n in caller.take())
        return Sample(len(latencies), elapsed, latencies)

    def close(self) -> None:
        for caller in self._callers:
            caller.close()
        self._callers.clear()


# --- the entry ------------------------------------------------------------------------------------


def start_server(run: Run, kind: str) -> Served:
    """Starts a server of this module, which runs until the benchmarks are done."""
    return serve(run.resources, "bench.rpc", kind)


def _samba(run: Run, results: Results) -> int | None:
    try:
        from tests.interop.rpc_samba_server import Unavailable, samba_server  # noqa: PLC0415
    except ImportError:
        return None
    directory = run.directory / "samba"
    directory.mkdir()
    try:
        return run.resources.enter_context(samba_server(directory))[1]
    except Unavailable as reason:
        results.notes.append(f"Samba: skipped: {reason}")
        return None


def _impacket(run: Run, results: Results) -> int | None:
    try:
        import impacket  # noqa: F401, PLC0415
    except ImportError:
        results.notes.append("impacket: skipped: it is not installed (make bench installs it)")
        return None
    return start_server(run, "impacket").port


def _run(run: Run) -> Results:
    results = Results()
    cores = Cores.available()
    run.say("rpc: starting servers")
    with kept_to(cores.server):
        ports = {
            "mqis": start_server(run, "mqis").port,
            "Samba": _samba(run, results),
            "impacket": _impacket(run, results),
        }
    loop = uvloop.new_event_loop()
    run.resources.callback(loop.close)
    if cores.server == cores.clients:
        results.notes.append("rpc: one core for servers and load: they take each other's time")
    with kept_to(cores.clients):
        _unprotected(run, results, loop, ports)
    return results


BENCH = Bench("rpc", "calls per second through the RPC server", _run)


def _measure(
    run: Run,
    loop: asyncio.AbstractEventLoop,
    contenders: dict[str, tuple[int, str, int, int]],
    most: int,
) -> dict[str, list[Sample]]:
    """Runs rounds of the contenders, which are (port, call, clients, level) by name."""
    loads = {name: Load(loop, *what) for name, what in contenders.items()}
    timed: dict[str, Callable[[], Sample]] = {
        name: (lambda load=load: load.sample(run.sample_s, most))  # type: ignore[misc]
        for name, load in loads.items()
    }
    try:
        return contest(run.rounds, timed)
    finally:
        for load in loads.values():
            load.close()


def plural(clients: int) -> str:
    return f"{clients} client{'s' if clients > 1 else ''}"


def _unprotected(
    run: Run,
    results: Results,
    loop: asyncio.AbstractEventLoop,
    ports: dict[str, int | None],
) -> None:
    for call in CALLS:
        for clients in CLIENTS:
            # impacket's class serves one client after the other, and has only one of the calls.
            takes_part = {
                name: (port, call, 1 if name == "impacket" else clients, AuthLevel.NONE.value)
                for name, port in ports.items()
                if port and (name != "impacket" or call != "ept_map")
            }
            run.say(f"rpc: {call}, {plural(clients)}")
            samples = _measure(run, loop, takes_part, run.scaled(60_000, 3_000))
            _compare(results, call, clients, samples)


def _compare(results: Results, call: str, clients: int, samples: dict[str, list[Sample]]) -> None:
    table = f"{call}, {plural(clients)}"
    ours = samples.pop("mqis")
    peer = ("Samba", samples["Samba"]) if "Samba" in samples else None
    results.rows.append(Row.of(table, "mqis", ours, peer=peer))
    for name, theirs in samples.items():
        alone = name == "impacket" and clients > 1
        results.rows.append(Row.of(table, f"{name}, 1 client" if alone else name, theirs))
        found = ratio(ours, theirs)
        if name == "Samba":
            goal, aim = f">= {SAMBA_AIM:g}x Samba, {table}", SAMBA_AIM
        elif alone:
            goal, aim = f">= {IMPACKET_AIM}x impacket's server and its one client", IMPACKET_AIM
        else:
            continue
        results.aims.append(Aim(goal, f"{found:.2f}x", found >= aim))


# --- servers --------------------------------------------------------------------------------------


def authenticator() -> PyspnegoAuthenticator:
    """Knows the user of the load."""
    account = Account(DOMAIN, USER, USER_SID, nt_hash(PASSWORD))
    return PyspnegoAuthenticator(MemoryAccounts([account]), "BENCH", DOMAIN)


async def _serve_mqis() -> None:
    registry = EndpointRegistry()
    management = ManagementService(lambda: server.endpoint)
    server = RpcServer(
        [EndpointMapperService(registry), management],
        SystemEntropy(),
        authenticator=authenticator(),
    )
    async with server:
        port = await server.listen(ADDRESS)
        registry.insert(Registration(epmapper.SYNTAX, port, ADDRESS))
        print(port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def _serve_impacket() -> None:
    from impacket.dcerpc.v5.rpcrt import DCERPCServer  # noqa: PLC0415

    server = DCERPCServer()
    answer = mgmt.IS_SERVER_LISTENING.response.encode(mgmt.Listening(0, 1), Syntax.NDR20)
    uuid = (str(mgmt.SYNTAX.uuid), f"{mgmt.SYNTAX.major}.0")
    server.addCallbacks(uuid, "135", {mgmt.IS_SERVER_LISTENING.opnum: lambda _stub: answer})
    threading.Thread(target=server.run, daemon=True).start()
    print(server.getListenPort(), flush=True)
    sys.stdin.read()


def main() -> None:
    if sys.argv[1:] == ["impacket"]:
        _serve_impacket()
        return
    if sys.argv[1:] == ["pyspnego"]:
        spnego_context.protection_of = PyspnegoProtection  # type: ignore[attr-defined]
    uvloop.run(_serve_mqis())


if __name__ == "__main__":
    main()
