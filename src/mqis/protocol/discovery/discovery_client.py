"""The client of MS-MQSD 3.1: broadcasts on one network after the other and evaluates replies.

    client = DiscoveryClient(DiscoveryQueueManager(enterprise_id, (site_id,)))
    client.get_directory_server_list(networks, request_id, now)
    for broadcast in client.effects(): ...            # then perhaps broadcast_failed
    client.receive(network, source, data, now)
    client.next_timer(); client.handle_timer(now)
    while (event := client.next_event()) is not None: ...

After ``ServerListComplete``, ``queue_manager`` holds the lists. Names are hints: any machine
on a network can answer (5.1): the directory protocol has to authenticate the servers.

The text empties LastTopologyServerReply with every request and then fills the lists from it. Of
all 155 runs on one to three networks 59 would end in success with an empty network list. Wherever
the text would read an empty reply, this machine takes the reply just received, else the last
one that was stored in this run (E-MQSD-04, E-MQSD-05). The requests and their times are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mqis.protocol.discovery.announced import DiscoveryQueueManager, NetworkAddress
from mqis.protocol.discovery.events import (
    Broadcast,
    Discarded,
    Event,
    Passed,
    RequestBroadcast,
    ServerAnswered,
    ServerListComplete,
)
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest

#: Wait For Response (3.1.2.1).
WAIT_FOR_RESPONSE_S = 15.0


@dataclass(frozen=True, slots=True)
class Responder:
    """A server that answered. One of the own site sends no names, so only its address is known."""

    network: str
    source: str
    own_site: bool


class DiscoveryClient:
    """The elements of 3.1.1.2 under their names, and the rules over them.

    ``prefer_own_site``: a reply of the own site takes precedence over any list of another site,
    whichever came first. The rules adopt the foreign list; section 4 ignores it (E-MQSD-07).
    """

    def __init__(
        self,
        queue_manager: DiscoveryQueueManager,
        *,
        prefer_own_site: bool = False,
        timeout_s: float = WAIT_FOR_RESPONSE_S,
    ) -> None:
        self.queue_manager = queue_manager
        self.prefer_own_site = prefer_own_site
        self.timeout_s = timeout_s
        self.last_successful_network_address: str | None = None
        self.valid_last_successful_network_address = False
        self.request_id = Guid.NULL
        self.network_addresses: tuple[str, ...] = ()
        #: Counts from 1: it is incremented before it is used (E-MQSD-03).
        self.current_network_index = 0
        self.last_reply: TopologyServerReply | None = None
        self.reply_received = False
        #: The servers that answered in this run, in order (E-MQSD-06).
        self.responders: list[Responder] = []
        self._retained: TopologyServerReply | None = None
        self._own_site_reply: TopologyServerReply | None = None
        self._due: float | None = None
        self._effects: list[Broadcast] = []
        self._events: deque[Event] = deque()

    # --- higher-layer triggered events (3.1.4) ----------------------------------------------------

    def get_directory_server_list(
        self,
        networks: Sequence[NetworkAddress],
        request_id: Guid,
        now: float,
        *,
        force: bool = False,
    ) -> None:
        """Begins a run, up to ``ServerListComplete``; ``force``: even if a result is valid."""
        if self.running:
            raise ValueError("a discovery is already under way; wait for Finished")
        # The text adds to the list and never clears it (E-MQSD-15).
        self.network_addresses = tuple(dict.fromkeys(network.address for network in networks))
        dial_up = any(network.remote_access for network in networks)
        if self._earlier_result_is_valid() and not dial_up and not force:
            self._events.append(ServerListComplete(success=True, skipped=True))
            return
        self.request_id = request_id
        self.current_network_index = 0
        self.reply_received = False
        self._retained = self._own_site_reply = None
        self.responders = []
        if not self.network_addresses:  # no rule would ever end this run (E-MQSD-15)
            self._fail("this computer has no network to send the request on")
            return
        self._send(now)

    @property
    def running(self) -> bool:
        return self._due is not None

    def _earlier_result_is_valid(self) -> bool:
        """False also if the computer no longer has the address: it may have moved (E-MQSD-14)."""
        return (
            self.valid_last_successful_network_address
            and self.last_successful_network_address in self.network_addresses
        )

    # --- sending and receiving (3.1.5) ------------------------------------------------------------

    @property
    def current_network(self) -> str | None:
        """The network whose replies the run waits for; None outside of a run."""
        return self.network_addresses[self.current_network_index - 1] if self.running else None

    @property
    def _on_last_network(self) -> bool:
        return self.current_network_index == len(self.network_addresses)

    def _send(self, now: float) -> None:
        """Sends a request on the next network (3.1.5.1)."""
        self.current_network_index += 1
        self.last_reply = None
        self._due = now + self.timeout_s
        own = self.queue_manager
        request = TopologyClientRequest(own.enterprise_id, self.request_id, own.site_id)
        network = self.network_addresses[self.current_network_index - 1]
        self._effects.append(Broadcast(network, request.to_bytes()))
        self._events.append(RequestBroadcast(network))

    def receive(self, network: str, source: str, data: bytes, now: float) -> None:
        """Handles a datagram that came in on ``network``, from ``source`` (3.1.5.2)."""
        if not self.running:
            return
        reply = self._checked(network, source, data)
        if reply is None:
            return
        self.responders.append(Responder(network, source, reply.own_site))
        self._events.append(ServerAnswered(network, source, reply))
        if reply.own_site:
            self._receive_from_own_site(network, reply, now)
        else:
            self._receive_from_other_site(network, reply, now)

    def _checked(self, network: str, source: str, data: bytes) -> TopologyServerReply | None:
        """The reply in a packet; None if one of the first three rules discards it."""
        reason = "it came on another network than the one that is asked"
        if network == self.current_network:
            try:
                reply = TopologyServerReply.from_bytes(data)
            except WireError as error:
                reason = f"it is no reply: {error}"
            else:
                if reply.correlation_id == self.request_id:
                    return reply
                reason = "it answers another request"
        self._events.append(Discarded(network, source, reason))
        return None

    def _receive_from_own_site(self, network: str, reply: TopologyServerReply, now: float) -> None:
        self._own_site_reply = reply
        if self._on_last_network:
            self._note(network)
            self._succeed(self.last_reply or reply)
            return
        self._store(network, reply)
        self._send(now)

    def _receive_from_other_site(
        self, network: str, reply: TopologyServerReply, now: float
    ) -> None:
        if self.last_reply is None:
            self._store(network, reply)
            self._due = now + self.timeout_s
        elif self._on_last_network:
            self._succeed(self.last_reply)
            self._note(network)
        else:
            self._send(now)

    def _store(self, network: str, reply: TopologyServerReply) -> None:
        self.last_reply = self._retained = reply
        self.reply_received = True
        self._note(network)

    def _note(self, network: str) -> None:
        self.last_successful_network_address = network
        self.valid_last_successful_network_address = True

    # --- timer events (3.1.6) ---------------------------------------------------------------------

    def next_timer(self) -> float | None:
        return self._due

    def handle_timer(self, now: float) -> None:
        """Raises No Server Response if its timer has expired."""
        if self._due is not None and now >= self._due:
            waited = "nobody else answered" if self.last_reply is not None else "nobody answered"
            self._no_server_response(waited, now)

    def broadcast_failed(self, network: str, reason: str, now: float) -> None:
        """Goes on at once if the current request could not be sent: no answer will come."""
        if network == self.current_network:
            self._no_server_response(f"the request could not be sent: {reason}", now)

    def _no_server_response(self, reason: str, now: float) -> None:
        self._events.append(Passed(self.network_addresses[self.current_network_index - 1], reason))
        if not self._on_last_network:
            self._send(now)
            return
        stored = self.last_reply or self._retained
        if stored is None:
            self._fail("no directory server answered")
        else:
            self._succeed(stored)

    # --- the end of a run -------------------------------------------------------------------------

    def _succeed(self, stored: TopologyServerReply) -> None:
        """Populates both lists (3.1.7)."""
        if self.prefer_own_site and self._own_site_reply is not None:
            stored = self._own_site_reply
        found = replace(self.queue_manager, connected_networks=stored.connected_networks)
        if not stored.own_site:
            names = tuple(server.name for server in stored.servers)
            found = replace(found, directory_servers=names)
        self.queue_manager = found
        self._due = None
        self._events.append(ServerListComplete(success=True))

    def _fail(self, reason: str) -> None:
        self.valid_last_successful_network_address = False
        self._due = None
        self._events.append(ServerListComplete(success=False, reason=reason))

    # --- the driver's side ------------------------------------------------------------------------

    def effects(self) -> list[Broadcast]:
        """The requests to send since the last call."""
        taken, self._effects = self._effects, []
        return taken

    def next_event(self) -> Event | None:
        return self._events.popleft() if self._events else None
