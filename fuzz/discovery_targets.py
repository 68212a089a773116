"""Targets for both discovery machines: they must survive any datagram."""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.discovery.announced import DiscoveryQueueManager, NetworkAddress
from mqis.protocol.discovery.discovery_client import DiscoveryClient
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.protocol.discovery.events import ServerListComplete
from mqis.protocol.discovery.limiter import RateLimit
from mqis.wire.guid import Guid
from mqis.wire.mqsd.discovery_packet import TopologyServerReply

#: The request of the replies in the corpus.
REQUEST_ID = Guid.parse("f291a103-e33c-ab4f-a930-be3a33e432dd")
_SITE = Guid.parse("dcc51bf6-d4ad-4543-8739-71568e8f9128")
_OWN = DiscoveryQueueManager(_SITE, (_SITE,), ("psc1",), (_SITE,))
_NETWORKS = ("10.0.0.1", "10.0.1.1")


def server(data: bytes) -> None:
    """Checks that only requests are answered, and with a valid reply; over IP and over IPX."""
    machine = DiscoveryServer(_OWN, limit=RateLimit(sources=4))
    for ipx in (False, True):
        reply = machine.answer(data, "10.0.0.7", 0.0, ipx=ipx)
        if reply is not None:
            assert data[1] == 1, "a datagram that is not a request was answered"
            assert TopologyServerReply.from_bytes(reply).correlation_id.raw == data[20:36]


def client(data: bytes) -> None:
    """Feeds the same datagram until the run ends; checks that the lists are those of a reply."""
    machine = DiscoveryClient(_OWN)
    machine.get_directory_server_list([NetworkAddress(n) for n in _NETWORKS], REQUEST_ID, 0.0)
    for now in range(100):
        for network in _NETWORKS:
            machine.receive(network, "10.0.0.7", data, float(now))
        machine.handle_timer(float(now))
    last = None
    while (event := machine.next_event()) is not None:
        last = event
    assert isinstance(last, ServerListComplete), "the run outlived its timers"
    assert [sent.network for sent in machine.effects()] == list(_NETWORKS)
    assert machine.queue_manager.connected_networks
    assert all(machine.queue_manager.directory_servers)


#: Name, function, and the errors that it may raise: none.
DISCOVERY_TARGETS: tuple[tuple[str, Callable[[bytes], None], tuple[type[Exception], ...]], ...] = (
    ("discovery-server", server, ()),
    ("discovery-client", client, ()),
)
