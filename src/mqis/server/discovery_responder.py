"""The discovery responder of a directory server, which answers from the server's store."""

from __future__ import annotations

import asyncio
import logging

from mqis.config.errors import ConfigError
from mqis.config.logs import details
from mqis.config.sections import DiscoverySection
from mqis.protocol.discovery.announced import DiscoveryQueueManager, queue_manager_of
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.protocol.discovery.limiter import RateLimit
from mqis.protocol.ports import Store, View
from mqis.runtime.discovery.responder import DiscoveryResponder
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

log = logging.getLogger(__name__)

#: Seconds after which the answer is read from the store again.
REFRESH_S = 5.0


async def start_discovery(
    section: DiscoverySection, store: Store, server_name: str, site_id: Guid
) -> tuple[DiscoveryResponder, int]:
    """Starts a responder; returns it with its port; raises ``OSError`` if it cannot listen."""

    def load() -> DiscoveryQueueManager:
        with store.read() as view:
            networks = _networks(view, section.networks)
            return queue_manager_of(view, server_name, site_id, networks)

    server = DiscoveryServer(
        await asyncio.to_thread(load),  # a store may be far away
        strict_enterprise=section.own_enterprise_only,
        limit=RateLimit(section.rate, section.burst),
        total=RateLimit(section.total_rate, 2 * section.total_rate),
        max_reply=section.max_reply,
    )
    if server.silent_because is not None:
        log.warning(
            "discovery is silent: %s; name connected networks in discovery.networks, or list them "
            "in the machine object of %s",
            *(server.silent_because, server_name),
        )
    responder = DiscoveryResponder(server, load, refresh_s=REFRESH_S)
    listening = await responder.listen(section.listen, section.port)
    log.info(
        "discovery",
        extra=details(
            address=listening.address, port=listening.port, broadcast=listening.broadcast
        ),
    )
    return responder, listening.port


def _networks(view: View, words: tuple[str, ...]) -> tuple[Guid, ...]:
    """Finds connected networks by name or GUID."""
    return tuple(_network(view, word) for word in words)


def _network(view: View, word: str) -> Guid:
    found = view.find(ObjectType.CN, word)
    if found is not None:
        return found.id
    try:
        return Guid.parse(word)
    except ValueError:
        known = ", ".join(sorted(n.path or "" for n in view.objects(ObjectType.CN)))
        raise ConfigError(
            f"discovery.networks: the directory has no connected network {word!r}; it has: {known}"
        ) from None
