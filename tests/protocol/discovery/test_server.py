"""The server of MS-MQSD 3.2: what it answers, what it leaves unanswered, and how often."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.discovery.announced import DiscoveryQueueManager, NetworkAddress
from mqis.protocol.discovery.discovery_client import DiscoveryClient
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.protocol.discovery.limiter import RateLimit, RateLimiter
from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest
from tests.wire.mqsd.vectors import (
    CLIENT_SITE,
    ENTERPRISE,
    NETWORK,
    OTHER_SITE,
    OTHER_SITE_BYTES,
    OWN_SITE_BYTES,
    REQUEST,
    REQUEST_BYTES,
    REQUEST_ID,
)

SOURCE = "10.0.0.7"
#: Of the examples of section 4.
PEC = DiscoveryQueueManager(ENTERPRISE, (OTHER_SITE,), ("nt4pec",), (NETWORK,))
HERE = replace(PEC, site_ids=(CLIENT_SITE,))


def answered(
    own: DiscoveryQueueManager, request: TopologyClientRequest = REQUEST, *, ipx: bool = False
) -> TopologyServerReply | None:
    data = DiscoveryServer(own).answer(request.to_bytes(), SOURCE, 0.0, ipx=ipx)
    return None if data is None else TopologyServerReply.from_bytes(data)


# --- what is answered -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "reply"),
    [
        pytest.param(HERE, OWN_SITE_BYTES, marks=pytest.mark.req("MQSD-2.2.3-06")),
        pytest.param(PEC, OTHER_SITE_BYTES, marks=pytest.mark.req("MQSD-2.2.3-07")),
    ],
    ids=["own site", "other site"],
)
def test_the_examples(own: DiscoveryQueueManager, reply: bytes) -> None:
    assert DiscoveryServer(own).answer(REQUEST_BYTES, SOURCE, 0.0) == reply


@given(st.binary(min_size=16, max_size=16).map(Guid))
@pytest.mark.req("MQSD-2.2.3-02", "MQSD-2.2.2-03")
def test_the_request_is_named(request_id: Guid) -> None:
    for own in (HERE, PEC):
        reply = answered(own, replace(REQUEST, request_id=request_id))
        assert reply is not None
        assert reply.correlation_id == request_id


@pytest.mark.parametrize("count", [1, 2, 32])
@pytest.mark.req("MQSD-3.2.5.1-02")
def test_all_networks_are_told(count: int) -> None:
    networks = tuple(Guid(bytes([n]) * 16) for n in range(count))
    for own in (HERE, PEC):
        reply = answered(replace(own, connected_networks=networks))
        assert reply is not None
        assert reply.correlation_id == REQUEST_ID
        assert reply.connected_networks == networks


@pytest.mark.req("MQSD-2.2.3-03")
def test_without_a_network_there_is_no_answer_and_with_many_the_first_thirty_two() -> None:
    """A count of 0 would be no reply at all (E-MQSD-08)."""
    for own in (HERE, PEC):
        assert answered(replace(own, connected_networks=())) is None
        many = tuple(Guid(bytes([n]) * 16) for n in range(40))
        reply = answered(replace(own, connected_networks=many))
        assert reply is not None
        assert reply.connected_networks == many[:32]


@pytest.mark.parametrize("count", [1, 5, 32])
@pytest.mark.req("MQSD-2.2.3-04", "MQSD-3.2.5.1-03", "MQSD-3.2.5.1-04")
def test_the_mask_is_empty_over_ip_and_counts_over_ipx(count: int) -> None:
    networks = tuple(Guid(bytes([n]) * 16) for n in range(count))
    for own in (HERE, PEC):
        full = replace(own, connected_networks=networks)
        over_ip = answered(full, replace(REQUEST, ipx_networks=(1, 2)))
        over_ipx = answered(full, replace(REQUEST, ipx_networks=(1, 2)), ipx=True)
        assert over_ip is not None
        assert over_ipx is not None
        assert over_ip.connected_network_mask == 0
        assert over_ipx.connected_network_mask.bit_count() == count
        assert replace(over_ipx, connected_network_mask=0) == over_ip


@pytest.mark.parametrize("site", [CLIENT_SITE, OTHER_SITE, ENTERPRISE])
@pytest.mark.req("MQSD-3.2.5.1-05")
def test_any_site_of_the_server_is_its_own(site: Guid) -> None:
    own = replace(PEC, site_ids=(CLIENT_SITE, OTHER_SITE))
    reply = answered(own, replace(REQUEST, site_id=site))
    assert reply is not None
    assert reply.own_site == (site != ENTERPRISE)
    assert reply.responding_site_id == (CLIENT_SITE if site == ENTERPRISE else None)


@pytest.mark.req("MQSD-3.2.5.1-06")
def test_all_servers_are_told_with_their_flags() -> None:
    own = replace(PEC, directory_servers=("nt4pec", "psc2", "bsc3"))
    data = DiscoveryServer(own).answer(REQUEST_BYTES, SOURCE, 0.0)
    assert data is not None
    assert data[48:64] == OTHER_SITE.raw
    assert data[64:].decode("utf-16-le") == "10nt4pec,10psc2,10bsc3\0"
    assert data[28:32] == len(data[64:]).to_bytes(4, "little")


@pytest.mark.req("MQSD-2.2.3-11")
def test_without_a_server_to_name_another_site_gets_no_answer() -> None:
    """Size 0 would tell the client that this is its own site (E-MQSD-09)."""
    for names in ((), ("a,b",), ("",)):
        assert answered(replace(PEC, directory_servers=names)) is None
    assert answered(replace(HERE, directory_servers=())) is not None


def test_a_name_that_the_array_cannot_spell_is_left_out() -> None:
    reply = answered(replace(PEC, directory_servers=("a", "b,c", "d")))
    assert reply is not None
    assert reply.servers == (ServerSpec("a"), ServerSpec("d"))


def test_more_servers_than_a_datagram_holds() -> None:
    names = tuple(f"{n:04}" + "x" * 240 for n in range(1000))
    data = DiscoveryServer(replace(PEC, directory_servers=names)).answer(REQUEST_BYTES, "", 0.0)
    assert data is not None
    assert len(data) <= 65_507
    listed = tuple(server.name for server in TopologyServerReply.from_bytes(data).servers)
    assert listed == names[: len(listed)]
    assert len(listed) > 50


@pytest.mark.req("MQSD-3.2.1.1-01")
def test_the_directory_may_change() -> None:
    server = DiscoveryServer(PEC)
    assert server.answer(REQUEST_BYTES, SOURCE, 0.0) == OTHER_SITE_BYTES
    server.update(HERE)
    assert server.answer(REQUEST_BYTES, SOURCE, 0.0) == OWN_SITE_BYTES
    assert server.queue_manager == HERE


@pytest.mark.req("MQSD-2.2.1-03")
def test_version_and_reserved_of_a_request_are_ignored() -> None:
    data = b"\xff\x01\xff\xff" + REQUEST_BYTES[4:]
    assert DiscoveryServer(PEC).answer(data, SOURCE, 0.0) == OTHER_SITE_BYTES


@pytest.mark.parametrize("size", [52, 56, 59, 60, 200])
@pytest.mark.req("MQSD-3.2.5.1-01")
def test_longer_requests_are_answered(size: int) -> None:
    data = (REQUEST_BYTES + b"\xff" * 200)[:size]
    assert DiscoveryServer(PEC).answer(data, SOURCE, 0.0) == OTHER_SITE_BYTES


# --- what is not answered -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(REQUEST_BYTES[:51], id="51 bytes"),
        pytest.param(b"\0\0" + REQUEST_BYTES[2:], id="type 0"),
        pytest.param(OWN_SITE_BYTES, id="own-site reply"),
        pytest.param(OTHER_SITE_BYTES, id="other-site reply"),
    ],
)
@pytest.mark.req("MQSD-2.2.1-04", "MQSD-2.1-04")
def test_what_is_no_request_gets_no_answer(data: bytes) -> None:
    server = DiscoveryServer(PEC)
    assert server.answer(data, SOURCE, 0.0) is None
    assert (server.statistics.malformed, server.statistics.answered) == (1, 0)


@given(st.binary(max_size=100))
def test_garbage_is_answered_only_if_it_is_a_request(data: bytes) -> None:
    reply = DiscoveryServer(PEC).answer(data, SOURCE, 0.0)
    assert (reply is not None) == (len(data) >= 52 and data[1] == 1)


def test_two_servers_do_not_answer_each_other() -> None:
    one, two = DiscoveryServer(PEC), DiscoveryServer(HERE)
    reply = one.answer(REQUEST_BYTES, "two", 0.0)
    assert reply is not None
    assert two.answer(reply, "one", 0.0) is None


@pytest.mark.req("MQSD-3.2.1.1-01")
def test_another_enterprise_is_answered_unless_told_otherwise() -> None:
    stranger = replace(REQUEST, enterprise_id=NETWORK).to_bytes()
    assert DiscoveryServer(PEC).answer(stranger, SOURCE, 0.0) is not None
    strict = DiscoveryServer(PEC, strict_enterprise=True)
    assert strict.answer(stranger, SOURCE, 0.0) is None
    assert strict.statistics.foreign_enterprise == 1
    assert strict.answer(REQUEST_BYTES, SOURCE, 0.0) == OTHER_SITE_BYTES


def test_why_nobody_is_answered() -> None:
    assert DiscoveryServer(PEC).silent_because is None
    lacking = {
        "connected networks": replace(PEC, connected_networks=()),
        "site": replace(PEC, site_ids=()),
    }
    for word, own in lacking.items():
        server = DiscoveryServer(own)
        assert word in (server.silent_because or "")
        assert server.answer(REQUEST_BYTES, SOURCE, 0.0) is None
        assert server.statistics.unprepared == 1


# --- how often ------------------------------------------------------------------------------------


@pytest.mark.departs("MQSD-3.2.5-01")
def test_a_source_is_answered_as_often_as_the_limit_says() -> None:
    server = DiscoveryServer(PEC, limit=RateLimit(per_second=2, burst=3))

    def answers(source: str, now: float) -> int:
        got = [server.answer(REQUEST_BYTES, source, now) for _ in range(10)]
        return sum(reply is not None for reply in got)

    assert answers("a", 0.0) == 3
    assert answers("b", 0.0) == 3
    assert answers("a", 0.4) == 0
    assert answers("a", 1.0) == 2
    assert answers("a", 100.0) == 3
    assert server.statistics.answered == 3 + 3 + 2 + 3
    assert server.statistics.limited == 50 - 11


def test_what_is_not_answered_costs_nothing() -> None:
    server = DiscoveryServer(PEC, limit=RateLimit(per_second=1, burst=1))
    for _ in range(10):
        server.answer(OWN_SITE_BYTES, SOURCE, 0.0)
    assert server.answer(REQUEST_BYTES, SOURCE, 0.0) is not None


_SOURCES, _BURST, _RATE = 4, 3, 2.0
_limits = st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1.0, allow_subnormal=False)))


@given(_limits)
def test_no_source_ever_gets_more_and_few_are_remembered(
    arrivals: list[tuple[int, float]],
) -> None:
    """Whatever others send: in every stretch of time at most the burst and what it earns."""
    limiter = RateLimiter(RateLimit(_RATE, _BURST, _SOURCES))
    given_out: dict[int, list[float]] = {}
    now = 0.0
    for source, later in arrivals:
        now += later
        if limiter.allows(str(source), now):
            given_out.setdefault(source, []).append(now)
        assert len(limiter) <= _SOURCES
    for times in given_out.values():
        for start in range(len(times)):
            for end in range(start, len(times)):
                earned = _BURST + _RATE * (times[end] - times[start])
                assert end - start + 1 <= earned + 1e-6


def test_a_full_table_makes_room_for_who_is_new() -> None:
    limiter = RateLimiter(RateLimit(per_second=1, burst=5, sources=3))
    for _ in range(5):
        assert limiter.allows("busy", 0.0)
    assert limiter.allows("b", 0.0)
    assert limiter.allows("c", 0.0)
    assert not limiter.allows("new", 0.5)  # all are active
    assert limiter.allows("new", 1.0)  # b has nothing to be remembered of, though busy came first
    assert not limiter.allows("busy", 0.99)
    assert len(limiter) == 3


@pytest.mark.parametrize("wrong", [{"per_second": 0}, {"burst": 0}, {"sources": 0}])
def test_a_limit_allows_something(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        RateLimit(**wrong)


# --- joined to a client ---------------------------------------------------------------------------


@pytest.mark.req("MQSD-1.3-01", "MQSD-1.3-02")
def test_a_client_and_two_servers() -> None:
    """A client without a site gets the names of every site, and each server answers once."""
    for sites, names, networks in (
        ((), ("nt4pec",), PEC.connected_networks),
        ((OTHER_SITE,), (), PEC.connected_networks),
    ):
        servers = [DiscoveryServer(PEC), DiscoveryServer(HERE)]
        client = DiscoveryClient(DiscoveryQueueManager(ENTERPRISE, sites))
        client.get_directory_server_list([NetworkAddress("10.0.0.1")], REQUEST_ID, 0.0)
        (sent,) = client.effects()
        for server in servers:
            reply = server.answer(sent.data, "10.0.0.1", 0.0)
            assert reply is not None
            assert TopologyServerReply.from_bytes(reply).own_site == (
                server.queue_manager.site_ids == sites
            )
            client.receive("10.0.0.1", "server", reply, 1.0)
        assert not client.running
        assert client.queue_manager.directory_servers == names
        assert client.queue_manager.connected_networks == networks
        assert [server.statistics.answered for server in servers] == [1, 1]


def test_a_reply_is_no_longer_than_it_may_be() -> None:
    """Networks take half of it at most, where servers are to be named."""
    many = DiscoveryQueueManager(
        Guid(b"an enterprise..."),
        (Guid(b"a site.........."),),
        tuple(f"server-{n:03}" for n in range(300)),
        tuple(Guid(n.to_bytes(16, "big")) for n in range(1, 200)),
    )
    for most in (512, 1400, 9000):
        server = DiscoveryServer(many, max_reply=most, limit=RateLimit(1000, 1000))
        for site in (Guid(b"a site.........."), Guid.NULL):
            request = TopologyClientRequest(Guid.NULL, Guid(b"number of asking"), site)
            reply = server.answer(request.to_bytes(), "10.0.0.1", 0.0)
            assert reply is not None
            assert 300 < len(reply) <= most
            found = TopologyServerReply.from_bytes(reply)
            assert found.own_site == bool(site)
            assert found.own_site or found.servers[0].name == "server-000"
