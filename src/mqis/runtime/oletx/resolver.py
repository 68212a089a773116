"""Resolvers: from a partner's name object to an address and a port (MS-CMPO 1.3.2)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping

from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.texts import host_port
from mqis.wire.cmpo.ixnremote import SYNTAX
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc import epmapper
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.rpc.tower import Tower

MAPPER_PORT = 135
_MAX_TOWERS = 4

Address = tuple[str, int]
#: Returns the address at which a partner serves IXnRemote; ``RpcConnectionError`` if unknown.
Resolver = Callable[[NameObject], Awaitable[Address]]


class MapperResolver:
    """Asks the endpoint mapper of the partner's host for the port of its CID.

    ``hosts`` has the address and mapper port of hosts that cannot be found by name at port 135.
    """

    def __init__(self, hosts: Mapping[str, Address] | None = None, timeout_s: float = 5.0) -> None:
        self._hosts = {host.upper(): address for host, address in (hosts or {}).items()}
        self._timeout_s = timeout_s
        self._caller: str | None = None

    def calling_back(self, caller: str) -> MapperResolver:
        """A resolver for a partner that has called from the address ``caller``.

        A caller may claim any host name. Unless ``hosts`` has its address, it has to be that of the
        call, so that a caller cannot make this side connect to third parties.
        """
        back = MapperResolver(timeout_s=self._timeout_s)
        back._hosts, back._caller = self._hosts, caller
        return back

    def add(self, host_name: str, address: str, mapper_port: int = MAPPER_PORT) -> None:
        self._hosts[host_name.upper()] = (address, mapper_port)

    async def __call__(self, name: NameObject) -> Address:
        known = self._hosts.get(name.host_name.upper())
        address, mapper_port = known or (name.host_name, MAPPER_PORT)
        if known is None and self._caller is not None:
            address = await _only_at(address, self._caller)
        return address, await find_port(address, mapper_port, name.cid, self._timeout_s)


async def _only_at(host: str, caller: str) -> str:
    """The address of ``caller``, if that is one of ``host``."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, MAPPER_PORT, type=socket.SOCK_STREAM)
    except OSError as error:
        raise RpcConnectionError(f"the address of {host} cannot be resolved: {error}") from error
    if caller not in {str(place[0]) for *_, place in found}:
        raise RpcConnectionError(f"{host} is not at {caller}, the address that the call came from")
    return caller


class FixedResolver:
    """Partners at fixed ports, by CID, without any endpoint mapper (the Server TCP Port)."""

    def __init__(self, addresses: Mapping[Guid, Address] | None = None) -> None:
        self._addresses = dict(addresses or {})

    def add(self, cid: Guid, address: str, port: int) -> None:
        self._addresses[cid] = (address, port)

    async def __call__(self, name: NameObject) -> Address:
        found = self._addresses.get(name.cid)
        if found is None:
            raise RpcConnectionError(f"the address of {name} is not known")
        return found


async def find_port(address: str, mapper_port: int, cid: Guid, timeout_s: float = 5.0) -> int:
    """The port of a partner, by ept_map for IXnRemote with the CID as object UUID."""
    tower = epmapper.TowerOctets(Tower.tcp(SYNTAX, 0, "0.0.0.0", NDR20).to_bytes())
    request = epmapper.MapAsked(cid, tower, ContextHandle.NULL, _MAX_TOWERS)
    client = await RpcClient.connect(
        address, mapper_port, [epmapper.SYNTAX], transfers=[NDR20], timeout_s=timeout_s
    )
    async with client:
        found = await invoke(
            client,
            epmapper.EPMAPPER,
            epmapper.EPT_MAP,
            request,
            given={"max_towers": _MAX_TOWERS},
            timeout_s=timeout_s,
        )
    for octets in found.towers:
        port = Tower.from_bytes(octets.octets).port if octets is not None else None
        if port:
            return port
    raise RpcConnectionError(
        f"the endpoint mapper at {host_port(address, mapper_port)} has no partner {cid}"
    )
