"""Attacks on the monitoring endpoint: connections that ask nothing and stay."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.runtime.http import MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS
from tests.cli.running import CONFIG, prepare, serving
from tests.waiting import DEADLINE_S

MONITORED = f"{CONFIG}\n[monitoring]\nenabled = true\nport = 0\n"
HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    directory = tmp_path_factory.mktemp("monitored")
    store = directory / "demo.db"
    with closing(open_store(str(store), create=True)) as made:
        demo.build(made)
    home = Path(directory / "server")
    prepare(home, store, MONITORED)
    with serving(home, "--json") as server:
        yield int(server.ready["monitoring_port"])


def held(stack: ExitStack, port: int, number: int, source: str, sent: bytes) -> list[socket.socket]:
    """Connections that stay open, and what they send at most is half a request."""
    made = []
    for _ in range(number):
        raw = socket.create_connection(("127.0.0.1", port), DEADLINE_S, source_address=(source, 0))
        made.append(stack.enter_context(raw))
        raw.sendall(sent)
    return made


def health(port: int, source: str = "127.0.0.1") -> int:
    connection = HTTPConnection("127.0.0.1", port, DEADLINE_S, source_address=(source, 0))
    with closing(connection):
        connection.request("GET", "/health")
        return connection.getresponse().status


@pytest.mark.req("SEC-7-08")
@pytest.mark.parametrize("sent", [b"", HALF], ids=["silent", "half"])
def test_silent_connections_keep_nobody_out_of_monitoring(port: int, sent: bytes) -> None:
    """Not even those who come from the same address."""
    with ExitStack() as stack:
        held(stack, port, 2 * MAX_CONNECTIONS, "127.0.0.2", sent)
        assert health(port, "127.0.0.1") == 200
        assert health(port, "127.0.0.2") == 200


@pytest.mark.req("SEC-7-08")
def test_an_address_has_so_many_connections_to_monitoring(port: int) -> None:
    """One more than it may have: the first of them is cut off, and those of others are not."""
    with ExitStack() as stack:
        (other,) = held(stack, port, 1, "127.0.0.3", HALF)
        first, *_ = held(stack, port, MAX_CONNECTIONS_PER_ADDRESS + 1, "127.0.0.2", b"")
        assert is_cut_off(first)
        other.sendall(b"y\r\n\r\n")
        assert other.recv(4096).startswith(b"HTTP/1.1 200 ")


def is_cut_off(raw: socket.socket) -> bool:
    raw.settimeout(DEADLINE_S)
    try:
        return raw.recv(1) == b""
    except ConnectionError:
        return True
