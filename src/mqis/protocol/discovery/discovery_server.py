"""The server of MS-MQSD 3.2: one reply for each request, from what the directory says.

    server = DiscoveryServer(queue_manager_of(view, "PSC1", site))
    reply = server.answer(data, "10.0.0.7", now)      # None: send no reply

It keeps no state of its own but the limit per source. Only requests are answered, never replies,
so that two servers cannot talk to each other for ever (E-MQSD-16).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from mqis.protocol.discovery.announced import DiscoveryQueueManager
from mqis.protocol.discovery.limiter import RateLimit, SharedLimiter
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import MAX_SERVERS, ServerSpec
from mqis.wire.mqsd.discovery_packet import MAX_REPLY, TopologyServerReply, with_correlation
from mqis.wire.mqsd.request import MAX_NETWORKS, TopologyClientRequest, read_identifiers

#: Bytes of a reply without its lists, and of each connected network.
_FIXED, _NETWORK = 48, 16


@dataclass(slots=True)
class DiscoveryStatistics:
    """Counts of datagrams since the start, by result."""

    answered: int = 0
    malformed: int = 0
    limited: int = 0
    foreign_enterprise: int = 0
    #: This server lacked the networks or the site that a reply has to name.
    unprepared: int = 0


class DiscoveryServer:
    """Answers clients; with ``strict_enterprise`` only those of its enterprise (E-MQSD-13)."""

    def __init__(
        self,
        queue_manager: DiscoveryQueueManager,
        *,
        strict_enterprise: bool = False,
        limit: RateLimit | None = None,
        total: RateLimit | None = None,
        max_reply: int = MAX_REPLY,
    ) -> None:
        """``limit`` bounds the answers to one source, ``total`` those to all together, and
        ``max_reply`` the bytes of one: the load that forged sources can direct at a victim."""
        self.statistics = DiscoveryStatistics()
        self.strict_enterprise = strict_enterprise
        self._limiter = SharedLimiter(limit or RateLimit(), total)
        self._max_reply = max_reply
        self.update(queue_manager)

    def update(self, queue_manager: DiscoveryQueueManager) -> None:
        """Prepares the replies anew from the current state of the directory."""
        self._queue_manager = queue_manager
        self._enterprise_id = queue_manager.enterprise_id.raw
        self._site_ids = frozenset(site_id.raw for site_id in queue_manager.site_ids)
        #: Own site first, then others; over IP and over IPX.
        self._replies = {
            ipx: (
                _own_site_reply(queue_manager, ipx, self._max_reply),
                _other_site_reply(queue_manager, ipx, self._max_reply),
            )
            for ipx in (False, True)
        }

    @property
    def queue_manager(self) -> DiscoveryQueueManager:
        return self._queue_manager

    @property
    def silent_because(self) -> str | None:
        """The reason that no client gets an answer; None if clients do."""
        if not self._queue_manager.connected_networks:
            return "the directory does not say which connected networks this server is on"
        if not self._queue_manager.site_ids:
            return "the directory does not say which site this server is in"
        return None

    def answer(self, data: bytes, source: str, now: float, *, ipx: bool = False) -> bytes | None:
        """The reply to the sender of a datagram (3.2.5.1); None: there is none."""
        try:
            if ipx:
                TopologyClientRequest.received(data, ipx=True)
            enterprise_id, request_id, site_id = read_identifiers(data)
        except WireError:
            self.statistics.malformed += 1
            return None
        if self.strict_enterprise and enterprise_id != self._enterprise_id:
            self.statistics.foreign_enterprise += 1
            return None
        own, other = self._replies[ipx]
        reply = own if site_id in self._site_ids else other
        if reply is None:
            self.statistics.unprepared += 1
            return None
        if not self._limiter.allows(source, now):
            self.statistics.limited += 1
            return None
        self.statistics.answered += 1
        return with_correlation(reply, request_id)


def _own_site_reply(own: DiscoveryQueueManager, ipx: bool, most: int) -> bytes | None:
    """The reply to clients of the own site; None if there is no network to name (E-MQSD-08)."""
    networks = _networks(own, most)
    if not networks:
        return None
    return TopologyServerReply(Guid.NULL, networks, _mask(networks, ipx)).to_bytes()


def _other_site_reply(own: DiscoveryQueueManager, ipx: bool, most: int) -> bytes | None:
    """The reply to clients of other sites.

    None if there is no server to name: size 0 would mean that this is the own site (E-MQSD-09).
    """
    networks = _networks(own, most // 2)
    servers = _specs(own.directory_servers, most - _FIXED - _NETWORK * len(networks))
    if not networks or not servers or not own.site_ids:
        return None
    mask = _mask(networks, ipx)
    return TopologyServerReply(Guid.NULL, networks, mask, own.site_id, servers).to_bytes()


def _networks(own: DiscoveryQueueManager, most: int) -> tuple[Guid, ...]:
    """The networks that fit into ``most`` bytes of a reply, one at least."""
    fitting = max(1, (most - _FIXED) // _NETWORK)
    return own.connected_networks[: min(MAX_NETWORKS, fitting)]


def _mask(networks: Sequence[Guid], ipx: bool) -> int:
    """The mask with as many bits as networks; the text does not say which, so the lowest."""
    return (1 << len(networks)) - 1 if ipx else 0


def _specs(names: Sequence[str], room: int) -> tuple[ServerSpec, ...]:
    """Each name with its two flags, which the text omits (E-MQSD-10): IP, no IPX.

    Names that the array cannot encode or that do not fit into the reply are left out.
    """
    specs: list[ServerSpec] = []
    room -= 2
    for name in names[:MAX_SERVERS]:
        with suppress(ValueError):
            spec = ServerSpec(name)
            room -= 2 * (len(str(spec)) + len(name) + 1)  # at most: two units a character
            if room < 0:
                break
            specs.append(spec)
    return tuple(specs)
