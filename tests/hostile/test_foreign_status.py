"""The monitoring endpoint of another server, which somebody else has taken over."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from mqis.server.monitoring import fetching
from mqis.server.monitoring.fetching import fetch
from tests.waiting import DEADLINE_S

HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Accepts one connection and answers it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        peer, _ = listener.accept()
        with peer, suppress(OSError):
            answer(peer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        thread.join(DEADLINE_S)
        listener.close()
        assert not thread.is_alive()


@pytest.mark.req("SEC-12-08")
@pytest.mark.parametrize("start", [b"", HEAD])
def test_an_answer_byte_by_byte_does_not_hold_its_reader(
    monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    """Each byte comes in time, the answer never ends."""
    monkeypatch.setattr(fetching, "WHOLE_S", 0.3)
    most = 100
    sent: list[bytes] = []
    read = threading.Event()

    def drip(peer: socket.socket) -> None:
        peer.sendall(start)
        while len(sent) < most and not read.wait(0.05):
            peer.sendall(b"1")
            sent.append(b"1")

    with answering(drip) as url:
        found = fetch(url)
        read.set()
        assert "does not answer" in str(found)
        assert len(sent) < most


@pytest.mark.req("SEC-12-08")
def test_an_answer_without_end_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_MAX_BYTES", 1 << 16)
    sent: list[int] = []

    def pour(peer: socket.socket) -> None:
        peer.sendall(HEAD)
        while len(sent) < 1000:
            peer.sendall(b"[" * (1 << 16))
            sent.append(1)

    with answering(pour) as url:
        assert str(fetch(url)).endswith("as a server does")
    assert len(sent) < 1000


@pytest.mark.req("SEC-12-08")
@pytest.mark.parametrize("content", [7, [], {"server": "a"}, {"partitions": [{"digest": "zz"}]}])
def test_what_is_no_status_is_no_server(content: object) -> None:
    def answer(peer: socket.socket) -> None:
        peer.recv(4096)
        peer.sendall(HEAD + json.dumps(content).encode())

    with answering(answer) as url:
        assert str(fetch(url)).endswith("as a server does")
