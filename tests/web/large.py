"""Run directories of large enterprises, whose servers answer as real ones do.

The servers are one listener in this process, with an address of 127.0.0.0/8 for each of them.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.server.monitoring.status import NeighbourStatus, PartitionStatus, ServerStatus
from mqis.testing.ports import free_ports
from tests.web.estates import make_estate
from tests.web.network import EstatePlan

#: The number of an authority that began by its clock.
BY_CLOCK = 0xCF14013FF9C3
#: Of more than a hundred sites, only these have a partition: all answers together would have
#: hundreds of megabytes.
MOST_PARTITIONS, _FEW = 101, 20
MOST_PEERS = 40


@dataclass(frozen=True)
class Large:
    """An enterprise of as many sites, each with one server; the last ones have faults."""

    sites: int
    #: Servers that do not answer, and before them, servers whose replicas are behind.
    away: int = 2
    behind: int = 3

    @property
    def plan(self) -> EstatePlan:
        return EstatePlan(self.sites, 2 * self.sites)

    @property
    def partitions(self) -> int:
        return min(self.sites, MOST_PARTITIONS if self.sites <= 100 else _FEW)

    def site(self, number: int) -> str:
        return self.plan.name(number)

    def server(self, number: int) -> str:
        """The name of the site's machine, as the store of the estate has it."""
        return f"{self.site(number).lower().replace(' ', '')}-gw"

    def lag(self, number: int) -> int:
        late = range(self.sites - self.away - self.behind, self.sites - self.away)
        return 2 + number % 3 if number in late else 0

    def answer(self, number: int) -> dict[str, Any]:
        partitions = (self._partition(number, site) for site in range(self.partitions))
        others = (n for n in range(min(self.sites, MOST_PEERS)) if n != number)
        away = self.sites - self.away
        peers = tuple(
            NeighbourStatus(self.server(n), n < away, 0 if n < away else 7, {}) for n in others
        )
        role = "psc" if number else "pec"
        return ServerStatus(
            *(self.server(number), role, self.site(number), "Estate", 1000 + number),
            time.time() - 86_400.0 * (1 + number % 9),
            tuple(partitions),
            peers,
            {"calls": 1000.0 * number, "connections": 3.0, "sessions": 5.0, "faults": number % 7},
            version="1.0.0",
            memory_bytes=(90 + number % 40) << 20,
            disk_free={"store": 12 << 30, "journal": 800 << 20},
        ).to_json()

    def _partition(self, number: int, site: int) -> PartitionStatus:
        last = BY_CLOCK + site - (self.lag(number) if site != number else 0)
        return PartitionStatus(
            f"{site:08x}-0000-0000-0000-000000000000",
            self.site(site),
            self.server(site),
            site == number,
            *(f"{last:016x}", f"{BY_CLOCK - 100:016x}", f"{0:016x}"),
            *("normal", 0),
        )

    def address(self, number: int) -> str:
        return f"127.9.{number // 250}.{number % 250 + 1}"


@contextmanager
def running(large: Large, home: Path) -> Iterator[Path]:
    """Yields a run directory, while the servers that are not away answer."""
    port = free_ports(1)[0]
    store = str(make_estate(home / "estate.db", large.plan))
    save_nodes(
        home, Nodes("Estate", tuple(_place(large, n, port, store) for n in range(large.sites)))
    )
    (home / "log").write_text(_LOG, encoding="utf-8")
    bodies = {large.address(n): json.dumps(large.answer(n)).encode() for n in _up(large)}
    loop, ready = asyncio.new_event_loop(), Event()
    thread = Thread(target=_serve, args=(loop, bodies, port, ready), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield home
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)


_LOG = """\
2026-11-17T08:00:00.250Z info mqis.server.serve: listening port=2879
2026-11-17T08:00:01.100Z warning mqis.audit: logon refused user=mallory peer=127.0.0.1
2026-11-17T08:00:02.900Z error mqis.server.replication: <b>the journal</b> is not written
"""


def _up(large: Large) -> range:
    return range(large.sites - large.away)


def _place(large: Large, number: int, port: int, store: str) -> NodePlace:
    home = Path(store).parent
    return NodePlace(
        large.server(number),
        "psc" if number else "pec",
        large.site(number),
        large.address(number),
        *(1, 2, 3, 4, port),
        str(home),
        "",
        store if number == 0 else "",
        "",
        str(home / "log"),
        1000 + number,
        int(number % 50 == 7),
    )


def _serve(
    loop: asyncio.AbstractEventLoop, bodies: dict[str, bytes], port: int, ready: Event
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = bodies[writer.get_extra_info("sockname")[0]]
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    asyncio.set_event_loop(loop)
    server = loop.run_until_complete(asyncio.start_server(answer, list(bodies), port, backlog=64))
    ready.set()
    loop.run_forever()
    server.close()
    loop.close()
