"""Free ports, for servers that have to know theirs before they listen."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress

LOOPBACK = "127.0.0.1"

#: Below the ephemeral ports (from 32768 on Linux), so that a server that was killed finds its
#: port free when it restarts.
_FIRST, _SPREAD, _TRIED = 12_000, 16_000, 4_000


def free_ports(count: int, address: str = LOOPBACK) -> list[int]:
    """``count`` different TCP ports of an address, free at this moment."""
    start = _FIRST + int.from_bytes(os.urandom(4), "big") % _SPREAD
    with ExitStack() as stack:
        found: list[int] = []
        for port in range(start, start + _TRIED):
            if len(found) == count:
                break
            with suppress(OSError):
                stack.enter_context(socket.create_server((address, port)))
                found.append(port)
    if len(found) < count:
        raise OSError(f"{address} has no {count} free ports in {start}..{start + _TRIED - 1}")
    return found


def free_port(address: str = LOOPBACK) -> int:
    return free_ports(1, address)[0]
