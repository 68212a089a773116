"""Measures discovery requests per second of mqis' responder, against a bare uvloop UDP echo.

Each server is a separate process on one core, the load generator is on another if there are two.
Requests come from thousands of loopback addresses, as the limit per source is on. A request counts
when its own reply has arrived; a fixed number of requests is pending at a time.

``python -m bench.discovery mqis|echo`` is such a server: it prints its port, and ends when its
input ends.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, cycle
from statistics import median
from time import perf_counter_ns, process_time
from typing import cast

import uvloop

from bench.load import Load, LoadError, cpu_s
from bench.measure import Sample, contest
from bench.processes import Cores, Served, kept_to, serve
from bench.results import Aim, Results, Row
from bench.run import Bench, Run
from mqis.protocol.discovery.announced import DiscoveryQueueManager
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.runtime.discovery.responder import DiscoveryResponder
from mqis.wire.guid import Guid
from mqis.wire.mqsd.request import TopologyClientRequest

ADDRESS = "127.0.0.1"
AIM_PER_SECOND = 25_000
#: With the default limit of ten answers a second to each, more than one core can request.
SOURCES = 16_384
WINDOW = 128
SITE = Guid(b"site of servers.")
OWN = DiscoveryQueueManager(
    Guid(b"enterprise here."),
    (SITE,),
    tuple(f"dir{number}" for number in range(8)),
    (Guid(b"connected by IP."), Guid(b"connected twice.")),
)
ECHO = "bare uvloop echo"
#: The load generator used nearly all of its core.
BUSY = 0.9
_SILENT_NS = 2_000_000_000
#: linux/in.h; struct in_pktinfo sets the source address of a datagram.
_IP_PKTINFO = 8


# --- the load -------------------------------------------------------------------------------------


def _sources() -> Iterator[list[tuple[int, int, bytes]]]:
    """Yields the ancillary data for each loopback source address in turn, endlessly."""
    hosts = [struct.pack("=B3s", 127, (n + 256).to_bytes(3, "big")) for n in range(SOURCES)]
    return cycle(
        [
            [(socket.IPPROTO_IP, _IP_PKTINFO, struct.pack("=I4s4s", 0, host, bytes(4)))]
            for host in hosts
        ]
    )


class Asker:
    """Sends requests of a client in ``site``; ``id_at`` is the offset of the id in a reply."""

    def __init__(self, served: Served, site: Guid, id_at: int, size: int) -> None:
        self._pid = served.pid
        self._target = (ADDRESS, served.port)
        self._id_at = id_at
        self._size = size
        request = TopologyClientRequest(OWN.enterprise_id, Guid.NULL, site).to_bytes()
        self._head, self._tail = request[:20], request[36:]
        self._sources = _sources()
        self._numbers = count()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def _send(self, under_way: dict[bytes, int]) -> None:
        number = b"%016d" % next(self._numbers)
        under_way[number] = perf_counter_ns()
        ancillary = next(self._sources)
        self._socket.sendmsg([self._head, number, self._tail], ancillary, 0, self._target)

    def load(self, seconds: float) -> Load:
        """Sends requests for so long, and waits until all pending ones are answered."""
        under_way: dict[bytes, int] = {}
        latencies: list[int] = []
        server, client = cpu_s(self._pid), process_time()
        start = now = last = perf_counter_ns()
        stop = start + int(seconds * 1e9)
        for _ in range(WINDOW):
            self._send(under_way)
        while under_way:
            try:
                data = self._socket.recv(2048)
            except BlockingIOError:
                if perf_counter_ns() - last > _SILENT_NS:
                    raise LoadError(f"{len(under_way)} requests have no reply") from None
                continue
            now = last = perf_counter_ns()
            sent = under_way.pop(data[self._id_at : self._id_at + 16], None)
            if sent is None or len(data) != self._size:
                raise LoadError(f"{len(data)} bytes that answer no request: {data[:40]!r}")
            latencies.append(now - sent)
            if now < stop:
                self._send(under_way)
        server, client = cpu_s(self._pid) - server, process_time() - client
        return Load(Sample(len(latencies), now - start, sorted(latencies)), server, client)


# --- the entry ------------------------------------------------------------------------------------


def _run(run: Run) -> Results:
    results = Results()
    if sys.platform != "linux":
        results.notes.append("discovery: skipped: it needs Linux, to set each datagram's source")
        return results
    cores = Cores.available()
    run.say("discovery: starting servers")
    with kept_to(cores.server):
        ours = serve(run.resources, "bench.discovery", "mqis")
        echo = serve(run.resources, "bench.discovery", "echo")
    own, other = DiscoveryServer(OWN), OWN.site_id
    sizes = {
        site: len(own.answer(TopologyClientRequest(other, other, site).to_bytes(), "", 0.0) or b"")
        for site in (SITE, Guid.NULL)
    }
    askers = {
        "reply of the own site": Asker(ours, SITE, 4, sizes[SITE]),
        "reply with eight servers": Asker(ours, Guid.NULL, 4, sizes[Guid.NULL]),
        ECHO: Asker(echo, SITE, 20, 52),
    }
    if cores.server == cores.clients:
        results.notes.append("discovery: one core for servers and load")
    loads: dict[str, list[Load]] = {name: [] for name in askers}

    def contender(name: str) -> Callable[[], Sample]:
        def sample() -> Sample:
            run.say(f"discovery: {name}")
            loads[name].append(askers[name].load(run.sample_s))
            return loads[name][-1].sample

        return sample

    with kept_to(cores.clients):
        samples = contest(run.rounds, {name: contender(name) for name in askers})
    for asker in askers.values():
        asker.close()
    _add_results(results, samples, loads)
    return results


def _add_results(
    results: Results, samples: dict[str, list[Sample]], loads: dict[str, list[Load]]
) -> None:
    table = f"{SOURCES:,} sources, {WINDOW} requests under way"
    for name, rounds in samples.items():
        peer = None if name == ECHO else (ECHO, samples[ECHO])
        operations = sum(sample.operations for sample in rounds)
        cpu_us = sum(load.server_cpu_s for load in loads[name]) * 1e6 / operations
        row = replace(Row.of(table, name, rounds, peer=peer), cpu_us=cpu_us)
        results.rows.append(row)
        share = median(load.client_share for load in loads[name])
        if share > BUSY:
            results.notes.append(f"{name}: the load generator was busy {share:.0%} of the time")
        if name != ECHO:
            goal = f">= {AIM_PER_SECOND:,} requests per second on one core, {name}"
            met = row.per_second >= AIM_PER_SECOND
            results.aims.append(Aim(goal, f"{row.per_second:,.0f}", met))


BENCH = Bench("discovery", "requests per second through a discovery responder", _run)


# --- servers --------------------------------------------------------------------------------------


class _Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._transport.sendto(data, addr)


async def _serve(kind: str) -> None:
    loop = asyncio.get_running_loop()
    if kind == "echo":
        transport, _ = await loop.create_datagram_endpoint(_Echo, local_addr=(ADDRESS, 0))
        print(transport.get_extra_info("sockname")[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.read)
        transport.close()
        return
    async with DiscoveryResponder(DiscoveryServer(OWN), lambda: OWN) as responder:
        print((await responder.listen(ADDRESS, 0)).port, flush=True)
        await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    (kind,) = sys.argv[1:]
    uvloop.run(_serve(kind))


if __name__ == "__main__":
    main()
