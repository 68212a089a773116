"""UDP sockets for discovery, ready for an event loop."""

from __future__ import annotations

import socket

#: The buffer for a burst of requests; datagrams beyond it are lost.
_RECEIVE_BUFFER = 4 * 1024 * 1024


def listening_socket(address: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket bound to an address of a server.

    ``shared``: other sockets may bind the same address, and a broadcast reaches them all. That is
    for broadcast addresses only: of two servers at one address, only one would get a datagram.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        made.bind((address, port))
    except BaseException:
        made.close()
        raise
    return made


def broadcasting_socket(address: str) -> socket.socket:
    """A socket bound to an address of a client and to any free port (2.1)."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        made.bind((address, 0))
    except BaseException:
        made.close()
        raise
    return made
