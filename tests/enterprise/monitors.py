"""Monitoring endpoints whose answers a test changes, and run directories that name them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mqis.config.nodes import NodePlace
from mqis.server.monitoring.status import NeighbourStatus, PartitionStatus, ServerStatus

PARTITION = "473b5461-f218-4d03-9e35-6f2a93e465f0"


def told(
    server: str, last: int, *, authority: bool = False, state: str = "normal"
) -> dict[str, Any]:
    """The status of a server with one partition."""
    numbers = f"{last:016x}", "0" * 16, "0" * 16
    return ServerStatus(
        *(server, "psc", "Delft", "Acme", 42, 1000.0),
        (PartitionStatus(PARTITION, "Delft", "a", authority, *numbers, state, 0),),
        (NeighbourStatus("b", True, 3, {}), NeighbourStatus("c", False, 4, {})),
        {"calls": 7.0},
    ).to_json()


class Monitors:
    """Endpoints whose answers a test changes."""

    def __init__(self) -> None:
        self.answers: dict[int, object] = {}
        self._servers: list[ThreadingHTTPServer] = []

    def add(self, answer: object) -> int:
        """Returns the port of a new endpoint."""
        monitors = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(monitors.answers[self.server.server_address[1]]).encode()  # type: ignore[index]
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
def closing_monitors() -> Iterator[Monitors]:
    made = Monitors()
    try:
        yield made
    finally:
        made.close()


def node(name: str, port: int, store: str = "") -> NodePlace:
    files = "", "", store, "", ""
    return NodePlace(name, "psc", "Delft", "127.0.0.1", 1, 2, 3, 4, port, *files, 11, 2)
