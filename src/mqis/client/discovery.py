"""Discovery of directory servers by broadcast (MS-MQSD).

    servers = await discover_servers(site=site)
    async with await DirectoryClient.connect(servers) as directory: ...

Anybody on a network can answer: a discovered server has to authenticate itself on connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqis.client.servers import MAPPER_PORT, NoServerError, ServerAddress
from mqis.protocol.discovery.announced import DiscoveryQueueManager
from mqis.protocol.discovery.discovery_client import WAIT_FOR_RESPONSE_S, DiscoveryClient, Responder
from mqis.protocol.discovery.events import Event, ServerListComplete
from mqis.runtime.discovery.networks import local_networks, network_of
from mqis.runtime.discovery.responder import PORT
from mqis.runtime.discovery.seeker import Endpoint, Ground, Seeker
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.guid import Guid


@dataclass(frozen=True, slots=True)
class Discovered:
    """The result of one discovery run."""

    finished: ServerListComplete
    queue_manager: DiscoveryQueueManager
    responders: tuple[Responder, ...]

    def addresses(self, mapper_port: int = MAPPER_PORT) -> list[ServerAddress]:
        """The servers in the order to try them.

        Servers in the client's site give no names, so they are known by their source addresses
        (E-MQSD-06). Then come the names; if they cannot be resolved, the servers that gave them.
        """
        own = [r.source for r in self.responders if r.own_site]
        others = [r.source for r in self.responders if not r.own_site]
        hosts = dict.fromkeys((*own, *self.queue_manager.directory_servers, *others))
        return [ServerAddress(host, mapper_port=mapper_port) for host in hosts]


def grounds(
    networks: Sequence[str] = (), endpoints: Sequence[Endpoint] = (), port: int = PORT
) -> list[Ground]:
    """The places to ask: the endpoints if given, else these networks, else all networks."""
    if endpoints:
        return [Ground.at_endpoints(endpoints)]
    local = [network_of(address) for address in networks] if networks else local_networks()
    return [Ground.of(network, port) for network in local]


async def discover(
    where: Sequence[Ground],
    *,
    enterprise: Guid = Guid.NULL,
    site: Guid = Guid.NULL,
    prefer_own_site: bool = False,
    timeout_s: float = WAIT_FOR_RESPONSE_S,
    on_event: Callable[[Event], None] | None = None,
) -> Discovered:
    """Runs discovery once. It takes up to twice the timeout for each network."""
    own = DiscoveryQueueManager(enterprise, (site,) if site else ())
    client = DiscoveryClient(own, prefer_own_site=prefer_own_site, timeout_s=timeout_s)
    finished = await Seeker(client, SystemEntropy(), on_event).run(where)
    return Discovered(finished, client.queue_manager, tuple(client.responders))


async def discover_servers(
    *,
    networks: Sequence[str] = (),
    endpoints: Sequence[Endpoint] = (),
    port: int = PORT,
    enterprise: Guid = Guid.NULL,
    site: Guid = Guid.NULL,
    mapper_port: int = MAPPER_PORT,
    timeout_s: float = WAIT_FOR_RESPONSE_S,
) -> list[ServerAddress]:
    """Discovers servers to connect to, best first; ``NoServerError`` if none answers."""
    found = await discover(
        grounds(networks, endpoints, port), enterprise=enterprise, site=site, timeout_s=timeout_s
    )
    if not found.finished.success:
        raise NoServerError(f"no directory server was discovered: {found.finished.reason}")
    return found.addresses(mapper_port)
