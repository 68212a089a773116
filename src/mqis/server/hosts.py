"""Resolves the address of a machine's queue manager: by configuration, directory, then DNS."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address

from mqis.config.checks import as_host
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import Store
from mqis.protocol.queueing.limits import PORT
from mqis.protocol.queueing.replication_queue import canonical
from mqis.wire.errors import WireError
from mqis.wire.mqds.machine_address import AddressList, AddressType
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

_IP = (AddressType.IP, AddressType.IP_RAS)


class HostResolver:
    """Resolves machine names; called before each connection, so changes take effect at the next."""

    def __init__(self, store: Store, hosts: Iterable[tuple[str, str]] = (), port: int = 0) -> None:
        self._store = store
        self._port = port or PORT
        self._hosts: dict[str, tuple[str, int | None]] = {}
        self.use(hosts)

    def use(self, hosts: Iterable[tuple[str, str]]) -> None:
        """Replaces the entries of the section [hosts]."""
        self._hosts = {canonical(name): as_host(text) for name, text in hosts}

    async def __call__(self, machine: str) -> tuple[str, int]:
        """Returns address and port of a machine; raises ``OSError`` if no address is known."""
        listed = self._hosts.get(canonical(machine))
        if listed is not None:
            return listed[0], listed[1] or self._port
        obj = await asyncio.to_thread(self._machine, machine)  # a store may be far away
        known = None if obj is None else _address_of(obj)
        if known is not None:
            return known, self._port
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(machine, self._port, type=socket.SOCK_STREAM)
        return str(found[0][4][0]), self._port

    def _machine(self, name: str) -> DirectoryObject | None:
        with self._store.read() as view:
            return view.find(ObjectType.MACHINE, name)


def _address_of(machine: DirectoryObject) -> str | None:
    """The first IP address that the directory lists for a machine."""
    blob = machine.value(PropId.QM_ADDRESS)
    if not isinstance(blob, bytes):
        return None
    try:
        listed = AddressList.from_bytes(blob).addresses
    except WireError:
        return None
    return next((str(IPv4Address(a.address)) for a in listed if a.address_type in _IP), None)
