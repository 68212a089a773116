"""A run of discovery as words, one a network, and a model that knows nothing but the words.

``O`` is a reply of the own site, ``F`` one of another site, ``T`` the timer. What can happen on
one network is O, T, FO, FF or FT: a first foreign reply restarts the wait, anything else ends the
network's turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product

from mqis.protocol.discovery.announced import DiscoveryQueueManager, NetworkAddress
from mqis.protocol.discovery.discovery_client import DiscoveryClient
from mqis.protocol.discovery.events import Broadcast, Event
from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest

ENTERPRISE = Guid.parse("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
OWN_SITE = Guid.parse("dcc51bf6-d4ad-4543-8739-71568e8f9128")
OTHER_SITE = Guid.parse("e6eaba60-d1c6-11db-baac-0003ff4e2d22")
REQUEST_ID = Guid.parse("f291a103-e33c-ab4f-a930-be3a33e432dd")
OLD_NAMES, OLD_NETWORKS = ("old",), (Guid(b"old network here"),)

WORDS = ("O", "T", "FO", "FF", "FT")
RUNS = [run for count in (1, 2, 3) for run in product(WORDS, repeat=count)]


def network(index: int) -> str:
    return f"10.0.{index}.1"


@dataclass(frozen=True)
class Reply:
    """The ``place``-th reply of the network ``index``, which no other reply resembles."""

    index: int
    place: int
    own_site: bool

    @property
    def names(self) -> tuple[str, ...]:
        return () if self.own_site else (f"s{self.index}{self.place}", f"t{self.index}{self.place}")

    @property
    def networks(self) -> tuple[Guid, ...]:
        kind = "own" if self.own_site else "foreign"
        return (Guid(f"{kind:>8}{self.index:04}{self.place:04}".encode()),)

    def packet(self, request_id: Guid = REQUEST_ID) -> TopologyServerReply:
        if self.own_site:
            return TopologyServerReply(request_id, self.networks)
        servers = tuple(map(ServerSpec, self.names))
        return TopologyServerReply(request_id, self.networks, 0, OTHER_SITE, servers)


@dataclass(frozen=True)
class Result:
    """The end of a run: the reply that fills the lists, or none if it fails."""

    reply: Reply | None
    last_successful: str | None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.reply and self.reply.names) or OLD_NAMES

    @property
    def networks(self) -> tuple[Guid, ...]:
        return OLD_NETWORKS if self.reply is None else self.reply.networks


def replies_of(run: tuple[str, ...]) -> list[list[Reply]]:
    return [
        [Reply(i, p, letter == "O") for p, letter in enumerate(word) if letter != "T"]
        for i, word in enumerate(run)
    ]


def literal(run: tuple[str, ...]) -> Reply | None:
    """The final LastTopologyServerReply of a run according to the text; None if it is empty."""
    replies = replies_of(run)[-1]
    return replies[0] if run[-1].startswith("F") else None


def expected(run: tuple[str, ...], *, prefer_own_site: bool = False) -> Result:
    """By the text where that reads a reply; else as E-MQSD-04 and E-MQSD-05 repair it."""
    replies = replies_of(run)
    heard = [index for index, word in enumerate(run) if word != "T"]
    last = network(heard[-1]) if heard else None
    own = [reply for each in replies for reply in each if reply.own_site]
    if prefer_own_site and own:
        return Result(own[-1], last)
    if (read := literal(run)) is not None:
        return Result(read, last)
    if run[-1] == "O":
        return Result(replies[-1][0], last)
    #: Of each network before: an own-site reply takes the place of a foreign one before it.
    stored = [each[-1] if each[-1].own_site else each[0] for each in replies if each]
    return Result(stored[-1] if stored else None, last)


@dataclass
class Played:
    """A client after a run, and what it did meanwhile."""

    client: DiscoveryClient
    sent: list[Broadcast] = field(default_factory=list)
    sent_at: list[float] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    now: float = 1000.0

    def begin(self, count: int, *, force: bool = False, dial_up: bool = False) -> None:
        networks = [NetworkAddress(network(i), dial_up) for i in range(count)]
        self.client.get_directory_server_list(networks, REQUEST_ID, self.now, force=force)
        self.take()

    def take(self) -> None:
        for effect in self.client.effects():
            self.sent.append(effect)
            self.sent_at.append(self.now)
        while (event := self.client.next_event()) is not None:
            self.events.append(event)

    def reply(self, reply: Reply) -> None:
        data = reply.packet(self.client.request_id).to_bytes()
        self.client.receive(network(reply.index), f"{reply.index}.{reply.place}", data, self.now)
        self.take()

    def timer(self) -> None:
        due = self.client.next_timer()
        assert due is not None
        self.now = due
        self.client.handle_timer(self.now)
        self.take()


def client(*, prefer_own_site: bool = False) -> DiscoveryClient:
    own = DiscoveryQueueManager(ENTERPRISE, (OWN_SITE,), OLD_NAMES, OLD_NETWORKS)
    return DiscoveryClient(own, prefer_own_site=prefer_own_site)


def play(
    run: tuple[str, ...],
    *,
    prefer_own_site: bool = False,
    noise: Callable[[Played, int], None] | None = None,
) -> Played:
    """Every letter in turn, three seconds apart; ``noise`` happens before each of them."""
    played = Played(client(prefer_own_site=prefer_own_site))
    played.begin(len(run))
    for index, replies in enumerate(replies_of(run)):
        for reply in replies:
            played.now += 3
            if noise is not None:
                noise(played, index)
            played.reply(reply)
        if run[index].endswith("T"):
            if noise is not None:
                noise(played, index)
            played.timer()
    return played


def noises(played: Played, index: int) -> None:
    """Everything that has to be dropped, while the network ``index`` is asked."""
    due = played.client.next_timer()
    good = Reply(index, 9, own_site=True).packet()
    receive = played.client.receive
    for other in (index - 1, index + 1, 99):
        receive(network(other), "x", good.to_bytes(), played.now)
    here = network(index)
    receive(here, "x", replace(good, correlation_id=Guid(b"another request!")).to_bytes(), 0.0)
    request = TopologyClientRequest(ENTERPRISE, REQUEST_ID, OWN_SITE)
    for data in (b"", good.to_bytes()[:-1], good.to_bytes() + b"\0", request.to_bytes()):
        receive(here, "x", data, played.now)
    assert due is not None
    played.client.handle_timer(due - 0.001)
    played.take()
    assert played.client.next_timer() == due
