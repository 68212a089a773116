"""Fetches the status of a server, or the keys that it knows, from its monitoring endpoint."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from threading import Timer
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from mqis.files import system_reason
from mqis.server.monitoring.key_list import KnownKeys
from mqis.server.monitoring.status import ServerStatus
from mqis.wire.seqnum import SequenceNumber

Fetched = TypeVar("Fetched")

TIMEOUT_S = 2.0
#: The most seconds for a whole answer: one that comes byte by byte would hold its reader for ever.
WHOLE_S = 10.0
#: A status of a large enterprise has some hundred bytes for each partition and neighbour.
_MAX_BYTES = 8 << 20
#: The hexadecimal digits of a digest.
_DIGITS = 64


def fetch(monitor: str, timeout_s: float = TIMEOUT_S) -> ServerStatus | str:
    """Gets the status of a server from its monitoring URL; returns the reason if that fails."""
    return _fetched(monitor, "/status", lambda c: _checked(ServerStatus.from_json(c)), timeout_s)


def fetch_keys(monitor: str, servers: Sequence[str]) -> KnownKeys | str:
    """Gets the keys that a server accepts from others; returns the reason if that fails."""
    query = urlencode([("server", name) for name in servers])
    return _fetched(monitor, f"/keys?{query}", KnownKeys.from_json, TIMEOUT_S)


def _fetched(
    monitor: str, path: str, read: Callable[[Any], Fetched], timeout_s: float
) -> Fetched | str:
    try:
        return read(json.loads(_get(monitor, path, timeout_s)))
    except (OSError, HTTPException) as error:
        return f"does not answer at {monitor}: {_reason(error)}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return f"does not answer at {monitor} as a server does"


def _get(monitor: str, path: str, timeout_s: float) -> bytes:
    parts = urlsplit(monitor)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"{monitor!r} is not a monitoring address: write http://HOST:PORT")
    connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout_s)
    try:
        connection.connect()
        with _hanging_up(connection.sock):
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise HTTPException(f"status {answer.status}")
            return answer.read(_MAX_BYTES)
    finally:
        connection.close()


@contextmanager
def _hanging_up(connected: socket.socket) -> Iterator[None]:
    """Ends a connection after the time for a whole answer."""

    def hang_up() -> None:
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = Timer(WHOLE_S, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _reason(error: Exception) -> str:
    return system_reason(error)


def _checked(status: ServerStatus) -> ServerStatus:
    """Refuses a status with invalid numbers: raises ValueError or TypeError."""
    for partition in status.partitions:
        SequenceNumber.parse(partition.last_seq)
        SequenceNumber.parse(partition.purged_seq)
        for jump in partition.jumps:
            list(map(SequenceNumber.parse, jump))
        for digest in (partition.digest, partition.site_digest):
            if digest and (len(digest) != _DIGITS or int(digest, 16) < 0):
                raise ValueError(f"{digest!r} is not a digest")
        if not 0 <= int(partition.site_only) < 1 << 64:
            raise ValueError(f"{partition.site_only} is not a number of queues")
    for value in (*status.counters.values(), status.memory_bytes, *status.disk_free.values()):
        float(value)
    if not isinstance(status.version, str):
        raise ValueError(f"{status.version!r} is not a version")
    return status
