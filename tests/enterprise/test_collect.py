"""Several servers' own words put beside each other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.config.processlocks import ProcessLock
from mqis.enterprise.collect import Collector, collect
from mqis.enterprise.states import State, Supervised, Supervision, save_states
from mqis.runtime.freeports import free_port
from mqis.server.monitoring.status import NeighbourStatus, PartitionStatus, ServerStatus

ID = "473b5461-f218-4d03-9e35-6f2a93e465f0"


def told(server: str, last: int, *, authority: bool) -> dict[str, Any]:
    """The status of a server with one partition."""
    return ServerStatus(
        *(server, "psc", "Delft", "Acme", 42, 1000.0),
        (
            PartitionStatus(
                ID, "Delft", "a", authority, f"{last:016x}", "0" * 16, "0" * 16, "normal", 0
            ),
        ),
        (NeighbourStatus("b", True, 3, {}), NeighbourStatus("c", False, 4, {})),
        {"calls": 7.0},
    ).to_json()


class Fakes:
    """Endpoints whose answers a test changes."""

    def __init__(self) -> None:
        self.answers: dict[int, object] = {}
        self._servers: list[ThreadingHTTPServer] = []

    def add(self, answer: object) -> int:
        fakes = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(fakes.answers[self.server.server_address[1]]).encode()  # type: ignore[index]
                self.send_response(200 if self.path == "/status" else 404)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self._servers.append(server)
        self.answers[server.server_port] = answer
        return server.server_port

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


@contextmanager
def closing_fakes() -> Iterator[Fakes]:
    made = Fakes()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def fakes() -> Iterator[Fakes]:
    with closing_fakes() as made:
        yield made


def node(name: str, port: int) -> NodePlace:
    return NodePlace(name, "psc", "Delft", "127.0.0.1", 1, 2, 3, 4, port, *("",) * 5, 11, 2)


def test_a_replica_is_as_far_behind_as_its_authority_is_ahead(fakes: Fakes) -> None:
    a = fakes.add(told("a", 0x105, authority=True))
    b = fakes.add(told("b", 0x100, authority=False))
    found = collect(Nodes("Acme", (node("a", a), node("b", b)), 1))
    assert not found.converged
    assert [server.behind for server in found.servers] == [0, 5]
    first = found.servers[0]
    assert (first.up, first.queued, first.connected, first.neighbours) == (True, 7, 1, 2)
    assert (first.pid, first.restarts, first.counters["calls"]) == (42, 2, 7.0)
    shown = json.loads(json.dumps(found.to_json()))
    assert shown["servers"][1]["partitions"][0]["behind"] == 5
    assert shown["converged"] is False


def test_without_its_authority_nothing_is_said_of_a_partition(fakes: Fakes) -> None:
    b = fakes.add(told("b", 9, authority=False))
    found = collect(Nodes("Acme", (node("b", b), node("a", free_port()))))
    assert found.servers[0].partitions[0].behind is None
    assert not found.converged
    assert (found.servers[1].up, found.servers[1].state) == (False, "down")
    assert "refused" in found.servers[1].reason


def test_what_is_no_status_is_told(fakes: Fakes) -> None:
    found = collect(Nodes("Acme", (node("a", fakes.add({"server": "a"})),)))
    assert found.servers[0].reason.startswith("its answer is not understood")


def test_a_collector_remembers_since_when(fakes: Fakes, tmp_path: Path) -> None:
    a = fakes.add(told("a", 5, authority=True))
    b = fakes.add(told("b", 4, authority=False))
    save_nodes(tmp_path, Nodes("Acme", (node("a", a), node("b", b)), supervisor=77))
    collector = Collector(tmp_path)
    first = collector.collect()
    assert first.servers[1].behind_s == 0.0
    assert first.supervisor is None  # nobody holds the lock, whatever the file says
    later = collector.collect().servers[1].behind_s
    assert later is not None
    assert later > 0.0
    fakes.answers[b] = told("b", 5, authority=False)
    assert collector.collect().servers[1].behind_s is None
    fakes.answers[b] = told("b", 3, authority=False)
    assert collector.collect().servers[1].behind_s == 0.0


def test_the_supervisor_knows_why_a_server_is_away(tmp_path: Path) -> None:
    nodes = Nodes("Acme", (node("a", free_port()), node("b", free_port())))
    save_nodes(tmp_path, nodes)
    states = {
        "a": Supervised(State.FAILED, 1000.0, "status 1: no store"),
        "b": Supervised(State.STARTING, 2000.0),
    }
    save_states(tmp_path, Supervision("", False, states))
    lock = ProcessLock(tmp_path / "lock")
    assert lock.take()
    lock.name(4711)
    found = Collector(tmp_path).collect()
    assert found.supervisor == 4711
    assert [(s.state, s.since, s.reason) for s in found.servers] == [
        ("failed", 1000.0, "status 1: no store"),
        ("starting", 2000.0, ""),
    ]
    lock.let_go()
    alone = Collector(tmp_path).collect()
    assert [s.state for s in alone.servers] == ["failed", "down"]


def test_a_server_without_its_directory_is_neither_up_nor_equal(fakes: Fakes) -> None:
    """It tells how it is before it takes calls, and has nothing that could be behind."""
    empty = {**told("b", 0, authority=False), "partitions": []}
    nodes = Nodes(
        "Acme", (node("a", fakes.add(told("a", 5, authority=True))), node("b", fakes.add(empty)))
    )
    assert not collect(nodes).converged
    found = collect(nodes, {"b": Supervised(State.STARTING, 1.0)})
    assert [(s.up, s.state) for s in found.servers] == [(True, "ready"), (False, "starting")]
    assert collect(nodes, {"b": Supervised(State.READY, 1.0)}).servers[1].up
