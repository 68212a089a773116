"""Checks that the server's ports are free, or in use by the server itself."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

from mqis.config.sections import Config, ConfiguredRole
from mqis.findings import Area, Finding
from mqis.views.doctor.patient import Patient

_PORTS = Area("ports")

#: Socket type, address, port, and the key that sets it.
ListenedAt = tuple[int, str, int, str]


def addresses(config: Config) -> Iterator[ListenedAt]:
    """The addresses at which the server listens, as the configuration sets them."""
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    yield stream, config.rpc.listen, config.rpc.port, "rpc.port"
    if config.rpc.mapper:
        yield stream, config.rpc.listen, config.rpc.mapper_port, "rpc.mapper_port"
    if config.discovery.enabled:
        yield datagram, config.discovery.listen, config.discovery.port, "discovery.port"
    if config.server.role is not ConfiguredRole.NONE:
        address = config.replication.listen or config.rpc.listen
        yield stream, address, config.replication.port, "replication.port"
        if config.replication.ping:
            yield datagram, address, config.replication.ping_port, "replication.ping_port"
    if config.monitoring.enabled:
        yield stream, config.monitoring.listen, config.monitoring.port, "monitoring.port"


def check(patient: Patient) -> Iterator[Finding]:
    for kind, address, port, key in addresses(patient.config):
        if port:
            yield _finding(patient, kind, address, port, key)


def _finding(patient: Patient, kind: int, address: str, port: int, key: str) -> Finding:
    transport = "TCP" if kind == socket.SOCK_STREAM else "UDP"
    at = f"{transport} {address} {port}"
    taken = _why_taken(kind, address, port)
    if taken is None:
        if patient.running:
            todo = "see its log; while a server starts, it does not listen yet"
            return _PORTS.warning(
                f"{at} ({key}): the server is running, but does not listen there", todo
            )
        return _PORTS.ok(f"{at} ({key}) is free")
    if taken == errno.EADDRINUSE:
        if patient.running:
            return _PORTS.ok(f"{at} ({key}) is in use by this running server")
        if patient.running is None:
            return _PORTS.note(f"{at} ({key}) is in use", "by this server, if it is running")
        todo = f"stop the process that listens there, or choose another {key}"
        return _PORTS.error(f"{at} ({key}) is in use, and this server is not running", todo)
    hints = {
        errno.EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE",
        errno.EADDRNOTAVAIL: "this computer does not have that address",
    }
    todo = hints.get(taken, f"choose another {key}")
    return _PORTS.error(f"{at} ({key}): cannot listen: {os.strerror(taken)}", todo)


def _why_taken(kind: int, address: str, port: int) -> int | None:
    """The error number of listening there; None if the port is free."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as probe:
        if kind == socket.SOCK_STREAM:  # as servers do: connections that just ended do not count
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            if kind == socket.SOCK_STREAM:
                probe.listen(1)
        except OSError as error:
            return error.errno or errno.EADDRNOTAVAIL
    return None
