"""Ports that nobody has, for servers that need to know theirs before they listen."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress

LOOPBACK = "127.0.0.1"

#: Below those that the system gives to whoever connects (from 32768 on Linux): a server that was
#: killed finds its own port free when it comes back.
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
        raise OSError(f"no {count} free ports at {address} from {start} on")
    return found


def free_port(address: str = LOOPBACK) -> int:
    return free_ports(1, address)[0]
