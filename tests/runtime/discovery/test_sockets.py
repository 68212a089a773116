"""Sockets of discovery that cannot be bound: none stays open."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from mqis.runtime.discovery.networks import broadcasting_socket, listening_socket

#: An address for documents, which no computer has.
NOBODYS = "192.0.2.1"


@pytest.mark.parametrize(
    "build", [broadcasting_socket, lambda address: listening_socket(address, 0)]
)
def test_a_socket_that_cannot_be_bound_is_closed(
    build: Callable[[str], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []

    class Kept(socket.socket):
        def __init__(self, *arguments: int) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(socket, "socket", Kept)
    with pytest.raises(OSError, match="assign"):
        build(NOBODYS)
    assert [one.fileno() for one in made] == [-1]
